"""The frontier: what the threshold of one constraint costs.

With the other thresholds fixed, the optimum is a function of c_i alone,

    V*(c_i) = max_π V_r^π   subject to   V_{u_i}^π ≥ c_i and V_{u_j}^π ≥ c_j for j ≠ i
            = min_{λ ≥ 0} max_π V_{r + λᵀu}^π - λᵀc.

It is the value of a linear program as a function of its right-hand side: concave, piecewise linear,
nonincreasing, flat up to where the constraint begins to bind, and -∞ beyond the largest threshold
that can be met, max_π V_{u_i}^π subject to the others. Its slope is -λ_i, where it has one; at a
kink every slope between the two neighbours' is that of some optimal λ.

Neither a policy's values (V_r, V_u) nor the maximum over policies of V_{r + λᵀu} depends on c. So
the columns of one threshold are columns of all, and each λ that was ever priced gives a bound at
every threshold: one `Generator` serves the whole frontier, and points beside each other need few
new columns, or none.
"""

import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cmdpax.checks import require_count, require_positive, whole_number
from cmdpax.errors import (
    CmdpaxWarning,
    InfeasibleError,
    ModelError,
    ParameterError,
    SolverError,
    shown,
)
from cmdpax.jax_context import in_double_precision
from cmdpax.model.cmdp import CMDP, as_floats
from cmdpax.model.validation import validate
from cmdpax.planning.column_generation import Generator, Outcome
from cmdpax.planning.feasibility import maximise
from cmdpax.planning.recovery import Mixture
from cmdpax.planning.solution import in_user_units

# Shares of the points that the default thresholds spend on the flat and on the infeasible part.
_FLAT_SHARE, _INFEASIBLE_SHARE = 0.15, 0.1
_FEWEST_POINTS = 4
MOST_POINTS = 100_000


class Frontier(NamedTuple):
    """Optima of a CMDP against the threshold of one constraint; NaN where it is infeasible.

    Attributes:
        thresholds: the values of c_i, `[T]`, in the order asked for.
        value: V_r^{π*} at each, `[T]`.
        multipliers: λ*, `[T, I]`; that of the constraint is minus the slope of `value`.
        constraint_values: V_u^{π*}, `[T, I]`.
        gap: the certified gap, `[T]`: no policy that meets the thresholds is worth more than
            `value + gap`.
        feasible: whether some policy meets all thresholds, `[T]`.
        constraint: i.
        num_columns: policies that column generation used, in all.
        largest_feasible: the largest c_i that can be met, given the other thresholds; -∞ if those
            alone are infeasible.
    """

    thresholds: np.ndarray
    value: np.ndarray
    multipliers: np.ndarray
    constraint_values: np.ndarray
    gap: np.ndarray
    feasible: np.ndarray
    constraint: int
    num_columns: int
    largest_feasible: float


@in_double_precision
def frontier(
    cmdp: CMDP,
    *,
    constraint: int = 0,
    thresholds: npt.ArrayLike | None = None,
    num_points: int = 20,
    tolerance: float = 1e-10,
    max_columns: int = 10_000,
    progress: Callable[[int, int], None] | None = None,
) -> Frontier:
    """Optimal value and multipliers against the threshold of one constraint.

    Each point is what `cmdpax.solve` finds at that threshold, the others being those of the model,
    with the same certificate. Columns are shared, so that points cost less than solves.

    By default the thresholds are evenly spaced. The interesting part lies between what the optimum
    without the constraint reaches, which is one of them, and the largest feasible one, which lies
    half-way between two; 15 % of the points are below it, where the value is flat, and 10 % above
    it, where nothing is feasible (both rounded up).

    Args:
        cmdp: the model; any finite rewards.
        constraint: i, from 0.
        thresholds: values of c_i, in any order; None chooses `num_points` of them.
        num_points: how many to choose, 4 at least.
        tolerance: the gap at which a point is solved, as for `cmdpax.solve`.
        max_columns: points also stop at this many columns in all, once some mixture of them is
            feasible; `gap` then tells how far they came.
        progress: called with the number of points done and of all points.

    Examples:
        >>> import cmdpax
        >>> found = cmdpax.frontier(
        ...     cmdpax.environments.make("bandit"), thresholds=[0.0, 0.5, 0.7, 1.0])
        >>> found.value.round(6).tolist()
        [1.0, 0.6, 0.4, nan]
        >>> found.multipliers[:, 0].round(6).tolist(), found.feasible.tolist()
        ([0.0, 1.0, 1.0, nan], [True, True, True, False])
        >>> round(found.largest_feasible, 6)
        0.9
    """
    validate(cmdp)
    _check(cmdp, constraint, num_points)
    tolerance = require_positive("tolerance", tolerance)
    max_columns = require_count("max_columns", max_columns)
    generator = Generator(cmdp, None, max_columns)
    ends = _ends(generator, cmdp, constraint, tolerance)
    chosen = _default_thresholds(ends, num_points) if thresholds is None else _numbers(thresholds)
    found = _empty(chosen, cmdp.num_constraints, constraint, ends.largest_feasible)
    still_open: list[float] = []
    for done, point in enumerate(np.argsort(chosen, kind="stable"), start=1):
        optimum = _optimum(generator, _with(cmdp, constraint, chosen[point]), tolerance, int(point))
        if optimum is not None:
            _write(found, point, generator, optimum)
            if generator.is_open(optimum, tolerance):
                still_open.append(float(found.gap[point]))
        if progress is not None:
            progress(done, len(chosen))
    found = found._replace(num_columns=len(generator.columns))
    _warn(found, still_open, tolerance)
    return found


def _write(found: Frontier, point: np.intp, generator: Generator, optimum: Outcome) -> None:
    """Write an optimum into its place."""
    mixture = Mixture.of(generator.columns, optimum.master.weights)
    numbers = in_user_units(generator, mixture, optimum)
    found.value[point] = numbers.value
    found.constraint_values[point] = numbers.constraint_values
    found.multipliers[point] = numbers.multipliers
    found.gap[point] = numbers.gap
    found.feasible[point] = True


def _empty(
    thresholds: np.ndarray, num_constraints: int, constraint: int, largest_feasible: float
) -> Frontier:
    """Nothing is feasible yet."""
    size = len(thresholds)
    return Frontier(
        thresholds,
        value=np.full(size, np.nan),
        multipliers=np.full((size, num_constraints), np.nan),
        constraint_values=np.full((size, num_constraints), np.nan),
        gap=np.full(size, np.nan),
        feasible=np.zeros(size, dtype=bool),
        constraint=int(constraint),
        num_columns=0,
        largest_feasible=largest_feasible,
    )


def _with(cmdp: CMDP, constraint: int, threshold: float) -> np.ndarray:
    thresholds = cmdp.thresholds.copy()
    thresholds[constraint] = threshold
    return thresholds


class _Ends(NamedTuple):
    """Where the interesting part of the frontier begins and ends."""

    binding: float  # V_{u_i} of the optimum without the constraint
    highest: float  # the largest feasible threshold, or max_π V_{u_i} if the others are infeasible
    largest_feasible: float
    scale: float  # the magnitude of u_i


def _ends(generator: Generator, cmdp: CMDP, constraint: int, tolerance: float) -> _Ends:
    """Maximise V_r, then V_{u_i}, with a threshold of the constraint that every policy meets."""
    scaled, signal = generator.scaled, 1 + constraint
    magnitude = scaled.number(scaled.magnitudes[signal], signal)
    thresholds = _with(cmdp, constraint, -2 * scaled.limit * magnitude)
    try:
        weights = maximise(generator, thresholds, tolerance, explain=False).master.weights
        binding = Mixture.of(generator.columns, weights).signal_values[signal]
        highest = maximise(generator, thresholds, tolerance, signal, explain=False).master.value
        largest_feasible = scaled.number(highest, signal)
    except InfeasibleError:
        # The first columns maximise V_r and each V_{u_i}, whatever the thresholds are.
        reached = [column.signal_values[signal] for column in generator.columns]
        binding, highest, largest_feasible = reached[0], max(reached), -math.inf
    binding, highest = scaled.number(binding, signal), scaled.number(highest, signal)
    return _Ends(binding, highest, largest_feasible, magnitude)


def _default_thresholds(ends: _Ends, num_points: int) -> np.ndarray:
    """The rule that `frontier` documents.

    At the largest feasible threshold itself multipliers may be unbounded, hence half a step.
    """
    num_flat = math.ceil(_FLAT_SHARE * num_points)
    num_binding = num_points - num_flat - math.ceil(_INFEASIBLE_SHARE * num_points)
    width = ends.highest - ends.binding
    if width <= 1e-9 * ends.scale:  # the constraint costs nothing wherever it can be met
        width = ends.scale
        start = ends.highest - width
    else:
        start = ends.binding
    step = width / (num_binding - 0.5)
    return start + step * (np.arange(num_points) - num_flat)


def _numbers(thresholds: npt.ArrayLike) -> np.ndarray:
    """The thresholds that were given, as an array of the caller's own."""
    sentence = (
        f"thresholds is {shown(thresholds)}, it must be a list of numbers such as [0.5, 1.0]."
    )
    try:
        numbers = as_floats("thresholds", thresholds, copy=True)
    except ModelError:
        raise ParameterError(sentence) from None
    if numbers.ndim != 1 or not len(numbers):
        raise ParameterError(sentence)
    if not np.isfinite(numbers).all():
        wrong = int(np.argmin(np.isfinite(numbers)))
        raise ParameterError(
            f"thresholds[{wrong}] is {numbers[wrong]}; every threshold must be a finite number."
        )
    return numbers


def _check(cmdp: CMDP, constraint: Any, num_points: Any) -> None:
    if not cmdp.num_constraints:
        raise ParameterError(
            "the CMDP has no constraints, hence no frontier; cmdpax.solve finds its optimum."
        )
    index = whole_number(constraint)
    if index is None or not 0 <= index < cmdp.num_constraints:
        last = cmdp.num_constraints - 1
        allowed = f"a whole number from 0 to {last}" if last else "0, the only one"
        raise ParameterError(f"constraint is {shown(constraint)}, it must be {allowed}.")
    require_count("num_points", num_points, _FEWEST_POINTS, MOST_POINTS)


def _optimum(
    generator: Generator, thresholds: np.ndarray, tolerance: float, point: int
) -> Outcome | None:
    """The optimum at a point; None where nothing is feasible, as far as one can tell."""
    try:
        return maximise(generator, thresholds, tolerance, explain=False)
    except InfeasibleError:
        return None
    except SolverError as undecided:
        warnings.warn(
            f"thresholds[{point}] counts as infeasible: {undecided}",
            CmdpaxWarning,
            stacklevel=4,  # past `frontier` and its double-precision context
        )
        return None


def _warn(found: Frontier, still_open: list[float], tolerance: float) -> None:
    """Say so if points were left before their gap was closed."""
    if still_open:
        warnings.warn(
            f"column generation stopped at gaps of up to {max(still_open):.2g} at "
            f"{len(still_open)} of {len(found.thresholds)} thresholds after {found.num_columns} "
            f"columns (asked for {tolerance:.2g}): give more max_columns.",
            CmdpaxWarning,
            stacklevel=4,  # past `frontier` and its double-precision context
        )
