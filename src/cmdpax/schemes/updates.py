"""The updates of the schemes, Eqs. (3)-(4) and (6)-(7), and nothing else.

They do not know where the values come from: exact values make the scheme of a known model,
optimistic ones the learner of an unknown one. τ = 0 is the vanilla scheme.

* ascent in the policy:   π_{k+1,h}(a | s) ∝ π_{k,h}(a | s) exp(η Q_{k,h}(s, a));
* descent in the multipliers:   λ_{k+1} = clip_[0, λ_max]((1 - ητ) λ_k - η (V_u - c)).

Both lines of iteration k use π_k and λ_k. Policies are kept as log π: probabilities underflow.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from cmdpax.model.availability import Flags, only_available


def primal_dual_step(
    log_policy: Float[Array, "H S A"],
    multipliers: Float[Array, " I"],
    every_q: Float[Array, "H L S A"],
    slacks: Float[Array, " I"],
    rates: Any,
) -> tuple[Float[Array, "H S A"], Float[Array, " I"], Float[Array, "H S A"]]:
    """(π_{k+1}, λ_{k+1}) of Eqs. (6)-(7), from Q_r, Q_u and Q_ψ of π_k and the slacks V_u - c.

    Q_z of π_k comes with them. The rates are `Rates`, or anything else that has step_size,
    regularization and max_multiplier.
    """
    q_lagrangian = lagrangian(every_q, multipliers, rates.regularization)
    ascended = mirror_ascent(log_policy, q_lagrangian, rates.step_size)
    descended = dual_descent(
        multipliers, slacks, rates.step_size, rates.regularization, rates.max_multiplier
    )
    return ascended, descended, q_lagrangian


def mirror_ascent(
    log_policy: Float[Array, "*H S A"],
    q_values: Float[Array, "*H S A"],
    step_size: Float[Array, ""],
) -> Float[Array, "*H S A"]:
    """log π_{k+1} of Eq. (6): π_{k+1} ∝ π_k exp(η Q_k)."""
    return jax.nn.log_softmax(log_policy + step_size * q_values, axis=-1)


def projected_ascent(
    log_policy: Float[Array, "*H S A"],
    q_values: Float[Array, "*H S A"],
    step_size: Float[Array, ""],
    available: Flags | None = None,
) -> Float[Array, "*H S A"]:
    """log π_{k+1} of projected gradient ascent: π_{k+1} = Proj(π_k + ηQ_k), onto the simplex.

    The projection of y is x_a = max(y_a - θ, 0), θ the number that makes the sum 1: if the m
    largest entries stay positive, θ = (their sum - 1)/m, and m is the largest number for which
    the m-th entry exceeds that θ. Actions that are not available are left out.
    """
    moved = only_available(jnp.exp(log_policy) + step_size * q_values, available)
    moved = moved - jnp.max(moved, axis=-1, keepdims=True)  # large numbers would swallow the 1
    descending = jnp.sort(moved, axis=-1)[..., ::-1]
    there = descending > -jnp.inf
    sums = jnp.cumsum(jnp.where(there, descending, 0), axis=-1)
    counts = jnp.arange(1, moved.shape[-1] + 1, dtype=moved.dtype)
    levels = (sums - 1) / jnp.broadcast_to(counts, sums.shape)
    kept = jnp.sum(there & (descending > levels), axis=-1, keepdims=True)
    level = jnp.take_along_axis(levels, kept - 1, axis=-1)
    return jnp.log(jnp.maximum(moved - level, 0))


def dual_descent(
    multipliers: Float[Array, " I"],
    slacks: Float[Array, " I"],
    step_size: Float[Array, ""],
    regularization: Float[Array, ""],
    max_multiplier: Float[Array, ""],
) -> Float[Array, " I"]:
    """λ_{k+1} of Eq. (7), with slacks V_u - c."""
    shrunk = (1 - step_size * regularization) * multipliers
    return jnp.clip(shrunk - step_size * slacks, 0, max_multiplier)


def raise_to_floor(
    log_policy: Float[Array, "*H S A"],
    floor: Float[Array, ""],
    available: Flags | None = None,
) -> Float[Array, "*H S A"]:
    """KL projection onto {x : x_a ≥ floor/A}, the restricted simplex of RPG-PD.

    With l = floor/A the projection of y is x_a = max(l, κ y_a), κ the number that makes the sum 1:
    if the m smallest entries are raised, κ = (1 - m l) / (sum of the others), and m is the first
    for which the next entry is not raised. 0 ≤ floor ≤ 1. Where only some actions are available,
    A is their number in the state, and the others stay at 0.
    """
    if available is not None:
        return _raise_available(log_policy, floor, available)
    num_actions = log_policy.shape[-1]
    least = floor / num_actions
    ascending = jnp.sort(jnp.exp(log_policy), axis=-1)
    others = jnp.cumsum(ascending[..., ::-1], axis=-1)[..., ::-1]  # Σ of entries m, m+1, …
    raised = jnp.arange(num_actions, dtype=ascending.dtype)
    kappa = jnp.broadcast_to(1 - raised * least, others.shape) / others
    fits = kappa * ascending >= least
    fits = fits.at[..., -1].set(True)  # at floor 1 all are equal, up to rounding
    chosen = jnp.argmax(fits, axis=-1, keepdims=True)
    log_kappa = jnp.log(jnp.take_along_axis(kappa, chosen, axis=-1))
    projected = jnp.maximum(jnp.log(least), log_policy + log_kappa)
    return jnp.where(floor > 0, jax.nn.log_softmax(projected, axis=-1), log_policy)


def _raise_available(
    log_policy: Float[Array, "*H S A"], floor: Float[Array, ""], available: Flags
) -> Float[Array, "*H S A"]:
    """The same where A differs between states: entries that are not available are sorted last."""
    flags, dtype = jnp.broadcast_to(available, log_policy.shape), log_policy.dtype
    count = jnp.sum(flags, axis=-1, keepdims=True).astype(dtype)
    least = floor / count
    ascending = jnp.sort(jnp.where(flags, jnp.exp(log_policy), jnp.inf), axis=-1)
    ascending = jnp.where(jnp.isinf(ascending), 0, ascending)
    others = jnp.cumsum(ascending[..., ::-1], axis=-1)[..., ::-1]  # Σ of entries m, m+1, …
    raised = jnp.broadcast_to(jnp.arange(flags.shape[-1], dtype=dtype), flags.shape)
    kappa = (1 - raised * least) / jnp.where(others > 0, others, 1)
    fits = (kappa * ascending >= least) | (raised == count - 1)
    chosen = jnp.argmax(fits, axis=-1, keepdims=True)
    log_kappa = jnp.log(jnp.take_along_axis(kappa, chosen, axis=-1))
    projected = only_available(jnp.maximum(jnp.log(least), log_policy + log_kappa), flags)
    return jnp.where(floor > 0, jax.nn.log_softmax(projected, axis=-1), log_policy)


def lagrangian(
    q_values: Float[Array, "H L S A"],
    multipliers: Float[Array, " I"],
    regularization: Float[Array, ""],
) -> Float[Array, "H S A"]:
    """Q_z = Q_r + Σ_i λ_i Q_{u_i} + τ Q_ψ, from Q_r, Q_u and Q_ψ in this order (eq:def-qk).

    The entropy is masked where τ = 0, so that a grid may contain it.
    """
    entropy = jnp.where(regularization > 0, regularization * q_values[:, -1], 0)
    return weighted(q_values[:, :-1], multipliers) + entropy


def weighted(
    signals: Float[Array, "H J S A"], multipliers: Float[Array, " I"]
) -> Float[Array, "H S A"]:
    """Q_r + Σ_i λ_i Q_{u_i}, or r + λᵀu, from r and u in this order."""
    return signals[:, 0] + jnp.einsum("i,hisa->hsa", multipliers, signals[:, 1:])
