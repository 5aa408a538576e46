"""S-OPS: the share of the baseline in loops, and what the draws make of an unsafe learner."""

import math
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

import cmdpax
import reference
from available_cases import case
from cmdpax.jax_context import cast
from cmdpax.learners import (
    Algorithm,
    Info,
    Knowledge,
    Learner,
    Parameter,
    Shown,
    as_algorithm,
    mixed_with_baseline,
)
from cmdpax.learners.field.s_ops import least_expected
from cmdpax.learning.baseline import find_baselines
from cmdpax.learning.loop import make_learner, stack_runs
from cmdpax.planning.safest import safest_policy
from configurations import configured, designed
from learning_cases import logged, model
from replanning_reference import Counts

TOLERANCE = 1e-8


class Greed(NamedTuple):
    """How greedy it is."""

    weight: Annotated[float, Parameter("weight of the rewards", at_least=0)] = 2.0


def greedy(knowledge: Knowledge, parameters: Greed) -> Learner:
    """Plays for the reward of the step alone, always: an unsafe learner that knows nothing."""
    assert knowledge.signals is not None
    assert knowledge.baseline is None  # what it does not need is not shown to it
    scores = parameters.weight * knowledge.signals[:, 0] + knowledge.uniform_log_policy
    log_policy = scores - jnp.log(jnp.exp(scores).sum(axis=-1, keepdims=True))
    nothing = jnp.zeros_like(knowledge.thresholds)
    return Learner(
        lambda key: jnp.int32(0),
        lambda state, trajectory, key: state + 1,
        lambda state: Shown(log_policy, Info(nothing, nothing)),
    )


def as_it_plays(cmdp: cmdpax.CMDP, weight: float = 2.0) -> np.ndarray:
    flags = True if cmdp.available is None else cmdp.available
    scores = np.broadcast_to(np.where(flags, np.exp(weight * cmdp.rewards), 0), cmdp.sizes[1:])
    return scores / scores.sum(axis=-1, keepdims=True)


class Slow:
    """V̌ and ρ of every episode of a log."""

    def __init__(
        self, cmdp: cmdpax.CMDP, caution: float, rewards: str = "known", stationary: bool = False
    ) -> None:
        self.cmdp, self.model = cmdp, reference.densify(cmdp)
        self.caution, self.rewards, self.counts = caution, rewards, Counts(cmdp, stationary)
        self.may_follow = self.model.transitions > 0 if _is_listed(cmdp) else None

    def least(self, policy: np.ndarray, k: int) -> np.ndarray:
        num_constraints, horizon, num_states, num_actions = self.model.constraint_rewards.shape
        log_term = math.log(6 * num_states * num_actions * horizon * k / 0.1)
        found = np.zeros(num_constraints)
        for i in range(num_constraints):
            values = np.zeros((horizon + 1, num_states))
            for h, s, a in reversed(list(np.ndindex(policy.shape))):
                table = 0 if self.counts.stationary else h
                went = self.counts.went[table, s, a]
                n = went.sum()
                row = went / max(n, 1)
                deviations = np.sqrt(row * (1 - row) * log_term / max(n, 1))
                widths = self.caution * (2 * deviations + 14 / 3 * log_term / max(n, 1))
                if n == 0:
                    widths = np.ones(num_states)
                most = np.minimum(row + widths, 1)
                if self.may_follow is not None:
                    most = most * self.may_follow[h, s, a]
                later = _least(np.maximum(row - widths, 0), most, values[h + 1])
                signal = self.model.constraint_rewards[i, h, s, a]
                if self.rewards == "estimated":
                    mean = self.counts.sums[1 + i, table, s, a] / max(n, 1)
                    signal = max(mean - self.caution * math.sqrt(log_term / max(n, 1)), 0)
                values[h, s] += policy[h, s, a] * (signal + later)
            found[i] = self.model.initial @ values[0]
        return found

    def share(self, policy: np.ndarray, baseline: np.ndarray, k: int) -> tuple[float, Any, Any]:
        """ρ, V̌ and V_u of the baseline."""
        least = self.least(policy, k)
        safe = reference.evaluate(self.model, baseline).constraint_values
        share = 0.0
        for i, threshold in enumerate(self.model.thresholds):
            if least[i] < threshold:
                share = max(share, (threshold - least[i]) / (safe[i] - least[i]))
        return share, least, safe


def _is_listed(cmdp: cmdpax.CMDP) -> bool:
    return isinstance(cmdp.transitions, cmdpax.Successors)


def _least(least: np.ndarray, most: np.ndarray, values: np.ndarray) -> float:
    """Everything starts at its least; what is missing to 1 goes where it is worth least."""
    row, left = least.copy(), 1 - least.sum()
    for t in np.argsort(values, kind="stable"):
        added = min(left, most[t] - least[t])
        row[t], left = row[t] + added, left - added
    return float(row @ values)


@pytest.mark.usefixtures("double_precision")
def test_the_worst_row_is_the_optimum_of_its_linear_program() -> None:
    generator = np.random.default_rng(4)
    rows = generator.dirichlet(np.full(4, 0.5), (3, 2))
    widths = generator.random((3, 2, 4)) * 0.4
    least, most = np.maximum(rows - widths, 0), np.minimum(rows + widths, 1)
    for shape in ((2, 1, 1, 4), (2, 3, 2, 4)):  # dense, and values of listed states
        values = generator.random(shape)
        found = least_expected(jnp.asarray(least), jnp.asarray(most), jnp.asarray(values))
        every = np.broadcast_to(values, (2, 3, 2, 4))
        for i, s, a in np.ndindex(2, 3, 2):
            bounds = list(zip(least[s, a], most[s, a], strict=True))
            solved = scipy.optimize.linprog(every[i, s, a], A_eq=[[1] * 4], b_eq=1, bounds=bounds)
            assert found[i, s, a] == pytest.approx(solved.fun, abs=1e-9)


@pytest.mark.parametrize("num_constraints", [1, 2])
@pytest.mark.parametrize("optimism", ["empirical", "live"])
@pytest.mark.parametrize("inner", ["vanilla-dual", "optimistic-planning"])
def test_shares_are_those_of_the_reference(num_constraints: int, optimism: str, inner: str) -> None:
    """The learner within sees the same episodes as without the baseline, and makes the same."""
    cmdp = model(num_constraints)
    log, baseline = logged(cmdp), safest_policy(cmdp)
    given: dict[str, Any] = {"optimism": optimism}
    if inner == "vanilla-dual":
        given["max_multiplier"] = 1e6
    mixed = mixed_with_baseline(inner)
    found = cmdpax.replay(cmdp, mixed, log, baseline=baseline, caution=0.05, **given)
    alone = cmdpax.replay(cmdp, inner, log, **given)
    np.testing.assert_allclose(found.multipliers, alone.multipliers, rtol=0, atol=TOLERANCE)
    slow = Slow(cmdp, 0.05, "known" if optimism == "empirical" else "estimated")
    shares, drawn = [], []
    for k, episode in enumerate(zip(*log, strict=True), start=1):
        policy, played = alone.policies[k - 1], found.policies[k - 1]
        share, least, safe = slow.share(policy, baseline, k)
        drawn.append(np.allclose(played, baseline, rtol=0, atol=TOLERANCE))
        np.testing.assert_allclose(played, baseline if drawn[-1] else policy, rtol=0, atol=1e-8)
        reached, shown = safe if drawn[-1] else least, found.optimistic_constraint_values[k - 1]
        np.testing.assert_allclose(shown, reached, rtol=0, atol=TOLERANCE)
        shares.append(share)
        slow.counts.count(*episode)
    assert 0.2 < np.mean(drawn) < 1
    assert max(shares) > 0.2
    assert np.ptp(shares) > 0.05


def test_lists_and_flags_are_those_of_the_reference() -> None:
    cmdp, mixed = case("lists").cmdp, mixed_with_baseline(greedy, "safe greed")
    history = cmdpax.learn(cmdp, mixed, num_episodes=30, caution=0.05, log=True)
    assert history.log is not None
    log = history.log.run(0)
    found = cmdpax.replay(cmdp, mixed, log, caution=0.05)
    assert_reached(Slow(cmdp, 0.05), log, found.optimistic_constraint_values)


@pytest.mark.usefixtures("double_precision")
def test_shared_counts_are_those_of_the_reference() -> None:
    cmdp = model(1)
    cmdp = cmdp.replace(
        transitions=cmdp.transitions[:1],
        rewards=cmdp.rewards[:1],
        constraint_rewards=cmdp.constraint_rewards[:, :1],
    )
    mixed, log = mixed_with_baseline(greedy, "safe greed"), logged(model(1))
    configuration = configured(mixed, caution=0.05)
    baselines = find_baselines(mixed, None, [cmdp])
    runs = stack_runs(cmdp.sizes, [configuration], 40, float, baselines)
    one = jax.tree.map(lambda array: array[0], runs)
    learner = make_learner(designed(configuration, stationary=True), cast(cmdp, float), one)
    episodes, keys = jax.tree.map(jnp.asarray, log), jax.random.split(jax.random.key(2), 40)

    def step(state: Any, at: tuple[Any, Any]) -> tuple[Any, Any]:
        return learner.update(state, *at), learner.show(state).info.constraint_values

    _, found = jax.lax.scan(step, learner.init(keys[0]), (episodes, keys))
    assert_reached(Slow(cmdp, 0.05, stationary=True), log, np.asarray(found))


def assert_reached(slow: Slow, log: cmdpax.Log, found: np.ndarray) -> None:
    """What is shown is V̌ of greed, or what the safest policy reaches."""
    policy, baseline = as_it_plays(slow.cmdp), safest_policy(slow.cmdp)
    safest = 0
    for k, episode in enumerate(zip(*log, strict=True), start=1):
        _, least, safe = slow.share(policy, baseline, k)
        is_safe = np.allclose(found[k - 1], safe, rtol=0, atol=TOLERANCE)
        if not is_safe:
            np.testing.assert_allclose(found[k - 1], least, rtol=0, atol=TOLERANCE)
        safest += is_safe
        slow.counts.count(*episode)
    assert 0 < safest < len(found)


def test_the_baseline_is_drawn_as_often_as_the_rule_says_and_makes_it_safe_on_average() -> None:
    cmdp, num_episodes, seeds = model(2), 150, 8
    mixed = mixed_with_baseline(greedy, "safe greed")
    history = cmdpax.learn(cmdp, mixed, num_episodes=num_episodes, seeds=seeds, log=True)
    assert history.log is not None
    baseline, policy = safest_policy(cmdp), as_it_plays(cmdp)
    safe, unsafe = (cmdpax.evaluate(cmdp, one).constraint_values for one in (baseline, policy))
    assert (unsafe < cmdp.thresholds).any()
    shares = np.zeros((seeds, num_episodes))
    for run in range(seeds):
        slow = Slow(cmdp, 0.03)
        for k, episode in enumerate(zip(*history.log.run(run), strict=True), start=1):
            shares[run, k - 1] = slow.share(policy, baseline, k)[0]
            slow.counts.count(*episode)
    is_safe = np.isclose(history.constraint_values, safe, atol=1e-9).all(axis=-1)
    is_unsafe = np.isclose(history.constraint_values, unsafe, atol=1e-9).all(axis=-1)
    assert (is_safe ^ is_unsafe).all()
    assert ((shares > 0.05) & (shares < 0.95)).all()
    spread = np.sqrt((shares * (1 - shares)).sum())
    assert abs((is_safe - shares).sum()) < 3.5 * spread
    assert 0 < (is_safe[1:] != is_safe[:-1]).mean() < 1  # the seeds draw by themselves
    expected = shares[..., None] * safe + (1 - shares[..., None]) * unsafe
    assert (expected >= cmdp.thresholds - 1e-12).all()
    alone = cmdpax.learn(cmdp, greedy, num_episodes=3)
    assert (alone.unsafe > 0.99).any()


def test_a_learner_that_is_safe_enough_plays_all_episodes() -> None:
    cmdp = model(1)
    cmdp = cmdp.replace(thresholds=cmdp.thresholds - 10)
    mixed = mixed_with_baseline("vanilla-dual")
    given: dict[str, Any] = {"num_episodes": 20, "max_multiplier": 1e6}
    found, alone = (cmdpax.learn(cmdp, one, **given) for one in (mixed, "vanilla-dual"))
    np.testing.assert_allclose(found.value, alone.value, rtol=0, atol=TOLERANCE)


def test_a_mixture_has_the_parameters_of_the_algorithm_and_of_itself() -> None:
    mixed, inner = mixed_with_baseline("regularized-dual"), as_algorithm("regularized-dual")
    assert mixed.names == (*inner.names, "caution")
    assert mixed.name == "regularized-dual-with-baseline"
    assert (mixed.needs_baseline, mixed.replans, mixed.anytime) == (True, False, True)
    assert mixed_with_baseline("regularized-dual") is mixed  # whose programs are compiled
    assert mixed_with_baseline("ghosh").max_constraints == 1
    with pytest.raises(cmdpax.ParameterError, match=r"regularization .* positive"):
        cmdpax.learn(model(1), mixed, num_episodes=3, regularization=0)
    with pytest.raises(cmdpax.ParameterError, match="s-ops has a parameter 'caution'"):
        mixed_with_baseline("s-ops")


def test_the_check_of_the_algorithm_is_kept() -> None:
    def check(chosen: Any, num_episodes: int) -> None:
        if chosen.weight > num_episodes:
            raise cmdpax.ParameterError(f"weight is {chosen.weight:g}, more than the episodes.")

    mixed = mixed_with_baseline(Algorithm("greed", greedy, check=check))
    with pytest.raises(cmdpax.ParameterError, match="weight is 9"):
        cmdpax.learn(model(1), mixed, num_episodes=3, weight=9)
    history = cmdpax.learn(model(1), mixed, num_episodes=9, weight=9)
    assert history.manifest["runs"][0]["weight"] == 9


def test_an_algorithm_with_a_baseline_of_its_own_keeps_it() -> None:
    history = cmdpax.learn(model(1), mixed_with_baseline("opse"), num_episodes=3)
    np.testing.assert_allclose(history.policy[0], safest_policy(model(1)), rtol=0, atol=1e-12)
