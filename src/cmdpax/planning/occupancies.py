"""The occupancy program as a method: HiGHS proposes, the certificate decides.

HiGHS works to absolute tolerances in double precision. On long horizons and without slack its
optimum may miss a threshold, be off in the seventh digit, or not be found at all. So its occupancy
is turned into a policy, which is evaluated, and its multipliers into a dual bound. If both agree,
the program is solved; otherwise column generation takes over, and a warning gives the reason.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from cmdpax.model.evaluation import evaluate_policy
from cmdpax.planning import linear_program
from cmdpax.planning.certificate import rounding_of, sharper_bound
from cmdpax.planning.column_generation import Generator
from cmdpax.planning.dynamic_program import greedy_values
from cmdpax.planning.feasibility import (
    TOLERANCE,
    SlaterGap,
    negligible_slack,
    raise_slack,
)
from cmdpax.planning.recovery import greedy_actions, markov_policy
from cmdpax.planning.scaling import Scaled

_WORTH = 1e-9  # an error of the bound that does not matter
_CONVINCING = 1e-8  # the gap, per unit of scale, at which the program is solved


class Proposal(NamedTuple):
    """An occupancy with its exact values and its bound, in scaled units."""

    occupancy: np.ndarray
    signal_values: np.ndarray  # (V_r, V_u)
    multipliers: np.ndarray
    bound: float
    error: float  # how far rounding may have lowered the bound
    value_error: float  # the same of the value


def solve_occupancies(scaled: Scaled) -> Proposal | str:
    """The certified optimum of the occupancy program, or why there is none."""
    found = linear_program.maximise_reward(scaled.cmdp)
    if isinstance(found, str):
        return found
    proposal = _examine(scaled, found, signal=0)
    missed = scaled.cmdp.thresholds - proposal.signal_values[1:]
    worst = float((missed / scaled.magnitudes[1:]).max(initial=0.0))
    if worst > TOLERANCE or (worst > _tiny_miss(scaled) and not _has_slack(scaled)):
        return f"the occupancy that HiGHS returned misses a threshold by {worst:.2g} of its scale"
    gap = proposal.bound - proposal.signal_values[0]
    if abs(gap) <= _CONVINCING * scaled.magnitudes[0]:
        return proposal
    if gap < 0:  # a threshold that is missed by little can be worth much
        more = scaled.number(-gap)
        return f"the occupancy that HiGHS returned is worth {more:.2g} more than any feasible one"
    return f"the optimum that HiGHS returned is certified to a gap of {scaled.number(gap):.2g} only"


def _tiny_miss(scaled: Scaled) -> float:
    return 4 * negligible_slack(scaled.cmdp.horizon)


def _has_slack(scaled: Scaled) -> bool:
    """Whether thresholds can be met with more to spare than HiGHS allows itself.

    Without slack a policy that misses a threshold by 1e-12 may be worth anything.
    """
    generator = Generator(scaled.cmdp, None, max_columns=10_000)
    slack = raise_slack(generator, scaled.cmdp.thresholds, goal=TOLERANCE)
    return slack.master.value >= TOLERANCE


def slater_gap_by_occupancies(scaled: Scaled, thresholds: np.ndarray) -> SlaterGap | str:
    """Ξ in the user's units by the program max t, or why it cannot be trusted."""
    smallest, units = scaled.smallest_units()
    wanted = scaled.thresholds(thresholds)
    found = linear_program.maximise_slack(scaled.cmdp.replace(thresholds=wanted), units)
    if isinstance(found, str):
        return found
    total = units @ found.multipliers
    if not total > 0:
        return "HiGHS returned no multipliers"
    found = found._replace(multipliers=found.multipliers / total)
    proposal = _examine(scaled._replace(cmdp=scaled.cmdp.replace(thresholds=wanted)), found, None)
    slack = float(((proposal.signal_values[1:] - wanted) / units).min())
    gap = proposal.bound - slack
    if not gap <= _CONVINCING:
        gap = float(np.ldexp(gap, smallest))
        return f"the Slater gap that HiGHS returned is certified to {gap:.2g} only"
    limiting = int(np.argmax(found.multipliers * units))
    return SlaterGap(float(np.ldexp(slack, smallest)) + 0.0, limiting)


def _examine(
    scaled: Scaled, found: linear_program.OccupancyOptimum, signal: int | None
) -> Proposal:
    """Values of the policy of an occupancy, and the bound of its multipliers."""
    cmdp, multipliers = scaled.cmdp, found.multipliers
    policy = markov_policy(found.occupancy, greedy_actions(cmdp, multipliers))
    values, occupancy = evaluate_policy(cmdp, jnp.asarray(policy))
    rounding = rounding_of(cmdp)
    sharper = sharper_bound(cmdp, rounding, multipliers, signal, cmdp.thresholds, _WORTH)
    if sharper is None:
        weights = np.insert(multipliers, 0, 0.0 if signal is None else 1.0)
        bound = weights @ greedy_values(cmdp, weights[None])[0] - multipliers @ cmdp.thresholds
        sharper = float(bound), float(rounding.of_bound(multipliers, signal, cmdp.thresholds))
    bound, error = sharper
    return Proposal(
        occupancy=np.array(occupancy),
        signal_values=np.array(values),
        multipliers=multipliers,
        bound=bound,
        error=error,
        value_error=float(rounding.of_policy[0]),
    )
