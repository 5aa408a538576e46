"""Primal-dual learning with optimistic exploration: Algorithms 1 and 2.

    for k = 1, …, K:
        update r̂_k, û_k, p̂_k, ψ̂_k                                  Eq. (9)
        truncated policy evaluation of π_k: Q̂_z, V̂_u               Algorithm 2
        π_{k+1} ∝ π_k exp(η Q̂_z)                                   Eq. (6)
        λ_{k+1} = clip((1 - ητ) λ_k - η (V̂_u - c))                 Eq. (7)
        play π_k, count

The vanilla algorithm is τ = 0.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Integer

from cmdpax.estimation import (
    OptimisticModel,
    Statistics,
    Trajectory,
    empty_statistics,
    optimistic_model,
    record,
)
from cmdpax.evaluation import q_values
from cmdpax.learners.base import Hyperparameters, Info, Knowledge, Learner, rates_at, unrolling
from cmdpax.schemes import dual_descent, lagrangian, mirror_ascent


class PrimalDualState(NamedTuple):
    """What the next episode needs."""

    episode: Integer[Array, ""]  # k
    log_policy: Float[Array, "H S A"]  # log π_k
    multipliers: Float[Array, " I"]  # λ_k
    statistics: Statistics  # of episodes 1 … k-1


def primal_dual(knowledge: Knowledge, hyperparameters: Hyperparameters) -> Learner:
    """Algorithm 1; with regularization 0, the vanilla primal-dual algorithm."""
    num_constraints, *pairs = knowledge.sizes
    dtype = knowledge.initial.dtype

    def init() -> PrimalDualState:
        known = knowledge.signals is not None
        return PrimalDualState(
            episode=jnp.asarray(1, jnp.int32),
            log_policy=jnp.full(pairs, -jnp.log(pairs[-1]), dtype),  # uniform
            multipliers=jnp.zeros(num_constraints, dtype),
            statistics=empty_statistics(knowledge.sizes, knowledge.bonuses, known, dtype),
        )

    def update(state: PrimalDualState, trajectory: Trajectory) -> tuple[PrimalDualState, Info]:
        step_size, regularization, max_multiplier, margin = rates_at(hyperparameters, state.episode)
        # "Update r̂_k, û_k, p̂_k, ψ̂_k": from the episodes before this one.
        model = optimistic_model(state.statistics, knowledge.bonuses, knowledge.signals)
        # "Truncated policy evaluation."
        every_q, constraint_values = evaluate(model, state.log_policy, knowledge.initial)
        q_lagrangian = lagrangian(every_q, state.multipliers, regularization)
        # The model is read before it is changed: without this order XLA would copy it.
        statistics, q_lagrangian = jax.lax.optimization_barrier(  # type: ignore[no-untyped-call]
            (state.statistics, q_lagrangian)
        )
        next_state = PrimalDualState(
            episode=state.episode + 1,
            # "Update primal variables."
            log_policy=mirror_ascent(state.log_policy, q_lagrangian, step_size),
            # "Update dual variables."
            multipliers=dual_descent(
                state.multipliers,
                constraint_values - (knowledge.thresholds + margin),
                step_size,
                regularization,
                max_multiplier,
            ),
            # "Play π_k for one episode, update" the counts.
            statistics=record(statistics, trajectory),
        )
        return next_state, Info(state.multipliers, constraint_values, q_lagrangian)

    return Learner(init, update)


def evaluate(
    model: OptimisticModel, log_policy: Float[Array, "H S A"], initial: Float[Array, " S"]
) -> tuple[Float[Array, "H S A L"], Float[Array, " I"]]:
    """Algorithm 2: truncated Q̂ of r̂, of every û_i and of ψ̂ (in this order), and V̂_u.

    Each is capped on its own, in every step: Q̂_r and Q̂_u at H - h + 1, Q̂_ψ at
    ψ + (H - h + 1) log A.
    """
    horizon, _, num_actions = log_policy.shape
    log_num_actions = jnp.log(num_actions).astype(log_policy.dtype)
    surprisal = -log_policy  # ψ_k
    entropy_signal = surprisal + model.transition_bonus * log_num_actions  # ψ̂_k
    signals = jnp.concatenate([model.signals, entropy_signal[..., None]], axis=-1)
    steps_left = jnp.arange(horizon, 0, -1, dtype=log_policy.dtype)[:, None, None]  # H - h + 1
    plain = jnp.broadcast_to(steps_left[..., None], model.signals.shape)
    entropy_ceiling = surprisal + steps_left * log_num_actions
    ceilings = jnp.concatenate([plain, entropy_ceiling[..., None]], axis=-1)
    every_q, values = q_values(
        model.transitions, signals, jnp.exp(log_policy), ceilings, unroll=unrolling(horizon)
    )
    return every_q, (initial @ values)[1:-1]
