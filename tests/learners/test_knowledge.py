"""What a learner is told of the model, and what it makes of it: nothing else."""

from typing import Any

import jax
import numpy as np
import pytest

import cmdpax
from cmdpax.jax_context import cast
from cmdpax.learners import Knowledge, Learner
from cmdpax.learning.loop import make_learner, stack_runs
from configurations import configured, designed
from learning_cases import ALGORITHM, OURS, learn, logged, model


class TestKnowledge:
    def test_a_learner_is_told_no_transitions(self):
        assert Knowledge._fields == (
            "sizes",
            "initial",
            "thresholds",
            "signals",
            "support",
            "bonuses",
            "stationary",
            "num_episodes",
            "available",
            "baseline",  # for an algorithm that asks for one
        )
        told: list[Knowledge] = []

        def spy(knowledge: Knowledge, chosen: Any) -> Learner:
            told.append(knowledge)
            return Learner(lambda key: None, lambda state, *seen: state, lambda state: state)

        cmdp = cast(model(2), np.float32)
        for optimism in (cmdpax.Optimism.empirical(), cmdpax.Optimism.live()):
            configuration = configured(spy, optimism=optimism)
            runs = stack_runs(cmdp.sizes, [configuration], 5, np.float32)
            run = jax.tree.map(lambda array: array[0], runs)
            make_learner(designed(configuration), cmdp, run)
        assert told[0].signals is not None
        assert told[1].signals is None
        assert told[0].support is None
        assert told[0].num_episodes is None

    def test_lists_tell_which_states_may_follow_and_nothing_else(self):
        """Two models with the same lists and other probabilities make the same learner."""
        one, other = (
            cmdpax.environments.make("gridworld", layout="S.1/..G", horizon=4, slip=slip)
            for slip in (0.1, 0.3)
        )
        log = learn(one, num_episodes=20, log=True).log
        assert log is not None
        found = [cmdpax.replay(cmdp, ALGORITHM, log.run(0)).policies for cmdp in (one, other)]
        np.testing.assert_array_equal(*found)

    def test_a_log_that_leaves_the_lists_is_refused(self):
        grid = cmdpax.environments.make("gridworld", layout="S.1/..G", horizon=4)
        log = learn(grid, num_episodes=3, log=True).log
        assert log is not None
        states = log.states.copy()
        states[0, 2, 1] = (states[0, 2, 0] + 4) % 6  # two rows away
        with pytest.raises(cmdpax.ModelError, match="episode 2, step 0"):
            cmdpax.replay(grid, ALGORITHM, log._replace(states=states).run(0))

    @pytest.mark.parametrize("algorithm", OURS)
    def test_estimated_rewards_are_all_it_has(self, algorithm: str):
        """Another truth with the same log makes the same learner."""
        cmdp = model(2)
        other = cmdp.replace(
            rewards=1 - cmdp.rewards,
            constraint_rewards=cmdp.constraint_rewards[:, ::-1],
            transitions=cmdp.transitions[..., ::-1],
        )
        for optimism in ("live", "theory"):
            found, expected = (
                cmdpax.replay(truth, algorithm, logged(cmdp), optimism=optimism)
                for truth in (other, cmdp)
            )
            np.testing.assert_array_equal(found.policies, expected.policies)
            np.testing.assert_array_equal(found.multipliers, expected.multipliers)

    def test_known_rewards_are_used(self):
        cmdp = model(2)
        other = cmdp.replace(rewards=1 - cmdp.rewards)
        found, expected = (cmdpax.replay(truth, ALGORITHM, logged(cmdp)) for truth in (other, cmdp))
        assert np.abs(found.policies[-1] - expected.policies[-1]).max() > 1e-3

    def test_the_policy_of_an_episode_does_not_depend_on_it(self):
        log = logged(model(2))
        changed = log._replace(actions=log.actions.copy(), rewards=log.rewards.copy())
        changed.actions[20:] = 1 - changed.actions[20:]
        changed.rewards[20:] = 1 - changed.rewards[20:]
        for algorithm in ("regularized-primal-dual", "regularized-dual"):
            found, expected = (
                cmdpax.replay(model(2), algorithm, episodes, optimism="live", step_size=0.5)
                for episodes in (changed, log)
            )
            np.testing.assert_array_equal(found.policies[:21], expected.policies[:21])
            np.testing.assert_array_equal(found.multipliers[:21], expected.multipliers[:21])
            assert np.abs(found.policies[22:] - expected.policies[22:]).max() > 1e-6
