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
    """The program: max c'z subject to limits z ≤ bounds and equal z = equal_to, z ≥ 0."""

    rewards: np.ndarray  # c
    limits: sparse.csr_array  # the constraints are the last rows
    bounds: np.ndarray
    equal: sparse.csr_array
    equal_to: np.ndarray
    num_constraints: int

    @property
    def value(self) -> float:
        """The optimum; NaN where the program is infeasible."""
        found = linprog(-self.rewards, *self[1:5])
        return float(-found.fun) if found.success else np.nan

    @property
    def worst_slack(self) -> float:
        """The largest min_i V_{u_i} - c_i: every constraint is to have the slack t, max t."""
        if not self.num_constraints:
            return np.inf
        slack = np.zeros((self.limits.shape[0], 1))
        slack[len(slack) - self.num_constraints :] = 1
        limits = sparse.hstack([self.limits, sparse.csr_array(slack)])
        equal = sparse.hstack([self.equal, sparse.csr_array((self.equal.shape[0], 1))])
        objective = np.append(np.zeros(self.limits.shape[1]), -1.0)
        ranges = [(0, None)] * self.limits.shape[1] + [(None, None)]
        found = linprog(objective, limits, self.bounds, equal, self.equal_to, bounds=ranges)
        return float(-found.fun)


def extended_program(
    cmdp: cmdpax.CMDP, upper: np.ndarray, policy: np.ndarray | None = None
) -> Extended:
    """The program over policies and rows, or over the rows of one policy.

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
        row = np.zeros(number.size)
        row[number[h, s].ravel()] = 1
        if h > 0:
            row[number[h - 1, :, :, s].ravel()] -= 1
        equal.append(row)
        equal_to.append(0.0 if h else cmdp.initial[s])
        for a in range(num_actions):
            if policy is not None:
                row = np.zeros(number.size)
                row[number[h, s].ravel()] = -policy[h, s, a]
                row[number[h, s, a]] += 1
                equal.append(row)
                equal_to.append(0.0)
            elif cmdp.available is not None and not cmdp.available[h % len(cmdp.available), s, a]:
                row = np.zeros(number.size)
                row[number[h, s, a]] = 1
                equal.append(row)
                equal_to.append(0.0)
    at_most = []
    for h, s, a, t in np.ndindex(shape):
        for bound, sign in ((upper, 1.0), (lower, -1.0)):
            row = np.zeros(number.size)
            row[number[h, s, a]] = -sign * bound[h, s, a, t]
            row[number[h, s, a, t]] += sign
            at_most.append(row)
    return Extended(
        rewards=signals[0],
        limits=sparse.csr_array(np.array([*at_most, *-signals[1:]])),
        bounds=np.append(np.zeros(len(at_most)), -cmdp.thresholds),
        equal=sparse.csr_array(np.array(equal)),
        equal_to=np.array(equal_to),
        num_constraints=num_constraints,
    )
