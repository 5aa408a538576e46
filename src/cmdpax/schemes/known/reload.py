"""ReLOAD: optimistic gradients of both players, after Moskovitz et al. (2023).

    π_{k+1} ∝ π_k exp(η (2Q_k - Q_{k-1})),    Q_k = Q^{π_k} of r + λ_kᵀu
    λ_{k+1} = clip_[0, λ_max](λ_k - η (2g_k - g_{k-1})),    g_k = V_u^{π_k} - c

The first step is plain: Q_0 = Q_1 and g_0 = g_1. (arXiv 2302.01275; constants ours.) The
publication proves convergence of the last iterate for a version on occupancies with implicit
updates; this one, on policies, is what it runs, without a proof.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from cmdpax.model.cmdp import CMDP
from cmdpax.schemes.exact import evaluate_signals, first_log_policy
from cmdpax.schemes.known.two_sequences import Parameters
from cmdpax.schemes.scheme import Move, Rates, Scheme
from cmdpax.schemes.updates import mirror_ascent, weighted


class ReloadState(NamedTuple):
    """Both players, and the gradients of the iteration before."""

    log_policy: Float[Array, "H S A"]  # log π_k
    multipliers: Float[Array, " I"]  # λ_k
    q_values: Float[Array, "H S A"]  # Q_{k-1}
    slacks: Float[Array, " I"]  # g_{k-1}
    is_first: Bool[Array, ""]


def init(cmdp: CMDP, _: Parameters) -> ReloadState:
    """The uniform policy, λ_1 = 0, and no gradients yet."""
    start, uniform = jnp.zeros(cmdp.num_constraints, cmdp.initial.dtype), first_log_policy(cmdp)
    nothing = jnp.zeros(uniform.shape, uniform.dtype)
    return ReloadState(uniform, start, nothing, start, jnp.array(True))


def step(cmdp: CMDP, rates: Rates, state: ReloadState) -> Move:
    """One optimistic step of both players."""
    log_policy, multipliers, last_q, last_slacks, is_first = state
    every_q, values = evaluate_signals(cmdp, log_policy)
    q_values, slacks = weighted(every_q, multipliers), values[1:] - cmdp.thresholds
    ahead_q = 2 * q_values - jnp.where(is_first, q_values, last_q)
    ahead = 2 * slacks - jnp.where(is_first, slacks, last_slacks)
    following = ReloadState(
        mirror_ascent(log_policy, ahead_q, rates.step_size),
        jnp.clip(multipliers - rates.step_size * ahead, 0, rates.max_multiplier),
        q_values,
        slacks,
        jnp.zeros_like(is_first),
    )
    return Move(log_policy, multipliers, following)


RELOAD = Scheme(
    "reload",
    init,
    step,
    Parameters,
    summary="Optimistic gradients of both players, 2Q_k - Q_{k-1}.",
    source="Moskovitz et al. 2023, arXiv 2302.01275",
)
