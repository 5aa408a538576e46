"""Pictures of what learning and iterating did: matplotlib, imported when it is needed."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from cmdpax.errors import FileError
from cmdpax.files import require_folder, write_atomically
from cmdpax.history import History
from cmdpax.iteration import Iterates

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette: told apart by the colour-blind, and in grey.
OBJECTIVE, CONSTRAINT, REFERENCE = "#0072B2", "#D55E00", "#555555"
FORMATS = (".png", ".pdf", ".svg")


def require_picture(path: Path) -> None:
    """Refuse a path that no picture can be written to, before any work is done for it."""
    if path.suffix.lower() not in FORMATS:
        raise FileError(
            f"{path} has the ending {path.suffix!r}; pictures are {', '.join(FORMATS)} files."
        )
    require_folder(path)


def save_figure(figure: "Figure", path: Path) -> None:
    """Write a picture, whole or not at all."""

    def write(file: BinaryIO) -> None:
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=200)

    require_picture(path)
    write_atomically(path, write)


def plot_history(history: History) -> "Figure":
    """Strong and weak regrets (mean over runs, and their range), and the errors per episode."""
    figure, axes = _canvas(2, 2, "episode")
    episodes = history.episodes
    panels = (
        (
            axes[0, 0],
            "strong regret",
            history.strong_regret.objective,
            history.strong_regret.maximum,
        ),
        (axes[0, 1], "weak regret", history.weak_regret.objective, history.weak_regret.maximum),
    )
    for axis, title, objective, constraint in panels:
        _band(axis, episodes, objective, OBJECTIVE, "objective")
        _band(axis, episodes, constraint, CONSTRAINT, "constraints (largest)")
        axis.set_title(title)
        axis.legend(frameon=False)
    violation = history.violation.max(axis=-1, initial=-np.inf)
    _band(axes[1, 0], episodes, history.suboptimality, OBJECTIVE, "suboptimality")
    if history.thresholds.size:
        _band(axes[1, 0], episodes, violation, CONSTRAINT, "violation (largest)")
    axes[1, 0].axhline(0.0, color=REFERENCE, linewidth=0.8)
    axes[1, 0].set_title("errors of each episode's policy")
    axes[1, 0].legend(frameon=False)
    _multipliers(axes[1, 1], episodes, history.multipliers, history.manifest["optimal_multipliers"])
    figure.suptitle(f"{history.manifest['algorithm']}, {len(history.value)} runs")
    return figure


def plot_iterates(
    iterates: Iterates, optimum: float, thresholds: np.ndarray, optimal: Any
) -> "Figure":
    """Errors and multipliers of a scheme's iterates."""
    figure, axes = _canvas(1, 2, "iteration")
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


def _canvas(rows: int, columns: int, label: str) -> tuple["Figure", Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5 * columns, 3.4 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
        axis.set_xlabel(label)
    return figure, axes


def _band(axis: Any, episodes: np.ndarray, values: np.ndarray, colour: str, label: str) -> None:
    """Mean over runs, and the range of the runs around it."""
    axis.plot(episodes, values.mean(axis=0), color=colour, linewidth=1.2, label=label)
    low, high = values.min(axis=0), values.max(axis=0)
    axis.fill_between(episodes, low, high, color=colour, alpha=0.2, linewidth=0)


def _multipliers(axis: Any, episodes: np.ndarray, values: np.ndarray, optimal: Any) -> None:
    """Each constraint's multiplier, and its optimum as a dashed line."""
    colours = ("#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
    for constraint, best in enumerate(optimal):
        colour = colours[constraint % len(colours)]
        _band(axis, episodes, values[..., constraint], colour, f"constraint {constraint}")
        axis.axhline(best, color=colour, linestyle="--", linewidth=0.8)
    axis.set_title("multipliers (dashed: optimal)")
    if len(optimal):
        axis.legend(frameon=False)
