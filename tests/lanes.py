"""Lanes: what makes a test slow is its marker, and `make quick` runs the tests that have none.

Who asks for a browser or for Ray is marked by the fixtures that it asks for. The markers `kills`
and `whole` are written where the cause is: above a test, or in the `pytestmark` of a module. A test
without a marker that starts a process, be it a browser or a part of Ray, is stopped.

One more marker says how `make test` compiles a test's programs: `optimised`, as users do.
"""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

LANES = ("cluster", "whole", "browser", "kills", "exact")
"""The markers of `pyproject.toml`, the longest lanes first; `make quick` leaves them out."""

OPTIMISED = "optimised"
NUMBERS = (
    "tests/experiments/test_repeating.py",
    "tests/experiments/test_sweeping.py",
    "tests/learners/test_contract.py",
    "tests/learners/test_default.py",
    "tests/learners/test_layout.py",
    "tests/learners/test_pooling.py",
    "tests/learners/test_randomness.py",
    "tests/learners/test_replanning.py",
    "tests/learners/test_stationary.py",
    "tests/learning/",
    "tests/live/test_agent_equals_learn.py",
    "tests/model/test_evaluation.py",
    "tests/model/test_sampling.py",
    "tests/model/test_transitions.py",
    "tests/paper/reproduction/test_phenomenon.py",
    "tests/planning/",
    "tests/schemes/",
    "tests/test_docs.py",
    "tests/test_earlier_files.py",
    "tests/test_golden.py",
)
"""Folders and files that test numbers: `make test` optimises their programs, as users do.

The learners of the field are made of the same parts, and agree with their references without
optimisation, in half of the time: they are not among them.
In other files a single test that does so has the marker above it.
"""

collected: list[pytest.Item] = []
"""All tests that were found, also those that a selection of markers leaves out."""

_AS_USERS = {"cluster", "exact"}  # workers of Ray compile as they do anywhere
_CLUSTER = "tests/cluster/"
_FIXTURES = {
    "program": "browser",
    "cluster": "cluster",
    "own_cluster": "cluster",
    "drive": "cluster",
}
_STARTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn"}
_FONTS = "fc-list"  # asked by matplotlib, once
_running: list[pytest.Item] = []


class LaneError(Exception):
    """A quick test started a process."""


def lanes_of(item: pytest.Item) -> set[str]:
    """The lanes of a test; none, if it is quick."""
    return {mark.name for mark in item.iter_markers() if mark.name in LANES}


def quick_or_whole(*values: Any, quick: bool) -> Any:
    """One of many sets of parameters: most are for the whole, and some are quick."""
    return pytest.param(*values, marks=() if quick else pytest.mark.whole)


def mark_by_fixtures(item: pytest.Item) -> None:
    """Mark a test that asks for a browser or for nodes of Ray, however indirectly."""
    for fixture, lane in _FIXTURES.items():
        if fixture in getattr(item, "fixturenames", ()):
            item.add_marker(lane)


def mark_by_numbers(item: pytest.Item) -> None:
    """Mark a test whose programs must be compiled as those of users are."""
    if item.nodeid.startswith(NUMBERS) or lanes_of(item) & _AS_USERS:
        item.add_marker(OPTIMISED)


def sort(items: list[pytest.Item]) -> None:
    """The long lanes first, so that no worker ends long after the others."""
    items.sort(key=lambda item: min(map(LANES.index, lanes_of(item)), default=len(LANES)))


class Files(LoadFileScheduling):
    """A file for a worker: its tests share fixtures and compiled programs.

    Clusters must not meet, so the folder of their tests is like one file.
    """

    def _split_scope(self, nodeid: str) -> str:
        return _CLUSTER if nodeid.startswith(_CLUSTER) else super()._split_scope(nodeid)


@contextlib.contextmanager
def kept(item: pytest.Item) -> Iterator[None]:
    """While a test and its fixtures run: it stays in its lane."""
    _running.append(item)
    try:
        yield
    finally:
        _running.pop()


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    harmless = not _running or event not in _STARTS or arguments[:1] == (_FONTS,)
    if not harmless and not lanes_of(_running[-1]):
        raise LaneError(f"{_running[-1].nodeid} starts a process; mark it with @pytest.mark.kills.")


sys.addaudithook(_watch)  # sees what any package does, and whoever imported it by name
