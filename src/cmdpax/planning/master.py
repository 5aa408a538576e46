"""The master problem of column generation: a linear program with I + 1 rows, kept warm.

Column j is a policy with values f_j = V_r and g_{ij} = V_{u_i}. Over mixture weights w ≥ 0 with
Σ_j w_j = 1 it either maximises the reward,

    max Σ_j w_j f_j   subject to   Σ_j w_j g_{ij} ≥ c_i - relaxation for every i,

or one g_i in place of f, or the smallest slack, max t subject to Σ_j w_j g_{ij} - t ≥ c_i. All are
one HiGHS model: the last frees the variable t and moves the objective to it. New columns leave the
last basis primal feasible, so primal simplex goes on from there. Thresholds c are bounds of rows:
no column depends on them.
"""

from typing import Any, NamedTuple

import numpy as np

from cmdpax.errors import MissingPackageError

_TOLERANCE = 1e-10  # the tightest that HiGHS allows; its default leaves gaps of 1e-8


class MasterSolution(NamedTuple):
    """Optimum of the master problem over the columns so far.

    Attributes:
        value: Σ_j w_j f_j, or that of a g_i, or t.
        weights: w, one per column.
        multipliers: λ ≥ 0 of the slack rows (sums to 1 when t is maximised).
    """

    value: float
    weights: np.ndarray
    multipliers: np.ndarray


class Master:
    """The master problem; columns are only ever added, thresholds may change (from 0)."""

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
        self._values: list[np.ndarray] = []  # (f_j, g_j)
        self._signal: int | None = 0  # what is maximised: f, one of the g, or t
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

    def add(self, values: np.ndarray) -> None:
        """Add a column: (f_j, g_j)."""
        entries = values / self._scales
        cost = 0.0 if self._signal is None else -entries[self._signal]
        entries[0] = 1.0  # in the row of Σ_j w_j
        rows = np.arange(len(entries), dtype=np.int32)
        self._values.append(values)
        self._highs.addCol(cost, 0.0, self._infinity, len(rows), rows, entries)

    def require(self, thresholds: np.ndarray) -> None:
        """From now on, these are the thresholds."""
        for row, bound in enumerate(thresholds / self._scales[1:], start=1):
            self._highs.changeRowBounds(row, bound, self._infinity)

    def maximise_slack(self) -> None:
        """From now on, maximise t."""
        self._signal = None
        self._highs.changeColBounds(0, -self._infinity, self._infinity)
        self._change_costs(-1.0, np.zeros(len(self._values)))

    def maximise_reward(self, relaxation: float, signal: int = 0) -> None:
        """From now on, maximise f (or g_{signal - 1}); slacks may be as low as `-relaxation`."""
        self._signal = signal
        self._highs.changeColBounds(0, -relaxation, -relaxation)
        self._change_costs(0.0, -self._gains(signal) / self._scales[signal])

    def _change_costs(self, cost_of_slack: float, costs: np.ndarray) -> None:
        costs = np.insert(costs, 0, cost_of_slack)
        self._highs.changeColsCost(len(costs), np.arange(len(costs), dtype=np.int32), costs)

    def _gains(self, signal: int) -> np.ndarray:
        return np.array([values[signal] for values in self._values])

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
        if self._signal is None:
            multipliers = multipliers / self._scales[1:]
            total = multipliers.sum()
            multipliers = multipliers / total
            return MasterSolution(float(np.asarray(solution.col_value)[0]), weights, multipliers)
        multipliers = multipliers * self._scales[self._signal] / self._scales[1:]
        value = float(weights @ self._gains(self._signal))
        return MasterSolution(value, weights, multipliers)
