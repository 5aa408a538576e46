"""The master problem of column generation: a linear program with I + 1 rows, kept warm.

Column j is a policy with value f_j = V_r and slacks g_{ij} = V_{u_i} - c_i. Over mixture weights
w ≥ 0 with Σ_j w_j = 1 it either maximises the reward,

    max Σ_j w_j f_j   subject to   Σ_j w_j g_{ij} ≥ -relaxation for every i,

or the smallest slack, max t subject to Σ_j w_j g_{ij} ≥ t for every i. Both are one HiGHS model:
the second frees the variable t and moves the objective to it. New columns leave the last basis
primal feasible, so primal simplex goes on from there.
"""

from typing import Any, NamedTuple

import numpy as np

from cmdpax.errors import MissingPackageError

_TOLERANCE = 1e-10  # the tightest that HiGHS allows; its default leaves gaps of 1e-8


class MasterSolution(NamedTuple):
    """Optimum of the master problem over the columns so far.

    Attributes:
        value: Σ_j w_j f_j, or t.
        weights: w, one per column.
        multipliers: λ ≥ 0 of the slack rows (sums to 1 when t is maximised).
    """

    value: float
    weights: np.ndarray
    multipliers: np.ndarray


class Master:
    """The master problem; columns are only ever added."""

    def __init__(self, scales: np.ndarray) -> None:
        """Set up t and the rows.

        Args:
            scales: `[1 + I]`, the magnitude of a step's reward and constraint rewards. Rows
                and objective are divided by them, so that tolerances are relative.
        """
        try:
            import highspy
        except ImportError:
            raise MissingPackageError(
                "column generation needs the package highspy; pip install highspy, or solve with "
                'method="occupancy-lp".'
            ) from None

        self._infinity: float = highspy.kHighsInf
        self._optimal = highspy.HighsModelStatus.kOptimal
        self._scales = scales
        self._gains: list[float] = []
        self._maximise_slack = False
        self._highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        options: dict[str, Any] = {
            "output_flag": False,
            "presolve": "off",
            "solver": "simplex",
            "simplex_strategy": 4,  # primal
            "primal_feasibility_tolerance": _TOLERANCE,
            "dual_feasibility_tolerance": _TOLERANCE,
        }
        for option, setting in options.items():
            self._highs.setOptionValue(option, setting)
        nothing = np.empty(0)
        self._highs.addRow(1.0, 1.0, 0, nothing.astype(np.int32), nothing)
        for _ in scales[1:]:
            self._highs.addRow(0.0, self._infinity, 0, nothing.astype(np.int32), nothing)
        rows = np.arange(1, len(scales), dtype=np.int32)
        self._highs.addCol(0.0, 0.0, 0.0, len(rows), rows, -1.0 / scales[1:])

    def add(self, gain: float, slacks: np.ndarray) -> None:
        """Add a column: f_j and g_j."""
        entries = np.concatenate([[1.0], slacks / self._scales[1:]])
        rows = np.arange(len(entries), dtype=np.int32)
        self._gains.append(gain)
        cost = 0.0 if self._maximise_slack else -gain / self._scales[0]
        self._highs.addCol(cost, 0.0, self._infinity, len(rows), rows, entries)

    def maximise_slack(self) -> None:
        """From now on, maximise t."""
        self._maximise_slack = True
        self._highs.changeColBounds(0, -self._infinity, self._infinity)
        self._highs.changeColCost(0, -1.0)
        for column in range(len(self._gains)):
            self._highs.changeColCost(column + 1, 0.0)

    def maximise_reward(self, relaxation: float) -> None:
        """From now on, maximise the reward; slacks may be as low as `-relaxation`."""
        self._maximise_slack = False
        self._highs.changeColBounds(0, -relaxation, -relaxation)
        self._highs.changeColCost(0, 0.0)
        for column, gain in enumerate(self._gains):
            self._highs.changeColCost(column + 1, -gain / self._scales[0])

    def solve(self) -> MasterSolution | None:
        """Solve from the last basis; None if the linear program could not be solved."""
        self._highs.run()
        if self._highs.getModelStatus() != self._optimal:
            self._highs.clearSolver()  # a second try from scratch
            self._highs.run()
            if self._highs.getModelStatus() != self._optimal:
                return None
        solution = self._highs.getSolution()
        weights = np.maximum(np.asarray(solution.col_value)[1:], 0.0)
        weights = weights / weights.sum()
        multipliers = np.maximum(np.asarray(solution.row_dual)[1:], 0.0)
        if self._maximise_slack:
            multipliers = multipliers / self._scales[1:]
            total = multipliers.sum()
            multipliers = multipliers / total
            return MasterSolution(float(np.asarray(solution.col_value)[0]), weights, multipliers)
        multipliers = multipliers * self._scales[0] / self._scales[1:]
        return MasterSolution(float(weights @ self._gains), weights, multipliers)
