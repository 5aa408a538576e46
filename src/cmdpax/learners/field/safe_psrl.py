"""Safe PSRL: the best policy of a drawn model, with multipliers that ask for more than they must.

After Kalagarla, Jain and Nuzzo, "Safe Posterior Sampling for Constrained MDPs with Bounded
Constraint Violation" (2023, arXiv 2301.11547; AISTATS 2025); constants ours. For k = 1, …, K

    draw p̃ from the posterior, Dirichlet(n + prior/S) for every row; where rewards are estimated,
        draw r̃ and ũ, normally around their means
    π_k = argmax_π V_{r̃ + λ_kᵀũ/η_k}^π, under p̃                             η_k = g Ξ H √k
    λ_{k+1} = max(λ_k + c + ε_k - V_ũ^{π_k}, 0)                              ε_k: see below
    play π_k, count

with ε_k = min(s H² √(S² A log(1 + k)/k), Ξ/2). The draw explores, and ε_k is what makes up for its
errors: the sum of violations stays bounded, because an episode that is safer than it must be pays
for one that is not. That is weak regret, on average over the prior. Like all dual learners without
regularization it plays deterministic policies, so single episodes miss the thresholds throughout.

There is no baseline, but Ξ, the Slater gap, must be known roughly (`slater_gap`). Multipliers are
shown as λ_k/η_k, what a unit of a constraint is worth in units of the reward.
"""

from typing import Annotated, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Integer, Key

from cmdpax.learners.algorithm import Algorithm
from cmdpax.learners.base import Info, Learner, Shown
from cmdpax.learners.estimates import make_estimates
from cmdpax.learners.exploration import drawn_model
from cmdpax.learners.field.models import SlaterGap, plan_greedily
from cmdpax.learners.replanning import Prior
from cmdpax.learners.statistics import (
    Knowledge,
    Statistics,
    Trajectory,
    empty_statistics,
    record,
)
from cmdpax.schemes.parameters import Parameter


class Parameters(NamedTuple):
    """The parameters of `safe-psrl`."""

    slater_gap: SlaterGap = 0.5
    inertia: Annotated[
        float, Parameter("how slowly the worth of the constraints changes", "g", above=0)
    ] = 0.3
    bonus_scale: Annotated[
        float, Parameter("what is added to the thresholds, to begin with", "s", at_least=0)
    ] = 0.001
    prior: Prior = 1.0


class State(NamedTuple):
    """What the next episode needs."""

    episode: Integer[Array, ""]  # k
    log_policy: Float[Array, "H S A"]  # log π_k
    multipliers: Float[Array, " I"]  # λ_k
    worth: Float[Array, " I"]  # λ_k/η_k
    constraint_values: Float[Array, " I"]  # V_ũ of π_k
    statistics: Statistics  # of episodes 1 … k-1


def safe_psrl(knowledge: Knowledge, parameters: Parameters) -> Learner:
    """Safe PSRL of Kalagarla et al. (2023)."""
    num_constraints, horizon, num_states, num_actions = knowledge.sizes
    dtype = knowledge.initial.dtype
    gap, prior = parameters.slater_gap, parameters.prior
    nothing = jnp.zeros((horizon, 1 + num_constraints, num_states), dtype)

    def plan(
        episode: Integer[Array, ""], multipliers: Array, statistics: Statistics, key: Key[Array, ""]
    ) -> State:
        """The policy of episode k."""
        estimates = make_estimates(
            knowledge, statistics, nothing, multipliers, episode, "none", prior
        )
        drawn = drawn_model(key, knowledge, estimates, prior)
        rate = parameters.inertia * gap * horizon * jnp.sqrt(episode.astype(dtype))  # η_k
        worth = multipliers / rate
        log_policy, constraint_values = plan_greedily(knowledge, drawn, worth)
        return State(episode, log_policy, multipliers, worth, constraint_values, statistics)

    def init(key: Key[Array, ""]) -> State:
        first = jnp.asarray(1, jnp.int32)
        statistics = empty_statistics(knowledge, of_stretches=True)
        return plan(first, jnp.zeros(num_constraints, dtype), statistics, key)

    def update(state: State, trajectory: Trajectory, key: Key[Array, ""]) -> State:
        k = state.episode.astype(dtype)
        size = float(horizon**2 * num_states * num_actions**0.5)
        margin = parameters.bonus_scale * size * jnp.sqrt(jnp.log1p(k) / k)
        missing = knowledge.thresholds + jnp.minimum(margin, gap / 2) - state.constraint_values
        multipliers = jnp.maximum(state.multipliers + missing, 0)
        statistics = record(knowledge, state.statistics, trajectory)
        return plan(state.episode + 1, multipliers, statistics, key)

    def show(state: State) -> Shown:
        info = Info(state.worth, state.constraint_values, statistics=state.statistics)
        return Shown(state.log_policy, info)

    return Learner(init, update, show)


ALGORITHM = Algorithm(
    "safe-psrl",
    safe_psrl,
    summary="Safe PSRL: greedy plans in drawn models, with multipliers that ask for a margin.",
)
