"""The master problem of column generation: the best mixture of the columns so far.

Column j is a policy with values f_j = V_r and g_{ij} = V_{u_i}. Over mixture weights w ≥ 0 with
Σ_j w_j = 1 it maximises either the smallest slack in given units e_i,

    max t        subject to   Σ_j w_j g_{ij} - s_i - e_i t = c_i,   s ≥ 0,   t free,

or f (or one of the g) where that is not negative,

    max Σ_j w_j f_j   subject to the same and t ≥ 0.

Both are one linear program with I + 1 rows. Any single column together with t is a feasible basis
of the first, and the optimal basis of the first is feasible for the second (t is then one more
surplus), so no basis has to be searched for. New columns leave a basis feasible, and simplex
continues from there.

Columns may differ by rounding alone, and so may the vertices between them. A basis that proves
useless is discarded; then ever larger improvements count as rounding, and finally the last mixture
stays.
"""

from typing import NamedTuple

import numpy as np

from cmdpax.planning.simplex import Extended, Vertex, maximise

_NEGATIVE = 1e-12  # a weight or surplus below minus this is not rounding
_NOISES = np.array([1.0, 1e2, 1e4, 1e6])  # of values, tried one after the other
_MISSED = 1e-12  # per unit of horizon: a mixture that misses a row by more is rejected


class Outcome(NamedTuple):
    """Optimum of the master problem over the columns so far, and what pricing adds to it.

    Attributes:
        value: Σ_j w_j f_j, or that of a g_i, or t.
        weights: w, one per column.
        duals: λ ≥ 0 of the slack rows (Σ_i e_i λ_i = 1 when t is maximised).
        clean: whether it is a vertex; columns that are nearly alike may prevent that.
        bound: the best dual bound.
        error: how far rounding may have lowered it.
        multipliers: the λ of that bound.
    """

    value: float
    weights: np.ndarray
    duals: np.ndarray
    clean: bool = True
    bound: float = np.inf
    error: float = 0.0
    multipliers: np.ndarray = np.zeros(0)

    @property
    def gap(self) -> float:
        """The bound minus the mixture's value, as computed."""
        return self.bound - self.value


class Master:
    """The master problem; columns are only ever added, thresholds may change.

    Variable 0 is t, 1 … I are the surpluses s, and the columns follow.

    Attributes:
        thresholds: c, `[I]`.
        units: e, `[I]`.
    """

    def __init__(self, num_constraints: int, size: float, noise: float) -> None:
        """Start without columns; `size` bounds values, and `noise` is their rounding."""
        self._num_rows = 1 + num_constraints
        self._noise = noise
        self._missed = _MISSED * size
        self._values = np.zeros((0, self._num_rows))  # (f_j, g_j)
        self.thresholds, self.units = np.zeros(num_constraints), np.ones(num_constraints)
        self._matrix = np.zeros((self._num_rows, self._num_rows), dtype=Extended)
        self._matrix[1:, 1:] = -np.eye(num_constraints)
        self._signal: int | None = None  # what is maximised: t, f or one of the g
        self._basis: np.ndarray | None = None
        self._last: Outcome | None = None

    def add(self, values: np.ndarray) -> None:
        """Add columns: rows (f_j, g_j)."""
        self._values = np.concatenate([self._values, values])
        new = values.T.astype(Extended)
        new[0] = 1.0
        self._matrix = np.concatenate([self._matrix, new], axis=1)

    def maximise_slack(self, thresholds: np.ndarray, units: np.ndarray) -> None:
        """From now on, maximise t."""
        self._signal, self._basis, self._last = None, None, None
        self.thresholds, self.units = thresholds, units
        self._matrix[1:, 0] = -units

    def maximise_signal(self, signal: int, thresholds: np.ndarray) -> None:
        """From now on, maximise f (or g_{signal - 1}); some mixture meets the thresholds."""
        self._signal, self.thresholds = signal, thresholds

    def solve(self) -> Outcome:
        """The best mixture, and the multipliers that the rows have there."""
        found = self._optimise(self._basis, self._noise)
        for noise in self._noise * _NOISES:
            if found is not None and found.clean:
                break
            again = self._optimise(self._first_basis(noise), noise)
            found = max(found, again, key=lambda one: -np.inf if one is None else one.value)
        self._last = self.stay() if found is None else found
        return self._last

    def other_multipliers(self) -> np.ndarray | None:
        """Duals by HiGHS, min over λ ≥ 0 of max_j (f_j + λᵀ(g_j - c)); None if it finds none.

        Where vertices coincide, simplex may end at duals that yield neither a new column nor a
        good bound; another algorithm ends at others.
        """
        try:
            from scipy.optimize import linprog
        except ModuleNotFoundError:  # the certificate will say how far it came
            return None
        slacks = self._values[:, 1:] - self.thresholds
        gains = np.zeros(len(slacks)) if self._signal is None else self._values[:, self._signal]
        rows = np.column_stack([slacks, -np.ones(len(slacks))])  # λ and the maximum
        costs = np.append(np.zeros(self._num_rows - 1), 1.0)
        bounds = [(0, None)] * (self._num_rows - 1) + [(None, None)]
        options = {"presolve": False}  # it may crash; see `linear_program`
        found = linprog(
            costs, A_ub=rows, b_ub=-gains, bounds=bounds, method="highs", options=options
        )
        return np.maximum(found.x[:-1], 0.0) if found.status == 0 else None

    def stay(self) -> Outcome:
        """The last mixture, or else the column with the most slack, without a simplex step."""
        weights = np.zeros(len(self._values))
        duals = np.zeros(self._num_rows - 1)
        if self._last is not None:
            weights[: len(self._last.weights)] = self._last.weights
            duals = self._last.duals
        else:
            weights[self._safest_column()] = 1.0
        if self._signal is None and not duals.any():
            duals = duals + 1.0 / self.units.sum()
        return Outcome(self._value(weights), weights, duals)

    def _slacks(self, values: np.ndarray) -> np.ndarray:
        """By how much values (f, g) exceed the thresholds, in the units, `[…, I]`."""
        return (values[..., 1:] - self.thresholds) / self.units

    def _safest_column(self) -> int:
        """The column whose smallest slack is largest."""
        return int(self._slacks(self._values).min(axis=1, initial=np.inf).argmax())

    def _first_basis(self, noise: float) -> np.ndarray | None:
        """One column, t, and the surpluses of all rows but the tightest.

        Where t has to be at least 0, it is raised first.
        """
        if self._num_rows == 1:
            gains = np.zeros(len(self._values)) if self._signal is None else self._values[:, 0]
            return np.array([1 + int(gains.argmax())])
        column = self._safest_column()
        slacks = self._slacks(self._values[column])
        surpluses = 1 + np.arange(self._num_rows - 1)
        basis = np.insert(np.delete(surpluses, slacks.argmin()), 0, 0)
        basis = np.append(basis, self._num_rows + column)
        if self._signal is None or slacks.min() >= 0:
            return basis
        raised = self._simplex(None, basis, noise)
        if raised is None:
            return None
        basis, _, _ = raised
        return basis

    def _simplex(self, signal: int | None, basis: np.ndarray, noise: float) -> Vertex | None:
        """From a basis to the vertex that maximises a signal, or t."""
        right = np.ones(self._num_rows, dtype=Extended)
        right[1:] = self.thresholds
        gains = np.zeros(self._matrix.shape[1], dtype=Extended)
        if signal is None:
            gains[0] = 1.0
        else:
            gains[self._num_rows :] = self._values[:, signal]
        free = 0 if signal is None and self._num_rows > 1 else None
        return maximise(self._matrix, right, gains, basis, free, noise)

    def _optimise(self, basis: np.ndarray | None, noise: float) -> Outcome | None:
        """The optimum from a basis; None without one, and if the mixture misses a row."""
        vertex = None if basis is None else self._simplex(self._signal, basis, noise)
        if vertex is None:
            return None
        basis, point, duals = vertex
        weights = self._weights_of(basis, point)
        if weights is None:
            return None
        if self._num_rows > 1 and self._signal is not None:
            missed = self.thresholds - weights @ self._values[:, 1:]
            if missed.max() > self._missed:
                return None
        self._basis = basis
        duals = np.maximum(-duals[1:].astype(float), 0.0)
        if self._signal is None and duals.any():
            duals = duals / (self.units @ duals)
        clean = bool((point[basis != 0] >= -_NEGATIVE).all())
        return Outcome(self._value(weights), weights, duals, clean)

    def _weights_of(self, basis: np.ndarray, point: np.ndarray) -> np.ndarray | None:
        weights = np.zeros(len(self._values), dtype=Extended)
        used = basis >= self._num_rows
        weights[basis[used] - self._num_rows] = np.maximum(point[used], 0.0)
        total = weights.sum()
        if not abs(total - 1.0) <= 1e-6:  # also if it is NaN
            return None
        return (weights / total).astype(float)

    def _value(self, weights: np.ndarray) -> float:
        values = weights @ self._values
        if self._signal is not None:
            return float(values[self._signal])
        return float(self._slacks(values).min())
