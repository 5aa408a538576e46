"""A picture of one episode: where it went, what it did there, and what that added up to."""

from typing import TYPE_CHECKING, Any

import numpy as np

from cmdpax.checks import require_index
from cmdpax.errors import ParameterError
from cmdpax.figures.histories import mark_bound
from cmdpax.figures.labels import bounded, plain_text
from cmdpax.figures.maps import Grid, draw_map, grid_of, map_size, mark_places
from cmdpax.figures.policies import action_colours, name_states
from cmdpax.figures.style import CONSTRAINT, OBJECTIVE
from cmdpax.model.cmdp import CMDP
from cmdpax.model.log import Log

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_STATES = 60
_MOST_SIGNALS = 5  # constraints with a panel of their own
_MOST_NAMED = 12  # actions in the legend
_FEW = 12  # columns of a map whose cells have room for more than a number
_WIDEST = 7  # characters in such a cell


def plot_trajectory(cmdp: CMDP, log: Log, *, episode: int = 0, run: int = 0) -> "Figure":
    """Draw an episode: a path on a map, or its states over the steps; and its sums.

    Models whose names say that they are maps (`grid_of`) have a path with the numbers of the steps.
    Others have a row for each state that was visited, with marks in the colours of the actions.
    Beside it are the rewards and every constraint's signals as they add up, against their bounds:
    these are bounds of the expected sum, which single episodes may miss.

    Args:
        cmdp: the model.
        log: episodes as `cmdpax.learn(…, log=True).log` has them, or one alone: states `[H+1]`,
            actions `[H]`, rewards `[H]` and constraint rewards `[I, H]`, in the senses of the
            constraints.
        episode: which one, from 0, if there are several.
        run: of which run, from 0, if there are several.

    Examples:
        >>> import cmdpax
        >>> from cmdpax.figures import plot_trajectory
        >>> queue = cmdpax.environments.make("queue")
        >>> history = cmdpax.learn(queue, num_episodes=5, log=True)
        >>> figure = plot_trajectory(queue, history.log, episode=4)
    """
    one = _episode(cmdp, log, episode, run)
    grid = grid_of(cmdp.words)
    shown = min(cmdp.num_constraints, _MOST_SIGNALS)
    figure, main, sums = _canvas(grid, one, 1 + shown)
    if grid is None:
        _states(main, cmdp, one)
    else:
        _path(main, cmdp, grid, one)
    _sums(sums, cmdp, one)
    return figure


def _episode(cmdp: CMDP, log: Log, episode: int, run: int) -> Log:
    """Pick one episode, and check that it is one of this model."""
    arrays = Log(*(np.asarray(array) for array in log))
    if arrays.states.ndim == 3:
        arrays = arrays.run(require_index("run", run, len(arrays.states), "runs"))
    if arrays.states.ndim == 2:
        arrays = arrays.run(require_index("episode", episode, len(arrays.states), "episodes"))
    length = arrays.actions.shape[0] if arrays.actions.ndim == 1 else -1
    wanted = ((length + 1,), (length,), (length,), (cmdp.num_constraints, length))
    shapes = tuple(array.shape for array in arrays)
    if shapes != wanted or length < 1:
        raise ParameterError(
            f"the episode has arrays of shapes {shapes}, expected (H+1,), (H,), (H,) and "
            f"({cmdp.num_constraints}, H) as in `cmdpax.Log`."
        )
    for name, numbers, size in (
        ("state", arrays.states, cmdp.num_states),
        ("action", arrays.actions, cmdp.num_actions),
    ):
        if numbers.min() < 0 or numbers.max() >= size:
            wrong = numbers.min() if numbers.min() < 0 else numbers.max()
            fix = "give a whole episode" if wrong == -1 else "give the log of this model"
            raise ParameterError(
                f"the episode has {name} {int(wrong)}, the model's {name}s are 0 … {size - 1}; "
                f"{fix}."
            )
    return arrays


def _canvas(grid: Grid | None, one: Log, num_sums: int) -> tuple["Figure", Any, Any]:
    """Make room for the path on the left and for the sums on the right."""
    from matplotlib.figure import Figure

    if grid is None:
        rows = min(len(np.unique(one.states)), _MOST_STATES)
        width, height = float(np.clip(0.22 * len(one.actions), 3.2, 7.0)) + 1.2, 0.2 * rows + 1.6
    else:
        width, height = map_size(grid)
    height = max(height + 0.8, 1.35 * num_sums)
    figure = Figure(figsize=(width + 3.4, height), layout="constrained")
    left, right = figure.subfigures(1, 2, squeeze=False, width_ratios=[width, 3.4])[0]
    return figure, left.subplots(), right.subplots(num_sums, 1, squeeze=False)[:, 0]


# --------------------------------------------------------------------------------------------- path


def _path(axis: Any, cmdp: CMDP, grid: Grid, one: Log) -> None:
    """Draw the path over the map, with the steps at which it was in a cell."""
    from matplotlib.collections import LineCollection

    draw_map(axis, grid, np.zeros(cmdp.num_states))
    handles = mark_places(axis, cmdp, grid)
    rows, columns = grid.places[one.states].T.astype(float)
    # Ways that are taken twice lie beside each other.
    drift = 0.16 * (np.arange(len(rows)) / max(len(rows) - 1, 1) - 0.5)
    points = np.stack([columns + drift, rows + drift], axis=-1)
    pieces = np.stack([points[:-1], points[1:]], axis=1)
    lines = LineCollection(
        list(pieces), cmap="viridis_r", linewidths=2.2, capstyle="round", zorder=3
    )
    lines.set_array(np.arange(len(pieces)))
    axis.add_collection(lines)
    size = min(7.0, 72 * map_size(grid)[1] / grid.shape[0] / 4.2)
    for state in np.unique(one.states).tolist():
        steps = np.flatnonzero(one.states == state)
        row, column = grid.places[state]
        ground = {"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 0.4}
        style = {"ha": "right", "va": "bottom", "fontsize": size, "zorder": 6, "bbox": ground}
        axis.text(column + 0.45, row + 0.45, _ranges(steps, grid.shape[1] <= _FEW), **style)
    if handles:
        axis.legend(
            handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.01), ncols=3,
            frameon=False, fontsize=8,
        )  # fmt: skip


def _ranges(steps: np.ndarray, large: bool) -> str:
    """Write steps in short: "3", "3–7", "0, 4"; or "0 …" where a cell has no room for more."""
    parts = np.split(steps, np.flatnonzero(np.diff(steps) > 1) + 1)
    texts = [f"{part[0]}" if len(part) == 1 else f"{part[0]}–{part[-1]}" for part in parts]
    whole = ", ".join(texts)
    fits = len(whole) <= _WIDEST if large else len(steps) == 1
    return whole if fits else f"{steps[0]} …"


# ------------------------------------------------------------------------------------------- states


def _states(axis: Any, cmdp: CMDP, one: Log) -> None:
    """Draw the states over the steps, with marks in the colours of the actions."""
    from matplotlib.ticker import MaxNLocator

    visited, counts = np.unique(one.states, return_counts=True)
    kept = np.sort(visited[np.argsort(-counts, kind="stable")[:_MOST_STATES]])
    place_of = np.full(cmdp.num_states, np.nan)
    place_of[kept] = np.arange(len(kept))
    places = place_of[one.states]
    steps = np.arange(len(one.states))
    axis.plot(steps, places, color="#BBBBBB", linewidth=1.0, zorder=1)
    colours = action_colours(np.isin(np.arange(cmdp.num_actions), one.actions))
    actions, often = np.unique(one.actions, return_counts=True)
    named = set(actions[np.argsort(-often, kind="stable")[:_MOST_NAMED]].tolist())
    for action in actions.tolist():
        here = np.flatnonzero(one.actions == action)
        label = plain_text(cmdp.words.action(action)) if action in named else None
        style = {"color": [colours[action]], "s": 26, "zorder": 2, "label": label}
        axis.scatter(steps[here], places[here], **style)
    axis.scatter(steps[-1:], places[-1:], facecolors="white", edgecolors="#555555", s=26, zorder=2)
    name_states(axis, cmdp, kept)
    axis.set_ylim(len(kept) - 0.4, -0.6)
    axis.set_xlabel("step", fontsize=9)
    axis.tick_params(labelsize=8, axis="x")
    axis.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axis.spines[["top", "right"]].set_visible(False)
    if len(visited) > len(kept):
        axis.set_ylabel(f"the {len(kept)} most visited of {len(visited)} states", fontsize=8)
    axis.legend(
        loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=4, frameon=False, fontsize=8,
        borderaxespad=0.2, handletextpad=0.2,
    )  # fmt: skip


# --------------------------------------------------------------------------------------------- sums


def _sums(axes: Any, cmdp: CMDP, one: Log) -> None:
    """Draw how rewards and constraint signals add up, step by step."""
    from matplotlib.ticker import MaxNLocator

    words, bounds = cmdp.words, cmdp.bounds
    steps = np.arange(len(one.actions) + 1)
    for index, axis in enumerate(axes):
        signal = one.rewards if index == 0 else one.constraint_rewards[index - 1]
        sums = np.concatenate([[0.0], np.cumsum(signal)])
        colour = CONSTRAINT if index else OBJECTIVE
        axis.plot(steps, sums, color=colour, linewidth=1.4)
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=7)
        title = words.label()
        if index:
            mark_bound(axis, float(bounds[index - 1]), words.sense(index - 1))
            title = bounded(words, index - 1, float(bounds[index - 1]))
        axis.set_title(plain_text(f"{title}: {sums[-1]:.4g}"), fontsize=8, loc="left")
        axis.set_xlim(0, len(one.actions))
        axis.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes[-1].set_xlabel("step", fontsize=8)
