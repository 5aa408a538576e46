"""`interact`: how episodes end, and what the agent makes of it."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit

import cmdpax
from cmdpax.gymnasium import Interaction, from_env, interact
from live_cases import assert_same

# What the loop below is for; one test asks for the warning.
pytestmark = pytest.mark.filterwarnings("ignore:episodes terminated in state")

HOLES_AND_GOAL = (5, 7, 11, 12, 15)
UNSAFE = np.isin(np.arange(16), [1, 3, 4, 6, 8, 9, 10, 13]).astype(float)
EVERYWHERE = np.ones(16)


def lake(**options: Any) -> gymnasium.Env[Any, Any]:
    return gymnasium.make("FrozenLake-v1", success_rate=0.8, **options)


def skater(**changes: Any) -> cmdpax.Agent:
    """An agent for FrozenLake and 20 steps."""
    arguments = {"num_states": 16, "horizon": 20, "thresholds": [4.0], "seed": 0} | changes
    system = {"num_actions": 4, "initial": 0, "senses": "at most", "stationary": True}
    return cmdpax.Agent("regularized-primal-dual", **(system | arguments))


def after_the_end(found: Interaction) -> np.ndarray:
    """Which steps of the agent came after the environment's last one, `[K, H]`."""
    return np.arange(found.log.actions.shape[1]) >= found.steps[:, None]


class Loop:
    """Two states; every step leads to the other one, and state 1 ends the episode at step `end`.

    State 1 is met before that: an episode goes on there, and ends there.
    """

    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, end: int, limit: int = 100, reward: float = 1.0) -> None:
        self.end, self.limit, self.reward = end, limit, reward

    def reset(self) -> tuple[int, dict[str, Any]]:
        self.steps = 0
        return 0, {}

    def step(self, action: int) -> tuple[Any, ...]:
        assert self.steps < min(self.end, self.limit), "a step after the end"
        self.steps += 1
        info = {"cost": 1.0}
        over = self.steps == self.end, self.steps == self.limit
        return self.steps % 2, self.reward, *over, info


def looper(**changes: Any) -> cmdpax.Agent:
    arguments = {"num_states": 2, "num_actions": 2, "horizon": 6, "thresholds": [3.0]}
    system = {"initial": 0, "senses": "at most", "seed": 1}
    return cmdpax.Agent("regularized-primal-dual", **(arguments | system | changes))


# -------------------------------------------------------------------------------------- termination


def test_terminated_episodes_stay_without_reward_and_cost() -> None:
    agent = skater()
    found = interact(lake(), agent, 60, costs=EVERYWHERE, seed=0, log=True)
    states, actions, rewards, costs = found.log
    later = after_the_end(found)
    assert found.terminated.sum() > 20
    assert (found.steps[found.terminated] < 20).any()
    assert found.terminated[found.steps < 20].all()
    assert agent.visits.sum() == 20 * 60
    assert (actions >= 0).all()
    assert not rewards[later].any()
    assert not costs[:, 0][later].any()
    assert (costs[:, 0][~later] == 1).all()
    for k in np.flatnonzero(found.terminated):
        rest = states[k, found.steps[k] :]
        assert rest[0] in HOLES_AND_GOAL
        assert (rest == rest[0]).all()
    np.testing.assert_array_equal(found.constraint_returns[:, 0], found.steps)
    np.testing.assert_array_equal(found.rewards, states[:, -1] == 15)
    assert (found.account.steps, found.account.cut_short) == (1200, 0)
    fed = skater()
    fed.feed(found.log, own=True)
    assert_same(fed, agent)


def test_the_learner_knows_that_ends_are_ends() -> None:
    """What it saw of a hole is a state that stays, earns nothing and costs nothing."""
    agent = skater()
    interact(lake(), agent, 60, costs=EVERYWHERE, seed=0)
    statistics = agent.learner_state.statistics
    went = statistics.storage[0][0]
    seen = np.flatnonzero(agent.visits[0].sum(axis=-1))
    assert {5, 12} <= set(seen)
    for state in set(seen) & set(HOLES_AND_GOAL):
        assert went[state].sum() == went[state, :, state].sum() > 0
        rewards, rests = statistics.reward_sums[0, :, state]
        assert not rewards.any()
        np.testing.assert_array_equal(rests, agent.visits[0, state])  # 1 - cost


def test_ending_with_the_termination_cuts_short() -> None:
    agent = skater()
    found = interact(lake(), agent, 60, costs=EVERYWHERE, seed=0, on_termination="end", log=True)
    later = after_the_end(found)
    np.testing.assert_array_equal(found.log.actions == -1, later)
    last = found.log.states[np.arange(60), found.steps]
    assert (found.log.states[:, 1:] == last[:, None])[later].all()
    assert set(last) > {5, 12}
    assert (found.steps < 20).any()
    assert agent.visits.sum() == found.steps.sum() == found.account.steps
    assert found.account.cut_short == (found.steps < 20).sum()
    fed = skater()
    fed.feed(found.log, own=True)
    assert_same(fed, agent)
    with pytest.raises(cmdpax.ParameterError, match="did you mean 'stay'"):
        interact(lake(), agent, 1, on_termination="sty")


def test_one_state_more_is_where_terminated_episodes_stay() -> None:
    told: list[tuple[int, int, int]] = []

    def cost(state: int, action: int, following: int) -> float:
        told.append((state, action, following))
        return UNSAFE[state]

    extra = skater(num_states=17)
    found = interact(lake(), extra, 40, costs=cost, seed=0, log=True)
    later = after_the_end(found)
    states = found.log.states
    assert (states[:, 1:][later] == 16).all()
    assert (states[np.arange(40), found.steps] == 16).tolist() == found.terminated.tolist()
    assert set(states[:, 0]) == {0}
    assert len(told) == found.steps.sum()
    assert max(max(step) for step in told) < 16
    ends = {following for _, _, following in told if following in HOLES_AND_GOAL}
    assert ends >= {5, 12}  # the environment's own
    assert extra.visits[0, 16].sum() == later.sum() > 0
    assert not extra.visits[0, list(HOLES_AND_GOAL)].any()
    same = interact(lake(), skater(num_states=17), 40, costs=UNSAFE, seed=0)
    np.testing.assert_array_equal(same.constraint_returns, found.constraint_returns)  # arrays too


def test_an_end_where_others_go_on() -> None:
    """With a state of its own for it the two are told apart."""
    agent = looper(num_states=3)
    found = interact(Loop(end=3), agent, 5, log=True)
    np.testing.assert_array_equal(found.log.states, [[0, 1, 0, 2, 2, 2, 2]] * 5)
    np.testing.assert_array_equal(found.log.rewards, [[1, 1, 1, 0, 0, 0]] * 5)
    with pytest.warns(cmdpax.CmdpaxWarning, match="terminated in state 1 and also went on") as told:
        mixed = interact(Loop(end=3), looper(), 5, log=True)
    assert len(told) == 1
    np.testing.assert_array_equal(mixed.log.states, [[0, 1, 0, 1, 1, 1, 1]] * 5)
    assert found.constraint_returns.tolist() == mixed.constraint_returns.tolist() == [[3.0]] * 5


def test_at_least_constraints_rest_with_the_largest_reward() -> None:
    found = interact(Loop(end=2), looper(senses="at least"), 3, log=True)
    assert found.log.constraint_rewards.tolist() == [[[0, 0, 1, 1, 1, 1]]] * 3
    assert found.constraint_returns.tolist() == [[4.0]] * 3


@pytest.mark.parametrize("end", [6, 7])
def test_an_end_with_the_horizon_or_later_changes_nothing(end: int) -> None:
    ended = interact(Loop(end=end), looper(num_states=2), 4, log=True)
    endless = interact(Loop(end=100), looper(num_states=2), 4, log=True)
    assert ended.terminated.tolist() == [end == 6] * 4
    assert (ended.steps == 6).all()
    for array, other in zip(ended.log, endless.log, strict=True):
        np.testing.assert_array_equal(array, other)


def test_reward_zero_outside_the_declared_range_is_an_error() -> None:
    agent = looper(reward_range=(-3.0, -1.0))
    sentence = r"terminated.*range of reward is \[-3, -1\].*on_termination=.end."
    with pytest.raises(cmdpax.ParameterError, match=sentence):
        interact(Loop(end=4, reward=-2.0), agent, 2)
    assert (agent.num_episodes, agent.step) == (0, 4)
    found = interact(Loop(end=4, reward=-2.0), agent, 2, on_termination="end")
    assert found.rewards.tolist() == [-8.0, -8.0]
    assert (agent.num_episodes, agent.account.cut_short) == (3, 3)


def test_cost_zero_outside_the_declared_range_is_an_error() -> None:
    with pytest.raises(
        cmdpax.ParameterError,
        match=r"terminated.*range of constraint 0 is \[1, 2\].*on_termination=.end.",
    ):
        interact(Loop(end=4), looper(constraint_ranges=(1, 2), thresholds=[8.0]), 1)


# -------------------------------------------------------------------------- truncation and horizons


@pytest.mark.parametrize("on_termination", ["stay", "end"])
def test_truncation_before_the_horizon_cuts_short(on_termination: str) -> None:
    agent = skater()
    env = TimeLimit(lake().unwrapped, 6)
    with pytest.warns(cmdpax.CmdpaxWarning, match="cuts every episode after 6 steps"):
        found = interact(
            env, agent, 40, costs=EVERYWHERE, seed=0, on_termination=on_termination, log=True
        )
    assert found.steps.max() == 6
    assert 0 < found.terminated.sum() < 40
    stays = found.terminated & (on_termination == "stay")
    lengths = np.where(stays, 20, found.steps)
    np.testing.assert_array_equal((found.log.actions >= 0).sum(axis=1), lengths)
    assert found.account.cut_short == (~stays).sum()
    assert agent.visits.sum() == found.account.steps == lengths.sum()
    np.testing.assert_array_equal(found.constraint_returns[:, 0], found.steps)
    fed = skater()
    fed.feed(found.log, own=True)
    assert_same(fed, agent)


def test_an_end_with_the_time_limit_is_an_end() -> None:
    found = interact(Loop(end=3, limit=3), looper(), 2)
    assert found.terminated.tolist() == [True, True]
    assert (found.account.steps, found.account.cut_short) == (12, 0)


def test_a_horizon_shorter_than_the_environments() -> None:
    agent = looper(horizon=1)
    found = interact(Loop(end=3), agent, 4, log=True)
    assert found.steps.tolist() == [1] * 4
    assert not found.terminated.any()
    np.testing.assert_array_equal(found.log.states, [[0, 1]] * 4)
    assert found.account.cut_short == 0


# ----------------------------------------------------------------------------------------- learning


@pytest.mark.whole
def test_it_learns_the_lake() -> None:
    cmdp = from_env(lake(), 20, costs=UNSAFE, limits=4.0)
    agent = skater(regularization=0.005, margin=0.15)
    before = cmdpax.evaluate(cmdp, agent.policy)
    interact(lake(), agent, 600, costs=UNSAFE, seed=0)
    after = cmdpax.evaluate(cmdp, agent.policy)
    optimum = cmdpax.solve(cmdp).value
    assert before.value < 0.1 * optimum
    assert after.value > 0.9 * optimum
    assert after.constraint_values[0] < 4.3
    assert agent.account.objective.recent.mean == pytest.approx(after.value, abs=0.15)
    assert agent.account[0].recent.mean == pytest.approx(after.constraint_values[0], abs=0.6)
