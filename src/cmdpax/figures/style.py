"""How pictures look, and how they are written: matplotlib, imported when it is needed."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from cmdpax.errors import FileError
from cmdpax.storage.writing import require_target, write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette: told apart by the colour-blind, and in grey.
OBJECTIVE, CONSTRAINT, REFERENCE = "#0072B2", "#D55E00", "#555555"
OTHERS = ("#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
ALGORITHMS = {
    "vanilla-primal-dual": "#555555",
    "regularized-primal-dual": "#CC79A7",
    "vanilla-dual": "#0072B2",
    "regularized-dual": "#009E73",
}
# The same on a dark ground: what would vanish there is lighter.
_ON_WHITE = {"#E69F00": "#B97F00", "#56B4E9": "#2C8AC4"}  # thin lines need a contrast of 3:1
_ON_DARK = {
    "#000000": "#F0E442",
    "#0072B2": "#56B4E9",
    "#009E73": "#2FC79B",
    "#555555": "#B0B0B0",
    "#56B4E9": "#4F9BFF",
}
FORMATS = (".png", ".pdf", ".svg")


def require_picture(path: Path) -> None:
    """Refuse a path that no picture can be written to, before any work is done for it."""
    if path.suffix.lower() not in FORMATS:
        raise FileError(
            f"{path} has the ending {path.suffix!r}; pictures are {', '.join(FORMATS)} files."
        )
    require_target(path)


def save_figure(figure: "Figure", path: Path) -> None:
    """Write a picture, whole or not at all."""

    def write(file: BinaryIO) -> None:
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=200)

    require_picture(path)
    write_atomically(path, write)


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
    around: tuple[np.ndarray, np.ndarray],
    **line: Any,
) -> None:
    """Draw a line, and what lies around it."""
    axis.plot(episodes, mean, linewidth=line.pop("linewidth", 1.2), **line)
    step = "post" if line.get("drawstyle") == "steps-post" else None
    axis.fill_between(episodes, *around, color=line["color"], alpha=0.2, linewidth=0, step=step)


def colour_of(algorithm: str, position: int) -> str:
    """Give an algorithm its colour, which is the same in every picture."""
    return ALGORITHMS.get(algorithm, OTHERS[(position + 2) % len(OTHERS)])


def palette(dark: bool) -> dict[str, Any]:
    """List the colours of algorithms, and those for others in turn, on a light or dark ground."""

    def shade(colour: str) -> str:
        return (_ON_DARK if dark else _ON_WHITE).get(colour, colour)

    return {
        "algorithms": {name: shade(colour) for name, colour in ALGORITHMS.items()},
        "others": [shade(colour) for colour in (*OTHERS[2:], *OTHERS[:2])],
    }
