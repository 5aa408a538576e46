"""The lanes hold: `make quick` is quick by what it leaves out, and leaves out nothing else."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from lanes import LANES, NUMBERS, OPTIMISED, LaneError, collected, lanes_of

ROOT = Path(__file__).parent.parent
ALWAYS_QUICK = [  # without these, a green `make quick` says little
    "test_golden.py",
    "learning/test_golden_learning.py",
    "learning/test_learning_reference.py",
    "learners/test_contract.py",
    "live/test_agent_equals_learn.py",
    "planning/test_solution.py",
]


def start_a_process() -> None:
    subprocess.run([sys.executable, "-c", ""], check=True)


def test_a_quick_test_starts_no_process() -> None:
    with pytest.raises(LaneError, match=r"no_process starts a process; mark it with @py"):
        start_a_process()


@pytest.mark.kills
def test_a_marked_one_may() -> None:
    start_a_process()


def test_who_asks_for_a_browser_or_for_ray_is_marked() -> None:
    """Of the tests that were collected with this one."""
    assert collected
    for item in collected:
        asked = set(getattr(item, "fixturenames", ()))
        if asked & {"browser", "open_page", "open_report"}:
            assert "browser" in lanes_of(item), item.nodeid
        if asked & {"cluster", "own_cluster"}:
            assert "cluster" in lanes_of(item), item.nodeid


def test_make_quick_leaves_out_the_registered_markers() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    registered = settings["tool"]["pytest"]["ini_options"]["markers"]
    assert [line.partition(":")[0] for line in registered] == [*LANES, OPTIMISED]
    (left_out,) = re.findall(r'-m "not \((.*)\)"', (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert left_out.split(" or ") == list(LANES)


def test_make_test_leaves_out_nothing() -> None:
    """What is not in one of its two parts is in the other, and the other is optimised."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    parts = re.findall(r'^\t(.*)\$\(PYTEST\) -m "((?:not )?optimised)"', makefile, re.MULTILINE)
    assert parts == [("$(UNOPTIMISED) ", "not optimised"), ("", "optimised")]


def test_what_depends_on_rounding_is_optimised() -> None:
    """Of the tests that were collected with this one."""
    assert collected
    for item in collected:
        if lanes_of(item) & {"cluster", "exact"}:
            assert item.get_closest_marker(OPTIMISED), item.nodeid


@pytest.mark.parametrize("name", NUMBERS)
def test_what_has_numbers_exists(name: str) -> None:
    assert (ROOT / name).exists()


@pytest.mark.parametrize("name", ALWAYS_QUICK)
def test_what_matters_most_is_quick(name: str) -> None:
    """Most of its tests, that is: one may start a process."""
    module = parsed(ROOT / "tests" / name)
    assert not lanes_in(outside_of_tests(module))
    tests = [node for node in ast.walk(module) if getattr(node, "name", "").startswith("test_")]
    slow = [node for node in tests if lanes_in(node.decorator_list)]
    assert len(slow) <= 1 < len(tests)


@pytest.mark.parametrize("name", ALWAYS_QUICK)
def test_what_matters_most_is_optimised(name: str) -> None:
    """So it is tested in both ways of compiling."""
    assert f"tests/{name}".startswith(NUMBERS)


def test_every_folder_has_quick_tests() -> None:
    for folder in {path.parent for path in (ROOT / "tests").rglob("test_*.py")}:
        modules = map(parsed, folder.glob("test_*.py"))
        assert not all(lanes_in(outside_of_tests(module)) for module in modules), folder


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def outside_of_tests(module: ast.Module) -> list[ast.stmt]:
    """Where a `pytestmark` would be."""
    return [node for node in module.body if not isinstance(node, ast.ClassDef | ast.FunctionDef)]


def lanes_in(nodes: Sequence[ast.AST]) -> set[str]:
    """The markers that are named there."""
    inside = [node for part in nodes for node in ast.walk(part)]
    return {node.attr for node in inside if isinstance(node, ast.Attribute)} & set(LANES)
