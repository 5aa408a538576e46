"""Pictures of what learning and iterating did."""

from typing import TYPE_CHECKING, Any

import numpy as np

from cmdpax.figures.style import CONSTRAINT, OBJECTIVE, OTHERS, REFERENCE, band, canvas
from cmdpax.learning.history import History
from cmdpax.schemes.iteration import Iterates

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_history(history: History) -> "Figure":
    """Draw strong and weak regrets (mean over runs, and their range) and each episode's errors.

    A learner that plans keeps its policy longer and longer: its errors and multipliers are steps on
    a logarithmic axis. Regrets stay on a linear one, where their growth can be seen.
    """
    figure, axes = canvas(2, 2, "episode")
    style = "default" if history.plans is None else "steps-post"
    episodes = history.episodes
    regrets = {"strong regret": history.strong_regret, "weak regret": history.weak_regret}
    for axis, (title, regret) in zip(axes[0], regrets.items(), strict=True):
        _band(axis, episodes, regret.objective, OBJECTIVE, "objective")
        _band(axis, episodes, regret.maximum, CONSTRAINT, "constraints (largest)")
        axis.set_title(title)
        axis.legend(frameon=False)
    violation = history.violation.max(axis=-1, initial=-np.inf)
    _band(axes[1, 0], episodes, history.suboptimality, OBJECTIVE, "suboptimality", style)
    if history.thresholds.size:
        _band(axes[1, 0], episodes, violation, CONSTRAINT, "violation (largest)", style)
    axes[1, 0].axhline(0.0, color=REFERENCE, linewidth=0.8)
    axes[1, 0].set_title("errors of each episode's policy")
    axes[1, 0].legend(frameon=False)
    optimal = history.manifest["optimal_multipliers"]
    _multipliers(axes[1, 1], episodes, history.multipliers, optimal, style)
    if history.plans is not None:
        for axis in axes[1]:
            axis.set_xscale("log")
    figure.suptitle(f"{history.manifest['algorithm']}, {len(history.value)} runs")
    return figure


def plot_iterates(
    iterates: Iterates, optimum: float, thresholds: np.ndarray, optimal: Any
) -> "Figure":
    """Draw the errors and multipliers of a scheme's iterates."""
    figure, axes = canvas(1, 2, "iteration")
    steps = np.arange(1, len(iterates.value) + 1)
    axes[0, 0].plot(steps, optimum - iterates.value, color=OBJECTIVE, label="suboptimality")
    if thresholds.size:
        violation = (thresholds - iterates.constraint_values).max(axis=-1)
        axes[0, 0].plot(steps, violation, color=CONSTRAINT, label="violation (largest)")
    axes[0, 0].axhline(0.0, color=REFERENCE, linewidth=0.8)
    axes[0, 0].set_title("errors of each iterate")
    axes[0, 0].legend(frameon=False)
    _multipliers(axes[0, 1], steps, iterates.multipliers[None], optimal)
    return figure


def _band(
    axis: Any,
    episodes: np.ndarray,
    values: np.ndarray,
    colour: str,
    label: str,
    style: str = "default",
) -> None:
    """Draw the mean over runs, and the range of the runs around it."""
    around = (values.min(axis=0), values.max(axis=0))
    band(axis, episodes, values.mean(axis=0), around, color=colour, label=label, drawstyle=style)


def _multipliers(
    axis: Any, episodes: np.ndarray, values: np.ndarray, optimal: Any, style: str = "default"
) -> None:
    """Draw each constraint's multiplier, and its optimum as a dashed line."""
    for constraint, best in enumerate(optimal):
        colour = OTHERS[constraint % len(OTHERS)]
        _band(axis, episodes, values[..., constraint], colour, f"constraint {constraint}", style)
        axis.axhline(best, color=colour, linestyle="--", linewidth=0.8)
    axis.set_title("multipliers (dashed: optimal)")
    if len(optimal):
        axis.legend(frameon=False)
