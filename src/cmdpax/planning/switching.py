"""One random decision where there is one constraint: two policies and a place to switch.

Let an optimal policy π be random in many places. *Low* takes there the action with the smallest
Q_u^π, and *high* the one with the largest, so that by policy improvement

    V_u^{low} ≤ V_u^π ≤ V_u^{high}.

The policies that follow high before a place (h, s) and low from there on, in the order of steps and
states, lead from one to the other, and two neighbours among them differ at one place. So some two
neighbours enclose V_u^π, and a random decision at their place meets it. V_r follows: all actions
that an optimal policy takes are optimal for r + λu, and so are the policies that are made of them.

This takes one pass through the steps for π, one for low and one for high, however many random
decisions there are. For more constraints, or a policy that is not optimal, there is
`derandomization`.
"""

import numpy as np
from jaxtyping import Float

from cmdpax.model import CMDP
from cmdpax.planning.stepping import Stepper, values_ahead


def switch(cmdp: CMDP, policy: Float[np.ndarray, "H S A"]) -> np.ndarray:
    """A policy with the same V_u that is random at one place (for one constraint)."""
    stepper = Stepper(cmdp)
    ahead = values_ahead(stepper, policy)
    target = float(stepper.initial @ ahead[0, :, 1])
    low, high = _extremes(stepper, policy, ahead)
    lows = values_ahead(stepper, low)
    mass, gained = stepper.initial, 0.0
    for step in range(stepper.horizon):
        arriving = stepper.advance(step, mass, high[step])
        earned = float(mass @ stepper.values(step, high[step], np.zeros_like(ahead[0]))[:, 1])
        if gained + earned + float(arriving @ lows[step + 1, :, 1]) >= target:
            decisions = low.copy()
            decisions[:step] = high[:step]
            decisions[step] = _within(
                stepper, step, mass, low[step], high[step], lows[step + 1], target - gained
            )
            return decisions
        mass, gained = arriving, gained + earned
    return high  # up to rounding


def _extremes(
    stepper: Stepper, policy: np.ndarray, ahead: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The policies that take the actions with the smallest and with the largest Q_u."""
    low, high = policy.copy(), policy.copy()
    for step in np.flatnonzero(np.count_nonzero(policy, axis=(1, 2)) > stepper.num_states):
        states = np.flatnonzero(np.count_nonzero(policy[step], axis=1) > 1)
        rows, actions = np.nonzero(policy[step, states])
        q_values = np.full((len(states), policy.shape[2]), np.nan)
        found = stepper.q_values(int(step), states[rows], actions, ahead[step + 1])
        q_values[rows, actions] = found[:, 1]
        certain = np.eye(policy.shape[2])
        low[step, states] = certain[np.nanargmin(q_values, axis=1)]
        high[step, states] = certain[np.nanargmax(q_values, axis=1)]
    return low, high


def _within(
    stepper: Stepper,
    step: int,
    mass: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    after: np.ndarray,
    target: float,
) -> np.ndarray:
    """The decisions of one step: high in the first states, low in the last, random in between."""
    lowest = mass * stepper.values(step, low, after)[:, 1]
    highest = mass * stepper.values(step, high, after)[:, 1]
    # V_u from here on if the first n states are high, n = 0 … S.
    totals = float(lowest.sum()) + np.insert(np.cumsum(highest - lowest), 0, 0.0)
    state = int(np.argmax(totals[1:] >= target)) if (totals[1:] >= target).any() else len(mass) - 1
    width = totals[state + 1] - totals[state]
    share = min(max((target - totals[state]) / width, 0.0), 1.0) if width > 0 else 1.0
    decisions = low.copy()
    decisions[:state] = high[:state]
    decisions[state] = (1.0 - share) * low[state] + share * high[state]
    return decisions
