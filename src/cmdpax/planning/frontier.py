"""The frontier: what the threshold of one constraint costs.

With the other thresholds fixed, the optimum is a function of c_i alone,

    V*(c_i) = max_π V_r^π   subject to   V_{u_i}^π ≥ c_i and V_{u_j}^π ≥ c_j for j ≠ i
            = min_{λ ≥ 0} max_π V_{r + λᵀu}^π - λᵀc.

It is the value of a linear program as a function of its right-hand side: concave, piecewise linear,
nonincreasing, flat up to where the constraint begins to bind, and -∞ beyond the largest threshold
that can be met, max_π V_{u_i}^π subject to the others. Its slope is -λ_i, where it has one; at a
kink every slope between the two neighbours' is that of some optimal λ.

Neither a policy's values (V_r, V_u) nor the maximum over policies of V_{r + λᵀu} depends on c. So
the columns of one threshold serve all others, and each λ priced so far gives a bound at every
threshold: one `Generator` serves the whole frontier, and neighbouring points need few new columns,
or none.
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
from cmdpax.model.arrays import as_floats
from cmdpax.model.cmdp import CMDP
from cmdpax.model.validation import validate
from cmdpax.model.words import PLAIN, Words
from cmdpax.planning.column_generation import Generator
from cmdpax.planning.feasibility import loosest_threshold, maximise
from cmdpax.planning.master import Outcome
from cmdpax.planning.recovery import mix, mixture_values
from cmdpax.planning.solution import in_user_units

# Shares of the points that the default thresholds spend on the flat and on the infeasible part.
_FLAT_SHARE, _INFEASIBLE_SHARE = 0.15, 0.1
_FEWEST_POINTS = 4
MOST_POINTS = 100_000


class Frontier(NamedTuple):
    """Optima of a CMDP against the threshold of one constraint; NaN where it is infeasible.

    Thresholds and values are in the senses of the constraints.

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
            alone are infeasible. Where the sense is "at most", the smallest, or ∞.
        words: the names, units and senses of the model.
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
    words: Words = PLAIN

    def __str__(self) -> str:
        """A line for each threshold, in the words of the model."""
        words, signal = self.words, 1 + self.constraint
        sense = words.sense(self.constraint)
        lines = [f"{words.constraint(self.constraint)} {sense}, and the best {words.label()}"]
        for bound, value in zip(self.thresholds.tolist(), self.value.tolist(), strict=True):
            best = "infeasible" if math.isnan(value) else words.amount(value)
            lines.append(f"{words.amount(bound, signal)}: {best}")
        return "\n".join(lines)


@in_double_precision
def frontier(
    cmdp: CMDP,
    *,
    constraint: int | str = 0,
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
        constraint: i, from 0, or its name.
        thresholds: values of c_i, in any order and in its sense; None chooses `num_points` of them.
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
    constraint = _check(cmdp, constraint, num_points)
    tolerance = require_positive("tolerance", tolerance)
    max_columns = require_count("max_columns", max_columns)
    generator = Generator(cmdp, None, max_columns)
    start, width, largest_feasible = _ends(generator, cmdp, constraint, tolerance)
    words, horizon = cmdp.words, cmdp.horizon
    chosen = _spaced(start, width, num_points)
    if thresholds is not None:
        chosen = words.turn(_numbers(thresholds), horizon, constraint)
    elif words.sense(constraint) == "at most":
        chosen = chosen[::-1]  # ascending as users read them
    values = np.full((len(chosen), 1 + cmdp.num_constraints), np.nan)
    multipliers, gaps = np.full_like(values[:, 1:], np.nan), np.full(len(chosen), np.nan)
    still_open: list[float] = []
    for done, point in enumerate(np.argsort(chosen, kind="stable").tolist(), start=1):
        optimum = _optimum(generator, _with(cmdp, constraint, chosen[point]), tolerance, point)
        if optimum is not None:
            mixture = mix(generator.columns, optimum.weights)
            values[point], multipliers[point], gaps[point] = in_user_units(
                generator, mixture, optimum
            )
            if generator.is_open(optimum, tolerance):
                still_open.append(float(gaps[point]))
        if progress is not None:
            progress(done, len(chosen))
    if still_open:
        _warn(still_open, len(chosen), len(generator.columns), tolerance)
    return Frontier(
        thresholds=words.turn(chosen, horizon, constraint),
        value=values[:, 0],
        multipliers=multipliers,
        constraint_values=words.turn(values[:, 1:], horizon),
        gap=gaps,
        feasible=~np.isnan(values[:, 0]),
        constraint=constraint,
        num_columns=len(generator.columns),
        largest_feasible=float(words.turn(np.asarray(largest_feasible), horizon, constraint)),
        words=words,
    )


def _with(cmdp: CMDP, constraint: int, threshold: float) -> np.ndarray:
    thresholds = cmdp.thresholds.copy()
    thresholds[constraint] = threshold
    return thresholds


def _ends(
    generator: Generator, cmdp: CMDP, constraint: int, tolerance: float
) -> tuple[float, float, float]:
    """Where the interesting part starts, how wide it is, and the largest feasible threshold.

    It starts at V_{u_i} of the optimum without the constraint, and ends at the largest feasible
    threshold, or at max_π V_{u_i} if the others are infeasible. "Without the constraint" means
    with a threshold that every policy meets.
    """
    scaled, signal = generator.scaled, 1 + constraint
    magnitude = scaled.number(scaled.magnitudes[signal], signal)
    thresholds = _with(cmdp, constraint, loosest_threshold(generator, constraint))
    try:
        weights = maximise(generator, thresholds, tolerance, explain=False).weights
        start = mixture_values(mix(generator.columns, weights))[signal]
        end = maximise(generator, thresholds, tolerance, signal, explain=False).value
        largest_feasible = scaled.number(end, signal)
    except InfeasibleError:
        # The first columns maximise V_r and each V_{u_i}, whatever the thresholds are.
        reached = [column.signal_values[signal] for column in generator.columns]
        start, end, largest_feasible = reached[0], max(reached), -math.inf
    start, end = scaled.number(start, signal), scaled.number(end, signal)
    if end - start <= 1e-9 * magnitude:  # the constraint costs nothing wherever it can be met
        return end - magnitude, magnitude, largest_feasible
    return start, end - start, largest_feasible


def _spaced(start: float, width: float, num_points: int) -> np.ndarray:
    """The default thresholds, as `frontier` documents them.

    At the largest feasible threshold itself multipliers may be unbounded, hence half a step.
    """
    num_flat = math.ceil(_FLAT_SHARE * num_points)
    num_binding = num_points - num_flat - math.ceil(_INFEASIBLE_SHARE * num_points)
    step = width / (num_binding - 0.5)
    return start + step * (np.arange(num_points) - num_flat)


def _numbers(thresholds: npt.ArrayLike) -> np.ndarray:
    """The given thresholds as a new array."""
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


def _check(cmdp: CMDP, constraint: Any, num_points: Any) -> int:
    """The index of the constraint."""
    if not cmdp.num_constraints:
        raise ParameterError(
            "the CMDP has no constraints, hence no frontier; cmdpax.solve finds its optimum."
        )
    index = whole_number(constraint)
    if isinstance(constraint, str):
        index = cmdp.words.index_of("constraint", constraint, cmdp.num_constraints)
    elif index is None or not 0 <= index < cmdp.num_constraints:
        last = cmdp.num_constraints - 1
        allowed = f"a whole number from 0 to {last}" if last else "0, the only one"
        raise ParameterError(f"constraint is {shown(constraint)}, it must be {allowed}.")
    require_count("num_points", num_points, _FEWEST_POINTS, MOST_POINTS)
    assert index is not None
    return index


def _optimum(
    generator: Generator, thresholds: np.ndarray, tolerance: float, point: int
) -> Outcome | None:
    """The optimum at a point; None if it is infeasible, or cannot be told from infeasible."""
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


def _warn(still_open: list[float], num_points: int, num_columns: int, tolerance: float) -> None:
    """Say that points were left before their gap was closed."""
    warnings.warn(
        f"column generation stopped at gaps of up to {max(still_open):.2g} at "
        f"{len(still_open)} of {num_points} thresholds after {num_columns} "
        f"columns (asked for {tolerance:.2g}): give more max_columns.",
        CmdpaxWarning,
        stacklevel=4,  # past `frontier` and its double-precision context
    )
