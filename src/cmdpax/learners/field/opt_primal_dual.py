"""OptPrimalDual-CMDP: optimistic truncated evaluation, mirror ascent, and dual descent.

    π_1 uniform, λ_1 = 0
    for k = 1, …, K:
        r̂, û: the means of episodes 1, …, k - 1, plus bonuses                    `models`
        Q̂_r, Q̂_u, V̂_u of π_k under p̄, each capped at H - h + 1                  Algorithm 2
        π_{k+1} ∝ π_k exp(t_K (Q̂_r + λ_kᵀ Q̂_u)),    t_K = √(2 log A/(H² (1 + Iρ)² K))
        λ_{k+1} = [λ_k - (V̂_u - c)/t]_+,            t = √(H² I K/ρ²),  ρ = H/Ξ ≥ ‖λ*‖
        play π_k, count

After Efroni, Mannor and Pirotta (2020), "Exploration-Exploitation in Constrained MDPs",
arXiv 2003.02189, in reward form, with both steps as in the public code of UOpt-RPGPD. (That code
computes the dual step from π_{k+1} and the Q of π_k; here it is from π_k, as printed.) The bound of
order √K is on the weak regret.

The published t_K makes so small steps that the policy hardly moves within 10⁴ episodes: with H = 5,
K = 4000 and Ξ = 1 it is 10⁻³. `step_scale` multiplies it, and 1 is what is published.
The published bonuses are multiplied by `bonus_scale`: 0.0003 here, and 0.001 in that code.
"""

from typing import Annotated, Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Integer

from cmdpax.learners.algorithm import Algorithm
from cmdpax.learners.base import Learner
from cmdpax.learners.field.confidence import BonusScale, FailureProbability
from cmdpax.learners.field.models import SlaterGap, given_or, published_model
from cmdpax.learners.field.opt_dual import DualStepSize, published_step
from cmdpax.learners.field.stepping import (
    Decision,
    PolicyAndMultipliers,
    descend_freely,
    step_by_step,
    uniform_start,
)
from cmdpax.learners.statistics import Knowledge, Statistics
from cmdpax.learners.truncated_evaluation import evaluate
from cmdpax.schemes.parameters import Parameter
from cmdpax.schemes.updates import lagrangian, mirror_ascent


class Parameters(NamedTuple):
    """What the user of OptPrimalDual-CMDP chooses."""

    step_size: Annotated[
        float, Parameter("step size of the policy; 0: from K and Ξ", "η", at_least=0)
    ] = 0.0
    multiplier_step_size: DualStepSize = 0.0
    slater_gap: SlaterGap = 1.0
    step_scale: Annotated[
        float, Parameter("multiplies the published step size of the policy", above=0)
    ] = 100.0
    bonus_scale: BonusScale = 0.0003
    failure_probability: FailureProbability = 0.1


def _published_policy_step(knowledge: Knowledge, slater_gap: Any) -> Float[Array, ""]:
    """t_K."""
    assert knowledge.num_episodes is not None
    num_constraints, horizon, _, num_actions = knowledge.sizes
    num_episodes = knowledge.num_episodes.astype(knowledge.initial.dtype)
    scale = horizon * (1 + num_constraints * horizon / slater_gap)  # H (1 + Iρ)
    return jnp.sqrt(2 * jnp.log(num_actions).astype(num_episodes.dtype) / num_episodes) / scale


def opt_primal_dual(knowledge: Knowledge, parameters: Parameters) -> Learner:
    """OptPrimalDual-CMDP."""
    gap = parameters.slater_gap
    published = parameters.step_scale * _published_policy_step(knowledge, gap)
    step_size = given_or(parameters.step_size, published)
    multiplier_step = given_or(parameters.multiplier_step_size, published_step(knowledge, gap))

    def decide(
        _: Integer[Array, ""], carried: PolicyAndMultipliers, statistics: Statistics
    ) -> Decision:
        log_policy, multipliers = carried
        model = published_model(knowledge, statistics, knowledge.num_episodes, parameters)
        every_q, constraint_values = evaluate(model, log_policy, knowledge.initial)
        q_values = lagrangian(every_q, multipliers, jnp.zeros_like(step_size))
        slacks = constraint_values - knowledge.thresholds
        following = PolicyAndMultipliers(
            mirror_ascent(log_policy, q_values, step_size),
            descend_freely(multipliers, slacks, multiplier_step),
        )
        return Decision(log_policy, multipliers, constraint_values, following, q_values)

    return step_by_step(knowledge, uniform_start(knowledge), decide)


ALGORITHM = Algorithm(
    "opt-primal-dual",
    opt_primal_dual,
    summary="OptPrimalDual-CMDP: mirror ascent and dual descent, steps from K and the Slater gap.",
    anytime=False,
)
