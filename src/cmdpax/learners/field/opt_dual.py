"""OptDual-CMDP: greedy planning in an optimistic model, and descent in the multipliers.

    λ_1 = 0
    for k = 1, …, K:
        r̂, û: the means of episodes 1, …, k - 1, plus bonuses                    `models`
        π_k = argmax_π V_{r̂ + λ_kᵀû}^π under p̄
        λ_{k+1} = [λ_k - (V_û^{π_k} - c)/t]_+,    t = √(H² I K/ρ²),  ρ = H/Ξ ≥ ‖λ*‖
        play π_k, count

After Efroni, Mannor and Pirotta (2020), "Exploration-Exploitation in Constrained MDPs",
arXiv 2003.02189, in reward form. They plan over all models of a confidence set or, as here, under p̄
with bonuses. Policies are deterministic, so that single episodes jump between vertices, and the
bound of order √K is on the weak regret.

The published bonuses are multiplied by `bonus_scale`. In small experiments 0.0003 works well; the
public code of UOpt-RPGPD, which runs this group's primal-dual learner, has 0.001.
"""

from typing import Annotated, Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Integer

from cmdpax.learners.algorithm import Algorithm
from cmdpax.learners.base import Learner
from cmdpax.learners.field.confidence import BonusScale, FailureProbability
from cmdpax.learners.field.models import SlaterGap, given_or, plan_greedily, published_model
from cmdpax.learners.field.stepping import Decision, descend_freely, no_multipliers, step_by_step
from cmdpax.learners.statistics import Knowledge, Statistics
from cmdpax.schemes.parameters import Parameter

DualStepSize = Annotated[
    float, Parameter("step size of the multipliers; 0: from K and Ξ", "1/t", at_least=0)
]


class Parameters(NamedTuple):
    """What the user of OptDual-CMDP chooses."""

    multiplier_step_size: DualStepSize = 0.0
    slater_gap: SlaterGap = 1.0
    bonus_scale: BonusScale = 0.0003
    failure_probability: FailureProbability = 0.1


def published_step(knowledge: Knowledge, slater_gap: Any) -> Float[Array, ""]:
    """1/t = ρ/√(H² I K) = 1/(Ξ √(I K))."""
    assert knowledge.num_episodes is not None
    num_constraints = max(knowledge.sizes.num_constraints, 1)
    num_episodes = knowledge.num_episodes.astype(knowledge.initial.dtype)
    return 1 / (slater_gap * jnp.sqrt(num_constraints * num_episodes))


def opt_dual(knowledge: Knowledge, parameters: Parameters) -> Learner:
    """OptDual-CMDP."""
    step_size = given_or(
        parameters.multiplier_step_size, published_step(knowledge, parameters.slater_gap)
    )

    def decide(
        _: Integer[Array, ""], multipliers: Float[Array, " I"], statistics: Statistics
    ) -> Decision:
        model = published_model(knowledge, statistics, knowledge.num_episodes, parameters)
        log_policy, constraint_values = plan_greedily(knowledge, model, multipliers)
        slacks = constraint_values - knowledge.thresholds
        following = descend_freely(multipliers, slacks, step_size)
        return Decision(log_policy, multipliers, constraint_values, following)

    return step_by_step(knowledge, no_multipliers(knowledge), decide)


ALGORITHM = Algorithm(
    "opt-dual",
    opt_dual,
    summary="OptDual-CMDP: greedy optimistic planning, dual steps from K and the Slater gap.",
    anytime=False,
)
