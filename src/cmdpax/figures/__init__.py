"""Pictures of a frontier, a history, iterates, sweeps, and a live system."""

from cmdpax.figures.frontier import plot_frontier
from cmdpax.figures.histories import plot_history, plot_iterates
from cmdpax.figures.live import Truth, plot_returns
from cmdpax.figures.potentials import plot_potentials
from cmdpax.figures.style import require_picture, save_figure
from cmdpax.figures.sweeps import KINDS, plot_sweep

__all__ = [
    "KINDS",
    "Truth",
    "plot_frontier",
    "plot_history",
    "plot_iterates",
    "plot_potentials",
    "plot_returns",
    "plot_sweep",
    "require_picture",
    "save_figure",
]
