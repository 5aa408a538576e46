"""Accelerated dual descent with entropy, after Ying, Ding and Lavaei (2022) and Li et al. (2021).

With entropy in the policy the dual function is smooth,

    D(λ) = max_π V_{r + λᵀ(u - c)}^π + τ·entropy(π),    ∇D(λ) = V_u^{π_λ} - c,

where π_λ is soft backward induction, so that Nesterov's method applies. In its form by Auslender
and Teboulle, which never leaves [0, λ_max]^I, with θ_k = 2/(k + 1) and ζ_1 = ν_1 = 0:

    λ_k = (1 - θ_k) ν_k + θ_k ζ_k,    π_k = π_{λ_k}
    ζ_{k+1} = clip_[0, λ_max](ζ_k - s/(θ_k L) ∇D(λ_k))
    ν_{k+1} = (1 - θ_k) ν_k + θ_k ζ_{k+1}

L = Σ_i B_i²/(4τ) bounds the curvature of D, which is a variance of the sums of u divided by τ:
they vary by at most B_i = Σ_h (max u_{i,h} - min u_{i,h}). With s = 1 the dual function is within
2L‖λ*‖²/(k + 1)² of its minimum. What is reached is the optimum with entropy, whose value is at
most τ H log A below the best. (arXiv 2110.08923; constants ours. Li et
al. add a square in λ, which is left out.)
"""

from typing import Annotated, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from cmdpax.model.cmdp import CMDP
from cmdpax.model.evaluation import signal_array
from cmdpax.planning.dynamic_program import soft
from cmdpax.schemes.known.dual import plan
from cmdpax.schemes.known.primal_dual import MAX_MULTIPLIER
from cmdpax.schemes.parameters import Parameter
from cmdpax.schemes.scheme import Move, Rates, Scheme

_STEP = Parameter("step size, as a multiple of the 1/L that is safe", symbol="s", above=0)
_ENTROPY = Parameter("weight of the entropy", symbol="τ", above=0, hint="use dual")


class Parameters(NamedTuple):
    """What a user chooses."""

    relative_step: Annotated[float, _STEP] = 1.0
    regularization: Annotated[float, _ENTROPY] = 0.02
    max_multiplier: Annotated[float, MAX_MULTIPLIER] = 6.0


class AcceleratedState(NamedTuple):
    """The two sequences between which the multipliers lie."""

    slow: Float[Array, " I"]  # ν_k
    fast: Float[Array, " I"]  # ζ_k
    share: Float[Array, ""]  # 1/θ_k


def init(cmdp: CMDP, _: Parameters) -> AcceleratedState:
    """λ_1 = 0 and θ_1 = 1."""
    start = jnp.zeros(cmdp.num_constraints, cmdp.initial.dtype)
    return AcceleratedState(start, start, jnp.array(1, cmdp.initial.dtype))


def step(cmdp: CMDP, rates: Rates, state: AcceleratedState) -> Move:
    """Plan between the sequences, and move both."""
    slow, fast, inverse = state
    theta = 1 / inverse  # θ_k = 2/(k + 1)
    multipliers = (1 - theta) * slow + theta * fast
    _, values, planned = plan(cmdp, multipliers, soft(rates.regularization))
    slacks = values[1:] - cmdp.thresholds
    size = rates.relative_step / (theta * curvature(cmdp, rates.regularization))
    fast = jnp.clip(fast - size * slacks, 0, rates.max_multiplier)
    slow = (1 - theta) * slow + theta * fast
    return Move(planned, multipliers, AcceleratedState(slow, fast, inverse + 0.5))


def curvature(cmdp: CMDP, regularization: Float[Array, ""] | float) -> Float[Array, ""]:
    """L = Σ_i B_i²/(4τ); 1 where no constraint varies."""
    signals = signal_array(cmdp)[:, 1:]
    there = jnp.ones((1, 1, 1, 1), bool) if cmdp.available is None else cmdp.available[:, None]
    highest = jnp.max(jnp.where(there, signals, -jnp.inf), axis=(2, 3))
    lowest = jnp.min(jnp.where(there, signals, jnp.inf), axis=(2, 3))
    reach = jnp.sum(jnp.square(jnp.sum(highest - lowest, axis=0)))
    return jnp.where(reach > 0, reach, 1) / (4 * regularization)


ACCELERATED_DUAL = Scheme(
    "accelerated-dual",
    init,
    step,
    Parameters,
    summary="Soft planning, Nesterov's method in the multipliers.",
    source="Ying, Ding and Lavaei 2022, arXiv 2110.08923; Li et al. 2021",
)
