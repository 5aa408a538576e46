"""Counts, the empirical model, and optimism: formulas, and what optimism promises."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cmdpax
import learning_reference
import reference
from cmdpax.jax_context import cast
from cmdpax.learners.statistics import (
    Knowledge,
    OptimisticModel,
    Trajectory,
    empty_statistics,
    optimistic_model,
    record,
)
from cmdpax.learners.truncated_evaluation import evaluate
from cmdpax.model.evaluation import signal_array
from cmdpax.model.transitions import at_step, backup_signals, support_of
from lanes import quick_or_whole
from learning_cases import PROFILES, logged, model

pytestmark = pytest.mark.usefixtures("double_precision")


def knowledge_of(cmdp: cmdpax.CMDP, profile: cmdpax.Optimism) -> Knowledge:
    model = cast(cmdp, float)
    return Knowledge(
        cmdp.sizes,
        model.initial,
        model.thresholds,
        signal_array(model) if profile.rewards == "known" else None,
        support_of(model.transitions),
        cast(profile.numbers(cmdp.sizes), float),
    )


def optimistic(
    cmdp: cmdpax.CMDP, profile: cmdpax.Optimism, num_episodes: int = 40
) -> OptimisticModel:
    """Of the first episodes of a log, row by row."""
    knowledge = knowledge_of(cmdp, profile)
    statistics = empty_statistics(knowledge)
    log = logged(cmdp)
    episodes = Trajectory(
        jnp.asarray(log.states[:num_episodes], jnp.int32),
        jnp.asarray(log.actions[:num_episodes], jnp.int32),
        jnp.asarray(log.rewards[:num_episodes], float),
        jnp.asarray(log.constraint_rewards[:num_episodes], float),
    )
    if num_episodes:
        statistics, _ = jax.lax.scan(
            lambda state, e: (record(knowledge, state, e), None), statistics, episodes
        )
    return optimistic_model(knowledge, statistics)


def rows_of(found: OptimisticModel) -> np.ndarray:
    """p̂ as `[H, S, A, S]`, whatever its storage."""
    steps = found.transitions
    if type(steps) is not tuple:
        horizon = found.signals.shape[0]
        steps = [at_step(steps, step) for step in range(horizon)]
    num_states = found.signals.shape[2]
    identity = jnp.eye(num_states)
    rows = [backup_signals(step, identity) for step in steps]  # p̂ applied to indicators
    return np.moveaxis(np.asarray(rows), 1, -1)


def guess_of(
    cmdp: cmdpax.CMDP, profile: cmdpax.Optimism, num_episodes: int
) -> learning_reference.Guess:
    """The reference's, recomputed from all episodes."""
    memory = learning_reference.Memory(reference.densify(cmdp), profile._asdict())
    if isinstance(cmdp.transitions, cmdpax.Successors):
        memory.support = reference.densify(cmdp).transitions > 0
    for episode in list(zip(*logged(cmdp), strict=True))[:num_episodes]:
        memory.count(*episode)
    return memory.guess()


MODELS = {
    "dense": functools.partial(model, 2),
    "dense, long": functools.partial(cmdpax.environments.make, "queue", horizon=20, capacity=3),
    "lists": functools.partial(
        cmdpax.environments.make, "gridworld", layout="S.1/..G", horizon=4, slip=0.2
    ),
    "lists, long": functools.partial(
        cmdpax.environments.make, "gridworld", layout="S.1/..G", horizon=20, slip=0.2
    ),
}


@pytest.mark.parametrize(
    "storage", [quick_or_whole(name, quick="long" not in name) for name in MODELS]
)
@pytest.mark.parametrize("num_episodes", [0, 1, 40])
@pytest.mark.parametrize("name", PROFILES)
def test_rows_updated_are_rows_recomputed(name: str, num_episodes: int, storage: str) -> None:
    profile, cmdp = PROFILES[name], MODELS[storage]()
    expected = guess_of(cmdp, profile, num_episodes)
    found = optimistic(cmdp, profile, num_episodes)
    signals = np.moveaxis(np.concatenate([expected.rewards[None], expected[1]]), 0, 1)
    close: dict[str, Any] = {"rtol": 0, "atol": 1e-12}
    np.testing.assert_allclose(np.array(found.signals), signals, **close)
    np.testing.assert_allclose(rows_of(found), expected.transitions, **close)
    np.testing.assert_allclose(found.transition_bonus, expected.transition_bonus, **close)


def test_the_theorys_constants() -> None:
    """By hand: I = 2, H = 3, S = 4, A = 5, K = 1000, δ = 0.3."""
    sizes = cmdpax.Sizes(2, 3, 4, 5)
    found = cmdpax.Optimism.theory(1000, failure_probability=0.3).numbers(sizes)
    assert found.reward == pytest.approx(math.sqrt(0.5 * math.log(2 * 60 * 3 * 1000 / 0.1)))
    assert found.transition == pytest.approx(3 * math.sqrt(8 + 2 * math.log(60 * 1000 / 0.1)))
    assert found.unvisited_mass == 0
    half = cmdpax.Optimism.theory(1000, failure_probability=0.3, scale=0.5).numbers(sizes)
    assert (half.reward, half.transition) == pytest.approx((found.reward / 2, found.transition / 2))


def test_the_profiles_choices() -> None:
    empirical, live = cmdpax.Optimism.empirical(), cmdpax.Optimism.live()
    theory = cmdpax.Optimism.theory(10)
    assert (empirical.bonus, empirical.scale, empirical.rewards) == ("count", 0.08, "known")
    assert (live.bonus, live.scale, live.rewards) == ("count", 0.3, "estimated")
    assert (empirical.unvisited_rows, live.unvisited_rows) == ("uniform", "uniform")
    assert live.unvisited_rewards == 1
    assert (theory.rewards, theory.unvisited_rows, theory.scale) == ("estimated", "zero", 1.0)
    numbers = live.numbers(cmdpax.Sizes(1, 2, 4, 3))
    assert (numbers.reward, numbers.transition, numbers.unvisited_mass) == (0, 0.3, 1)


def true_model(bonus: float) -> tuple[cmdpax.CMDP, Any]:
    """The optimistic model of a learner that has the truth, and a bonus everywhere."""
    cmdp = model(2)
    found = optimistic(cmdp, cmdpax.Optimism.empirical(bonus), 0)
    assert isinstance(found.transitions, tuple)
    return cmdp, found._replace(transitions=tuple(cast(cmdp, float).transitions))


def truncated(found: Any, log_policy: np.ndarray) -> np.ndarray:
    """Truncated Q of r, u_1, u_2 and ψ, as `[4, H, S, A]`."""
    initial = jnp.asarray(model(2).initial)
    every_q, _ = evaluate(found, jnp.asarray(log_policy), initial)
    return np.moveaxis(np.asarray(every_q), 1, 0)


def exact(cmdp: cmdpax.CMDP, log_policy: np.ndarray) -> np.ndarray:
    dense = reference.densify(cmdp)
    signals = [dense.rewards, *dense.constraint_rewards, -log_policy]
    return np.stack([reference.q_values(dense, signal, np.exp(log_policy)) for signal in signals])


def random_log_policy(seed: int) -> np.ndarray:
    return np.log(np.random.default_rng(seed).dirichlet(np.full(2, 0.3), size=(3, 3)) + 1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_truncation_never_binds_without_bonus_in_the_true_model(seed: int) -> None:
    cmdp, found = true_model(0.0)
    log_policy = random_log_policy(seed)
    log_policy -= np.log(np.exp(log_policy).sum(axis=-1, keepdims=True))
    np.testing.assert_allclose(
        truncated(found, log_policy), exact(cmdp, log_policy), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("bonus", [0.05, 0.5, 100.0])
def test_a_bonus_makes_the_true_model_optimistic(bonus: float) -> None:
    cmdp, found = true_model(bonus)
    log_policy = random_log_policy(1)
    log_policy -= np.log(np.exp(log_policy).sum(axis=-1, keepdims=True))
    optimistic, truth = truncated(found, log_policy), exact(cmdp, log_policy)
    assert np.all(optimistic >= truth - 1e-12)
    # Each is capped on its own, in every step.
    left = learning_reference.steps_left((3, 3, 2))
    assert np.all(optimistic[:3] <= left + 1e-12)
    assert np.all(optimistic[3] <= -log_policy + left * math.log(2) + 1e-12)
    if bonus == 100.0:
        np.testing.assert_allclose(optimistic[:3], np.broadcast_to(left, (3, 3, 3, 2)))
        np.testing.assert_allclose(optimistic[3], -log_policy + left * math.log(2))


# ------------------------------------------------------------------------ the success event

NUM_RUNS, NUM_EPISODES, DELTA = 100, 200, 0.1


@pytest.fixture(scope="module")
def many_runs() -> cmdpax.Log:
    """Many runs of the theory's learner with Bernoulli observations."""
    history = cmdpax.learn(
        model(2),
        "regularized-primal-dual",
        num_episodes=NUM_EPISODES,
        seeds=NUM_RUNS,
        optimism=cmdpax.Optimism.theory(NUM_EPISODES, DELTA),
        observations="bernoulli",
        max_multiplier=1e6,
        log=True,
    )
    assert history.log is not None
    return history.log


class Estimates:
    """Means of the episodes so far, of every run at once."""

    def __init__(self, cmdp: cmdpax.CMDP) -> None:
        self.cmdp = cmdp
        self.visits = np.zeros((NUM_RUNS, 3, 3, 2))
        self.went = np.zeros((NUM_RUNS, 3, 3, 2, 3))
        self.sums = np.zeros((NUM_RUNS, 3, 3, 2, 3))  # r, u_1, u_2

    def count(self, log: cmdpax.Log, k: int) -> None:
        runs = np.arange(NUM_RUNS)
        for h in range(3):
            s, a, t = log.states[:, k, h], log.actions[:, k, h], log.states[:, k, h + 1]
            self.visits[runs, h, s, a] += 1
            self.went[runs, h, s, a, t] += 1
            self.sums[runs, h, s, a, 0] += log.rewards[:, k, h]
            self.sums[runs, h, s, a, 1:] += log.constraint_rewards[:, k, :, h]

    def errors(self) -> tuple[np.ndarray, np.ndarray]:
        """√n times the errors of the means (the largest) and of the rows (in L1), n > 0."""
        n = np.maximum(self.visits, 1)
        truth = np.concatenate([self.cmdp.rewards[None], self.cmdp.constraint_rewards])
        signals = np.abs(self.sums / n[..., None] - np.moveaxis(truth, 0, -1)).max(axis=-1)
        rows = np.abs(self.went / n[..., None] - self.cmdp.transitions).sum(axis=-1)
        tried = self.visits > 0
        return np.sqrt(n) * signals * tried, np.sqrt(n) * rows * tried


def shares_of_failures(log: cmdpax.Log, scales: tuple[float, ...]) -> np.ndarray:
    """Share of runs in which an estimate leaves its bonus at some episode, for each scale."""
    cmdp = model(2)
    c_r, c_p = learning_reference.bonus_constants(
        cmdpax.Optimism.theory(NUM_EPISODES, DELTA)._asdict(), cmdp.sizes
    )
    estimates = Estimates(cmdp)
    worst = np.zeros(NUM_RUNS)
    for k in range(NUM_EPISODES):
        estimates.count(log, k)
        signals, rows = estimates.errors()
        # The bonus of transitions is H times that of a row.
        ratio = np.maximum(signals / c_r, rows / (c_p / cmdp.horizon))
        worst = np.maximum(worst, ratio.max(axis=(1, 2, 3)))
    return np.array([(worst > scale).mean() for scale in scales])


@pytest.mark.whole
def test_the_success_event_fails_in_at_most_a_delta_share(many_runs: cmdpax.Log) -> None:
    """And the same check detects failures of bonuses that are too small."""
    failed, failed_small = shares_of_failures(many_runs, (1.0, 0.05))
    assert failed <= DELTA
    assert failed_small > 0.9


def assert_event(memory: learning_reference.Memory, c_r: float, c_p: float) -> None:
    """Rewards, constraint rewards and rows lie within their bonuses."""
    truth, n = memory.model, np.maximum(memory.visits, 1)
    tried = memory.visits > 0
    for total, mean in (
        (memory.rewards, truth.rewards),
        *zip(memory.constraint_rewards, truth.constraint_rewards, strict=True),
    ):
        assert np.all(np.abs(total / n - mean)[tried] <= (c_r / np.sqrt(n))[tried])
    rows = np.abs(memory.went / n[..., None] - truth.transitions).sum(axis=-1)
    assert np.all(rows[tried] <= (c_p / truth.rewards.shape[0] / np.sqrt(n))[tried])


@pytest.mark.whole
def test_on_the_event_values_are_never_below_the_true_ones() -> None:
    """Q̂_z per step, state and action, and V̂_u, of π_k; late enough that no cap hides them."""
    cmdp, tau, num_episodes = model(2), 0.1, 20_000
    profile = cmdpax.Optimism.theory(num_episodes, DELTA)
    history = cmdpax.learn(
        cmdp,
        "regularized-primal-dual",
        num_episodes=num_episodes,
        optimism=profile,
        observations="bernoulli",
        regularization=tau,
        max_multiplier=1e6,
        record=[num_episodes],
        log=True,
    )
    assert history.log is not None
    log = history.log.run(0)
    chosen: dict[str, Any] = {"regularization": tau, "max_multiplier": 1e6}
    found = cmdpax.replay(cmdp, "regularized-primal-dual", log, optimism=profile, **chosen)
    assert found.q_values is not None
    accounts = cmdpax.account(cmdp, found.policies)
    assert np.all(found.optimistic_constraint_values >= accounts.constraint_values - 1e-9)
    constants = learning_reference.bonus_constants(profile._asdict(), cmdp.sizes)
    memory = learning_reference.Memory(reference.densify(cmdp), profile._asdict())
    left = learning_reference.steps_left((3, 3, 2))
    for k, episode in enumerate(zip(*log, strict=True)):
        if k in (0, 10, 1000, 5000, num_episodes - 1):
            assert_event(memory, *constants)
            log_policy, lam = np.log(found.policies[k]), found.multipliers[k]
            weights = np.array([1.0, *lam, tau])
            truth = np.tensordot(weights, exact(cmdp, log_policy), axes=1)
            assert np.all(found.q_values[k] >= truth - 1e-9)
            ceiling = (1 + lam.sum()) * left + tau * (left * math.log(2) - log_policy)
        memory.count(*episode)
    assert (ceiling - found.q_values[-1]).max() > 0.1
    # The same comparison finds values that bonuses × 0.05 leave too low.
    small = profile.replace(scale=0.05)
    found = cmdpax.replay(cmdp, "regularized-primal-dual", log, optimism=small, **chosen)
    accounts = cmdpax.account(cmdp, found.policies)
    assert np.any(found.optimistic_constraint_values < accounts.constraint_values - 1e-3)


def test_unvisited_rows_of_successor_lists_are_uniform_over_their_slots() -> None:
    """The specification: 1/number of valid slots."""
    grid = cmdpax.environments.make("gridworld", layout="S.1/..G", horizon=4).with_arrays()
    dense = reference.densify(grid)
    support = dense.transitions > 0
    rows = support / support.sum(axis=-1, keepdims=True)
    profile = cmdpax.Optimism.empirical(0.01)
    _, horizon, _, _ = grid.sizes
    log = cmdpax.Log(
        np.zeros((1, horizon + 1), int),
        np.zeros((1, horizon), int),
        np.zeros((1, horizon)),
        np.zeros((1, grid.num_constraints, horizon)),
    )
    found = cmdpax.replay(grid, "vanilla-primal-dual", log, optimism=profile)
    left = learning_reference.steps_left(dense.rewards.shape)
    for i, signal in enumerate(dense.constraint_rewards):
        _, v = learning_reference.evaluate(rows, signal + 0.01, found.policies[0], left)
        assert found.optimistic_constraint_values[0, i] == pytest.approx(dense.initial @ v[0])
