"""The loop of learners that decide anew in every episode.

    for k = 1, …, K:
        decide: π_k, and what is handed on to episode k + 1, from the counts of episodes 1, …, k - 1
            and from what episode k - 1 handed on
        play π_k, count

A primal-dual learner hands on π_{k+1} and λ_{k+1}, a dual learner only λ_{k+1}.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax.numpy as jnp
from jaxtyping import Array, Float, Integer, Key

from cmdpax.learners.base import Info, Learner, Shown
from cmdpax.learners.statistics import (
    Knowledge,
    Statistics,
    Trajectory,
    empty_statistics,
    record,
)
from cmdpax.schemes.updates import dual_descent


class Decision(NamedTuple):
    """What a learner has decided before it plays episode k."""

    log_policy: Float[Array, "H S A"]  # log π_k
    multipliers: Float[Array, " I"]  # λ_k
    constraint_values: Float[Array, " I"]  # V̂_u of π_k
    following: Any  # what episode k + 1 starts from
    q_values: Float[Array, "H S A"] | None = None  # what the policy ascends


class SteppingState(NamedTuple):
    """Before episode k is played."""

    episode: Integer[Array, ""]  # k
    decision: Decision
    statistics: Statistics  # of episodes 1 … k-1


Decide: TypeAlias = Callable[[Integer[Array, ""], Any, Statistics], Decision]
"""From k, from what episode k - 1 handed on, and from the counts."""


class PolicyAndMultipliers(NamedTuple):
    """What a primal-dual learner hands on."""

    log_policy: Float[Array, "H S A"]
    multipliers: Float[Array, " I"]


def no_multipliers(knowledge: Knowledge) -> Float[Array, " I"]:
    """λ_1 = 0."""
    return jnp.zeros(knowledge.sizes.num_constraints, knowledge.initial.dtype)


def uniform_start(knowledge: Knowledge) -> PolicyAndMultipliers:
    """The uniform policy, and λ_1 = 0."""
    return PolicyAndMultipliers(knowledge.uniform_log_policy, no_multipliers(knowledge))


def descend_freely(
    multipliers: Float[Array, " I"], slacks: Float[Array, " I"], step_size: Any, damping: Any = 0.0
) -> Float[Array, " I"]:
    """λ_{k+1} = [(1 - ητ) λ_k - η (V_u - c)]_+: dual descent without an upper bound."""
    eta, tau, largest = (jnp.asarray(x, multipliers.dtype) for x in (step_size, damping, jnp.inf))
    return dual_descent(multipliers, slacks, eta, tau, largest)


def step_by_step(knowledge: Knowledge, start: Any, decide: Decide) -> Learner:
    """A learner from what it starts with and from how it decides."""

    def init(_: Key[Array, ""]) -> SteppingState:
        first, statistics = jnp.asarray(1, jnp.int32), empty_statistics(knowledge)
        return SteppingState(first, decide(first, start, statistics), statistics)

    def update(state: SteppingState, trajectory: Trajectory, _: Key[Array, ""]) -> SteppingState:
        statistics, episode = record(knowledge, state.statistics, trajectory), state.episode + 1
        decision = decide(episode, state.decision.following, statistics)
        return SteppingState(episode, decision, statistics)

    def show(state: SteppingState) -> Shown:
        log_policy, multipliers, constraint_values, _, q_values = state.decision
        return Shown(log_policy, Info(multipliers, constraint_values, q_values, state.statistics))

    return Learner(init, update, show)
