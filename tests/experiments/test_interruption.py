"""A sweep that is killed again and again loses nothing that it reported, and does nothing twice."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import cmdpax
from sweep_cases import SMALL, assert_same_results, contents

pytestmark = [
    pytest.mark.kills,
    pytest.mark.skipif(os.name != "posix", reason="sends signals"),
]

WANTED: dict[str, Any] = {
    "num_episodes": 20,
    "seeds": 2,
    "record": 4,
    "cmdps": [{"environment": "random", "parameters": SMALL | {"seed": [1, 2]}}],
    "algorithms": [
        {"name": "replanning"},  # two batches; some kills come while they run
        {"name": "regularized-primal-dual", "step_size": [0.1 + 0.01 * i for i in range(40)]},
    ],
}
RUNS = 2 * 2 * 41  # more than a fast machine makes before the last kill
SCRIPT = f"""
import os, signal, sys
import cmdpax
from cmdpax.experiments import runs

runs._BATCH_RUNS = 2
rename, left = os.replace, int(sys.argv[2])

def die_at_a_rename(*arguments):  # before it, or after it where the number is negative
    global left
    left -= 1 if left > 0 else 0
    if left == 0 and int(sys.argv[2]) > 0:
        os.kill(os.getpid(), signal.SIGKILL)
    rename(*arguments)
    left += 1 if left < 0 else 0
    if left == 0 and int(sys.argv[2]) < 0:
        os.kill(os.getpid(), signal.SIGKILL)

if left:
    os.replace = die_at_a_rename
cmdpax.sweep(
    {WANTED!r},
    sys.argv[1],
    progress=lambda stand: stand.batch == "done" and print(stand.runs, flush=True),
)
"""


class Moment(NamedTuple):
    """When a process dies."""

    rename: int = 0  # before its n-th rename; -n: after it
    lines: int = 0  # after it reported so often …
    seconds: float | None = None  # … and so much later


MOMENTS = [
    Moment(rename=1),  # a CMDP
    Moment(rename=-1),
    Moment(rename=2),  # the manifest
    Moment(rename=-2),
    Moment(rename=1),  # final
    Moment(rename=2),  # curves
    Moment(rename=3),  # the batch's entry
    Moment(rename=-3),
    Moment(rename=-5),
    Moment(lines=1, seconds=0.0),
    Moment(lines=2, seconds=0.01),
    Moment(rename=6),
]


def run_until(moment: Moment, folder: Path, environment: dict[str, str]) -> tuple[int, int]:
    """Start a sweep and let it die; returns the last number of runs it reported, and its code."""
    reported = 0
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(folder), str(moment.rename)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        timer = threading.Timer(moment.seconds or 0.0, process.send_signal, [signal.SIGKILL])
        if moment.seconds is not None and moment.lines == 0:
            timer.start()
        for number, line in enumerate(process.stdout, start=1):
            reported = int(line)
            if number == moment.lines:
                timer.start()
        errors = process.stderr.read()
    timer.cancel()
    assert process.returncode in (0, -signal.SIGKILL), errors
    return reported, process.returncode


def runs_on_disk(folder: Path) -> list[tuple[str, str]]:
    """The runs and their algorithms, of a folder that may have been left at any moment."""
    if not (folder / "manifest.json").exists():
        return []
    final = cmdpax.results(folder).final
    return final.select("run", "algorithm").rows() if len(final) else []


def test_kills_lose_nothing(tmp_path: Path) -> None:
    settings = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    environment = os.environ | settings
    folder, whole = tmp_path / "killed", tmp_path / "whole"
    assert run_until(Moment(), whole, environment) == (RUNS, 0)
    before: set[tuple[str, str]] = set()
    planning = set()
    for moment in MOMENTS:
        reported, code = run_until(moment, folder, environment)
        assert code == -signal.SIGKILL, moment
        runs = runs_on_disk(folder)
        assert len(runs) == len(set(runs))
        assert len(runs) >= reported
        assert before <= set(runs)
        before = set(runs)
        planning.add([name for _, name in runs].count("replanning"))
    assert 2 in planning  # the other batch was made by another process
    assert 0 < len(before) < RUNS
    assert run_until(Moment(), folder, environment) == (RUNS, 0)
    results = cmdpax.results(folder)
    assert len(results.final) == len(set(results.final["run"])) == RUNS
    assert results.manifest == cmdpax.results(whole).manifest
    assert_same_results(results, cmdpax.results(whole), tolerance=0.0)
    assert set(contents(folder)) == set(contents(whole))  # the batches are the same, too
