"""The potential Φ_k: how far an iterate is from the regularized saddle point.

Φ_k = Σ_{h,s} P_{π*_τ}[s_h = s] KL(π*_{τ,h}(· | s), π_{k,h}(· | s)) + ½ ‖λ*_τ - λ_k‖²
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from cmdpax.model.cmdp import CMDP
from cmdpax.planning.saddle_point import RegularizedSolution, solve_regularized


def saddle_of(
    cmdp: CMDP, regularization: float, max_multiplier: float, margin: float = 0.0
) -> RegularizedSolution:
    """The saddle point of the problem that is learned: thresholds c + margin."""
    shifted = cmdp.with_arrays(thresholds=cmdp.thresholds + margin)
    return solve_regularized(shifted, regularization, max_multiplier)


def potential(
    saddle: RegularizedSolution,
    log_policy: Float[Array, "H S A"],
    multipliers: Float[Array, " I"],
) -> Float[Array, ""]:
    """Φ_k of π_k and λ_k."""
    # Σ_s P[s_h = s] Σ_a π*(a | s) (log π* - log π_k), and P[s_h = s] π*(a | s) is the occupancy.
    divergence = jnp.where(
        saddle.occupancy > 0, saddle.occupancy * (saddle.log_policy - log_policy), 0
    )
    distance = saddle.multipliers - multipliers
    return jnp.sum(divergence) + jnp.dot(distance, distance) / 2
