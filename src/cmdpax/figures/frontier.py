"""A picture of a frontier: what the threshold of a constraint costs."""

from typing import TYPE_CHECKING, Any

import numpy as np

from cmdpax.figures.labels import plain_text, price
from cmdpax.figures.style import CONSTRAINT, OBJECTIVE, REFERENCE, canvas
from cmdpax.planning.frontier import Frontier

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MARGIN = 0.02  # of the axis, on both sides of the points
_NARROW = 0.05  # of the axis: there is no room for a word


def plot_frontier(frontier: Frontier, own_threshold: float | None = None) -> "Figure":
    """Draw the best value against the bound, and below it the multiplier, which is its slope.

    Axes have the names and units of the model. A tighter bound is to the right where the sense is
    "at least", and to the left where it is "at most"; either way, the side that no policy reaches
    is shaded.

    Args:
        frontier: what `cmdpax.frontier` found.
        own_threshold: the model's own threshold in its sense, `cmdp.bounds[i]`, which is marked;
            None marks nothing.
    """
    words, constraint = frontier.words, frontier.constraint
    label = plain_text(f"{words.label(1 + constraint)}, {words.sense(constraint)}")
    figure, axes = canvas(2, 1, label, (6.4, 2.6))
    above, below = axes[:, 0]
    below.sharex(above)
    above.set_xlabel("")
    above.tick_params(labelbottom=False)
    multipliers = frontier.multipliers[:, constraint]
    if frontier.feasible.any():
        _line(above, frontier, frontier.value, color=OBJECTIVE)
        # The multiplier is constant between kinks, wherever those are.
        _line(below, frontier, multipliers, color=CONSTRAINT, drawstyle="steps-mid")
        below.set_ylim(bottom=0.0)
    sign = "minus the slope" if words.sense(constraint) == "at least" else "the slope"
    above.set_title(plain_text(f"best {words.label()}"), loc="left", fontsize=10)
    title = f"{price(words, constraint)}: {sign} of the curve above"
    below.set_title(plain_text(title), loc="left", fontsize=10)
    _mark_infeasible(above, below, frontier)
    if own_threshold is not None:
        for axis in (above, below):
            axis.axvline(own_threshold, color=REFERENCE, linestyle="--", linewidth=1.0)
        amount = words.amount(own_threshold, 1 + constraint)
        _tell(above, own_threshold, plain_text(f"of the model: {amount}"))
    return figure


def _line(axis: Any, frontier: Frontier, heights: np.ndarray, **style: str) -> None:
    """Draw the feasible points from left to right."""
    order = np.argsort(frontier.thresholds, kind="stable")
    drawn = order[frontier.feasible[order]]
    points = (frontier.thresholds[drawn], heights[drawn])
    axis.plot(*points, marker="o", markersize=3.0, linewidth=1.4, clip_on=False, zorder=3, **style)


def _mark_infeasible(above: Any, below: Any, frontier: Frontier) -> None:
    """Shade what no policy reaches, and set the limits of both axes."""
    low, high = float(frontier.thresholds.min()), float(frontier.thresholds.max())
    margin = _MARGIN * (high - low) or 1.0
    low, high = low - margin, high + margin
    above.set_xlim(low, high)
    at_most = frontier.words.sense(frontier.constraint) == "at most"
    end = float(np.clip(frontier.largest_feasible, low, high))
    begin, until = (low, end) if at_most else (end, high)
    if begin >= until:
        return
    for axis in (above, below):
        axis.axvspan(begin, until, color=REFERENCE, alpha=0.14, linewidth=0)
        axis.axvline(end, color=REFERENCE, linewidth=0.8)
    share = (until - begin) / (high - low)
    place: dict[str, Any] = {"x": (begin + until) / 2, "y": 0.5, "ha": "center", "va": "center"}
    if share < _NARROW:  # beside it, at the top, which the curve reaches on the other side
        side = 1 if at_most else -1
        beside = end + side * _MARGIN / 2 * (high - low)
        place = {"x": beside, "y": 0.97, "ha": "left" if at_most else "right", "va": "top"}
    above.text(
        **place,
        s="infeasible",
        transform=above.get_xaxis_transform(),
        rotation="vertical" if share < 0.2 else "horizontal",
        color=REFERENCE,
    )


def _tell(axis: Any, threshold: float, text: str) -> None:
    """Write beside a threshold, at the bottom, where curves of optima leave room."""
    low, high = axis.get_xlim()
    if not low <= threshold <= high:
        return
    left = threshold > (low + high) / 2
    axis.annotate(
        text,
        (threshold, 0.06),
        xycoords=axis.get_xaxis_transform(),
        xytext=(-4 if left else 4, 0),
        textcoords="offset points",
        color=REFERENCE,
        ha="right" if left else "left",
        fontsize=9,
    )
