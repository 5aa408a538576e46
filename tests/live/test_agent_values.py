"""Values that cannot be: one sentence that names them, and nothing has happened."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import cmdpax
from live_cases import (
    LISTS_BY_STEP,
    Call,
    assert_refused,
    assert_same,
    draw_episodes,
    log_of,
    make,
    play,
)


def agent_after(*calls: str) -> cmdpax.Agent:
    """In the third episode, after these calls."""
    agent = play(make(), 2)
    for call in calls:
        if call == "start":
            agent.start(0)
        elif call == "act":
            agent.act(agent.state)
        else:
            agent.observe(0.5, [0.5, 0.25], 1)
    return agent


NOT_STATES = {
    "too large": (3, "is 3, the states are 0 … 2"),
    "negative": (-1, "is -1, the states are 0 … 2"),
    "huge": (10**30, "1000000000000000000000000000000"),
    "a float": (1.0, "1.0"),
    "no number": (float("nan"), "nan"),
    "infinite": (np.inf, "inf"),
    "a truth": (True, "True"),
    "NumPy's truth": (np.True_, "True"),
    "NumPy's float": (np.float64(1), "1.0"),
    "a float without axes": (np.array(1.0), "1."),
    "a text": ("1", "'1'"),
    "nothing": (None, "None"),
    "a list": ([1], "[1]"),
    "complex": (1j, "1j"),
    "JAX's float": (jnp.asarray(1.7), "1.7"),
    "JAX's whole float": (jnp.asarray(1.0), "1."),
    "JAX's truth": (jnp.asarray(True), "True"),
    "an array of one": (np.array([1]), "[1]"),
    "an array of two": (np.array([1, 0]), "[1, 0]"),
}
FINE = [1, np.int8(1), np.int64(1), np.uint8(1), np.array(1), np.array(1, np.uint16)]


class TestIndices:
    @pytest.mark.parametrize(("value", "part"), NOT_STATES.values(), ids=NOT_STATES)
    def test_refused(self, value: Any, part: str):
        refused = cmdpax.ParameterError
        new, started, acted = (agent_after(*calls) for calls in ((), ("start",), ("start", "act")))
        assert_refused(new, lambda agent: agent.start(value), refused, part, "the first state")
        assert_refused(started, lambda agent: agent.act(value), refused, part, "the state")
        tell = (0.5, [0.5, 0.5])
        assert_refused(acted, lambda agent: agent.observe(*tell, value), refused, "next_state is")
        if value is None:  # that is no action of another's
            return
        part = part.replace("the states are 0 … 2", "the actions are 0 … 1")
        done = {"action": value}
        assert_refused(acted, lambda agent: agent.observe(*tell, 1, **done), refused, part)

    @pytest.mark.parametrize("value", [*FINE, jnp.asarray(1)], ids=repr)
    def test_whole_numbers_of_any_kind(self, value: Any):
        told, plain = make(), make()
        for agent, one in ((told, value), (plain, 1)):
            agent.start(one)
            agent.act(one)
            agent.observe(0.5, [0.5, 0.5], one, action=one)
            agent.end()
        assert_same(told, plain)

    def test_an_action_beyond_the_actions(self):
        agent = agent_after("start", "act")
        parts = ("action is 2", "the actions are 0 … 1")
        call: Call = lambda agent: agent.observe(0.5, [0.5, 0.5], 1, action=2)  # noqa: E731
        assert_refused(agent, call, cmdpax.ParameterError, *parts)

    def test_a_first_state_that_cannot_be(self):
        parts = ("the first state is 2", "probability 0")
        assert_refused(make(), lambda agent: agent.start(2), cmdpax.ParameterError, *parts)

    def test_another_state_than_told_last(self):
        parts = ("the state is 1", "0 was told last")
        agent = agent_after("start")
        assert_refused(agent, lambda agent: agent.act(1), cmdpax.ParameterError, *parts)

    def test_a_state_that_cannot_follow(self):
        agent = make(successors=LISTS_BY_STEP)
        agent.start(0)
        agent.act(0)
        tell: Call = lambda agent: agent.observe(0.5, [0.5, 0.5], 2, action=1)  # noqa: E731
        parts = ("state 2 follows state 0 and action 1 at step 0", "successors lists [0]")
        assert_refused(agent, tell, cmdpax.ParameterError, *parts)
        agent.observe(0.5, [0.5, 0.5], 0, action=1)
        agent.act(0)
        agent.observe(0.5, [0.5, 0.5], 2, action=1)  # at step 1 it can


SIGNALS: dict[str, tuple[Any, Any, tuple[str, ...]]] = {
    "a reward above": (1.01, [0.5, 0.5], ("the reward is 1.01", "[0, 1]")),
    "a reward below": (-1e-5, [0.5, 0.5], ("the reward is -1e-05", "[0, 1]")),
    "a reward that is none": (np.nan, [0.5, 0.5], ("the reward is", "NaN")),
    "an infinite reward": (np.inf, [0.5, 0.5], ("the reward is inf",)),
    "no reward": (None, [0.5, 0.5], ("reward is None",)),
    "a word": ("much", [0.5, 0.5], ("reward is 'much'",)),
    "a list as a reward": ([0.5], [0.5, 0.5], ("reward is [0.5]",)),
    "a signal above": (0.5, [0.5, 7], ("the signal of constraint 1 is 7",)),
    "a signal below": (0.5, [-7, 0.5], ("the signal of constraint 0 is -7",)),
    "a signal that is none": (0.5, [0.5, np.nan], ("constraint 1 is", "NaN")),
    "an infinite signal": (0.5, [-np.inf, 0.5], ("constraint 0 is -inf",)),
    "one signal that is missing": (0.5, [0.5], ("shape (1,), expected (2,)",)),
    "one number": (0.5, 0.5, ("shape (1,), expected (2,)",)),
    "one too many": (0.5, [0.5] * 3, ("shape (3,), expected (2,)",)),
    "nothing": (0.5, None, ("shape (0,), expected (2,)",)),
    "a matrix": (0.5, [[0.5, 0.5]], ("shape (1, 2), expected (2,)",)),
    "words": (0.5, ["a", "b"], ("constraint_rewards ['a', 'b']",)),
    "a ragged list": (0.5, [[0.5], [0.5, 0.5]], ("constraint_rewards [[0.5], [0.5, 0.5]]",)),
    "a dictionary": (0.5, {"a": 0.5}, ("constraint_rewards {'a': 0.5}",)),
    "a reward beyond floats": (10**400, [0.5, 0.5], ("reward",)),
    "a signal beyond floats": (0.5, [0.5, 10**400], ("constraint_rewards",)),
    "complex signals": (0.5, np.array([0.5 + 1j, 0.5]), ("constraint_rewards",)),
}


class TestSignals:
    @pytest.mark.parametrize("name", SIGNALS)
    def test_refused(self, name: str):
        reward, signals, parts = SIGNALS[name]
        agent = agent_after("start", "act", "observe", "act")
        call: Call = lambda agent: agent.observe(reward, signals, 1)  # noqa: E731
        assert_refused(agent, call, cmdpax.ParameterError, *parts)

    def test_rounding_beyond_the_range_is_taken_for_its_end(self):
        rounded, plain = make(), make()
        for agent, room in ((rounded, 5e-10), (plain, 0.0)):
            agent.start(0)
            agent.act(0)
            agent.observe(1 + room, [-room, 1 + room], 1)
            agent.end()
        sums = rounded.learner_state.statistics.reward_sums
        np.testing.assert_array_equal(sums, plain.learner_state.statistics.reward_sums)

    def test_integers_and_arrays_are_numbers(self):
        told, plain = make(), make()
        for agent, reward, signals in (
            (told, np.float32(1), np.array([0, 1])),
            (plain, 1.0, [0.0, 1.0]),
        ):
            agent.start(0)
            agent.act(0)
            agent.observe(reward, signals, 1)
            agent.end()
        assert_same(told, plain)

    def test_one_constraint_takes_one_number(self):
        told, plain = (make(thresholds=[1.0]) for _ in range(2))
        for agent, signal in ((told, 0.25), (plain, [0.25])):
            agent.start(0)
            agent.act(0)
            agent.observe(0.5, signal, 1)
            agent.end()
        assert_same(told, plain)


class TestManySteps:
    """Counts are 32-bit integers."""

    def almost_full(self, room: int) -> cmdpax.Agent:
        """So many episodes of three steps are left."""
        agent = play(make(), 2)
        full = dataclasses.replace(agent._now.tally, episodes=(2**31 - 1) // 3 - room)
        agent._now = agent._now._replace(tally=full)
        return agent

    def test_beyond_what_they_hold(self):
        agent = self.almost_full(1)
        agent.start(0)
        agent.end()
        refused = cmdpax.ParameterError
        assert_refused(self.almost_full(0), lambda agent: agent.start(0), refused, "2^31")

    def test_beyond_what_they_hold_by_feeding(self):
        agent = self.almost_full(0)
        log = log_of(agent, draw_episodes(agent, 1))
        assert_refused(
            agent, lambda agent: agent.feed(log, own=True), cmdpax.ParameterError, "2^31"
        )
