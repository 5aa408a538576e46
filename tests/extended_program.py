"""The extended linear program of Efroni et al. (2020), as it stands there, for HiGHS.

max Σ z_h(s, a, t) r_h(s, a)    subject to    Σ z_h(s, a, t) u_{i,h}(s, a) ≥ c_i,
Σ_{a,t} z_1(s, a, t) = μ(s),    Σ_{a,t} z_h(s, a, t) = Σ_{s',a} z_{h-1}(s', a, s),
l_h(t | s, a) Σ_y z_h(s, a, y) ≤ z_h(s, a, t) ≤ u_h(t | s, a) Σ_y z_h(s, a, y),    z ≥ 0.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

import cmdpax


class Extended(NamedTuple):
    """Its optimum; NaN where it is infeasible."""

    value: float
    mass: np.ndarray  # z, [H, S, A, S]
    worst_slack: float  # the largest min_i V_{u_i} - c_i


def solve_extended(
    cmdp: cmdpax.CMDP, upper: np.ndarray, policy: np.ndarray | None = None
) -> Extended:
    """The optimum over policies, or of the best rows for one policy.

    Args:
        cmdp: the model, whose transitions `[H, S, A, S]` are lower bounds.
        upper: upper bounds.
        policy: the policy, if it is fixed.
    """
    num_constraints, horizon, num_states, num_actions = cmdp.sizes
    shape = (horizon, num_states, num_actions, num_states)
    lower, upper = np.broadcast_to(cmdp.transitions, shape), np.broadcast_to(upper, shape)
    number = np.arange(np.prod(shape)).reshape(shape)
    signals = np.stack([cmdp.rewards, *cmdp.constraint_rewards])
    signals = np.broadcast_to(signals, (1 + num_constraints, *shape[:3]))
    signals = np.repeat(signals[..., None], num_states, axis=-1).reshape(1 + num_constraints, -1)
    equal, equal_to = [], []
    for h, s in np.ndindex(horizon, num_states):
        row = _row(number.size)
        row[number[h, s].ravel()] = 1
        if h > 0:
            row[number[h - 1, :, :, s].ravel()] -= 1
        equal.append(row)
        equal_to.append(0.0 if h else cmdp.initial[s])
        for a in range(num_actions):
            if policy is not None:
                row = _row(number.size)
                row[number[h, s].ravel()] = -policy[h, s, a]
                row[number[h, s, a]] += 1
                equal.append(row)
                equal_to.append(0.0)
            elif cmdp.available is not None and not cmdp.available[h % len(cmdp.available), s, a]:
                row = _row(number.size)
                row[number[h, s, a]] = 1
                equal.append(row)
                equal_to.append(0.0)
    at_most = []
    for h, s, a, t in np.ndindex(shape):
        for bound, sign in ((upper, 1.0), (lower, -1.0)):
            row = _row(number.size)
            row[number[h, s, a]] = -sign * bound[h, s, a, t]
            row[number[h, s, a, t]] += sign
            at_most.append(row)
    fixed = (sparse.csr_array(np.array(equal)), np.array(equal_to))
    limits = sparse.csr_array(np.array([*at_most, *-signals[1:]]))
    bounds = np.append(np.zeros(len(at_most)), -cmdp.thresholds)
    found = linprog(-signals[0], limits, bounds, *fixed)
    return Extended(
        float(-found.fun) if found.success else np.nan,
        found.x.reshape(shape) if found.success else np.full(shape, np.nan),
        _worst_slack(limits, bounds, fixed, len(at_most)) if num_constraints else np.inf,
    )


def _worst_slack(
    limits: sparse.csr_array,
    bounds: np.ndarray,
    fixed: tuple[sparse.csr_array, np.ndarray],
    num_free: int,
) -> float:
    """max t such that every constraint has the slack t."""
    slack = np.zeros((limits.shape[0], 1))
    slack[num_free:] = 1
    wide = sparse.hstack([limits, sparse.csr_array(slack)])
    equal = sparse.hstack([fixed[0], sparse.csr_array((fixed[0].shape[0], 1))])
    objective = np.append(np.zeros(limits.shape[1]), -1.0)
    ranges = [(0, None)] * limits.shape[1] + [(None, None)]
    return float(-linprog(objective, wide, bounds, equal, fixed[1], bounds=ranges).fun)


def _row(size: int) -> np.ndarray:
    return np.zeros(size)
