"""Whether some policy meets all thresholds, by how much, and the optimum where one does.

Feasibility is judged in each constraint's own scale, max |u_i|: a model is infeasible if every
policy misses some threshold by more than 1e-9 of that constraint's scale. So a constraint in
micrograms is not hidden by one in tons. The Slater gap is reported in the user's units,

    Ξ = max_π min_i (V_{u_i}^π - c_i).

Where there is no slack, values that differ by rounding alone would decide which policies are
feasible. The thresholds are then relaxed by what is missing and a little more than rounding, never
by more than the 1e-9 of scale that feasibility allows.
"""

import math
from typing import NamedTuple

import numpy as np

from cmdpax.errors import InfeasibleError, SolverError
from cmdpax.model.cmdp import CMDP
from cmdpax.planning.column_generation import Generator
from cmdpax.planning.master import Outcome

TOLERANCE = 1e-9
"""How far a policy may miss a threshold, relative to the scale of its constraint."""

SENSITIVE = 1e-3
"""Of scale: rounding that changes the optimum by more decides about it."""

SLACK_TOLERANCE = 1e-13
"""The gap at which a worst slack is the largest, relative to scale."""

_ROUNDING = 2.0**-51  # of values, per unit of horizon
_MOST_ROUNDING = 1e-10
_MOST_STEPS = 100


class SlaterGap(NamedTuple):
    """Ξ = max_π min_i (V_{u_i}^π - c_i), and the constraint that limits it."""

    gap: float
    constraint: int


def negligible_slack(horizon: int, cautious: bool = False) -> float:
    """Slack, relative to scale, below which rounding might decide what is feasible.

    Usually little suffices. More is safer, and costs λ times as much.
    """
    return min(2 * _ROUNDING * horizon**1.5, _MOST_ROUNDING) if cautious else _ROUNDING * horizon


def raise_slack(generator: Generator, thresholds: np.ndarray, goal: float) -> Outcome:
    """The largest slack relative to the scales of the constraints, or one that reaches the goal."""
    scaled = generator.scaled
    clipped, scales = scaled.clipped(thresholds), scaled.magnitudes[1:]
    return generator.maximise_slack(clipped, scales, SLACK_TOLERANCE, goal)


def maximise(
    generator: Generator,
    thresholds: np.ndarray,
    tolerance: float,
    signal: int = 0,
    explain: bool = True,
) -> Outcome:
    """Maximise V_r at the thresholds, or V_{u_i} for signal 1 + i.

    Args:
        generator: the columns so far.
        thresholds: c, in the user's units.
        tolerance: the gap at which to stop, relative to the scale of the signal.
        signal: what is maximised.
        explain: whether an `InfeasibleError` needs the Slater gap, which takes time.

    Raises:
        InfeasibleError: no policy meets the thresholds.
        SolverError: the search stalled before that was decided.
    """
    scales = generator.scaled.magnitudes
    horizon = generator.scaled.cmdp.horizon
    for cautious in (False, True):
        goal = negligible_slack(horizon, cautious)
        relaxation = _require_feasible(generator, thresholds, goal, explain)
        found = generator.maximise_signal(tolerance * scales[signal], relaxation, signal)
        effect = found.multipliers @ scales[1:] * negligible_slack(horizon, cautious=True)
        closed = not relaxation or not generator.is_open(found, tolerance)
        if closed and effect <= SENSITIVE * scales[signal]:
            break
    return found


def _require_feasible(
    generator: Generator, thresholds: np.ndarray, goal: float, explain: bool
) -> float:
    """How much to relax the thresholds, relative to scale; 0 if the slack reaches the goal."""
    if not len(thresholds):
        return 0.0
    slack = raise_slack(generator, thresholds, goal)
    largest = slack.value
    if largest >= goal:
        return 0.0
    if largest >= -TOLERANCE:
        return float(min(goal - largest, TOLERANCE))
    if slack.bound + slack.error >= -TOLERANCE:
        slack = generator.sharpen(slack)
    if slack.bound + slack.error < -TOLERANCE:
        raise InfeasibleError(
            *(slater_gap_of(generator, thresholds) if explain else SlaterGap(slack.bound, 0))
        )
    # With many steps, rounding alone may exceed the tolerance.
    if slack.gap <= slack.error + goal:
        return float(goal - largest)
    raise SolverError(
        f"cannot tell whether the CMDP is feasible: relative to the scales of the constraints its "
        f"largest slack is between {largest:.3g} and {slack.bound:.3g}, and column generation "
        "makes no more progress; relax the thresholds a little."
    )


def slater_gap_of(generator: Generator, thresholds: np.ndarray) -> SlaterGap:
    """Ξ in the user's units: the slack of a mixture, if the best bound confirms it.

    Ξ is the root t of F(t) = max_π min_i (V_{u_i}^π - c_i - e_i t) / s_i, where e_i is the user's
    unit in the scaled units of constraint i. F is concave, decreasing and piecewise linear, so
    Newton's method ends. Each step solves one program in the scales of the constraints, whatever
    the user's units, which may be 1e16 apart.
    """
    scaled, scales = generator.scaled, generator.scaled.magnitudes[1:]
    smallest, units = scaled.smallest_units()
    wanted = scaled.thresholds(thresholds)
    gap = float(((scaled.limit - wanted) / units).min())  # an upper bound
    for _ in range(_MOST_STEPS):
        found = generator.maximise_slack(wanted + units * gap, scales, SLACK_TOLERANCE, goal=np.inf)
        share = found.multipliers * units
        lower = gap + min(found.bound, 0.0) / share.sum()
        met = not lower < gap or found.bound >= -_ROUNDING * scaled.limit
        gap = min(gap, lower)
        if met:
            break
    weights = found.weights
    columns = np.array([column.signal_values[1:] for column in generator.columns[: len(weights)]])
    reached = float(((weights @ columns - wanted) / units).min())
    if (gap - reached) * share.sum() <= SLACK_TOLERANCE * scaled.limit:
        gap = reached  # rounder numbers
    return SlaterGap(float(np.ldexp(gap, smallest)) + 0.0, int(share.argmax()))  # no -0.0


def advise(generator: Generator, cmdp: CMDP, missed: SlaterGap) -> InfeasibleError:
    """The error of an infeasible model, with what to change in the words of its users."""
    index, words, horizon = missed.constraint, cmdp.words, cmdp.horizon
    name, most = words.constraint(index), words.sense(index) == "at most"
    bound = float(cmdp.bounds[index])
    best = _best_of(generator, cmdp.thresholds, index)
    if best is None:
        together = "every threshold" if words.senses is None else "every limit"
        advice = f"and relaxing {name} alone is not enough; relax {together} by that much"
        return InfeasibleError(*missed, advice)
    reached = float(words.turn(np.asarray(best), horizon, index))
    change = words.amount(_rounded_up(abs(reached - bound)), 1 + index)
    fix = (
        f"raise its limit by {change}"
        if most
        else f"lower thresholds[{index}] by {change}"
        if words.constraint_names is None
        else f"lower its threshold by {change}"
    )
    others = ", the others being met" if cmdp.num_constraints > 1 else ""
    advice = (
        f"{name} being the worst: it must be {words.sense(index)} "
        f"{words.amount(bound, 1 + index)}, and {words.amount(reached, 1 + index)} is the "
        f"{'least' if most else 'most'} that can be reached{others}; {fix}"
    )
    return InfeasibleError(*missed, advice)


def _rounded_up(number: float) -> float:
    """Six digits that are enough: whoever changes a threshold by as much can meet it."""
    nearest = float(f"{number:.6g}")
    if nearest >= number * (1 - 1e-12):  # what is missing then is rounding
        return nearest
    return nearest + 10.0 ** (math.floor(math.log10(number)) - 5)


def _best_of(generator: Generator, thresholds: np.ndarray, index: int) -> float | None:
    """max_π V_{u_i} where the other thresholds are met; None where they cannot be."""
    scaled, signal = generator.scaled, 1 + index
    thresholds = thresholds.copy()
    thresholds[index] = loosest_threshold(generator, index)
    try:
        found = maximise(generator, thresholds, SLACK_TOLERANCE, signal, explain=False)
    except (InfeasibleError, SolverError):
        return None
    return scaled.number(found.value, signal)


def loosest_threshold(generator: Generator, index: int) -> float:
    """A threshold that every policy meets, in the user's units: as good as no constraint."""
    scaled, signal = generator.scaled, 1 + index
    return -2 * scaled.limit * scaled.number(scaled.magnitudes[signal], signal)
