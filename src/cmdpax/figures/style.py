"""How pictures look, and how they are written: matplotlib, imported when it is needed."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from cmdpax.errors import FileError
from cmdpax.intervals import half_width
from cmdpax.storage.writing import require_target, write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette: told apart by the colour-blind, and in grey.
OBJECTIVE, CONSTRAINT, REFERENCE = "#0072B2", "#D55E00", "#555555"
OTHERS = ("#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
FORMATS = (".png", ".pdf", ".svg")
FEWEST = 3
"""Runs, or CMDPs, that the interval of a mean needs to be drawn."""


def require_picture(path: Path) -> None:
    """Refuse a path that no picture can be written to, before any work is done for it."""
    if path.suffix.lower() not in FORMATS:
        raise FileError(
            f"{path} has the ending {path.suffix!r}; pictures are {', '.join(FORMATS)} files."
        )
    require_target(path)


def save_figure(figure: "Figure", path: str | Path) -> None:
    """Write a picture, whole or not at all."""
    target = Path(path)

    def write(file: BinaryIO) -> None:
        figure.savefig(file, format=target.suffix[1:].lower(), dpi=200)

    require_picture(target)
    write_atomically(target, write)


def canvas(
    rows: int, columns: int, label: str, size: tuple[float, float] = (5.0, 3.4)
) -> tuple["Figure", Any]:
    """Make a figure with a grid of axes; `size` is the size of one of them, in inches."""
    from matplotlib.figure import Figure

    width, height = size
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
        axis.set_xlabel(label)
    return figure, axes


def band(
    axis: Any,
    episodes: np.ndarray,
    mean: np.ndarray,
    around: tuple[np.ndarray, np.ndarray] | None,
    **line: Any,
) -> None:
    """Draw a line, and what lies around it, if anything does."""
    axis.plot(episodes, mean, linewidth=line.pop("linewidth", 1.2), **line)
    if around is not None:
        step = "post" if line.get("drawstyle") == "steps-post" else None
        axis.fill_between(episodes, *around, color=line["color"], alpha=0.2, linewidth=0, step=step)


def around_mean(
    values: np.ndarray, nonnegative: bool = False
) -> tuple[np.ndarray, np.ndarray] | None:
    """Give the ends of Student's 95 % interval of a mean, `[T]` each, where it says something.

    Two numbers say next to nothing about their mean: the interval is 12.7 standard errors wide on
    either side, and it is not drawn. The interval of a quantity that cannot be negative ends at 0:
    what is cut off holds no possible mean, so that the rest covers the mean as often as the whole.

    Args:
        values: one row for each run, or for each CMDP, `[N, T]`.
        nonnegative: whether no value can be below 0.
    """
    if len(values) < FEWEST:
        return None
    mean, half = values.mean(axis=0), half_width(values)
    half = np.where(np.isfinite(half), half, 0.0)
    low = np.maximum(mean - half, 0.0) if nonnegative else mean - half
    return low, mean + half
