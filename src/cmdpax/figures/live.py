"""A picture of a live system's episodes: what was observed, the thresholds, and the truth."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cmdpax.checks import require_count
from cmdpax.errors import ParameterError
from cmdpax.figures.labels import plain_text
from cmdpax.figures.style import CONSTRAINT, OBJECTIVE, REFERENCE, band, canvas
from cmdpax.intervals import half_width
from cmdpax.live import AgentAccount, saving
from cmdpax.live.record import moving_means
from cmdpax.live.view import AgentView

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
    constraint_returns: Any = None,
    account: AgentAccount | None = None,
    *,
    truth: Truth | None = None,
    optimum: float | None = None,
    window: int | None = None,
    marks: Mapping[int, str] | None = None,
) -> "Figure":
    """Draw the returns of a live system's episodes, smoothed, against its thresholds.

    Args:
        rewards: an `Agent`, or the path of its file: its record of all episodes is drawn. Or each
            episode's sum of rewards, `[K]`, such as `cmdpax.gymnasium.interact` gives.
        constraint_returns: each episode's returns, `[K, I]`, where rewards are given.
        account: the agent's account, where rewards are given.
        truth: values of the policies in the true model, to compare.
        optimum: the best value that meets the constraints, if it is known.
        window: episodes in a moving mean, whose band is Student's 95 % interval; None is 100, or a
            quarter of the episodes where they are few. Of a record whole blocks are averaged.
        marks: episodes to be marked, and why.
    """
    if isinstance(rewards, AgentView | str | os.PathLike):
        _require_alone(constraint_returns, account)
        returns, account = _recorded(rewards, window)
    else:
        account = _given(account)
        returns = _averaged(_series(rewards, constraint_returns, account), window)
    signals = [("reward", account.objective.unit), *((one.name, one.unit) for one in account)]
    figure, axes = canvas(len(signals), 1, "episode", (7.0, 2.5))
    for index, (axis, signal) in enumerate(zip(axes[:, 0], signals, strict=True)):
        _moving(axis, returns, index)
        if truth is not None:
            known = np.asarray(truth.constraint_values)[:, index - 1] if index else truth.values
            axis.plot(truth.episodes, known, color="black", linewidth=1.0, label="true value")
        if index:
            _threshold(axis, account[index - 1])
        elif optimum is not None:
            axis.axhline(optimum, color=REFERENCE, linestyle="--", linewidth=1.0, label="optimum")
        for episode, why in (marks or {}).items():
            _mark(axis, episode, why, left=episode > (returns.first + returns.last) / 2)
        axis.set_title(_title(*signal), loc="left", fontsize=10)
        axis.set_xlim(returns.first, max(returns.first + 1, returns.last))
        axis.legend(frameon=False, fontsize=8, ncols=4)
    return figure


class _Smoothed(NamedTuple):
    """Moving means of the returns of episodes `first` to `last`."""

    first: int
    last: int
    window: int
    episodes: np.ndarray  # the last one of each mean, [m]
    mean: np.ndarray  # [m, J]
    half: np.ndarray  # [m, J]


def _recorded(source: Any, window: int | None) -> tuple[_Smoothed, AgentAccount]:
    """Smooth the record of an agent or of its file; also gives its account."""
    if isinstance(source, AgentView):
        who, record, account = "the agent", source.record, source.account
    else:
        found = saving.read(Path(source))
        who, record, account = os.fspath(source), found.record, found.account
    if not record.whole.any():
        raise ParameterError(
            f"{who} has played no whole episode, so there are no returns to draw; play some first."
        )
    moving = moving_means(record, _window(window, int(record.episodes.sum())))
    return _Smoothed(int(record.first[0]), int(record.last[-1]), *moving), account


def _require_alone(constraint_returns: Any, account: Any) -> None:
    given = {"constraint_returns": constraint_returns, "account": account}
    names = [name for name, one in given.items() if one is not None]
    if names:
        raise ParameterError(
            f"{' and '.join(names)} cannot be given together with an agent or its file, which has "
            "them; leave them out."
        )


def _given(account: AgentAccount | None) -> AgentAccount:
    if account is None:
        raise ParameterError(
            "account is missing: give rewards, constraint_returns and account, or an agent, or "
            "the path of its file."
        )
    return account


def _series(rewards: Any, constraint_returns: Any, account: AgentAccount) -> np.ndarray:
    """Check the rewards and the returns of every constraint, and put them side by side."""
    sums, returns = (np.asarray(given, dtype=float) for given in (rewards, constraint_returns))
    count = len(account)
    if sums.ndim != 1 or not len(sums) or returns.shape != (len(sums), count):
        raise ParameterError(
            f"rewards has shape {sums.shape} and constraint_returns {returns.shape}, expected (K,) "
            f"and (K, {count}) for K episodes, at least one."
        )
    return np.column_stack([sums, returns])


def _averaged(returns: np.ndarray, window: int | None) -> _Smoothed:
    """Means of the last `window` episodes, from the first episode that has so many."""
    count = len(returns)
    window = _window(window, count)
    frames = np.lib.stride_tricks.sliding_window_view(returns, window, axis=0)
    mean = frames.mean(axis=-1)
    half = half_width(frames, axis=-1) if window > 1 else np.zeros_like(mean)
    return _Smoothed(1, count, window, np.arange(window, count + 1), mean, half)


def _window(window: int | None, count: int) -> int:
    few = max(1, min(100, count // 4))
    return few if window is None else min(require_count("window", window), count)


def _title(name: str, unit: str) -> str:
    return plain_text(f"{name} [{unit}] per episode" if unit else f"{name} per episode")


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


def _moving(axis: Any, returns: _Smoothed, signal: int) -> None:
    """Draw the moving means of a signal, and their intervals."""
    mean, half = returns.mean[:, signal], returns.half[:, signal]
    half = np.where(np.isfinite(half), half, 0.0)  # one number says nothing about its mean's error
    colour = CONSTRAINT if signal else OBJECTIVE
    label = f"observed, mean of {returns.window}"
    marker = "o" if np.isfinite(mean).sum() == 1 else ""
    around = (mean - half, mean + half)
    band(axis, returns.episodes, mean, around, color=colour, label=label, marker=marker)


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
