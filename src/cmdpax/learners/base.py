"""What a learner is: a pair of pure functions, and what it may know.

    init()                     -> state            state.log_policy is what the next episode plays
    update(state, trajectory)  -> (state, Info)    the state for the next episode; what to observe

A learner is made by a factory from `Knowledge` (sizes, the start, thresholds, what is known of the
rewards, the bonuses) and `Hyperparameters`. It never sees the true model and computes no regret.
Everything but the sizes may be traced, so one definition runs once, jitted, vmapped over seeds,
hyperparameters and stacked models.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax.numpy as jnp
from jaxtyping import Array, Float, Integer

from cmdpax.estimation import Knowledge, Trajectory
from cmdpax.schedules import Schedule, value_at


class Hyperparameters(NamedTuple):
    """The numbers that a user chooses."""

    step_size: Schedule  # η
    regularization: Schedule  # τ
    max_multiplier: Any  # λ_max
    margin: Schedule  # learn against c + margin

    def __str__(self) -> str:
        """For people: step_size 0.1, regularization 0.02, max_multiplier 6, margin 0."""
        return (
            f"step_size {self.step_size}, regularization {self.regularization}, "
            f"max_multiplier {self.max_multiplier:g}, margin {self.margin}"
        )


class Rates(NamedTuple):
    """The hyperparameters of one episode."""

    step_size: Float[Array, ""]
    regularization: Float[Array, ""]
    max_multiplier: Float[Array, ""]
    margin: Float[Array, ""]


def rates_at(hyperparameters: Hyperparameters, episode: Integer[Array, ""]) -> Rates:
    """η_k, τ_k, λ_max and the margin of episode k = 1, 2, …"""
    step_size, regularization, max_multiplier, margin = hyperparameters
    return Rates(
        value_at(step_size, episode),
        value_at(regularization, episode),
        jnp.asarray(max_multiplier),
        value_at(margin, episode),
    )


class Info(NamedTuple):
    """What an observer may want of an episode."""

    multipliers: Float[Array, " I"]  # λ_k
    constraint_values: Float[Array, " I"]  # V̂_u of π_k, the optimistic estimates
    q_values: Float[Array, "H S A"] | None  # Q̂_z of π_k; None where there is none


class Learner(NamedTuple):
    """A learner: a pair of pure functions."""

    init: Callable[[], Any]
    update: Callable[[Any, Trajectory], tuple[Any, Info]]


Factory: TypeAlias = Callable[[Knowledge, Hyperparameters], Learner]
"""Makes a learner of what it knows and what the user chose."""
