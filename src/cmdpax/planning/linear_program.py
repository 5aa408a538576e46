"""The occupancy linear program: the definition of the optimum, and the cross-check.

Over occupancies d_h(s, a) ≥ 0,

    max Σ_h ⟨d_h, r_h⟩   subject to
        Σ_a d_1(s, a) = μ(s),
        Σ_a d_{h+1}(t, a) = Σ_{s,a} p_h(t | s, a) d_h(s, a),
        Σ_h ⟨d_h, u_{i,h}⟩ ≥ c_i,

with H·S·A variables and H·S + I rows, as sparse matrices, by HiGHS through SciPy. The duals of the
last rows are the multipliers λ*. The Slater gap is the same program with max t subject to
Σ_h ⟨d_h, u_{i,h}⟩ - c_i ≥ t. What HiGHS says is not believed here or elsewhere without a
certificate (`occupancies`).
"""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cmdpax.model.cmdp import CMDP
from cmdpax.model.transitions import Successors
from cmdpax.planning.stepping import part_at

if TYPE_CHECKING:
    import scipy.sparse

_OPTIONS = {
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
    "presolve": False,  # on chains of 500 steps it may call itself without end, a crash
}


class OccupancyOptimum(NamedTuple):
    """What HiGHS calls the optimum of the occupancy program."""

    occupancy: np.ndarray  # [H, S, A]
    multipliers: np.ndarray  # [I]


def maximise_reward(cmdp: CMDP) -> OccupancyOptimum | str:
    """Solve the program of a scaled model, or say why HiGHS did not."""
    flow, initial = flow_constraints(cmdp)
    result = _solve(
        cost=-_per_step(cmdp, cmdp.rewards).ravel(),
        at_most=(-_constraint_rows(cmdp), -cmdp.thresholds),
        equal=(flow, initial),
        lower=0.0,
    )
    return result if isinstance(result, str) else _optimum(cmdp, result)


def maximise_slack(cmdp: CMDP, units: np.ndarray) -> OccupancyOptimum | str:
    """Solve max t with Σ_h ⟨d_h, u_{i,h}⟩ - c_i ≥ e_i t, in units e, or say why HiGHS did not."""
    import scipy.sparse

    flow, initial = flow_constraints(cmdp)
    rows = _constraint_rows(cmdp)
    result = _solve(
        cost=np.append(np.zeros(rows.shape[1]), -1.0),
        at_most=(np.column_stack([-rows, units]), -cmdp.thresholds),
        equal=(scipy.sparse.hstack([flow, np.zeros((flow.shape[0], 1))]), initial),
        lower=np.append(np.zeros(rows.shape[1]), -np.inf),
    )
    return result if isinstance(result, str) else _optimum(cmdp, result)


def _optimum(cmdp: CMDP, result: Any) -> OccupancyOptimum:
    _, horizon, num_states, num_actions = cmdp.sizes
    shape = (horizon, num_states, num_actions)
    occupancy = np.maximum(result.x[: math.prod(shape)], 0.0).reshape(shape)
    return OccupancyOptimum(occupancy, np.maximum(-result.ineqlin.marginals, 0.0))


def flow_constraints(cmdp: CMDP) -> tuple["scipy.sparse.csr_array", np.ndarray]:
    """Matrix `[H·S, H·S·A]` and right-hand side of the flow equations."""
    import scipy.sparse

    _, horizon, num_states, num_actions = cmdp.sizes
    num_pairs = num_states * num_actions
    out = scipy.sparse.kron(scipy.sparse.eye_array(horizon * num_states), np.ones((1, num_actions)))
    arrivals = [_step_matrix(cmdp, step) for step in range(horizon - 1)]
    into = scipy.sparse.block_diag(arrivals) if arrivals else None
    flow = scipy.sparse.csr_array(out)
    if into is not None:
        moved = scipy.sparse.coo_array(into)
        rows, columns = moved.coords
        flow = flow - scipy.sparse.csr_array(
            (moved.data, (rows + num_states, columns)), shape=flow.shape
        )
    right = np.zeros(horizon * num_states)
    right[:num_states] = cmdp.initial
    assert flow.shape == (horizon * num_states, horizon * num_pairs)
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


def _per_step(cmdp: CMDP, array: np.ndarray) -> np.ndarray:
    """A reward array with its stationary axis written out, `[…, H, S, A]`."""
    _, *shape = cmdp.sizes
    return np.broadcast_to(array, (*array.shape[:-3], *shape))


def _constraint_rows(cmdp: CMDP) -> np.ndarray:
    """u as a matrix `[I, H·S·A]`."""
    constraints = _per_step(cmdp, cmdp.constraint_rewards)
    _, *shape = cmdp.sizes
    return constraints.reshape(cmdp.num_constraints, math.prod(shape))


def _solve(
    cost: np.ndarray, at_most: tuple[Any, Any], equal: tuple[Any, Any], lower: Any
) -> Any | str:
    """SciPy's interface to HiGHS: its result, or what it says instead."""
    import scipy.optimize

    bounds = np.column_stack([np.broadcast_to(lower, cost.shape), np.full(cost.shape, np.inf)])
    # Where actions tie, HiGHS may go round in circles.
    limit = {"maxiter": 1_000 + 5 * (len(equal[1]) + len(cost))}
    result = scipy.optimize.linprog(
        cost, *at_most, *equal, bounds=bounds, method="highs", options=_OPTIONS | limit
    )
    if result.status == 0:
        return result
    if result.status == 2:
        return "HiGHS calls it infeasible"
    if result.status == 1:
        return f"HiGHS did not solve it within {limit['maxiter']} steps"
    return f"HiGHS could not solve it (status {result.status})"
