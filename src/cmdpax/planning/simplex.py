"""Primal simplex for linear programs with a handful of rows, in extended precision.

It maximises gainsᵀx subject to `columns` x = `right` and x ≥ 0 (one variable may be free), from a
feasible basis. Planning has few rows, one per constraint and one more, but they are demanding:
policies whose values differ by rounding alone, and constraints without slack, make bases that are
singular in double precision. Solvers made for a million rows give up there. A few rows can afford
NumPy's `longdouble` (64 bits of mantissa on x86-64) and an explicit inverse.

Every basis on the way is feasible, so stopping anywhere leaves a solution.
"""

import numpy as np

Extended = np.longdouble
_EPSILON = float(np.finfo(Extended).eps)
_SLIP = 1e-16  # how far below 0 a variable may go
_PIVOT = 1e-15  # entries of a direction that are rounding, relative to its largest
_MOST_PIVOTS = 2_000
_PATIENCE = 20  # pivots without gain after which Bland's rule forbids cycles
_SAFE_PIVOT = 1e-3  # below it, relative to the direction, an update would lose digits
_REFINEMENTS = 2
_NEAR = 1e-7  # the error of an inverse that two refinements remove
_REFRESH = 10  # pivots after which the inverse is computed afresh


Vertex = tuple[np.ndarray, np.ndarray, np.ndarray]
"""A basis, the values of its variables, and the duals of the rows."""


def invert(matrix: np.ndarray) -> np.ndarray | None:
    """An inverse that is good enough to be refined; None if the matrix is singular."""
    try:
        quick = np.linalg.inv(matrix.astype(float)).astype(Extended)
    except np.linalg.LinAlgError:
        return eliminate(matrix)
    return quick if _inverts(quick, matrix) else eliminate(matrix)


def _inverts(inverse: np.ndarray, matrix: np.ndarray) -> bool:
    """Whether refinement with the inverse converges fast."""
    error = inverse @ matrix
    error.flat[:: len(matrix) + 1] -= 1.0
    return bool(np.abs(error).max() <= _NEAR)


def eliminate(matrix: np.ndarray) -> np.ndarray | None:
    """The inverse in extended precision, by Gauss-Jordan elimination with row exchanges."""
    size = len(matrix)
    table = np.concatenate([matrix.astype(Extended), np.eye(size, dtype=Extended)], axis=1)
    for column in range(size):
        row = column + int(np.abs(table[column:, column]).argmax())
        pivot = table[row, column]
        if abs(pivot) <= _EPSILON:
            return None
        table[[column, row]] = table[[row, column]]
        table[column] /= pivot
        factors = table[:, column].copy()
        factors[column] = 0.0
        table -= factors[:, None] * table[column]
    return table[:, size:]


def maximise(
    columns: np.ndarray,
    right: np.ndarray,
    gains: np.ndarray,
    basis: np.ndarray,
    free: int | None = None,
    noise: float = 0.0,
) -> Vertex | None:
    """Go from the basis to the best vertex; None if the basis is singular.

    Args:
        columns: `[m, n]`, extended precision.
        right: `[m]`.
        gains: `[n]`.
        basis: m variables with `columns[:, basis]` x = `right` for some x ≥ 0.
        free: a variable of the basis that may be negative; it stays in the basis.
        noise: the errors of gains and columns; smaller improvements do not count.
    """
    basis, matrix, idle = basis.copy(), columns[:, basis], 0
    inverse, fresh = invert(matrix), True
    for pivots in range(_MOST_PIVOTS):
        if inverse is None:
            return None
        duals = _solve(inverse.T, matrix.T, gains[basis])
        reduced = (gains - duals @ columns).astype(float)
        reduced[basis] = 0.0
        size = 1.0 + float(np.abs(duals[1:]).sum())
        entering = _entering(reduced, (noise + 64 * _EPSILON) * size, idle > _PATIENCE)
        leaving = None
        if entering is None:
            point = _solve(inverse, matrix, right)
        else:
            both = np.stack([right, columns[:, entering]], axis=1)
            point, direction = _solve(inverse, matrix, both).T
            leaving = _leaving(point, direction, basis, free, idle > _PATIENCE)
        if entering is None or leaving is None:
            if fresh or _inverts(inverse, matrix):
                return basis, point, duals
            # What looks like the end may be due to an inverse worn by updates.
            inverse, fresh = invert(matrix), True
            continue
        step = max(float(point[leaving]), 0.0) / float(direction[leaving])
        idle = idle + 1 if step * reduced[entering] <= noise else 0
        basis[leaving], matrix = entering, matrix.copy()
        matrix[:, leaving] = columns[:, entering]
        small = abs(direction[leaving]) < _SAFE_PIVOT * np.abs(direction).max()
        fresh = bool(small) or pivots % _REFRESH == _REFRESH - 1
        inverse = invert(matrix) if fresh else _exchange(inverse, direction, leaving)
    if inverse is None:
        return None
    duals = _solve(inverse.T, matrix.T, gains[basis])
    return basis, _solve(inverse, matrix, right), duals


def _solve(inverse: np.ndarray, matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """`matrix` x = `right`, refined: an inverse of large entries leaves large residuals."""
    result = inverse @ right
    for _ in range(_REFINEMENTS):
        result = result + inverse @ (right - matrix @ result)
    return result


def _entering(reduced: np.ndarray, tolerance: float, lowest: bool) -> int | None:
    """The variable that gains most per unit, or the lowest one that gains (Bland)."""
    improving = reduced > tolerance
    if not improving.any():
        return None
    return int(improving.argmax() if lowest else reduced.argmax())


def _leaving(
    point: np.ndarray, direction: np.ndarray, basis: np.ndarray, free: int | None, lowest: bool
) -> int | None:
    """The row whose variable first becomes 0; among several, the one with the largest pivot.

    Rows tie if a small slip would let them pass (Harris, 1973): at degenerate vertices the pivot
    of the very first row may be rounding.
    """
    shrinking = direction > _PIVOT * np.abs(direction).max()
    if free is not None:
        shrinking &= basis != free
    rows = np.flatnonzero(shrinking)
    if not rows.size:
        return None
    room = np.maximum(point[rows], 0.0)
    furthest = ((room + _SLIP) / direction[rows]).min()
    first = rows[room / direction[rows] <= furthest]
    return int(first[basis[first].argmin()] if lowest else first[direction[first].argmax()])


def _exchange(inverse: np.ndarray, direction: np.ndarray, leaving: int) -> np.ndarray:
    """The inverse of the basis in which the entering column stands in row `leaving`."""
    row = inverse[leaving] / direction[leaving]
    updated = inverse - direction[:, None] * row
    updated[leaving] = row
    return updated
