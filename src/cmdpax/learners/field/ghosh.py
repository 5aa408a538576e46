"""Soft policies that are optimistic in both, with one multiplier that is searched for.

After Ghosh, Zhou and Shroff (2024), "Towards achieving sub-linear regret and hard constraint
violation in model-free RL", AISTATS, for the tabular case. It is `opse` (where the symbols are
explained) with the bonus of u added instead of subtracted, and thus without compensation and
baseline:

    for k = 1, 2, …:
        for any λ, backward in h:
            Q_r = r + clip(C b + p̄ V_r, 0, H - h),  V_r = ⟨π^λ, Q_r⟩
            Q_u = u + clip(C b + p̄ V_u, 0, H - h),  V_u = ⟨π^λ, Q_u⟩
            π^λ = softmax((Q_r + λ Q_u)/κ)
        π_k = π^λ, the smallest λ with V_u ≥ c; λ_max where that fails       bisection of [0, λ_max]
        play π_k, count

The publication searches a grid of λ that is exponential in H, for which it proves strong regret and
violation of Õ(√K). Bisection is what those who compared with it use (Kitamura et al., 2025), with
C from 1 to 5, κ = 0.1 and λ_max = 300; constants here are ours.
"""

from typing import NamedTuple

from cmdpax.learners.algorithm import Algorithm
from cmdpax.learners.base import Learner
from cmdpax.learners.field.opse import (
    BonusScale,
    MaxMultiplier,
    Optimism,
    SearchSteps,
    Temperature,
    soft_search,
)
from cmdpax.learners.statistics import Knowledge


class Ghosh(NamedTuple):
    """The parameters of `ghosh`."""

    bonus_scale: BonusScale = 0.1
    temperature: Temperature = 0.02
    max_multiplier: MaxMultiplier = 300.0
    search_steps: SearchSteps = 20


def ghosh(knowledge: Knowledge, parameters: Ghosh) -> Learner:
    """Soft policies that are optimistic about the objective and the constraint."""
    optimism = Optimism(parameters.bonus_scale, compensation=0.0, entropy=0.0, of_constraint=1)
    return soft_search(knowledge, optimism, parameters)


ALGORITHM = Algorithm(
    "ghosh",
    ghosh,
    summary="Soft policies that are optimistic in both, with one multiplier searched for.",
    max_constraints=1,
)
