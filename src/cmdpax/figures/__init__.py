"""Pictures: of a frontier, of a history, of iterates, and of sweeps."""

from cmdpax.figures.frontier import plot_frontier
from cmdpax.figures.histories import plot_history, plot_iterates
from cmdpax.figures.potentials import plot_potentials
from cmdpax.figures.style import require_picture, save_figure
from cmdpax.figures.sweeps import KINDS, plot_sweep

__all__ = [
    "KINDS",
    "plot_frontier",
    "plot_history",
    "plot_iterates",
    "plot_potentials",
    "plot_sweep",
    "require_picture",
    "save_figure",
]
