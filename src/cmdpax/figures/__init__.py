"""Pictures of policies, trajectories, frontiers, histories, iterates, sweeps and live systems."""

from cmdpax.figures.frontier import plot_frontier
from cmdpax.figures.histories import plot_history, plot_iterates
from cmdpax.figures.live import Truth, plot_returns
from cmdpax.figures.maps import Grid, grid_of
from cmdpax.figures.policies import plot_policy
from cmdpax.figures.potentials import plot_potentials
from cmdpax.figures.schemes import plot_schemes
from cmdpax.figures.style import require_picture, save_figure
from cmdpax.figures.sweeps import KINDS, plot_sweep
from cmdpax.figures.trajectories import plot_trajectory

__all__ = [
    "KINDS",
    "Grid",
    "Truth",
    "grid_of",
    "plot_frontier",
    "plot_history",
    "plot_iterates",
    "plot_policy",
    "plot_potentials",
    "plot_returns",
    "plot_schemes",
    "plot_sweep",
    "plot_trajectory",
    "require_picture",
    "save_figure",
]
