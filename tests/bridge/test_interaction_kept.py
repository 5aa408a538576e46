"""`interact`: callbacks, progress, and the file that survives whatever happens."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cmdpax
from cmdpax.gymnasium import interact
from live_cases import assert_same, make
from storage_cases import contents


class Ring:
    """Three places in a ring; something may happen in step `when` of all, counted from 1."""

    def __init__(self, when: int = -1, what: BaseException | None = None) -> None:
        self.when, self.what, self.steps = when, what, 0

    def reset(self) -> tuple[int, dict[str, Any]]:
        self.place = 0
        return 0, {}

    def step(self, action: int) -> tuple[Any, ...]:
        self.steps += 1
        if self.steps == self.when and self.what is not None:
            raise self.what
        self.place = (self.place + action) % 3
        return self.place, self.place / 2, False, False, {"cost": self.place / 4}


def walker(**changes: Any) -> cmdpax.Agent:
    return make(initial=0, thresholds=[1.0], senses="at most", **changes)


def played(num_episodes: int) -> cmdpax.Agent:
    agent = walker()
    interact(Ring(), agent, num_episodes)
    return agent


# ---------------------------------------------------------------------------------------- callbacks


def test_callbacks_are_called_once_per_episode() -> None:
    agent = walker()
    seen: list[tuple[Any, ...]] = []

    def first(told: cmdpax.Agent, record: cmdpax.EpisodeRecord) -> None:
        assert told is agent
        assert agent.expects == "start"
        seen.append((agent.num_episodes, record))

    others: list[int] = []
    found = interact(Ring(), agent, 6, callbacks=[first, lambda a, r: others.append(r.episode)])
    assert others == [number for number, _ in seen] == [1, 2, 3, 4, 5, 6]
    for index, (number, record) in enumerate(seen):
        assert (record.episode, record.steps) == (number, 3)
        assert record.reward == found.rewards[index]
        np.testing.assert_array_equal(record.constraint_returns, found.constraint_returns[index])


def test_a_callback_ends_it() -> None:
    agent, seen = walker(), []
    calls = (lambda a, r: r.episode == 4, lambda a, r: seen.append(r.episode))
    found = interact(Ring(), agent, 100, callbacks=calls, log=True)
    assert agent.num_episodes == len(found.rewards) == len(found.log.actions) == 4
    assert seen == [1, 2, 3, 4]
    interact(Ring(), agent, 10, callbacks=lambda a, r: np.bool_(r.episode == 6))
    assert agent.num_episodes == 6
    assert_same(agent, played(6))


@pytest.mark.parametrize("answer", [False, None, 0, 2, "stop"])
def test_other_answers_do_not_end_it(answer: Any) -> None:
    assert len(interact(Ring(), walker(), 3, callbacks=lambda a, r: answer).rewards) == 3


@pytest.mark.parametrize("answer", [1, np.ones(2)])
def test_only_true_ends_it(answer: Any) -> None:
    """A callback may return what it likes: `lambda a, r: file.write(".")` returns 1."""
    assert len(interact(Ring(), walker(), 3, callbacks=lambda a, r: answer).rewards) == 3


# ----------------------------------------------------------------------------------------- progress


def test_progress_as_a_function() -> None:
    told: list[tuple[int, int]] = []
    interact(Ring(), played(2), 4, progress=lambda done, total: told.append((done, total)))
    assert told == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_as_a_bar(
    terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("COLUMNS", "200")
    agent = walker(names=["[/odd] name"])
    interact(Ring(), agent, 4, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert ("4/4" in err and "[/odd] name: " in err) == terminal
    np.testing.assert_array_equal(agent.policy, played(4).policy)


def test_no_progress_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    interact(Ring(), walker(), 2)
    assert capsys.readouterr() == ("", "")


# -------------------------------------------------------------------------------------- checkpoints


def test_the_file_is_there_from_the_start_and_whole_at_the_end(tmp_path: Path) -> None:
    path, agent, found = tmp_path / "a.npz", walker(), []
    interact(
        Ring(), agent, 5, checkpoint=path,
        callbacks=lambda a, r: found.append(cmdpax.Agent.load(path).num_episodes),
    )  # fmt: skip
    assert found == [0] * 5  # the next one was ten seconds away
    assert_same(cmdpax.Agent.load(path), agent)
    assert list(contents(tmp_path)) == ["a.npz"]


def test_zero_seconds_save_after_every_episode(tmp_path: Path) -> None:
    path, agent = str(tmp_path / "a.npz"), walker()
    calls = [lambda a, r: assert_same(cmdpax.Agent.load(path), a)]
    interact(Ring(), agent, 5, checkpoint=path, checkpoint_seconds=0, callbacks=calls)
    assert agent.num_episodes == 5


def test_it_saves_when_the_seconds_are_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, clock, found = tmp_path / "a.npz", [100.0], []
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])

    def four_seconds_later(agent: cmdpax.Agent, record: cmdpax.EpisodeRecord) -> None:
        clock[0] += 4.0
        found.append(cmdpax.Agent.load(path).num_episodes)

    interact(Ring(), walker(), 8, checkpoint=path, callbacks=four_seconds_later)
    assert found == [0, 0, 0, 4, 4, 4, 7, 7]


@pytest.mark.parametrize("place", ["missing/a.npz", "."])
def test_places_that_cannot_be_written_are_refused_first(tmp_path: Path, place: str) -> None:
    agent, env = walker(), Ring()
    agent.start(0)
    with pytest.raises(cmdpax.FileError, match=r"cannot write|is a folder"):
        interact(env, agent, 3, checkpoint=tmp_path / place)
    assert (env.steps, agent.num_episodes, agent.expects) == (0, 0, "act")


@pytest.mark.parametrize("seconds", [np.nan, "10"])
def test_seconds_that_are_no_time_are_refused_first(tmp_path: Path, seconds: Any) -> None:
    agent = walker()
    with pytest.raises(cmdpax.ParameterError, match="checkpoint_seconds"):
        interact(Ring(), agent, 3, checkpoint=tmp_path / "a.npz", checkpoint_seconds=seconds)
    assert agent.num_episodes == 0


@pytest.mark.parametrize("what", [RuntimeError("the pump broke"), KeyboardInterrupt()])
def test_what_happens_in_the_environment_is_saved(tmp_path: Path, what: BaseException) -> None:
    """In step 2 of episode 4: the step before it counts, the action that was given does not."""
    path, agent = tmp_path / "a.npz", walker()
    with pytest.raises(type(what)):
        interact(Ring(when=11, what=what), agent, 9, checkpoint=path)
    saved = cmdpax.Agent.load(path)
    assert_same(saved, agent)
    assert (saved.episode, saved.step, saved.expects) == (4, 1, "observe")
    found = interact(Ring(), saved, 3, checkpoint=path)
    assert len(found.rewards) == 3
    account = saved.account
    assert (account.episodes, account.steps, account.cut_short) == (7, 3 * 3 + 1 + 3 * 3, 1)
    assert saved.visits.sum() == 19
    assert_same(cmdpax.Agent.load(path), saved)


def test_an_interrupt_in_a_callback_is_saved(tmp_path: Path) -> None:
    path, agent = tmp_path / "a.npz", walker()

    def interrupt(agent: cmdpax.Agent, record: cmdpax.EpisodeRecord) -> None:
        if record.episode == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interact(Ring(), agent, 9, checkpoint=path, callbacks=interrupt)
    saved = cmdpax.Agent.load(path)
    assert (saved.num_episodes, saved.expects) == (3, "start")
    interact(Ring(), saved, 4)
    assert_same(saved, played(7))


def test_an_open_episode_without_a_step_was_none() -> None:
    agent = walker()
    agent.start(0)
    agent.act(0)
    interact(Ring(), agent, 2)
    assert_same(agent, played(2))


def test_an_error_before_the_first_step_is_saved_too(tmp_path: Path) -> None:
    path, env = tmp_path / "a.npz", Ring()
    env.reset = lambda: 1 / 0  # type: ignore[method-assign, return-value]
    with pytest.raises(ZeroDivisionError):
        interact(env, played(3), 2, checkpoint=path)
    assert_same(cmdpax.Agent.load(path), played(3))


SCRIPT = """
import sys
import cmdpax
from cmdpax.gymnasium import interact, make_env
cmdp = cmdpax.environments.make("bandit")
agent = cmdpax.Agent(
    "regularized-primal-dual", num_states=1, num_actions=3, horizon=1,
    thresholds=cmdp.thresholds, initial=cmdp.initial,
)
interact(
    make_env(cmdp), agent, 10**6, seed=0, checkpoint="a.npz", checkpoint_seconds=0,
    callbacks=lambda agent, record: print(record.episode, flush=True),
)
"""


@pytest.mark.kills
def test_a_killed_process_leaves_a_whole_file(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    with process:
        reported = [int(process.stdout.readline()) for _ in range(40)][-1]
        process.kill()
        reported = max([reported, *map(int, process.stdout.read().split())])
    assert process.returncode == -9
    agent = cmdpax.Agent.load(tmp_path / "a.npz")
    assert reported <= agent.num_episodes <= reported + 1
    env = cmdpax.gymnasium.make_env(cmdpax.environments.make("bandit"))
    interact(env, agent, 3, checkpoint=tmp_path / "a.npz")
    assert agent.num_episodes in (reported + 3, reported + 4)
    assert list(contents(tmp_path)) == ["a.npz"]  # what the killed one left aside is gone
