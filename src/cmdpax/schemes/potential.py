"""The potential Φ_k: how far an iterate is from the regularized saddle point.

Φ_k = Σ_{h,s} P_{π*_τ}[s_h = s] KL(π*_{τ,h}(· | s), π_{k,h}(· | s)) + ½ ‖λ*_τ - λ_k‖²
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from cmdpax.model.cmdp import CMDP
from cmdpax.model.evaluation import evaluate
from cmdpax.planning.saddle_point import solve_regularized


class Saddle(NamedTuple):
    """The saddle point (π*_τ, λ*_τ), with the occupancy of its policy."""

    occupancy: Any  # [H, S, A]
    log_policy: Any  # [H, S, A]
    multipliers: Any  # [I]


def saddle_of(
    cmdp: CMDP, regularization: float, max_multiplier: float, margin: float = 0.0
) -> Saddle:
    """The saddle point of the problem that is learned: thresholds c + margin."""
    shifted = cmdp.replace(thresholds=cmdp.thresholds + margin)
    found = solve_regularized(shifted, regularization, max_multiplier)
    mass = evaluate(shifted, found.policy).occupancy
    return Saddle(np.asarray(mass), found.log_policy, found.multipliers)


def potential(
    saddle: Saddle, log_policy: Float[Array, "H S A"], multipliers: Float[Array, " I"]
) -> Float[Array, ""]:
    """Φ_k of π_k and λ_k."""
    # Σ_s P[s_h = s] Σ_a π*(a | s) (log π* - log π_k), and P[s_h = s] π*(a | s) is the occupancy.
    divergence = jnp.where(
        saddle.occupancy > 0, saddle.occupancy * (saddle.log_policy - log_policy), 0
    )
    distance = saddle.multipliers - multipliers
    return jnp.sum(divergence) + jnp.dot(distance, distance) / 2
