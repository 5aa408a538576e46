"""Dual learning with optimistic exploration: Algorithm 3, Eqs. (11)-(12).

    for k = 1, …, K:
        update r̂_k, û_k, p̂_k                                                        Eq. (9)
        π_k = argmax_π V_{r̂ + λ_kᵀû}^π + τ·(optimistic entropy), under p̂            Eq. (11)
        λ_{k+1} = clip((1 - ητ) λ_k - η (V_û^{π_k} - c))                            Eq. (12)
        play π_k, count

(The paper prints argmin; it is argmax.) The optimistic entropy adds b^p log A per step, so that the
planning reward is r̂ + λᵀû + τ b^p log A. Nothing is truncated. The vanilla algorithm is τ = 0,
where soft planning becomes greedy: another planner, since soft planning divides by τ.
"""

import functools
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Integer, Key

from cmdpax.learners.base import Info, Learner, Shown
from cmdpax.learners.statistics import (
    Knowledge,
    Statistics,
    Trajectory,
    empty_statistics,
    is_short,
    optimistic_model,
    record,
)
from cmdpax.model.transitions import at_step
from cmdpax.planning.dynamic_program import backward_plan, greedy, soft
from cmdpax.schemes.hyperparameters import Hyperparameters, rates_at
from cmdpax.schemes.updates import dual_descent


class DualState(NamedTuple):
    """What the next episode needs."""

    episode: Integer[Array, ""]  # k
    log_policy: Float[Array, "H S A"]  # log π_k, planned from episodes 1 … k-1
    multipliers: Float[Array, " I"]  # λ_k
    constraint_values: Float[Array, " I"]  # V_û of π_k
    statistics: Statistics  # of episodes 1 … k-1


def dual(is_soft: bool, knowledge: Knowledge, hyperparameters: Hyperparameters) -> Learner:
    """Algorithm 3 if soft; the vanilla dual algorithm if not."""
    num_constraints, horizon, _, num_actions = knowledge.sizes
    dtype = knowledge.initial.dtype
    log_num_actions = jnp.log(num_actions).astype(dtype)

    def plan(
        episode: Integer[Array, ""], multipliers: Float[Array, " I"], statistics: Statistics
    ) -> DualState:
        """ "Update" the model and plan π_k for λ_k."""
        model = optimistic_model(knowledge, statistics)
        regularization = rates_at(hyperparameters, episode).regularization
        constraints = jnp.einsum("i,hisa->hsa", multipliers, model.signals[:, 1:])
        reward = model.signals[:, 0] + constraints
        if is_soft:
            reward = reward + regularization * model.transition_bonus * log_num_actions
        _, values, log_policy = backward_plan(
            lambda step: (at_step(model.transitions, step), reward[step], model.signals[step]),
            knowledge.sizes,
            soft(regularization) if is_soft else greedy,
            knowledge.initial,
            unrolled=is_short(horizon),
            available=knowledge.available,
        )
        return DualState(episode, log_policy, multipliers, values[1:], statistics)

    def init(_: Key[Array, ""]) -> DualState:
        first = jnp.asarray(1, jnp.int32)
        return plan(first, jnp.zeros(num_constraints, dtype), empty_statistics(knowledge))

    def update(state: DualState, trajectory: Trajectory, _: Key[Array, ""]) -> DualState:
        rates = rates_at(hyperparameters, state.episode)
        multipliers = dual_descent(
            state.multipliers,
            state.constraint_values - (knowledge.thresholds + rates.margin),
            rates.step_size,
            rates.regularization,
            rates.max_multiplier,
        )
        statistics = record(knowledge, state.statistics, trajectory)
        return plan(state.episode + 1, multipliers, statistics)

    def show(state: DualState) -> Shown:
        info = Info(state.multipliers, state.constraint_values, statistics=state.statistics)
        return Shown(state.log_policy, info)

    return Learner(init, update, show)


regularized_dual = functools.partial(dual, True)
vanilla_dual = functools.partial(dual, False)
