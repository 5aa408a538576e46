"""A picture of a live system's episodes: what was observed, the thresholds, and the truth."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cmdpax.checks import require_count
from cmdpax.errors import ParameterError
from cmdpax.figures.style import CONSTRAINT, OBJECTIVE, REFERENCE, band, canvas
from cmdpax.intervals import half_width
from cmdpax.live import AgentAccount

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Truth(NamedTuple):
    """What the policies of some episodes are worth, where somebody knows the model.

    Attributes:
        episodes: the episodes' numbers, `[n]`.
        values: V_r, `[n]`, in the user's units.
        constraint_values: V_u, `[n, I]`, likewise.
    """

    episodes: Any
    values: Any
    constraint_values: Any


def plot_returns(
    rewards: Any,
    constraint_returns: Any,
    account: AgentAccount,
    *,
    truth: Truth | None = None,
    optimum: float | None = None,
    window: int | None = None,
    marks: Mapping[int, str] | None = None,
) -> "Figure":
    """Draw the returns of a live system's episodes, smoothed, against its thresholds.

    Args:
        rewards: each episode's sum of rewards, `[K]`, such as `cmdpax.gymnasium.interact` gives.
        constraint_returns: each episode's returns, `[K, I]`.
        account: the agent's account.
        truth: values of the policies in the true model, to compare.
        optimum: the best value that meets the constraints, if it is known.
        window: episodes in a moving mean, whose band is Student's 95 % interval; None is 100, or a
            quarter of the episodes where they are few.
        marks: episodes to be marked, and why.
    """
    series = _series(rewards, constraint_returns, account)
    count = len(series[0])
    few = max(1, min(100, count // 4))
    window = few if window is None else min(require_count("window", window), count)
    names = ["reward", *(one.name for one in account)]
    figure, axes = canvas(len(series), 1, "episode", (7.0, 2.5))
    for index, (axis, returns) in enumerate(zip(axes[:, 0], series, strict=True)):
        colour = CONSTRAINT if index else OBJECTIVE
        _moving(axis, returns, window, colour)
        if truth is not None:
            known = np.asarray(truth.constraint_values)[:, index - 1] if index else truth.values
            axis.plot(truth.episodes, known, color="black", linewidth=1.0, label="true value")
        if index:
            _threshold(axis, account[index - 1])
        elif optimum is not None:
            axis.axhline(optimum, color=REFERENCE, linestyle="--", linewidth=1.0, label="optimum")
        for episode, why in (marks or {}).items():
            _mark(axis, episode, why, left=episode > len(returns) / 2)
        axis.set_title(f"{names[index]} per episode", loc="left", fontsize=10)
        axis.set_xlim(1, max(2, len(returns)))
        axis.legend(frameon=False, fontsize=8, ncols=4)
    return figure


def _series(rewards: Any, constraint_returns: Any, account: AgentAccount) -> list[np.ndarray]:
    """Check the rewards and the returns of every constraint, and list them."""
    sums, returns = (np.asarray(given, dtype=float) for given in (rewards, constraint_returns))
    count = len(account)
    if sums.ndim != 1 or not len(sums) or returns.shape != (len(sums), count):
        raise ParameterError(
            f"rewards has shape {sums.shape} and constraint_returns {returns.shape}, expected (K,) "
            f"and (K, {count}) for K episodes, at least one."
        )
    return [sums, *returns.T]


def _mark(axis: Any, episode: int, why: str, left: bool) -> None:
    """Draw a line at an episode, and write beside it, inside the axes, why."""
    axis.axvline(episode, color=REFERENCE, linewidth=0.8)
    text = axis.annotate(
        why,
        (episode, 0.97),
        xycoords=("data", "axes fraction"),
        xytext=(-3 if left else 3, 0),
        textcoords="offset points",
        ha="right" if left else "left",
        va="top",
        fontsize=8,
    )
    text.set_in_layout(False)  # a long one must not make the axes narrower


def _moving(axis: Any, returns: np.ndarray, window: int, colour: str) -> None:
    """Draw the mean of the last `window` episodes, from the first episode that has so many."""
    frames = np.lib.stride_tricks.sliding_window_view(returns, window)
    mean = frames.mean(axis=1)
    half = half_width(frames, axis=1) if window > 1 else np.zeros_like(mean)
    episodes = np.arange(window, len(returns) + 1)
    label = f"observed, mean of {window}"
    marker = "o" if len(mean) == 1 else ""
    around = (mean - half, mean + half)
    band(axis, episodes, mean, around, color=colour, label=label, marker=marker)


def _threshold(axis: Any, one: Any) -> None:
    """Draw the threshold, and shade its wrong side."""
    low, high = axis.get_ylim()
    low, high = min(low, one.threshold), max(high, one.threshold)
    room = 0.08 * (high - low)
    low, high = low - room, high + room
    wrong: Sequence[float] = (
        (one.threshold, high) if one.sense == "at most" else (low, one.threshold)
    )
    axis.axhspan(*wrong, color=REFERENCE, alpha=0.12, linewidth=0)
    axis.axhline(
        one.threshold,
        color=REFERENCE,
        linestyle="--",
        linewidth=1.0,
        label=f"{one.sense} {one.threshold:g}",
    )
    axis.set_ylim(low, high)
