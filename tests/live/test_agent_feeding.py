"""Logs that cannot be: one sentence, and none of it is counted."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cmdpax
from live_cases import (
    LISTS_BY_STEP,
    assert_refused,
    assert_same,
    draw_episodes,
    log_of,
    make,
    play,
    replay_calls,
)


def change(log: cmdpax.Log, name: str, place: Any, value: Any) -> cmdpax.Log:
    array = getattr(log, name).copy()
    array[place] = value
    return log._replace(**{name: array})


EMPTY: Any = ([0], [], [], [[], []])  # an episode of which no step happened

LOGS: dict[str, tuple[Callable[[cmdpax.Log], Any], str]] = {
    "a reward above": (lambda log: change(log, "rewards", (1, 0), 1.5), "reward is 1.5"),
    "a reward that is none": (lambda log: change(log, "rewards", (1, 0), np.nan), "NaN"),
    "a signal below": (
        lambda log: change(log, "constraint_rewards", (1, 1, 0), -2),
        "signal of constraint 1 is -2",
    ),
    "a state too large": (lambda log: change(log, "states", (1, 1), 3), "states[1, 1] is 3"),
    "a negative state": (lambda log: change(log, "states", (1, 1), -1), "states[1, 1] is -1"),
    "an action too large": (lambda log: change(log, "actions", (1, 0), 2), "actions[1, 0] is 2"),
    "an action below -1": (lambda log: change(log, "actions", (1, 0), -2), "actions[1, 0] is -2"),
    "a hole": (lambda log: change(log, "actions", (0, 1), -1), "the episode goes on after it"),
    "another start": (lambda log: change(log, "states", (1, 0), 2), "begins in state 2"),
    "floats": (lambda log: log._replace(actions=log.actions * 1.0), "actions must be integers"),
    "fewer steps": (lambda log: cmdpax.Log(*(a[..., :2] for a in log)), "states has shape"),
    "several runs": (lambda log: cmdpax.Log(*(array[None] for array in log)), "log.run(0)"),
    "fewer rewards": (lambda log: log._replace(rewards=log.rewards[:1]), "rewards has shape"),
    "one constraint": (
        lambda log: log._replace(constraint_rewards=log.constraint_rewards[:, :1]),
        "constraint_rewards has shape",
    ),
    "something else": (lambda log: log.states, "ndarray without states"),
    "no axes": (lambda log: log._replace(actions=np.array(1)), "at least one episode"),
}


class TestFeeding:
    @pytest.mark.parametrize("name", LOGS)
    def test_a_wrong_log_is_refused_as_a_whole(self, name: str):
        """The first episode is right, and is not counted either."""
        changed, part = LOGS[name]
        agent = play(make(), 2)
        log = changed(log_of(agent, draw_episodes(agent, 2)))
        refused = (cmdpax.ModelError, cmdpax.ParameterError)
        assert_refused(agent, lambda agent: agent.feed(log, own=True), refused, part)

    def test_a_step_that_the_lists_do_not_have(self):
        agent = make(successors=LISTS_BY_STEP)
        log = log_of(agent, [([0, 1], [0], [0.5], [[0.5], [0.5]]), ([0, 2], [1], [0], [[0], [0]])])
        parts = ("state 2 follows state 0 and action 1 at step 0",)
        assert_refused(
            agent, lambda agent: agent.feed(log, own=True), cmdpax.ParameterError, *parts
        )

    def test_no_episodes_and_no_steps(self):
        agent, fed = play(make(), 2), play(make(), 2)
        for episodes, part in (([], "at least one episode"), ([EMPTY] * 3, "has no step")):
            log = log_of(agent, episodes)
            assert_refused(
                agent, lambda agent, log=log: agent.feed(log, own=True), cmdpax.ModelError, part
            )
        played = draw_episodes(agent, 2)
        agent.feed(
            log_of(agent, [EMPTY, *played, EMPTY]), own=True
        )  # those without a step are left out
        fed.feed(log_of(fed, played), own=True)
        assert_same(agent, fed)

    def test_before_and_after_playing(self):
        episodes = draw_episodes(make(), 5)
        mixed, fed = make(), make()
        mixed.feed(log_of(mixed, episodes[:2]), own=True)
        replay_calls(mixed, episodes[2:4])
        mixed.feed(log_of(mixed, episodes[4:]), own=True)
        fed.feed(log_of(fed, episodes), own=True)
        assert_same(mixed, fed)

    def test_episodes_of_others_are_learned_from_and_not_accounted_for(self):
        taught, own = make(), make()
        log = log_of(taught, draw_episodes(taught, 40))
        taught.feed(log)
        own.feed(log, own=True)
        np.testing.assert_array_equal(taught.policy, own.policy)
        np.testing.assert_array_equal(taught.visits, own.visits)
        assert (taught.num_episodes, taught.episode) == (40, 41)
        assert (taught.account.episodes, taught.account.fed) == (0, 40)
        assert (own.account.episodes, own.account.fed) == (40, 0)
        assert taught.account[0].observed.size == 0
        play(taught, 42)
        assert (taught.account.episodes, taught.account.fed) == (2, 40)
