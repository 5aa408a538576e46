"""Primal-dual learning with optimistic exploration: Algorithms 1 and 2.

    for k = 1, …, K:
        update r̂_k, û_k, p̂_k, ψ̂_k                                  Eq. (9)
        truncated policy evaluation of π_k: Q̂_z, V̂_u               Algorithm 2
        π_{k+1} ∝ π_k exp(η Q̂_z)                                   Eq. (6)
        λ_{k+1} = clip((1 - ητ) λ_k - η (V̂_u - c))                 Eq. (7)
        play π_k, count

The vanilla algorithm is τ = 0.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Integer, Key

from cmdpax.estimation import (
    Knowledge,
    OptimisticModel,
    Statistics,
    Trajectory,
    empty_statistics,
    is_short,
    optimistic_model,
    record,
)
from cmdpax.evaluation import backward_scan
from cmdpax.learners.base import Info, Learner, Shown
from cmdpax.learners.parameters import Hyperparameters, rates_at
from cmdpax.schemes import primal_dual_step
from cmdpax.transitions import at_step, backup_signals


class PrimalDualState(NamedTuple):
    """Between "update" and "play": π_k is about to be played, π_{k+1} and λ_{k+1} are known."""

    episode: Integer[Array, ""]  # k
    log_policy: Float[Array, "H S A"]  # log π_k
    next_log_policy: Float[Array, "H S A"]  # log π_{k+1}
    next_multipliers: Float[Array, " I"]  # λ_{k+1}
    multipliers: Float[Array, " I"]  # λ_k
    constraint_values: Float[Array, " I"]  # V̂_u of π_k
    q_values: Float[Array, "H S A"]  # Q̂_z of π_k
    statistics: Statistics  # of episodes 1 … k-1


def primal_dual(knowledge: Knowledge, hyperparameters: Hyperparameters) -> Learner:
    """Algorithm 1; with regularization 0, the vanilla primal-dual algorithm."""
    num_constraints, *pairs = knowledge.sizes
    dtype = knowledge.initial.dtype

    def prepare(
        episode: Integer[Array, ""],
        log_policy: Float[Array, "H S A"],
        multipliers: Float[Array, " I"],
        statistics: Statistics,
    ) -> PrimalDualState:
        """Episode k up to "play": all of it comes from the episodes before."""
        rates = rates_at(hyperparameters, episode)
        # "Update r̂_k, û_k, p̂_k, ψ̂_k."
        model = optimistic_model(knowledge, statistics)
        # "Truncated policy evaluation."
        every_q, constraint_values = evaluate(model, log_policy, knowledge.initial)
        # "Update primal variables. Update dual variables."
        slacks = constraint_values - (knowledge.thresholds + rates.margin)
        following = primal_dual_step(log_policy, multipliers, every_q, slacks, rates)
        return PrimalDualState(
            episode,
            log_policy,
            following.log_policy,
            following.multipliers,
            multipliers,
            constraint_values,
            following.q_lagrangian,
            statistics,
        )

    def init(_: Key[Array, ""]) -> PrimalDualState:
        return prepare(
            jnp.asarray(1, jnp.int32),
            jnp.full(pairs, -jnp.log(pairs[-1]), dtype),  # uniform
            jnp.zeros(num_constraints, dtype),
            empty_statistics(knowledge),
        )

    def update(
        state: PrimalDualState, trajectory: Trajectory, _: Key[Array, ""]
    ) -> PrimalDualState:
        # "Play π_k for one episode, update" the counts; then the next episode begins. Counting
        # before the model is read lets XLA change its rows in place.
        statistics = record(knowledge, state.statistics, trajectory)
        return prepare(state.episode + 1, state.next_log_policy, state.next_multipliers, statistics)

    def show(state: PrimalDualState) -> Shown:
        info = Info(state.multipliers, state.constraint_values, state.q_values, state.statistics)
        return Shown(state.log_policy, info)

    return Learner(init, update, show)


def evaluate(
    model: OptimisticModel, log_policy: Float[Array, "H S A"], initial: Float[Array, " S"]
) -> tuple[Float[Array, "H L S A"], Float[Array, " I"]]:
    """Algorithm 2: truncated Q̂ of r̂, of every û_i and of ψ̂ (in this order), and V̂_u.

    Each is capped on its own, in every step: Q̂_r and Q̂_u at H - h + 1, Q̂_ψ at
    ψ + (H - h + 1) log A.
    """
    horizon, num_states, num_actions = log_policy.shape
    log_num_actions = jnp.log(num_actions).astype(log_policy.dtype)

    def step(values: Float[Array, "L S"] | None, at: tuple[Any, ...]) -> tuple[Array, Array]:
        index, signals, bonus, log_decision, steps_left = at  # H - h + 1
        surprisal = -log_decision  # ψ_k
        plain, entropy = signals, surprisal + bonus * log_num_actions  # r̂ and û; ψ̂_k
        if values is not None:
            expected = backup_signals(at_step(model.transitions, index), values)
            plain, entropy = plain + expected[:-1], entropy + expected[-1]
        plain = jnp.minimum(plain, steps_left)
        entropy = jnp.minimum(entropy, surprisal + steps_left * log_num_actions)
        every_q = jnp.concatenate([plain, entropy[None]])
        return jnp.sum(jnp.exp(log_decision)[None] * every_q, axis=-1), every_q

    steps_left = jnp.arange(horizon, 0, -1, dtype=log_policy.dtype)
    stages = (jnp.arange(horizon), model.signals, model.transition_bonus, log_policy, steps_left)
    nothing = jnp.zeros((model.signals.shape[1] + 1, num_states), log_policy.dtype)
    values, every_q = backward_scan(step, nothing, stages, is_short(horizon))
    return every_q, (values @ initial)[1:-1]
