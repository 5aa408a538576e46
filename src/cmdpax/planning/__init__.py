"""Exact planning in a known CMDP."""

from cmdpax.planning.feasibility import SlaterGap
from cmdpax.planning.many import solve_many
from cmdpax.planning.saddle_point import RegularizedSolution, solve_regularized
from cmdpax.planning.solution import METHODS, Solution, slater_gap, solve

__all__ = [
    "METHODS",
    "RegularizedSolution",
    "SlaterGap",
    "Solution",
    "slater_gap",
    "solve",
    "solve_many",
    "solve_regularized",
]
