"""What a file shows of an agent without its learner: bounded, and checked before it is used."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cmdpax
from checkpoint_cases import arrays_in
from cmdpax.live import saving
from cmdpax.live.glimpse import (
    MOST_STATES,
    MOST_STEPS,
    Glimpse,
    entries_of_glimpse,
    make_glimpse,
)
from live_cases import make, play


def seen(agent: cmdpax.Agent, path: Path) -> Glimpse:
    agent.save(path)
    found = saving.read(path).episode.glimpse
    for one, other in zip(found, glimpse_of(agent), strict=True):
        np.testing.assert_array_equal(one, other)
    return found


def glimpse_of(agent: cmdpax.Agent) -> Glimpse:
    return make_glimpse(agent.declaration, agent._now.episode)


def test_the_policy_and_the_visits(tmp_path: Path) -> None:
    agent = play(make(), 9)
    found = seen(agent, tmp_path / "a.npz")
    totals = agent.visits.sum(axis=(0, 2))
    assert sorted(found.states) == np.flatnonzero(totals).tolist()
    np.testing.assert_array_equal(found.visits, totals[found.states])
    assert (np.diff(found.visits) <= 0).all()
    for row, state in enumerate(found.states):
        for step in range(3):
            chances = agent.policy[step, state]
            assert found.percents[row, step] == round(100 * chances.max())
            never = not agent.visits[step, state].any()
            assert found.actions[row, step] == (-1 if never else chances.argmax())


def test_a_plan(tmp_path: Path) -> None:
    agent = play(make("replanning"), 5)
    state = agent.learner_state
    expected = [state.num_plans, state.feasible, state.remaining]
    assert seen(agent, tmp_path / "a.npz").plan.tolist() == expected
    assert seen(make(), tmp_path / "b.npz").plan.tolist() == []


@pytest.mark.parametrize("stationary", [True, False])
def test_what_is_unexplored(tmp_path: Path, stationary: bool) -> None:
    flags = np.array([[[1, 1], [1, 1], [0, 1]], [[1, 1], [0, 1], [1, 1]], [[1, 1]] * 3], bool)
    given = flags[0] if stationary else flags
    agent = play(make(available=given, stationary=stationary), 6)
    found = seen(agent, tmp_path / "a.npz")
    visits, flags = agent.visits, flags[: len(agent.visits)]
    never = (visits == 0) & flags
    reached = never & (visits.sum(axis=-1, keepdims=True) > 0)
    rarely = (visits > 0) & (visits < 5)
    assert found.explored.tolist() == [flags.sum(), never.sum(), rarely.sum(), reached.sum()]
    assert len(found.untried) == min(5, reached.sum())
    often = [visits[max(step, 0), state].sum() for step, state, _ in found.untried]
    assert often == sorted(often, reverse=True)
    for step, state, action in found.untried:
        assert (step == -1) == stationary
        assert reached[max(step, 0), state, action]


def test_it_is_bounded(tmp_path: Path) -> None:
    agent = cmdpax.Agent(
        "regularized-primal-dual",
        num_states=20,
        num_actions=7,
        horizon=250,
        thresholds=[1.0],
        initial=np.full(20, 0.05),
        stationary=True,
    )
    for place in range(2):
        found = seen(agent, tmp_path / "a.npz")
        assert found.actions.shape == found.percents.shape == (MOST_STATES, MOST_STEPS)
        assert found.explored.tolist()[0] == 140
        agent = play(agent, 1 + place)
    entries = entries_of_glimpse(agent.declaration, agent._now.episode)
    assert len(entries["shown_untried"]) == 5
    assert sum(entry.nbytes for entry in entries.values()) < 20_000


def test_a_learner_that_shows_no_statistics() -> None:
    agent = play(make(), 3)
    hidden = agent._now.episode._replace(visits=None)
    found = make_glimpse(agent.declaration, hidden)
    assert len(found.explored) == len(found.untried) == 0
    assert sorted(found.states) == [0, 1]  # where episodes begin
    assert (found.actions >= 0).all()


def test_it_is_not_taken_up(tmp_path: Path) -> None:
    agent = play(make(), 3)
    agent.save(tmp_path / "a.npz")
    assert cmdpax.Agent.load(tmp_path / "a.npz")._now.episode.glimpse is None


def test_what_was_read_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    play(make(), 3).save(path)
    before = saving.read(path)
    saving.save(path, before)
    for one, other in zip(saving.read(path).episode.glimpse, before.episode.glimpse, strict=True):
        np.testing.assert_array_equal(one, other)


WRONG: dict[str, Any] = {
    "shown_plan": np.array([1, 1]),
    "shown_explored": np.array([1, -1, 1, 1]),
    "shown_untried": np.array([[0, 3, 0]]),
    "shown_states": np.array([0, 1, 3]),
    "shown_visits": np.array([2.5, 1.5, 0.5]),
    "shown_actions": np.full((3, 3), 2),
    "shown_percents": np.full((3, 3), 101),
}


@pytest.mark.parametrize("name", [*WRONG, None])
def test_what_cannot_be_is_damage(tmp_path: Path, name: str | None) -> None:
    path = tmp_path / "a.npz"
    play(make(), 30).save(path)
    arrays = arrays_in(path.read_bytes())
    if name is None:
        del arrays["shown_plan"]
    else:
        assert saving.read(path).episode.glimpse is not None
        arrays[name] = WRONG[name]
    np.savez(path, **arrays)
    with pytest.raises(cmdpax.FileError, match="not a readable file of an agent"):
        cmdpax.Agent.load(path)
