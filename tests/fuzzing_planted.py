"""Targets with defects that the fuzzer must find, and two without."""

import ctypes
import importlib
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import cmdpax
from cmdpax.errors import ModelError
from cmdpax.learners import as_algorithm
from fuzzing.cases import CANARY, Entry, Input
from fuzzing.targets.base import Target, require

FOREIGN = "mine.txt"


def raises() -> None:
    raise ValueError("raw")


def imports() -> None:
    importlib.import_module("planted_module")


def imports_by_content() -> None:
    as_algorithm("tabnanny:check")


def imports_lazily() -> None:
    """As the library does in many places: allowed."""
    cmdpax.experiments.results  # noqa: B018


def writes_outside() -> None:
    Path("../outside/new.txt").write_text("here")


def writes_through_a_link() -> None:
    Path("link").write_text("here")


def removes_outside() -> None:
    Path("../outside", CANARY).unlink()


def changes_a_foreign_file() -> None:
    Path(FOREIGN).write_text("yours")


def starts_a_process() -> None:
    subprocess.run(["true"], check=True)


def takes_memory() -> None:
    np.ones(2**25).sum()


def hangs() -> None:
    while True:
        pass


def waits() -> None:
    time.sleep(3600)


def exits() -> None:
    os._exit(3)


def crashes() -> None:
    ctypes.string_at(0)


def leaves_a_temporary_file() -> None:
    tempfile.mkstemp()


def leaves_a_half_written_file() -> None:
    Path(".out.npz.writing-12345678").write_text("half")


def is_unsound() -> None:
    require(False, "the numbers are wrong")


def refuses() -> None:
    raise ModelError("it is refused.")


def passes() -> None:
    Path("out.txt").write_text("done")


EXPECTED: dict[Callable[[], None], str] = {
    raises: "ValueError",
    imports: "imported",
    imports_by_content: "imported",
    writes_outside: "wrote outside its folder",
    writes_through_a_link: "wrote outside its folder",
    removes_outside: "wrote outside its folder",
    changes_a_foreign_file: "a foreign file is changed",
    starts_a_process: "subprocess.Popen",
    takes_memory: "too much memory",
    hangs: "hung",
    waits: "hung",
    exits: "crashed",
    crashes: "crashed",
    leaves_a_temporary_file: "left behind",
    leaves_a_half_written_file: "left behind",
    is_unsound: "unsound",
}
"""What each of the broken ones is found for."""
HEALTHY = (imports_lazily, passes, refuses)


def _input(rng: Random, given: Input, donors: Any) -> Input:
    foreign = Entry(FOREIGN, b"mine", foreign=True)
    link = Entry("link", kind="link", leads_to=f"../outside/{CANARY}")
    return Input((foreign, link), {"number": rng.random()})


def _target(function: Callable[[], None]) -> Target:
    def run(folder: Path, arguments: dict[str, Any]) -> None:
        function()

    return Target(function.__name__, list, run, _input)


TARGETS = {function.__name__: _target(function) for function in (*EXPECTED, *HEALTHY)}
