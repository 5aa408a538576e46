"""What the environments on grids share: drawings, neighbours, slips and rewards on arrival."""

from typing import Any

import numpy as np

from cmdpax.environments.parameters import stable
from cmdpax.errors import ParameterError
from cmdpax.model.transitions import Successors

MOVES = np.array([[-1, 0], [0, 1], [1, 0], [0, -1]])
MOVE_NAMES = ("up", "right", "down", "left")
_MOST_NAMES = 20_000  # cells: names of more would take longer to make than the model


def read_drawing(layout: Any, signs: str, legend: str) -> np.ndarray:
    """Read a drawn map as characters `[rows, columns]`, with at least one start.

    Args:
        layout: rows separated by `/` or new lines, with `#` wall, `S` start, `G` goal, `.` free.
        signs: the other characters that may occur.
        legend: what those mean, for the error's sentence.
    """
    if not isinstance(layout, str):
        raise ParameterError(f"layout is {layout!r}, it must be a text drawing.")
    rows = [row.strip() for row in layout.replace("/", "\n").split("\n") if row.strip()]
    if not rows or len({len(row) for row in rows}) != 1:
        lengths = [len(row) for row in rows]
        raise ParameterError(
            f"layout has rows of lengths {lengths}, they must be equal and not empty."
        )
    strange = set("".join(rows)) - set("#SG." + signs)
    if strange:
        raise ParameterError(
            f"layout has {sorted(strange)[0]!r}; use # wall, S start, G goal, . free, {legend}."
        )
    drawing = np.array([list(row) for row in rows])
    if not (drawing == "S").any():
        raise ParameterError("layout has no start: mark at least one cell with S.")
    return drawing


def cell_names(walls: np.ndarray) -> list[str] | None:
    """Name each cell without wall by its row and column; None where there are very many."""
    places = np.argwhere(~walls).tolist()
    if len(places) > _MOST_NAMES:
        return None
    return [f"row {row}, column {column}" for row, column in places]


def neighbours(walls: np.ndarray, ends: np.ndarray | None = None) -> np.ndarray:
    """Find where each move leads from each cell without wall, `[cells, 4]`; cells row by row.

    A move into a wall, over the edge, or from a cell of `ends` leads back to the cell itself.
    Walls and ends are booleans `[rows, columns]`.
    """
    free = ~walls
    number_of = np.cumsum(free.ravel()).reshape(free.shape) - 1
    places = np.argwhere(free)  # [cells, 2]
    reached = places[:, None, :] + MOVES  # [cells, 4, 2]
    inside = np.all((reached >= 0) & (reached < free.shape), axis=-1)
    reached = np.where(inside[..., None], reached, places[:, None, :])
    row, column = reached[..., 0], reached[..., 1]
    here = np.arange(len(places))[:, None]
    blocked = walls[row, column]
    if ends is not None:
        blocked = blocked | ends[free][:, None]
    return np.where(blocked, here, number_of[row, column])


def slipping(targets: np.ndarray, slip: float) -> Successors:
    """Make stationary successor lists `[1, S, 4, 4]`; a state appears in one slot at most.

    Args:
        targets: where each move leads, `[S, 4]`.
        slip: the probability that the direction is drawn from all four alike.
    """
    num_states, num_moves = targets.shape
    chances = np.full((num_moves, num_moves), slip / num_moves)
    chances += (1 - slip) * np.eye(num_moves)
    probabilities = np.broadcast_to(chances, (num_states, num_moves, num_moves)).copy()
    for slot in range(1, num_moves):  # moves that end alike share the first's slot
        alike = targets[:, slot, None] == targets[:, :slot]
        first = np.where(alike.any(axis=1), alike.argmax(axis=1), slot)
        moved = first < slot
        probabilities[moved, :, first[moved]] += probabilities[moved, :, slot]
        probabilities[moved, :, slot] = 0.0
    lists = np.broadcast_to(targets[:, None, :], probabilities.shape)
    return Successors(lists[None], probabilities[None])


def on_arrival(transitions: Successors, values: np.ndarray) -> np.ndarray:
    """Compute Σ_t p(t | s, a) values(t), `[1, S, 4]`: the next state's worth in expectation."""
    lists, probabilities = transitions
    return stable(np.sum(probabilities * values[lists], axis=-1))
