"""Models that are maps: read from the names of their states and actions, and drawn.

A model is a map if every state is called "row 3, column 5" or "(3, 5)", counted from 0 with row 0
on top, and every action is "up", "right", "down", "left" or "stay". Places without a state are
walls. Nothing else is looked at: whoever names states and actions so gets maps.
"""

import re
from typing import Any, NamedTuple

import numpy as np

from cmdpax.figures.labels import plain_text
from cmdpax.figures.style import CONSTRAINT, OTHERS
from cmdpax.model.cmdp import CMDP
from cmdpax.model.transitions import Successors
from cmdpax.model.words import Words

_NAME = re.compile(r"(?:row (\d{1,4}), column (\d{1,4})|\((\d{1,4}), (\d{1,4})\))", re.ASCII)
_MOVES = {"up": (-1, 0), "right": (0, 1), "down": (1, 0), "left": (0, -1), "stay": (0, 0)}
_LARGEST = 200 * 200  # places of a map: names may have any numbers in them
_WALL, _START, _GOAL = "#3A3A3A", "#000000", "#B97F00"
_COSTS = (CONSTRAINT, OTHERS[1], OTHERS[0])


class Grid(NamedTuple):
    """Where the states of a model lie, and where its actions point.

    Attributes:
        places: row and column of each state, `[S, 2]`.
        moves: the step down and to the right of each action, `[A, 2]`.
        shape: rows and columns.
    """

    places: np.ndarray
    moves: np.ndarray
    shape: tuple[int, int]


def grid_of(words: Words) -> Grid | None:
    """Read the map from the names of states and actions; None if they do not say one.

    Examples:
        >>> from cmdpax.figures import grid_of
        >>> from cmdpax.model.words import Words
        >>> names = ("row 0, column 0", "row 0, column 1", "row 1, column 1")
        >>> found = grid_of(Words(state_names=names, action_names=("right", "down")))
        >>> found.places.tolist(), found.shape
        ([[0, 0], [0, 1], [1, 1]], (2, 2))
        >>> grid_of(Words(state_names=("empty", "full"))) is None
        True
    """
    if words.state_names is None or words.action_names is None:
        return None
    read = [_NAME.fullmatch(name) for name in words.state_names]
    if None in read or not set(words.action_names) <= set(_MOVES):
        return None
    places = np.array([[int(part) for part in one.groups() if part] for one in read if one])
    moves = np.array([_MOVES[name] for name in words.action_names])
    shape = places.max(axis=0) + 1
    if len(np.unique(places, axis=0)) < len(places) or np.prod(shape) > _LARGEST:
        return None
    return Grid(places, moves, (int(shape[0]), int(shape[1])))


def map_size(grid: Grid) -> tuple[float, float]:
    """Give the size of a map in inches: cells that can be read, on a page that is not too large."""
    rows, columns = grid.shape
    cell = min(0.5, 7.0 / max(rows, columns))
    return max(2.4, cell * columns), max(2.0, cell * rows)


def draw_map(axis: Any, grid: Grid, shades: np.ndarray) -> Any:
    """Draw walls, and cells shaded by a number for each state, `[S]`; returns the image."""
    from matplotlib.colors import LinearSegmentedColormap, PowerNorm

    rows, columns = grid.shape
    table = np.full(grid.shape, np.nan)
    table[tuple(grid.places.T)] = shades
    shades_of_blue = LinearSegmentedColormap.from_list("visits", ["#FFFFFF", "#9CCBE8", "#2277B5"])
    colours = shades_of_blue.with_extremes(bad=_WALL)
    # Most mass is near the start and the goal: the root shows the way between them.
    norm = PowerNorm(0.5, vmin=0.0, vmax=max(float(shades.max()), 1e-12))
    image = axis.imshow(np.ma.masked_invalid(table), cmap=colours, norm=norm)
    lines = {"color": "#D0D0D0", "linewidth": 0.5, "zorder": 1}
    axis.hlines(np.arange(rows + 1) - 0.5, -0.5, columns - 0.5, **lines)
    axis.vlines(np.arange(columns + 1) - 0.5, -0.5, rows - 0.5, **lines)
    axis.spines[:].set_visible(False)
    axis.set_xticks(_ticks(columns))
    axis.set_yticks(_ticks(rows))
    axis.tick_params(length=0, labelsize=7, labeltop=True, labelbottom=False)
    axis.set_xlabel("column", fontsize=8)
    axis.xaxis.set_label_position("top")
    axis.set_ylabel("row", fontsize=8)
    return image


def _ticks(count: int) -> np.ndarray:
    return np.arange(0, count, max(1, -(-count // 20)))


def mark_places(axis: Any, cmdp: CMDP, grid: Grid) -> list[Any]:
    """Mark starts, where most is earned, and what counts against "at most"; returns the handles.

    Rewards and costs are marked if they are those of a place: the same for all actions and steps.
    """
    starts = np.asarray(cmdp.initial) > 0
    marks: list[tuple[np.ndarray, float, str, dict[str, Any]]] = []
    if starts.sum() <= max(4, starts.size // 10):
        look = {"marker": "o", "facecolors": "none", "edgecolors": _START, "linewidths": 1.4}
        marks.append((starts, 0.66, "start", look))
    rewards = _of_place(cmdp.rewards)
    if rewards is not None and rewards.max() > max(rewards.min(), 0.0):
        look = {"marker": "*", "color": _GOAL, "linewidths": 0}
        marks.append((rewards >= rewards.max(), 0.5, f"most {cmdp.words.objective}", look))
    signals = cmdp.words.turn_signals(np.asarray(cmdp.constraint_rewards))
    for index, colour in zip(range(cmdp.num_constraints), _COSTS, strict=False):
        costs = _of_place(signals[index])
        if cmdp.words.sense(index) == "at most" and costs is not None and costs.max() > 0:
            look = {"marker": "s", "color": colour, "linewidths": 0}
            look["shift"] = (-0.34 + 0.22 * index, -0.34)  # in a corner, where no arrow ends
            marks.append((costs > 0, 0.17, cmdp.words.constraint(index), look))
    return [_scatter(axis, grid, *mark) for mark in marks]


def has_choice(cmdp: CMDP) -> np.ndarray:
    """Tell in which states it matters what is done, `[S]`: a goal that is never left has none."""
    transitions, signals = cmdp.transitions, [cmdp.rewards, *cmdp.constraint_rewards]
    rows = list(transitions) if isinstance(transitions, Successors) else [transitions]
    arrays = [np.asarray(array) for array in (*rows, *(signal[..., None] for signal in signals))]
    differs = [(array != array[:, :, :1]).any(axis=(0, 2, 3)) for array in arrays]
    return np.asarray(np.any(differs, axis=0))


def _of_place(signal: np.ndarray) -> np.ndarray | None:
    """Give a signal `[H, S, A]` as one of places, `[S]`, if it is one."""
    lowest, highest = signal.min(axis=(0, 2)), signal.max(axis=(0, 2))
    return lowest if np.array_equal(lowest, highest) else None


def _scatter(
    axis: Any, grid: Grid, chosen: np.ndarray, share: float, label: str, look: dict[str, Any]
) -> Any:
    """Draw marks that are so wide, of a cell; returns one of the size of a text for the legend."""
    size = 72 * share * map_size(grid)[1] / grid.shape[0]
    right, down = look.pop("shift", (0.0, 0.0))
    rows, columns = grid.places[chosen].T
    axis.scatter(columns + right, rows + down, s=size**2, zorder=4, **look)
    return axis.scatter([], [], s=min(size, 8.0) ** 2, label=plain_text(label), **look)


def draw_arrows(axis: Any, grid: Grid, chances: np.ndarray, reached: np.ndarray) -> None:
    """Draw an arrow for each action that is taken in a cell, the longer and darker the likelier.

    Args:
        axis: where.
        grid: the map.
        chances: how likely each action is in each state, `[S, A]`.
        reached: the states that are reached, `[S]`; others have no arrows.
    """
    # Actions that point the same way share an arrow.
    ways, way_of = np.unique(grid.moves, axis=0, return_inverse=True)
    merged = np.zeros((len(chances), len(ways)))
    np.add.at(merged.T, way_of.ravel(), chances.T)
    states, chosen = np.nonzero((merged > 0.03) & reached[:, None])
    if not len(states):
        return
    share, (down, right) = merged[states, chosen], ways[chosen].T
    rows, columns = grid.places[states].T
    colours = np.zeros((len(states), 4))
    colours[:, 3] = 0.25 + 0.75 * share
    stays = (down == 0) & (right == 0)
    axis.scatter(columns[stays], rows[stays], s=14, c=colours[stays], zorder=5)
    length = 0.4 * np.sqrt(share)
    back = np.where(share > 0.97, 0.5 * length, 0.0)  # alone in its cell, it is in the middle
    axis.quiver(
        (columns - right * back)[~stays], (rows - down * back)[~stays],
        (right * length)[~stays], (down * length)[~stays],
        color=colours[~stays], angles="xy", scale_units="xy", scale=1.0, units="xy", width=0.06,
        headwidth=4.0, headlength=3.6, headaxislength=3.4, zorder=5,
    )  # fmt: skip
