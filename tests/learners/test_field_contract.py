"""What every learner of the field must do, like those of this package: run anywhere, and honestly.

Each algorithm has a test against a slow reference of its own in `tests/learners/field/`.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cmdpax
from available_cases import HORIZON, case
from cmdpax.jax_context import cast
from cmdpax.learners import Shown, as_algorithm
from cmdpax.learners.statistics import Trajectory
from cmdpax.learning.baseline import find_baselines
from cmdpax.learning.group import Collected
from cmdpax.learning.loop import Task, make_learner, stack_runs
from cmdpax.learning.settings import Configuration
from cmdpax.learning.workers import run_batch
from cmdpax.planning.safest import safest_policy
from configurations import configured, designed
from learning_cases import FIELD, logged, model

pytestmark = [
    pytest.mark.usefixtures("double_precision"),
    pytest.mark.parametrize("algorithm", FIELD),
]
NUM_EPISODES = 8
KEY = jax.random.key(3)
VARIED: dict[str, tuple[dict[str, Any], ...]] = {
    "crpo": ({"step_size": "0.5*k^-0.2"}, {"tolerance": 0.0}),
    "dope": ({"bonus_scale": 1e-5, "growth": 0.2}, {"failure_probability": 0.1}),
    "flexdome": ({"margin_share": 0.8}, {"slater_gap": 0.3, "step_size": 0.3}),
    "ghosh": ({"bonus_scale": 0.3, "temperature": 0.1},),
    "opse": ({"bonus_scale": 0.01, "compensation": 0.5}, {"max_multiplier": 20.0}),
    "opt-aug": ({"penalty": 4.0}, {"accuracy": 0.5, "bonus_scale": 0.001}),
    "opt-dual": ({"multiplier_step_size": 0.5}, {"slater_gap": 0.1, "bonus_scale": 0.001}),
    "opt-lp": ({"bonus_scale": 0.1, "growth": 0.0}, {"stretch": 0.5}),
    "opt-lp-bonus": ({"bonus_scale": 0.01}, {"growth": 0.0}),
    "opt-pess-lp": ({"bonus_scale": 1e-5, "growth": 0.2}, {"failure_probability": 0.1}),
    "opt-pess-primal-dual": ({"margin_scale": 0.05}, {"slater_gap": 0.1, "step_scale": 0.5}),
    "opt-primal-dual": ({"step_size": 0.3}, {"multiplier_step_size": 0.4, "slater_gap": 0.1}),
    "s-ops": ({"caution": 0.001}, {"bonus_scale": 0.3, "growth": 0.2}),
    "safe-psrl": ({"slater_gap": 0.1, "prior": 3.0}, {"inertia": 1.0, "bonus_scale": 0.0}),
    "triple-q": ({"margin": 0.5}, {"queue_scale": 0.1, "bonus_scale": 0.001}),
    "uopt-rpgpd": ({"step_size": 0.2}, {"regularization": 0.3, "failure_probability": 0.5}),
}
"""Numbers that differ from the defaults, of runs that share a program; a run has one of them."""


def num_constraints_of(algorithm: str) -> int:
    return as_algorithm(algorithm).max_constraints or 2


def configuration_of(algorithm: str, place: int = 0) -> Configuration:
    changes = ({}, *VARIED.get(algorithm, ()))
    given = changes[place % len(changes)]
    return configured(algorithm, place, num_episodes=NUM_EPISODES, **given)


def trajectories(num_constraints: int) -> list[Trajectory]:
    states, actions, rewards, constraint_rewards = logged(model(num_constraints))
    return [
        Trajectory(
            jnp.asarray(states[k], jnp.int32),
            jnp.asarray(actions[k], jnp.int32),
            jnp.asarray(rewards[k], float),
            jnp.asarray(constraint_rewards[k], float),
        )
        for k in range(NUM_EPISODES)
    ]


def assert_close(found: Any, expected: Any, tolerance: float = 1e-9) -> None:
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance)


def test_plain_jitted_and_scanned_runs_agree(algorithm: str) -> None:
    count = num_constraints_of(algorithm)
    configuration = configuration_of(algorithm)
    baselines = find_baselines(configuration.algorithm, None, [model(count)])
    runs = stack_runs(model(count).sizes, [configuration], NUM_EPISODES, float, baselines)
    one = jax.tree.map(lambda array: array[0], runs)
    learner = make_learner(designed(configuration), cast(model(count), float), one)
    episodes = trajectories(count)
    keys = jax.random.split(KEY, NUM_EPISODES)  # a learner that draws draws anew
    plain = learner.update(learner.init(KEY), episodes[0], keys[0])
    init, update, show = map(jax.jit, learner[:3])
    state = init(KEY)
    seen = [show(state)]
    for episode, key in zip(episodes, keys, strict=True):
        state = update(state, episode, key)
        seen.append(show(state))
        if len(seen) == 2:
            assert_close((state, seen[-1]), (plain, learner.show(plain)))
    assert update._cache_size() == 1  # shapes and types stay what `init` makes them

    def step(state: Any, at: tuple[Trajectory, Any]) -> tuple[Any, Shown]:
        return learner.update(state, *at), learner.show(state)

    together = jax.tree.map(lambda *arrays: jnp.stack(arrays), *episodes)
    last, shown = jax.lax.scan(step, init(KEY), (together, keys))
    assert_close(last, state)
    assert_close(shown, jax.tree.map(lambda *arrays: jnp.stack(arrays), *seen[:-1]))
    assert np.ptp(np.exp(shown.log_policy), axis=0).max() > 1e-6  # it learns
    assert (shown.log_policy <= 1e-12).all()  # no probability exceeds 1


def run_together(
    configurations: list[Configuration], cmdps: list[cmdpax.CMDP], stacked: bool
) -> Collected:
    task = Task(
        designed(configurations[0], stacked=stacked),
        [cmdpax.rescale(cmdp) for cmdp in cmdps],
        [cmdpax.solve(cmdp).value for cmdp in cmdps],
        np.array([3, NUM_EPISODES]),
        NUM_EPISODES,
        (0.0, 0.05),
        find_baselines(configurations[0].algorithm, None, cmdps),
    )
    return run_batch(task, configurations, None, lambda done, total: None)


def test_a_batch_of_models_seeds_and_numbers_is_its_single_runs(algorithm: str) -> None:
    """Groups and their padding included: three runs are not a multiple of two threads."""
    count = num_constraints_of(algorithm)
    cmdps = [model(count, seed=seed) for seed in (1, 2, 3)]
    configurations = [configuration_of(algorithm, place) for place in range(3)]
    together = run_together(configurations, cmdps, stacked=True)
    for place, cmdp in enumerate(cmdps):
        alone = run_together([configurations[place]], [cmdp], stacked=False)
        assert_close(jax.tree.map(lambda array, i=place: array[i : i + 1], together), alone)
    assert np.ptp(together.policy, axis=0).max() > 1e-3


def test_what_is_not_available_is_not_played(algorithm: str) -> None:
    one = case("lists")
    history = cmdpax.learn(one.cmdp, algorithm, num_episodes=20, log=True)
    assert history.log is not None
    states, actions = history.log.states[..., :-1], history.log.actions
    assert one.flags[np.arange(HORIZON), states, actions].all()
    assert (history.policy[:, ~one.flags] == 0).all()
    np.testing.assert_allclose(history.policy.sum(axis=-1), 1, rtol=0, atol=1e-9)


def test_estimated_rewards_are_all_it_has(algorithm: str) -> None:
    """Another truth with the same log makes the same learner.

    A baseline reaches in both what the learner is told: they differ where it does not go.
    """
    cmdp = model(num_constraints_of(algorithm))
    baseline = safest_policy(cmdp) if as_algorithm(algorithm).needs_baseline else None
    differs = np.True_ if baseline is None else (baseline == 0)[..., None]
    rows = np.where(differs, cmdp.transitions[..., ::-1], cmdp.transitions)
    other = cmdp.replace(rewards=1 - cmdp.rewards, transitions=rows)
    found, expected = (
        cmdpax.replay(truth, algorithm, logged(cmdp), optimism="live", baseline=baseline)
        for truth in (other, cmdp)
    )
    np.testing.assert_array_equal(found.policies, expected.policies)
    np.testing.assert_array_equal(found.multipliers, expected.multipliers)
