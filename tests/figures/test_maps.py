"""Maps: read from names alone; what is drawn on them is the policy and its occupancy."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.quiver import Quiver

import cmdpax
from cmdpax.figures import grid_of, plot_policy, save_figure
from cmdpax.model.words import Words
from word_cases import maze

MOVES = ("up", "right", "down", "left")


@pytest.fixture(scope="module")
def model() -> cmdpax.CMDP:
    return maze()


@pytest.fixture(scope="module")
def solution(model: cmdpax.CMDP) -> cmdpax.Solution:
    return cmdpax.solve(model)


def arrows(axis: Any) -> dict[tuple[int, int], list[tuple[float, float, float]]]:
    """Step to the right, step down and opacity of the arrows in each cell."""
    (drawn,) = [one for one in axis.collections if isinstance(one, Quiver)]
    found: dict[tuple[int, int], list[tuple[float, float, float]]] = {}
    colours = np.broadcast_to(drawn.get_facecolors(), (len(drawn.X), 4))
    for x, y, right, down, colour in zip(drawn.X, drawn.Y, drawn.U, drawn.V, colours, strict=True):
        cell = (round(float(y + down / 2)), round(float(x + right / 2)))
        found.setdefault(cell, []).append((float(right), float(down), float(colour[3])))
    return found


def table(axis: Any) -> np.ma.MaskedArray:
    return axis.images[0].get_array()


# -------------------------------------------------------------------------------------- from names


def test_places_and_moves_are_read_from_names(model: cmdpax.CMDP) -> None:
    grid = grid_of(model.words)
    assert grid is not None
    assert grid.shape == (3, 3)
    assert grid.places.tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 2], [2, 0], [2, 1], [2, 2]]
    assert grid.moves.tolist() == [[-1, 0], [0, 1], [1, 0], [0, -1]]


def test_pairs_in_brackets_are_places_too() -> None:
    names = ("(0, 12)", "(3, 4)")
    grid = grid_of(Words(state_names=names, action_names=("stay", "up")))
    assert grid is not None
    assert grid.places.tolist() == [[0, 12], [3, 4]]
    assert grid.shape == (4, 13)


@pytest.mark.parametrize(
    ("states", "actions"),
    [
        (None, MOVES),
        (("row 0, column 0",), None),
        (("row 0, column 0", "done"), MOVES),
        (("row 0, column 0",), ("up", "jump")),
        (("row 0, column 0", "(0, 0)"), MOVES),
        (("row 9999, column 9999",), MOVES),
        (("agent row 0, column 1; box row 1, column 1",), MOVES),
        (("row 0, column -1",), MOVES),
    ],
)
def test_other_names_are_no_map(states: Any, actions: Any) -> None:
    assert grid_of(Words(state_names=states, action_names=actions)) is None


# ----------------------------------------------------------------------------------------- policies


def test_shades_are_visits_and_walls_have_none(
    model: cmdpax.CMDP, solution: cmdpax.Solution
) -> None:
    axis = plot_policy(model, solution.policy).axes[0]
    grid = grid_of(model.words)
    assert grid is not None
    visits = solution.occupancy.sum(axis=(0, 2))
    np.testing.assert_allclose(table(axis)[tuple(grid.places.T)], visits, atol=1e-12)
    assert np.argwhere(table(axis).mask).tolist() == [[1, 1]]


def test_a_step_alone(model: cmdpax.CMDP, solution: cmdpax.Solution) -> None:
    figure = plot_policy(model, solution.policy, step=0)
    assert table(figure.axes[0])[0, 0] == pytest.approx(1)
    assert float(table(figure.axes[0]).sum()) == pytest.approx(1)
    assert list(arrows(figure.axes[0])) == [(0, 0)]
    assert figure.axes[1].get_ylabel() == "probability at step 0"


def test_arrows_point_where_the_policy_goes(model: cmdpax.CMDP) -> None:
    """Right along the upper row: two arrows; nothing for cells that it never sees, or the goal."""
    policy = np.zeros((1, 8, 4))
    policy[..., 1] = 1
    found = arrows(plot_policy(model, policy).axes[0])
    assert set(found) == {(0, 0), (0, 1)}
    for ((right, down, opacity),) in found.values():
        assert right > 0.3
        assert down == 0
        assert opacity == 1


def test_random_actions_are_shorter_and_fainter(model: cmdpax.CMDP) -> None:
    policy = np.tile([0.0, 0.75, 0.25, 0.0], (1, 8, 1))
    first = arrows(plot_policy(model, policy, step=0).axes[0])
    (right,) = [one for cell in first.values() for one in cell if one[0] > 0]
    (down,) = [one for cell in first.values() for one in cell if one[1] > 0]
    assert right[0] == pytest.approx(np.sqrt(3) * down[1])
    assert right[2] > down[2]


def test_marks_are_named(model: cmdpax.CMDP, solution: cmdpax.Solution) -> None:
    figure = plot_policy(model, solution.policy)
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["start", "most time at the goal", "time in mud"]
    heading = figure.get_suptitle()
    assert heading.startswith("time at the goal: ")
    assert "time in mud: 0.5 min (at most 0.5)" in heading


def test_a_uniform_start_is_not_marked() -> None:
    model = maze(uniform_start=True)
    figure = plot_policy(model, np.full((1, 8, 4), 0.25))
    assert "start" not in [text.get_text() for text in figure.legends[0].get_texts()]


@pytest.mark.parametrize("step", [-1, 8, 1.5, "first"])
def test_a_step_that_is_none(model: cmdpax.CMDP, solution: cmdpax.Solution, step: Any) -> None:
    with pytest.raises(cmdpax.ParameterError, match="step is"):
        plot_policy(model, solution.policy, step=step)


@pytest.mark.parametrize("ending", [".png", ".pdf", ".svg"])
def test_it_can_be_written(
    model: cmdpax.CMDP, solution: cmdpax.Solution, ending: str, tmp_path: Path
) -> None:
    path = tmp_path / f"policy{ending}"
    save_figure(plot_policy(model, solution.policy), path)
    assert path.stat().st_size > 2000
