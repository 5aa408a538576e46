"""`cmdpax watch`: the account of a saved agent, once and in a terminal."""

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import cmdpax
import damages
from cmdpax.cli import watching
from cmdpax.live import saving
from live_cases import draw_episodes, log_of, make, play
from watch_cases import NAMES, cells, watched

# --------------------------------------------------------------------------------------------- once


def test_the_table_is_the_account(run: Any) -> None:
    agent = watched(30)
    code, out, err = run("watch", "a.npz")
    assert (code, err) == (0, "")
    account = agent.account
    first = out.splitlines()[0]
    assert first.startswith("a.npz: regularized-primal-dual, S=3 A=2 H=3, 30 episodes, ")
    assert f", {account.steps} steps ({account.cut_short} cut short), saved " in first
    assert account.cut_short == 10
    assert cells(out, "per episode") == ["reward", *NAMES]
    assert cells(out, "threshold") == ["", "at most 12.5", "at least -0.25"]
    objective, (hours, comfort) = account.objective, account
    for row, name in (("mean return", "observed"), ("of the last 30", "recent")):
        shown = [getattr(one, name) for one in (objective, hours, comfort)]
        assert cells(out, row) == [f"{one.mean:.4g} ± {one.half:.2g}" for one in shown]
    assert cells(out, "these show") == ["", hours.verdict, comfort.verdict]
    shown = [one.always for one in (objective, hours, comfort)]
    assert cells(out, "every day") == [f"{one.low:.4g} to {one.high:.4g}" for one in shown]
    assert cells(out, "this shows") == ["", hours.always_verdict, comfort.always_verdict]
    assert cells(out, "that missed") == ["", *(f"{one.missed} of 30" for one in account)]
    assert cells(out, "optimistic") == ["", *(f"{one.optimistic:.6g}" for one in account)]
    assert cells(out, "price") == ["", *(f"{one.price:.4g}" for one in account)]
    assert (
        run("watch", "a.npz", "--once", "--interval", "5")[1].splitlines()[1:]
        == (out.splitlines()[1:])
    )


def test_the_lines_are_the_recent_returns(run: Any) -> None:
    agent = watched(5)
    _, out, _ = run("watch", "a.npz")
    *_, head, reward, hours, comfort = out.splitlines()
    assert head == "the last 5 episodes:"
    recent = [agent.recent["rewards"], *agent.recent["constraint_returns"].T]
    for line, returns in zip((reward, hours, comfort), recent, strict=True):
        (blocks,) = re.findall("[▁-█]+", line)
        assert len(blocks) == 5
        heights = np.array([ord(block) - ord("▁") for block in blocks])
        expected = 7 * (returns - returns.min()) / np.ptp(returns)
        assert np.abs(heights - expected).max() <= 0.5
        assert line.endswith(f" {returns.min():.4g} … {returns.max():.4g}")
    assert (reward.split()[0], hours.split("▁")[0][:11]) == ("reward", NAMES[0])


def test_many_episodes_make_a_short_line(run: Any) -> None:
    agent = watched(230)
    _, out, _ = run("watch", "a.npz")
    assert "the last 200 episodes:" in out
    objective = agent.account.objective
    assert str(objective.observed) != str(objective.recent)
    assert cells(out, "mean return")[0] == str(objective.observed)
    assert cells(out, "of the last 200 ")[0] == str(objective.recent)
    assert [len(found) for found in re.findall("[▁-█]+", out)] == [50, 50, 50]


def test_constant_returns_make_a_flat_line(run: Any) -> None:
    agent = make(thresholds=[1.0], initial=0)
    for _ in range(3):
        agent.start(0)
        while agent.expects == "act":
            agent.act(0)
            agent.observe(0.25, [0.5], 0)
        agent.end()
    agent.save("a.npz")
    _, out, _ = run("watch", "a.npz")
    assert "reward ▁▁▁ 0.75 … 0.75" in out
    assert cells(out, "mean return") == ["0.75 ± 0", "1.5 ± 0"]
    assert cells(out, "these show") == ["", "open"]  # three episodes show nothing


def test_no_episode_yet(run: Any) -> None:
    watched(0)
    code, out, _ = run("watch", "a.npz")
    assert code == 0
    assert "H=3, 0 episodes, 0 steps, saved" in out
    assert cells(out, "mean return") == ["not defined"] * 3
    assert cells(out, "these show") == ["", "open", "open"]
    assert cells(out, "that missed") == ["", "0 of 0", "0 of 0"]
    assert "episodes:" not in out
    assert "nan" not in out


def test_one_episode_has_no_interval(run: Any) -> None:
    agent = watched(1)
    _, out, _ = run("watch", "a.npz")
    assert cells(out, "mean return")[0] == f"{agent.account.objective.observed.mean:.4g}"
    assert cells(out, "these show") == ["", "open", "open"]
    assert "inf" not in out


def test_an_open_episode(run: Any) -> None:
    agent = watched(4)
    agent.start(0)
    agent.act(0)
    agent.observe(0.5, [1.0, 0.0], 1)
    agent.save("a.npz")
    _, out, _ = run("watch", "a.npz")
    assert ", after 1 of 3 steps of episode 5, saved" in out
    agent.end()
    agent.save("a.npz")
    assert "of episode" not in run("watch", "a.npz")[1]


def test_without_constraints(run: Any) -> None:
    play(make(thresholds=[]), 4).save("a.npz")
    code, out, _ = run("watch", "a.npz")
    assert code == 0
    assert cells(out, "per episode") == ["reward"]
    assert len(re.findall("[▁-█]+", out)) == 1


def test_how_long_ago(run: Any) -> None:
    watched(0)
    for seconds, text in ((5, "5 s"), (130, "2 min"), (7300, "2 h"), (3e5, "3 d"), (-9, "0 s")):
        at = time.time() - seconds
        os.utime("a.npz", (at, at))
        assert f"saved {text}" in run("watch", "a.npz")[1]


def test_json_is_the_account(run: Any) -> None:
    agent = watched(30)
    code, out, err = run("watch", "a.npz", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == json.loads(json.dumps(agent.account.to_dict()))
    assert cmdpax.AgentAccount.from_dict(json.loads(out)) == agent.account
    assert out.count("\n") == 1


@pytest.mark.parametrize("num_episodes", [0, 1])
def test_json_of_few_episodes_has_null_for_what_is_not_defined(run: Any, num_episodes: int) -> None:
    watched(num_episodes)
    code, out, _ = run("watch", "a.npz", "--json")
    assert code == 0
    mean, half, size = json.loads(out)["constraints"][0]["observed"]
    assert (half, size) == (None, num_episodes)
    assert (mean is None) == (num_episodes == 0)


@pytest.mark.parametrize("name", ["level [/m]", "[red]level"])
def test_names_with_brackets_are_printed_as_they_are(run: Any, name: str) -> None:
    watched(0, names=[name, "comfort"])
    code, out, _ = run("watch", "a.npz")
    assert code == 0
    assert cells(out, "per episode") == ["reward", name, "comfort"]


# ------------------------------------------------------------------------------------------ refused


def test_a_file_that_is_not_there(run: Any) -> None:
    for options in ((), ("--json",), ("--once",)):
        code, out, err = run("watch", "a.npz", *options)
        assert (code, out) == (1, "")
        assert err == "error: a.npz does not exist; give a file that agent.save wrote.\n"


def test_a_folder(run: Any, tmp_path: Path) -> None:
    code, out, err = run("watch", str(tmp_path))
    assert (code, out) == (1, "")
    assert err == f"error: {tmp_path} is a folder, not a file; give a file that agent.save wrote.\n"


@pytest.mark.parametrize("damage", [damages.truncate, damages.empty, damages.flip])
def test_damaged_files(run: Any, tmp_path: Path, damage: Any) -> None:
    watched(3)
    damage(tmp_path / "a.npz")
    for options in ((), ("--json",)):
        code, out, err = run("watch", "a.npz", *options)
        assert (code, out) == (1, "")
        assert err.startswith("error: a.npz is not a readable file of an agent: it is damaged")
        assert err.count("\n") == 1


def test_files_of_something_else(run: Any) -> None:
    cmdpax.save(cmdpax.environments.make("bandit"), "model.npz")
    Path("text.npz").write_text("not an archive")
    np.save("array.npy", np.zeros(3))
    for name in ("model.npz", "text.npz", "array.npy"):
        code, _, err = run("watch", name)
        assert (code, err[:40]) == (1, f"error: {name} is not a readable file of an agent"[:40])


@pytest.mark.parametrize("change", [{"format": 99}, {"format": 99, "cmdpax": "9.9.9"}])
def test_other_versions(run: Any, change: dict[str, Any]) -> None:
    watched(3)
    with np.load("a.npz") as archive:
        entries = dict(archive)
    entries["agent"] = np.array(json.dumps(json.loads(str(entries["agent"])) | change))
    np.savez("a.npz", **entries)
    code, out, err = run("watch", "a.npz")
    assert (code, out) == (1, "")
    assert f"error: a.npz was saved by cmdpax {change.get('cmdpax', cmdpax.__version__)}" in err
    assert "load it with the version that wrote it" in err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["a.npz", "b.npz"],
        ["a.npz", "--interval", "0"],
        ["a.npz", "--interval", "-1"],
        ["a.npz", "--interval", "nan"],
        ["a.npz", "--interval", "often"],
        ["a.npz", "--intervall", "1"],
    ],
)
def test_wrong_usage_exits_with_2(run: Any, arguments: list[str]) -> None:
    watched(0)
    code, out, err = run("watch", *arguments)
    assert (code, out) == (2, "")
    assert "Usage:" in err


# --------------------------------------------------------------------------------------- a terminal


class Terminal:
    """`cmdpax watch` in a pseudo-terminal of 80 columns."""

    def __init__(self, folder: Path, name: str = "a.npz") -> None:
        pty = pytest.importorskip("pty")
        self.ours, theirs = pty.openpty()
        command = [sys.executable, "-m", "cmdpax", "watch", name, "--interval", "0.2"]
        self.process = subprocess.Popen(
            command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs,
            env=os.environ | {"TERM": "xterm", "COLUMNS": "80", "LINES": "40"},
        )  # fmt: skip
        os.close(theirs)
        self.shown = ""

    def read_until(self, text: str, seconds: float = 40.0) -> str:
        """What is shown until a text is, or until the command has ended."""
        self.shown, end = "", time.monotonic() + seconds
        while time.monotonic() < end and not (text and text in self.shown):
            if not select.select([self.ours], [], [], 0.1)[0]:
                continue
            try:
                found = os.read(self.ours, 65536)
            except OSError:  # the other side has gone
                break
            self.shown += found.decode(errors="replace")
        return self.shown

    def end(self) -> tuple[int, str]:
        """Its exit code, and the rest of what it showed."""
        rest = self.read_until("")
        return self.process.wait(10), rest


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """One that watches an agent of three episodes, and has shown it."""
    watched(3, tmp_path / "a.npz")
    watching = Terminal(tmp_path)
    try:
        assert "3 episodes" in watching.read_until("3 episodes"), watching.shown
        yield watching
    finally:
        if watching.process.poll() is None:
            watching.process.kill()
        watching.process.wait()
        os.close(watching.ours)


@pytest.mark.kills
def test_it_follows_the_file_until_interrupted(terminal: Terminal, tmp_path: Path) -> None:
    agent = watched(4, tmp_path / "a.npz")
    assert ", 4 episodes" in terminal.read_until(", 4 episodes", 10)
    play(agent, 57)
    agent.save(tmp_path / "a.npz")
    assert "the last 57 episodes" in terminal.read_until("the last 57 episodes", 10)
    terminal.process.send_signal(signal.SIGINT)
    code, rest = terminal.end()
    assert code == 0
    assert "Traceback" not in rest
    assert rest.endswith("\x1b[?25h")  # the cursor is there again


@pytest.mark.kills
def test_garbage_ends_it_with_a_sentence(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_text("garbage")
    code, rest = terminal.end()
    assert code == 1
    assert "error: a.npz is not a readable file of an agent" in rest
    assert "Traceback" not in rest
    assert "\x1b[?25h" in rest


@pytest.mark.kills
def test_a_deleted_file_ends_it_with_a_sentence(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "a.npz").unlink()
    code, rest = terminal.end()
    assert code == 1
    assert "Traceback" not in rest
    assert "error: a.npz does not exist" in rest


@pytest.mark.kills
def test_a_long_line_is_not_cut_off(terminal: Terminal, tmp_path: Path) -> None:
    """The head has 100 characters: it says how old the file is, and how many were cut short."""
    assert "ago" in terminal.read_until("ago", 2)


def test_a_save_while_it_is_read_is_not_missed(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    agent, read, slept = watched(3), saving.read, []

    def read_and_save(path: Path) -> Any:
        found = read(path)
        if found.account.episodes == 3:
            play(agent, 4).save(path)
        return found

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) > 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(saving, "read", read_and_save)
    monkeypatch.setattr(watching.time, "sleep", sleep)
    monkeypatch.setattr(watching, "results", Console(force_terminal=True))
    code, out, _ = run("watch", "a.npz")
    assert code == 0
    assert slept == [1.0] * 4
    assert ", 4 episodes" in out


def test_the_open_episode_is_named_as_the_agent_names_it(run: Any) -> None:
    """Episodes of a log count for its number, though not for the account."""
    agent = make()
    agent.feed(log_of(agent, draw_episodes(agent, 3)))
    agent.start(0)
    agent.save("a.npz")
    assert agent.episode == 4
    assert "0 episodes, 0 steps, after 0 of 3 steps of episode 4" in run("watch", "a.npz")[1]


def test_what_a_plan_is_believed_to_be_worth(run: Any) -> None:
    agent = play(make("replanning", thresholds=[1.4, 1.4]), 12)
    agent.save("a.npz")
    code, out, _ = run("watch", "a.npz")
    assert code == 0
    assert out.startswith("a.npz: replanning, S=3 A=2 H=3, 12 episodes, ")
    believed = [f"{one.optimistic:.6g}" for one in agent.account]
    assert cells(out, "believed (of the plan)") == ["", *believed]
    assert "optimistic" not in out
