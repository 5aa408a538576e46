"""Whether some policy meets all thresholds, by how much, and the optimum where one does.

Feasibility is judged in each constraint's own scale, max |u_i|: a model is infeasible if every
policy misses some threshold by more than 1e-9 of that constraint's scale. So a constraint in
micrograms is not hidden by one in tons. The Slater gap is reported in the user's units,

    Ξ = max_π min_i (V_{u_i}^π - c_i).

Where there is no slack, values that differ by rounding alone would decide which policies are
feasible. The thresholds are then relaxed by what is missing and a little more than rounding, never
by more than the 1e-9 of scale that feasibility allows.
"""

from typing import NamedTuple

import numpy as np

from cmdpax.errors import InfeasibleError, SolverError
from cmdpax.planning.column_generation import Generator, Outcome

TOLERANCE = 1e-9
"""What a policy may lack of a threshold, relative to the scale of its constraint."""

_SLACK_TOLERANCE = 1e-13
_ROUNDING = 2.0**-47  # slack, per squared horizon, in which rounding does not decide
_MOST_SLACK = 1e-10


class SlaterGap(NamedTuple):
    """Ξ = max_π min_i (V_{u_i}^π - c_i), and the constraint that limits it."""

    gap: float
    constraint: int


def maximise(
    generator: Generator, thresholds: np.ndarray, tolerance: float, signal: int = 0
) -> Outcome:
    """The optimum at the thresholds: of V_r, or of V_{u_i} for signal 1 + i.

    Args:
        generator: the columns so far.
        thresholds: c, in the user's units.
        tolerance: the gap at which to stop, relative to the scale of the signal.
        signal: what is maximised.

    Raises:
        InfeasibleError: no policy meets the thresholds.
        SolverError: the search stalled before that was decided.
    """
    relaxation = _require_feasible(generator, thresholds)
    tolerance = tolerance * generator.scaled.magnitudes[signal]
    return generator.maximise_signal(tolerance, relaxation, signal)


def _require_feasible(generator: Generator, thresholds: np.ndarray) -> float:
    """By how much to relax the thresholds, relative to scale; 0 where there is slack."""
    cmdp, scales = generator.scaled.cmdp, generator.scaled.magnitudes[1:]
    if not cmdp.num_constraints:
        return 0.0
    goal = min(_ROUNDING * cmdp.horizon**2, _MOST_SLACK)
    clipped = generator.scaled.clipped(thresholds)
    slack = generator.maximise_slack(clipped, scales, _SLACK_TOLERANCE, goal)
    if slack.master.value >= goal:
        return 0.0
    if slack.master.value >= -TOLERANCE:
        return float(min(goal - slack.master.value, TOLERANCE))
    if slack.bound <= -TOLERANCE or slack.gap <= TOLERANCE:
        raise InfeasibleError(*slater_gap_of(generator, thresholds))
    raise SolverError(
        f"cannot tell whether the CMDP is feasible: relative to the scales of the constraints its "
        f"largest slack is between {slack.master.value:.3g} and {slack.bound:.3g}, and column "
        "generation makes no more progress; relax the thresholds a little."
    )


def slater_gap_of(generator: Generator, thresholds: np.ndarray) -> SlaterGap:
    """Ξ in the user's units."""
    scaled = generator.scaled
    smallest, units = scaled.smallest_units()
    found = generator.maximise_slack(
        scaled.thresholds(thresholds), units, _SLACK_TOLERANCE, goal=np.inf
    )
    limiting = int(np.argmax(found.multipliers * units))
    return SlaterGap(float(np.ldexp(found.master.value, smallest)) + 0.0, limiting)  # no -0.0
