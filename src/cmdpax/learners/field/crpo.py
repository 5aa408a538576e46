"""CRPO online: ascend the reward while the constraints seem to be met, else the worst constraint.

    π_1 uniform
    for k = 1, 2, …:
        r̂, û, p̂ of episodes 1, …, k - 1, with the bonuses of `optimism`          Eq. (9)
        Q̂_r, Q̂_u, V̂_u of π_k                                                    Algorithm 2
        Q = Q̂_r               if V̂_{u_i} ≥ c_i - ε_k for every i
            Q̂_{u_i}           else, for the i with the largest c_i - V̂_{u_i}
        π_{k+1} ∝ π_k exp(η_k Q)
        play π_k, count

The rule is that of Xu, Liang and Lan (2021), "CRPO: A New Approach for Safe Reinforcement Learning
with Convergence Guarantee", arXiv 2011.05869, who have a sampler of values, constant η and ε of
order 1/√K, and say nothing about which of several violated constraints is taken. Here the values
are the optimistic estimates of the paper's Algorithms 1 and 2, and both schedules decay, so that no
K is needed: after Xu et al.; constants ours. There is no guarantee for the online learner.
"""

from typing import Annotated, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Integer

from cmdpax.learners.algorithm import Algorithm
from cmdpax.learners.base import Learner
from cmdpax.learners.field.stepping import Decision, no_multipliers, step_by_step
from cmdpax.learners.statistics import Knowledge, Statistics, optimistic_model
from cmdpax.learners.truncated_evaluation import evaluate
from cmdpax.schemes.parameters import Parameter
from cmdpax.schemes.schedules import Schedule, Scheduled, value_at
from cmdpax.schemes.updates import mirror_ascent


class Parameters(NamedTuple):
    """What the user of CRPO chooses."""

    step_size: Annotated[Scheduled, Parameter("step size", "η", above=0)] = Schedule(1, 0.5, 0)
    tolerance: Annotated[
        Scheduled, Parameter("shortfall below which the reward is ascended", "ε", at_least=0)
    ] = Schedule(0.5, 0.5, 0)


def crpo(knowledge: Knowledge, parameters: Parameters) -> Learner:
    """CRPO with optimistic estimates."""

    def decide(
        episode: Integer[Array, ""], log_policy: Float[Array, "H S A"], statistics: Statistics
    ) -> Decision:
        model = optimistic_model(knowledge, statistics)
        every_q, constraint_values = evaluate(model, log_policy, knowledge.initial)
        # Signal 0, the reward, takes the place of the worst constraint if that is met.
        shortfalls = knowledge.thresholds - constraint_values
        tolerance = value_at(parameters.tolerance, episode).astype(shortfalls.dtype)
        ascended = jnp.argmax(jnp.concatenate([tolerance[None], shortfalls]))
        q_values = jnp.take(every_q, ascended, axis=1)
        following = mirror_ascent(log_policy, q_values, value_at(parameters.step_size, episode))
        none = no_multipliers(knowledge)
        return Decision(log_policy, none, constraint_values, following, q_values)

    return step_by_step(knowledge, knowledge.uniform_log_policy, decide)


ALGORITHM = Algorithm(
    "crpo",
    crpo,
    summary="CRPO: ascends the reward, or the worst constraint while it seems to be violated.",
)
