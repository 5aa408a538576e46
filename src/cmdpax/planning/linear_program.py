"""The occupancy linear program: the definition of the optimum, and the cross-check.

Over occupancies d_h(s, a) ≥ 0,

    max Σ_h ⟨d_h, r_h⟩   subject to
        Σ_a d_1(s, a) = μ(s),
        Σ_a d_{h+1}(t, a) = Σ_{s,a} p_h(t | s, a) d_h(s, a),
        Σ_h ⟨d_h, u_{i,h}⟩ ≥ c_i,

with H·S·A variables and H·S + I rows, as sparse matrices, by HiGHS through SciPy; d_h(s, a) ≤ 0
for actions that are not available. The duals of the last rows are the multipliers λ*. The Slater
gap is the same program with max t subject to Σ_h ⟨d_h, u_{i,h}⟩ - c_i ≥ t. No answer of HiGHS is
trusted without a certificate (`occupancies`).
"""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from cmdpax.model.cmdp import CMDP
from cmdpax.model.transitions import Successors
from cmdpax.planning.stepping import part_at

if TYPE_CHECKING:
    import scipy.sparse

_OPTIONS = {
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
    "presolve": False,  # it may recurse until it crashes on chains of 500 steps
}


def maximise_reward(cmdp: CMDP) -> tuple[np.ndarray, np.ndarray] | str:
    """The optimal occupancy `[H, S, A]` and multipliers `[I]`, or why HiGHS found none."""
    flow, initial = flow_constraints(cmdp)
    rows = _written_out(cmdp, cmdp.constraint_rewards)
    return _solve(cmdp, -_written_out(cmdp, cmdp.rewards), -rows, flow, initial, lower=0.0)


def maximise_slack(cmdp: CMDP, units: np.ndarray) -> tuple[np.ndarray, np.ndarray] | str:
    """The same for max t with Σ_h ⟨d_h, u_{i,h}⟩ - c_i ≥ e_i t, in units e."""
    import scipy.sparse

    flow, initial = flow_constraints(cmdp)
    rows = _written_out(cmdp, cmdp.constraint_rewards)
    return _solve(
        cmdp,
        np.append(np.zeros(rows.shape[1]), -1.0),
        np.column_stack([-rows, units]),
        scipy.sparse.hstack([flow, np.zeros((flow.shape[0], 1))]),
        initial,
        lower=np.append(np.zeros(rows.shape[1]), -np.inf),
    )


def flow_constraints(cmdp: CMDP) -> tuple["scipy.sparse.csr_array", np.ndarray]:
    """Matrix `[H·S, H·S·A]` and right-hand side of the flow equations."""
    import scipy.sparse

    _, horizon, num_states, num_actions = cmdp.sizes
    out = scipy.sparse.kron(scipy.sparse.eye_array(horizon * num_states), np.ones((1, num_actions)))
    flow = scipy.sparse.csr_array(out)
    if horizon > 1:
        arrivals = [_step_matrix(cmdp, step) for step in range(horizon - 1)]
        into = scipy.sparse.coo_array(scipy.sparse.block_diag(arrivals))
        rows, columns = into.coords
        flow = flow - scipy.sparse.csr_array(
            (into.data, (rows + num_states, columns)), shape=flow.shape
        )
    right = np.zeros(horizon * num_states)
    right[:num_states] = cmdp.initial
    return flow, right


def _step_matrix(cmdp: CMDP, step: int) -> "scipy.sparse.coo_array":
    """p_h as a sparse matrix `[S, S·A]`: column (s, a) holds p_h(· | s, a)."""
    import scipy.sparse

    num_states, num_pairs = cmdp.num_states, cmdp.num_states * cmdp.num_actions
    if not isinstance(cmdp.transitions, Successors):
        dense = part_at(cmdp.transitions, step)
        return scipy.sparse.coo_array(dense.reshape(num_pairs, num_states).T)
    lists, probabilities = cmdp.transitions
    lists = part_at(lists, step).reshape(num_pairs, -1)
    probabilities = part_at(probabilities, step).reshape(num_pairs, -1)
    columns = np.broadcast_to(np.arange(num_pairs)[:, None], lists.shape)
    used = probabilities > 0
    return scipy.sparse.coo_array(
        (probabilities[used], (lists[used], columns[used])),
        shape=(num_states, num_pairs),
    )


def _written_out(cmdp: CMDP, signals: np.ndarray) -> np.ndarray:
    """Signals at every step, stationary ones repeated, as rows `[…, H·S·A]`."""
    before, shape = signals.shape[:-3], cmdp.sizes[1:]
    return np.broadcast_to(signals, (*before, *shape)).reshape(*before, math.prod(shape))


def _solve(
    cmdp: CMDP, cost: np.ndarray, rows: np.ndarray, flow: Any, initial: np.ndarray, lower: Any
) -> tuple[np.ndarray, np.ndarray] | str:
    """Minimise `cost` x by HiGHS, subject to `rows` x ≤ -c, the flow and lower bounds on x."""
    import scipy.optimize

    shape, upper = cmdp.sizes[1:], np.full(cost.shape, np.inf)
    if cmdp.available is not None:
        upper[: math.prod(shape)][~np.broadcast_to(cmdp.available, shape).ravel()] = 0.0
    bounds = np.column_stack([np.broadcast_to(lower, cost.shape), upper])
    limit = 1_000 + 5 * (len(initial) + len(cost))  # where actions tie, HiGHS may cycle
    result = scipy.optimize.linprog(
        cost,
        A_ub=rows,
        b_ub=-cmdp.thresholds,
        A_eq=flow,
        b_eq=initial,
        bounds=bounds,
        method="highs",
        options=_OPTIONS | {"maxiter": limit},
    )
    if result.status == 2:
        return "HiGHS calls it infeasible"
    if result.status == 1:
        return f"HiGHS did not solve it within {limit} steps"
    if result.status != 0:
        return f"HiGHS could not solve it (status {result.status})"
    occupancy = np.maximum(result.x[: math.prod(shape)], 0.0).reshape(shape)
    if cmdp.available is not None:
        occupancy *= cmdp.available  # bounds hold up to a tolerance only
    return occupancy, np.maximum(-result.ineqlin.marginals, 0.0)
