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

import jax.numpy as jnp
from jaxtyping import Array, Float, Integer, Key

from cmdpax.learners.base import Info, Learner, Shown
from cmdpax.learners.statistics import (
    Knowledge,
    Statistics,
    Trajectory,
    empty_statistics,
    optimistic_model,
    record,
)
from cmdpax.learners.truncated_evaluation import evaluate
from cmdpax.schemes.hyperparameters import Hyperparameters, rates_at
from cmdpax.schemes.updates import primal_dual_step


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
    num_constraints, dtype = knowledge.sizes.num_constraints, knowledge.initial.dtype

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
        step = primal_dual_step(log_policy, multipliers, every_q, slacks, rates)
        next_log_policy, next_multipliers, q_values = step
        return PrimalDualState(
            episode,
            log_policy,
            next_log_policy,
            next_multipliers,
            multipliers,
            constraint_values,
            q_values,
            statistics,
        )

    def init(_: Key[Array, ""]) -> PrimalDualState:
        return prepare(
            jnp.asarray(1, jnp.int32),
            knowledge.uniform_log_policy,
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
