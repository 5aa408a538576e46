"""The master problem of column generation: a linear program with I + 1 rows, kept warm.

Column j is a policy with values f_j = V_r and g_{ij} = V_{u_i}. Over mixture weights w ≥ 0 with
Σ_j w_j = 1 it either maximises the reward,

    max Σ_j w_j f_j   subject to   Σ_j w_j g_{ij} ≥ c_i - relaxation for every i,

or one g_i in place of f, or the smallest slack, max t subject to Σ_j w_j g_{ij} - t ≥ c_i. All are
one HiGHS model: the last frees the variable t and moves the objective to it. New columns leave the
last basis primal feasible, so primal simplex goes on from there. Thresholds c are bounds of rows:
no column depends on them.

Without the package highspy SciPy's copy of HiGHS solves it, from the start each time: a few
milliseconds more per round, and a machine with SciPy alone can plan.
"""

import abc
import importlib.util
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


class Master(abc.ABC):
    """The master problem; columns are only ever added, thresholds may change (from 0)."""

    def __init__(self, scales: np.ndarray) -> None:
        """Start without columns.

        Args:
            scales: `[1 + I]`, the magnitude of a step's reward and constraint rewards. Rows
                and objective are divided by them, so that tolerances are relative.
        """
        self._scales = scales
        self._values: list[np.ndarray] = []  # (f_j, g_j)
        self._signal: int | None = 0  # what is maximised: f, one of the g, or t

    @abc.abstractmethod
    def add(self, values: np.ndarray) -> None:
        """Add a column: (f_j, g_j)."""

    @abc.abstractmethod
    def require(self, thresholds: np.ndarray) -> None:
        """From now on, these are the thresholds."""

    @abc.abstractmethod
    def maximise_slack(self) -> None:
        """From now on, maximise t."""

    @abc.abstractmethod
    def maximise_reward(self, relaxation: float, signal: int = 0) -> None:
        """From now on, maximise f (or g_{signal - 1}); slacks may be as low as `-relaxation`."""

    @abc.abstractmethod
    def solve(self) -> MasterSolution | None:
        """Solve it; None if the linear program could not be solved."""

    def _gains(self, signal: int) -> np.ndarray:
        return np.array([values[signal] for values in self._values])

    def _solution(self, variables: np.ndarray, duals: np.ndarray) -> MasterSolution:
        """From t and the weights, and the duals of the slack rows, as the solver has them."""
        weights = np.maximum(variables[1:], 0.0)
        weights = weights / weights.sum()
        multipliers = np.maximum(duals, 0.0)
        if self._signal is None:
            multipliers = multipliers / self._scales[1:]
            return MasterSolution(float(variables[0]), weights, multipliers / multipliers.sum())
        multipliers = multipliers * self._scales[self._signal] / self._scales[1:]
        return MasterSolution(float(weights @ self._gains(self._signal)), weights, multipliers)


def make_master(scales: np.ndarray) -> Master:
    """With highspy, or else with SciPy."""
    if importlib.util.find_spec("highspy") is not None:
        return WarmMaster(scales)
    if importlib.util.find_spec("scipy") is not None:
        return ColdMaster(scales)
    raise MissingPackageError(
        "planning needs the package highspy or scipy; pip install highspy scipy."
    )


class WarmMaster(Master):
    """One HiGHS model that goes on from its last basis."""

    def __init__(self, scales: np.ndarray) -> None:
        """Set up t and the rows."""
        import highspy

        super().__init__(scales)
        self._infinity: float = highspy.kHighsInf
        self._optimal = highspy.HighsModelStatus.kOptimal
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

    def solve(self) -> MasterSolution | None:
        """Solve from the last basis; None if the linear program could not be solved."""
        self._highs.run()
        if self._highs.getModelStatus() != self._optimal:
            self._highs.clearSolver()  # a second try from scratch
            self._highs.run()
            if self._highs.getModelStatus() != self._optimal:
                return None
        solution = self._highs.getSolution()
        return self._solution(np.asarray(solution.col_value), np.asarray(solution.row_dual)[1:])


class ColdMaster(Master):
    """The same by `scipy.optimize.linprog`, from the start each time."""

    def __init__(self, scales: np.ndarray) -> None:
        """Start without columns."""
        super().__init__(scales)
        self._thresholds = np.zeros(len(scales) - 1)
        self._slack: tuple[float | None, float | None] = (0.0, 0.0)  # the bounds of t

    def add(self, values: np.ndarray) -> None:
        """Add a column: (f_j, g_j)."""
        self._values.append(values)

    def require(self, thresholds: np.ndarray) -> None:
        """From now on, these are the thresholds."""
        self._thresholds = thresholds

    def maximise_slack(self) -> None:
        """From now on, maximise t."""
        self._signal, self._slack = None, (None, None)

    def maximise_reward(self, relaxation: float, signal: int = 0) -> None:
        """From now on, maximise f (or g_{signal - 1}); slacks may be as low as `-relaxation`."""
        self._signal, self._slack = signal, (-relaxation, -relaxation)

    def solve(self) -> MasterSolution | None:
        """Solve from the start; None if the linear program could not be solved."""
        from scipy.optimize import linprog

        scales, values = self._scales, np.array(self._values).T  # [1 + I, columns]
        if self._signal is None:
            costs = np.insert(np.zeros(len(self._values)), 0, -1.0)
        else:
            costs = np.insert(-values[self._signal] / scales[self._signal], 0, 0.0)
        rows = np.column_stack([np.ones(len(scales) - 1), -values[1:]]) / scales[1:, None]
        found = linprog(
            costs,
            A_ub=rows,
            b_ub=-self._thresholds / scales[1:],
            A_eq=np.insert(np.ones(len(self._values)), 0, 0.0)[None],
            b_eq=[1.0],
            bounds=[self._slack, *[(0.0, None)] * len(self._values)],
            method="highs-ds",
            options={
                "presolve": False,
                "primal_feasibility_tolerance": _TOLERANCE,
                "dual_feasibility_tolerance": _TOLERANCE,
            },
        )
        return self._solution(found.x, -found.ineqlin.marginals) if found.success else None
