"""A picture of a frontier: what the threshold of a constraint costs."""

from typing import TYPE_CHECKING, Any

import numpy as np

from cmdpax.figures.style import CONSTRAINT, OBJECTIVE, REFERENCE, canvas
from cmdpax.planning.frontier import Frontier

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MARGIN = 0.02  # of the axis, on both sides of the points


def plot_frontier(frontier: Frontier, own_threshold: float | None = None) -> "Figure":
    """Draw the optimal value, and below it the multiplier, which is minus its slope.

    Args:
        frontier: what `cmdpax.frontier` found.
        own_threshold: the model's own threshold, which is marked; None marks nothing.
    """
    name = f"$c_{{{frontier.constraint}}}$"
    figure, axes = canvas(2, 1, f"threshold {name} of constraint {frontier.constraint}", (6.4, 2.6))
    above, below = axes[:, 0]
    below.sharex(above)
    above.set_xlabel("")
    above.tick_params(labelbottom=False)
    multipliers = frontier.multipliers[:, frontier.constraint]
    if frontier.feasible.any():
        _line(above, frontier, frontier.value, color=OBJECTIVE)
        # The multiplier is constant between kinks, wherever those are.
        _line(below, frontier, multipliers, color=CONSTRAINT, drawstyle="steps-mid")
        below.set_ylim(bottom=0.0)
    above.set_title("optimal value", loc="left", fontsize=10)
    below.set_title("multiplier: minus the slope of the value", loc="left", fontsize=10)
    above.set_ylabel("$V_r^{\\pi^*}$")
    below.set_ylabel(f"$\\lambda_{{{frontier.constraint}}}$")
    _mark_infeasible(above, below, frontier)
    if own_threshold is not None:
        for axis in (above, below):
            axis.axvline(own_threshold, color=REFERENCE, linestyle="--", linewidth=1.0)
        _tell(above, own_threshold, f"{name} of the model")
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
    begin = max(frontier.largest_feasible, low)
    if begin >= high:
        return
    for axis in (above, below):
        axis.axvspan(begin, high, color=REFERENCE, alpha=0.14, linewidth=0)
        axis.axvline(begin, color=REFERENCE, linewidth=0.8)
    above.text(
        (begin + high) / 2,
        0.5,
        "infeasible",
        transform=above.get_xaxis_transform(),
        rotation="vertical" if high - begin < 0.2 * (high - low) else "horizontal",
        color=REFERENCE,
        ha="center",
        va="center",
    )


def _tell(axis: Any, threshold: float, text: str) -> None:
    """Write beside a threshold, at the bottom, where concave curves leave room."""
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
