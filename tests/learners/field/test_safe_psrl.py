"""`safe-psrl` against loops that are given the same draws."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cmdpax
import field_planning_reference as expected
import reference
from available_cases import case
from cmdpax.jax_context import cast
from cmdpax.learners.base import learner_key
from cmdpax.learners.estimates import RowPosterior
from cmdpax.learners.exploration import sample_rows
from cmdpax.learning.loop import knowledge_of, stack_runs
from configurations import configured
from learning_cases import model

pytestmark = pytest.mark.usefixtures("double_precision")
CHOSEN = {"slater_gap": 0.4, "inertia": 0.2, "bonus_scale": 0.01, "prior": 2.0}


class Draws:
    """The rows that the learner draws for each episode, from the same counts and keys."""

    def __init__(self, cmdp: cmdpax.CMDP, num_episodes: int) -> None:
        configuration = configured("safe-psrl", num_episodes=num_episodes, **CHOSEN)
        runs = stack_runs(cmdp.sizes, [configuration], num_episodes, float)
        run = jax.tree.map(lambda array: array[0], runs)
        self.cmdp, self.keys = cmdp, run.keys
        self.knowledge = knowledge_of(cast(cmdp, float), run.bonuses, rewards_known=True)

    def rows(self, counts: expected.Counts, episodes_before: int) -> np.ndarray:
        """p̃ as a matrix, `[H, S, A, S]`."""
        first, _ = jax.random.split(learner_key(self.keys, episodes_before))
        went = counts.went
        support = self.knowledge.support
        if support is None:
            return np.asarray(self._drawn(first, went))
        lists = np.broadcast_to(np.asarray(support), (*went.shape[:3], support.shape[-1]))
        listed = np.take_along_axis(went, np.maximum(lists, 0), axis=-1)
        drawn = np.asarray(self._drawn(first, listed))
        dense = np.zeros(went.shape)
        for at in np.ndindex(lists.shape):
            dense[(*at[:3], max(lists[at], 0))] += drawn[at]
        return dense

    def _drawn(self, key: Any, counts: np.ndarray) -> Any:
        rows = RowPosterior(jnp.asarray(counts, float))
        return sample_rows(key, self.knowledge, rows, CHOSEN["prior"])


@pytest.mark.parametrize(
    "cmdp", [model(1), model(2), case("lists").cmdp], ids=["one", "two", "lists"]
)
def test_policies_and_multipliers_are_those_of_the_reference(cmdp: cmdpax.CMDP) -> None:
    log = cmdpax.learn(cmdp, "replanning", num_episodes=20, log=True).log
    assert log is not None
    log = log.run(0)
    found = cmdpax.replay(cmdp, "safe-psrl", log, **CHOSEN)
    dense, draws = reference.densify(cmdp), Draws(cmdp, 20)
    num_constraints, horizon, num_states, num_actions = cmdp.sizes
    flags = np.broadcast_to(True if cmdp.available is None else cmdp.available, cmdp.sizes[1:])
    multipliers = np.zeros(num_constraints)
    for before in range(20):
        k = before + 1
        worth = multipliers / (CHOSEN["inertia"] * CHOSEN["slater_gap"] * horizon * np.sqrt(k))
        rows = draws.rows(expected.count(cmdp, log, before, stationary=False), before)
        values = np.zeros((1 + num_constraints, num_states))
        policy = np.zeros((horizon, num_states, num_actions))
        for h in reversed(range(horizon)):
            signals = np.stack([dense.rewards[h], *dense.constraint_rewards[:, h]])
            every_q = signals + np.einsum("sat,jt->jsa", rows[h], values)
            total = every_q[0] + np.tensordot(worth, every_q[1:], axes=1)
            best = np.where(flags[h], total, -np.inf).argmax(axis=-1)
            policy[h, np.arange(num_states), best] = 1
            values = every_q[:, np.arange(num_states), best]
        reached = values[1:] @ dense.initial
        np.testing.assert_allclose(found.policies[before], policy, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.multipliers[before], worth, rtol=0, atol=1e-8)
        np.testing.assert_allclose(
            found.optimistic_constraint_values[before], reached, rtol=0, atol=1e-8
        )
        size = CHOSEN["bonus_scale"] * horizon**2 * np.sqrt(num_states**2 * num_actions)
        margin = min(size * np.sqrt(np.log(1 + k) / k), CHOSEN["slater_gap"] / 2)
        multipliers = np.maximum(multipliers + dense.thresholds + margin - reached, 0)
    assert multipliers.max() > 0


def test_safe_episodes_pay_for_unsafe_ones() -> None:
    cmdp = cmdpax.environments.make("random")
    summary = cmdpax.learn(cmdp, "safe-psrl", num_episodes=2000, seeds=2).summary()
    assert (summary["weak_constraints"] < 0.02 * 2000).all()
    assert (summary["strong_constraints"] > summary["weak_constraints"]).all()
