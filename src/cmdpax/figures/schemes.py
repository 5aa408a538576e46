"""A picture of schemes against each other: their paths to the saddle point."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from cmdpax.errors import ParameterError
from cmdpax.figures.labels import plain_text, price
from cmdpax.figures.style import CONSTRAINT, REFERENCE
from cmdpax.model.cmdp import CMDP
from cmdpax.planning.solution import solve
from cmdpax.schemes.iteration import Iterates

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

_COLUMNS = 5
_PANEL = (2.3, 2.0)  # inches, the least
_NARROWEST = 6.5  # inches of a figure: the key needs them
_PALEST = 0.25  # of the colours, which go from pale to dark: the palest vanish on white
_ROOM, _SHADE = 0.06, 0.12
_KEY = 0.35  # inches
_MARKS: dict[str, dict[str, Any]] = {
    "first iterate": {
        "marker": "s",
        "markersize": 4,
        "markerfacecolor": "white",
        "markeredgecolor": REFERENCE,
    },
    "last iterate": {"marker": "o", "markersize": 4, "color": "black", "zorder": 4},
    "saddle point": {
        "marker": "x",
        "markersize": 10,
        "markeredgewidth": 1.8,
        "color": CONSTRAINT,
        "zorder": 3,
    },
}


def plot_schemes(
    models: Mapping[str, CMDP],
    iterates: Mapping[str, Mapping[str, Iterates]],
    constraint: int = 0,
) -> "Figure":
    """Draw the path of every scheme in the plane of one constraint and its multiplier.

    Every model has a block with a panel for each scheme; all panels of a block have the same axes.
    A path goes from V_u - c and λ of the first iterate, a square, to those of the last, a dot: it
    is pale at first and dark in the end, on a logarithmic scale of k. The cross is the saddle
    point; the constraint is violated where it is shaded.

    Args:
        models: by title.
        iterates: for each of these titles, what `cmdpax.iterate` found, by the scheme's name.
        constraint: which constraint is drawn.
    """
    from matplotlib.figure import Figure

    panels = [len(iterates[title]) for title in models]
    if not panels or not all(panels):
        raise ParameterError("there is nothing to draw; give a model, and iterates of a scheme.")
    columns = min(_COLUMNS, max(panels))
    counts = [-(-number // columns) for number in panels]
    width = max(_PANEL[0], _NARROWEST / columns)
    height = _PANEL[1] / _PANEL[0] * width
    whole = Figure(figsize=(width * columns, height * sum(counts) + _KEY), layout="constrained")
    heights = [*(height * count for count in counts), _KEY]
    *blocks, key = whole.subfigures(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    for (title, cmdp), block, rows in zip(models.items(), blocks, counts, strict=True):
        block.suptitle(plain_text(title), fontsize=11)
        axes = block.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
        _draw_block(block, axes, cmdp, iterates[title], constraint)
    _explain(key)
    return whole


def _draw_block(
    block: "SubFigure", axes: Any, cmdp: CMDP, found: Mapping[str, Iterates], constraint: int
) -> None:
    """Draw the panels of one model."""
    best = solve(cmdp)
    slack = float(cmdp.words.slack(best.constraint_values, cmdp.bounds)[constraint])
    saddle = (slack, float(best.multipliers[constraint]))
    for axis, (name, iterates) in zip(axes.flat, found.items(), strict=False):
        slacks = cmdp.words.slack(iterates.constraint_values, cmdp.bounds)[:, constraint]
        _draw_path(axis, slacks, iterates.multipliers[:, constraint], saddle)
        axis.set_title(plain_text(name), fontsize=9)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=8)
    for axis in list(axes.flat)[len(found) :]:
        axis.set_visible(False)
    _frame(axes[0, 0], cmdp, found, constraint, saddle)
    block.supxlabel(f"slack of {plain_text(cmdp.words.label(1 + constraint))}", fontsize=9)
    block.supylabel(plain_text(price(cmdp.words, constraint)), fontsize=9)


def _draw_path(
    axis: Any, slacks: np.ndarray, multipliers: np.ndarray, saddle: tuple[float, float]
) -> None:
    """Draw a path, its ends, and where it should end."""
    from matplotlib import colormaps
    from matplotlib.collections import LineCollection

    points = np.column_stack([slacks, multipliers])
    steps = np.log(np.arange(1, len(points)))
    shares = steps / max(float(steps.max(initial=0.0)), 1.0)
    colours = colormaps["cividis_r"](_PALEST + (1 - _PALEST) * shares)
    pieces = np.stack([points[:-1], points[1:]], axis=1)
    axis.add_collection(LineCollection(list(pieces), colors=colours, linewidths=0.9))
    for place, mark in zip((points[0], points[-1], saddle), _MARKS.values(), strict=True):
        axis.plot(*place, linestyle="", **mark)


def _explain(key: "SubFigure") -> None:
    """Say what the marks are."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    marks = [Line2D([], [], linestyle="", label=name, **mark) for name, mark in _MARKS.items()]
    shade = Patch(color=REFERENCE, alpha=_SHADE, linewidth=0, label="constraint violated")
    key.legend(handles=[*marks, shade], loc="center", ncols=4, frameon=False, fontsize=9)


def _frame(
    axis: Any,
    cmdp: CMDP,
    found: Mapping[str, Iterates],
    constraint: int,
    saddle: tuple[float, float],
) -> None:
    """Give all panels the room that the longest paths need, and shade what violates."""
    shade = {"color": REFERENCE, "alpha": _SHADE, "linewidth": 0}
    slacks = [cmdp.words.slack(one.constraint_values, cmdp.bounds) for one in found.values()]
    across = np.concatenate([*(each[:, constraint] for each in slacks), saddle[:1]])
    upward = np.concatenate(
        [*(one.multipliers[:, constraint] for one in found.values()), saddle[1:]]
    )
    for panel in axis.figure.axes:
        panel.axvspan(min(float(across.min()) - 1.0, 0.0), 0.0, **shade)
    for limit, values in ((axis.set_xlim, across), (axis.set_ylim, upward)):
        low, high = float(values.min()), float(values.max())
        room = _ROOM * (high - low or 1.0)
        limit(low - room, high + room)
