"""The occupancy program as a method: HiGHS proposes, the certificate decides.

HiGHS works to absolute tolerances in double precision. On long horizons and without slack its
optimum may miss a threshold, be off in the seventh digit, or not be found at all. So its occupancy
is turned into a policy, which is evaluated, and its multipliers into a dual bound. If both agree,
the program is solved; otherwise column generation takes over, and a warning gives the reason.
"""

import functools

import jax.numpy as jnp
import numpy as np

from cmdpax.model.cmdp import CMDP
from cmdpax.model.evaluation import evaluate_policy
from cmdpax.planning import linear_program
from cmdpax.planning.certificate import Rounding, certify, sharper_bound
from cmdpax.planning.column_generation import Generator
from cmdpax.planning.dynamic_program import greedy_values
from cmdpax.planning.feasibility import TOLERANCE, SlaterGap, negligible_slack, raise_slack
from cmdpax.planning.recovery import Recover, greedy_actions, markov_policy, simplify_plan
from cmdpax.planning.scaling import Scaled

_WORTH = 1e-9  # an error of the bound that does not matter
_CONVINCING = 1e-8  # the gap, per unit of scale, at which the program is solved


def solve_occupancies(scaled: Scaled) -> tuple[tuple[np.ndarray, np.ndarray, float], Recover] | str:
    """The certified optimum of the occupancy program, or why there is none."""
    cmdp = scaled.cmdp
    found = linear_program.maximise_reward(cmdp)
    if isinstance(found, str):
        return found
    occupancy, multipliers = found
    values, occupancy = _evaluate(cmdp, occupancy, multipliers)
    worst = float(((cmdp.thresholds - values[1:]) / scaled.magnitudes[1:]).max(initial=0.0))
    tiny = 4 * negligible_slack(cmdp.horizon)
    if worst > TOLERANCE or (worst > tiny and not _has_slack(scaled)):
        return f"the occupancy that HiGHS returned misses a threshold by {worst:.2g} of its scale"
    rounding = Rounding(cmdp)
    bound, error = _bound(cmdp, rounding, multipliers, signal=0)
    gap = bound - values[0]
    if abs(gap) <= _CONVINCING * scaled.magnitudes[0]:
        value_error = float(rounding.of_policy[0])
        certified = certify(scaled, values, value_error, bound + error, multipliers)
        return certified, functools.partial(simplify_plan, cmdp, occupancy, multipliers, values)
    if gap < 0:  # a threshold that is missed by little can be worth much
        more = scaled.number(-gap)
        return f"the occupancy that HiGHS returned is worth {more:.2g} more than any feasible one"
    return f"the optimum that HiGHS returned is certified to a gap of {scaled.number(gap):.2g} only"


def _has_slack(scaled: Scaled) -> bool:
    """Whether thresholds can be met with more slack than the tolerance of HiGHS.

    Without slack a policy that misses a threshold by 1e-12 may be worth anything.
    """
    generator = Generator(scaled.cmdp, None, max_columns=10_000)
    slack = raise_slack(generator, scaled.cmdp.thresholds, goal=TOLERANCE)
    return slack.value >= TOLERANCE


def slater_gap_by_occupancies(scaled: Scaled, thresholds: np.ndarray) -> SlaterGap | str:
    """Ξ in the user's units by the program max t, or why it cannot be trusted."""
    smallest, units = scaled.smallest_units()
    cmdp = scaled.cmdp.with_arrays(thresholds=scaled.thresholds(thresholds))
    found = linear_program.maximise_slack(cmdp, units)
    if isinstance(found, str):
        return found
    occupancy, multipliers = found
    total = units @ multipliers
    if not total > 0:
        return "HiGHS returned no multipliers"
    multipliers = multipliers / total
    values, _ = _evaluate(cmdp, occupancy, multipliers)
    bound, _ = _bound(cmdp, Rounding(cmdp), multipliers, signal=None)
    slack = float(((values[1:] - cmdp.thresholds) / units).min())
    gap = bound - slack
    if not gap <= _CONVINCING:
        gap = float(np.ldexp(gap, smallest))
        return f"the Slater gap that HiGHS returned is certified to {gap:.2g} only"
    limiting = int(np.argmax(multipliers * units))
    return SlaterGap(float(np.ldexp(slack, smallest)) + 0.0, limiting)


def _evaluate(
    cmdp: CMDP, occupancy: np.ndarray, multipliers: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(V_r, V_u) of the policy that an occupancy stands for, and the occupancy that it has."""
    policy = markov_policy(occupancy, greedy_actions(cmdp, multipliers))
    values, exact = evaluate_policy(cmdp, jnp.asarray(policy))
    return np.array(values), np.array(exact)


def _bound(
    cmdp: CMDP, rounding: Rounding, multipliers: np.ndarray, signal: int | None
) -> tuple[float, float]:
    """The dual bound that multipliers give, and how far rounding may have lowered it."""
    thresholds = cmdp.thresholds
    sharper = sharper_bound(cmdp, rounding, multipliers, signal, thresholds, _WORTH)
    if sharper is not None:
        return sharper
    weights = np.insert(multipliers, 0, 0.0 if signal is None else 1.0)
    bound = weights @ greedy_values(cmdp, weights[None])[0] - multipliers @ thresholds
    return float(bound), float(rounding.of_bound(multipliers, signal, thresholds))
