"""Pictures from the command line."""

from collections.abc import Callable
from pathlib import Path

import pytest

import cmdpax
from word_cases import maze, office

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def room(tmp_path: Path) -> str:
    cmdpax.save(office(), tmp_path / "room.npz")
    return "room.npz"


@pytest.mark.parametrize("cmdp", [maze(), office()], ids=["map", "steps"])
def test_solve_draws_the_policy(run: Run, cmdp: cmdpax.CMDP, tmp_path: Path) -> None:
    cmdpax.save(cmdp, tmp_path / "model.npz")
    code, _, err = run("solve", "model.npz", "--plot", "policy.png")
    assert (code, err) == (0, "wrote policy.png\n")
    assert (tmp_path / "policy.png").read_bytes().startswith(b"\x89PNG")


def test_other_endings_are_refused_before_anything_is_solved(run: Run, room: str) -> None:
    code, out, err = run("solve", room, "--plot", "policy.gif")
    assert (code, out) == (1, "")
    assert "pictures are .png, .pdf, .svg files" in " ".join(err.split())


def test_a_frontier_in_units(run: Run, room: str, tmp_path: Path) -> None:
    code, _, _ = run("frontier", room, "--points", "5", "--out", "frontier.svg")
    assert code == 0
    assert (tmp_path / "frontier.svg").stat().st_size > 2000


def test_iterates_in_units(run: Run, room: str, tmp_path: Path) -> None:
    given = ("--scheme", "primal-dual", "--iterations", "5", "--plot", "iterates.svg")
    code, _, _ = run("iterate", room, *given)
    assert code == 0
    assert (tmp_path / "iterates.svg").stat().st_size > 2000
