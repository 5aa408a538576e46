"""OptPess-PrimalDual: an optimistic policy, and multipliers that are pessimistic.

    λ_1 = 0
    for k = 1, 2, …:
        r̂, û: the means of episodes 1, …, k - 1, plus bonuses with K = k         `models`
        π_k = argmax_π V_r̂^π + (λ_k/η_k)ᵀ V_û^π under p̄
        λ_{k+1} = [λ_k - (V_û^{π_k} - c - ε_k)]_+
        play π_k, count

    η_k = Ξ H √k,    ε_k = H² √(S³ A log(k/δ)/k)

After Liu, Zhou, Kalathil, Kumar and Tian (2021), "Learning Policies with Zero or Bounded Constraint
Violation for Constrained MDPs", arXiv 2106.02684, in reward form; constants ours. The model
promises too much, and the dual step asks for ε_k more than the threshold, which makes up for it, so
that the weak violation stays bounded while the weak regret grows like √K. What `Info` shows as the
multipliers is λ_k/η_k, with which the policy weighs the constraints.

With its published constant ε_k exceeds the Slater gap for millions of episodes, even in small
models, so `margin_scale` multiplies it, as `step_scale` multiplies η_k and `bonus_scale` the
bonuses.
"""

from typing import Annotated, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Integer

from cmdpax.learners.algorithm import Algorithm
from cmdpax.learners.base import Learner
from cmdpax.learners.field.confidence import BonusScale, FailureProbability
from cmdpax.learners.field.models import SlaterGap, plan_greedily, published_model
from cmdpax.learners.field.stepping import Decision, descend_freely, no_multipliers, step_by_step
from cmdpax.learners.statistics import Knowledge, Statistics
from cmdpax.schemes.parameters import Parameter


class Parameters(NamedTuple):
    """What the user of OptPess-PrimalDual chooses."""

    slater_gap: SlaterGap = 1.0
    step_scale: Annotated[float, Parameter("multiplies η_k", above=0)] = 1.0
    margin_scale: Annotated[float, Parameter("multiplies ε_k", at_least=0)] = 0.002
    bonus_scale: BonusScale = 0.0003
    failure_probability: FailureProbability = 0.1


def opt_pess_primal_dual(knowledge: Knowledge, parameters: Parameters) -> Learner:
    """OptPess-PrimalDual."""
    _, horizon, num_states, num_actions = knowledge.sizes
    width = horizon**2 * (num_states**3 * num_actions) ** 0.5  # H² √(S³ A)

    def decide(
        episode: Integer[Array, ""], multipliers: Float[Array, " I"], statistics: Statistics
    ) -> Decision:
        k = episode.astype(multipliers.dtype)
        scale = parameters.step_scale * parameters.slater_gap * horizon * jnp.sqrt(k)  # η_k
        logarithm = jnp.log(k / parameters.failure_probability)
        margin = parameters.margin_scale * width * jnp.sqrt(logarithm / k)  # ε_k
        model = published_model(knowledge, statistics, episode, parameters)
        weights = multipliers / scale
        log_policy, constraint_values = plan_greedily(knowledge, model, weights)
        slacks = constraint_values - (knowledge.thresholds + margin)
        following = descend_freely(multipliers, slacks, 1.0)
        return Decision(log_policy, weights, constraint_values, following)

    return step_by_step(knowledge, no_multipliers(knowledge), decide)


ALGORITHM = Algorithm(
    "opt-pess-primal-dual",
    opt_pess_primal_dual,
    summary="OptPess-PrimalDual: optimistic planning, dual steps that ask for a decaying margin.",
)
