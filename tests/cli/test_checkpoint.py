"""`cmdpax learn --checkpoint`: processes that die, and others that go on from their file."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ARGUMENTS = ("learn", "m.npz", "--algorithm", "regularized-primal-dual", "--seeds", "3")
PLANNING = ("learn", "m.npz", "--algorithm", "replanning", "--seeds", "3", "-p", "growth=0.01")
FILE = ("--checkpoint", "c.npz")
LONG = ("--episodes", "120000")
OFTEN = """
import os, signal
from cmdpax.learning import checkpoint as checkpoints
from cmdpax.cli import main

checkpoints.Checkpoint.__init__.__defaults__ = (0.0,)
checkpoints._WORTH = 0
"""
DYING = """
rename, left = os.replace, 5

def die_at_a_rename(aside, target):
    global left
    left -= str(target) == "c.npz"
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    rename(aside, target)

os.replace = die_at_a_rename
"""
"""The file is written after every block; the process dies when a fifth one is there but for its
name."""


pytestmark = pytest.mark.usefixtures("saved_bandit")


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def begin(folder: Path, script: str, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", f"{script}\nmain()", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
    )


def episodes_in(path: Path) -> int:
    with np.load(path) as archive:
        return sum(int(archive[name]) for name in archive.files if name.endswith(".0"))


def assert_same_files(found: Path, expected: Path) -> None:
    """Bit for bit, and in what they are said to be."""
    with np.load(found) as one, np.load(expected) as other:
        assert one.files == other.files
        for name in other.files:
            assert one[name].tobytes() == other[name].tobytes(), name


@pytest.mark.kills
@pytest.mark.skipif(os.name != "posix", reason="sends signals")
def test_killed_then_interrupted_then_finished(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "c.npz"
    killed = die(tmp_path, *ARGUMENTS, *LONG)

    before = path.stat().st_mtime_ns
    with begin(tmp_path, OFTEN, *ARGUMENTS, *LONG, *FILE, "--out", "a.npz") as process:
        while path.stat().st_mtime_ns == before and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert (process.returncode, out) == (130, "")
    assert err.startswith("interrupted: c.npz keeps what was reported done")
    assert err.count("\n") == 1
    assert files(tmp_path) == {"m.npz", "c.npz"}
    assert killed < episodes_in(path) < 360_000

    finish(run, tmp_path, *ARGUMENTS, *LONG)


@pytest.mark.kills
@pytest.mark.skipif(os.name != "posix", reason="sends signals")
def test_a_learner_that_plans_is_killed_then_finished(run: Any, tmp_path: Path) -> None:
    """Its blocks are stretches of many episodes, and each run has its own."""
    arguments = (*PLANNING, "--episodes", "20000")
    assert die(tmp_path, *arguments) < 60_000
    finish(run, tmp_path, *arguments)


def die(folder: Path, *arguments: str) -> int:
    """Start a process that dies; returns how many episodes its checkpoint has."""
    with begin(folder, OFTEN + DYING, *arguments, *FILE, "--out", "a.npz") as process:
        process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert len(files(folder)) == 4  # the model, the fourth file, the fifth aside, and the lock
    killed = episodes_in(folder / "c.npz")
    assert killed > 0
    return killed


def finish(run: Any, folder: Path, *arguments: str) -> None:
    """Go on in a process that keeps no more files than others; the result is that of one run."""
    whole = "from cmdpax.cli import main"
    with begin(folder, whole, *arguments, *FILE, "--out", "a.npz") as process:
        _, err = process.communicate()
    assert process.returncode == 0
    assert "going on from c.npz" in err
    assert run(*arguments, "--out", "b.npz")[0] == 0
    assert_same_files(folder / "a.npz", folder / "b.npz")


FEW = (*ARGUMENTS, *FILE, "--episodes", "30")


def test_a_finished_file_gives_the_result_again(run: Any, tmp_path: Path) -> None:
    code, first, err = run(*FEW, "--out", "a.npz")
    assert code == 0
    assert "going on" not in err
    code, second, err = run(*FEW, "--out", "b.npz")
    assert (code, second) == (0, first)
    assert "going on from c.npz" in err
    assert_same_files(tmp_path / "a.npz", tmp_path / "b.npz")
    assert files(tmp_path) == {"m.npz", "c.npz", "a.npz", "b.npz"}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"PK\x03\x04 half of a fi", "c.npz is not a readable .npz file"),
        (None, "c.npz is not a readable checkpoint; delete it to begin anew, or give another."),
    ],
    ids=["damaged", "a model"],
)
def test_refused_in_one_sentence(
    run: Any, tmp_path: Path, content: bytes | None, sentence: str
) -> None:
    path = tmp_path / "c.npz"
    path.write_bytes((tmp_path / "m.npz").read_bytes() if content is None else content)
    before = path.read_bytes()
    code, out, err = run(*FEW, "--out", "a.npz")
    assert (code, out) == (1, "")
    assert err.startswith(f"error: {sentence}")
    assert err.count("\n") == 1
    assert path.read_bytes() == before
    assert files(tmp_path) == {"m.npz", "c.npz"}


def test_other_runs_are_refused_in_one_sentence(run: Any) -> None:
    assert run(*FEW)[0] == 0
    code, out, err = run(*FEW, "--episodes", "31")
    assert (code, out) == (1, "")
    assert err == (
        "error: c.npz is the checkpoint of other runs: their num_episodes differs "
        "(30, here 31); give another file, or delete this one to begin anew.\n"
    )


def test_a_folder_that_is_not_there(run: Any, tmp_path: Path) -> None:
    code, out, err = run(*ARGUMENTS, "--checkpoint", "none/c.npz", "--out", "a.npz")
    assert (code, out) == (1, "")
    assert err == (
        "error: cannot write none/c.npz: the folder none does not exist; create it first.\n"
    )
    assert files(tmp_path) == {"m.npz"}
