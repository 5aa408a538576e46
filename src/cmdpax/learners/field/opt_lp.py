"""OptCMDP, here `opt-lp`: plan in the best of all models that the counts allow.

After Efroni, Mannor and Pirotta, "Exploration-Exploitation in Constrained MDPs" (2020,
arXiv 2003.02189); constants ours. In episode k, with β^p and β^r of `confidence`,

    r̃ = r̄ + β^r,    ũ_i = ū_i + β^r                                   0 where rewards are known
    π_k, p̃_k = argmax over policies and p̄ - β^p ≤ p ≤ p̄ + β^p of V_{r̃}^π(p)
               subject to V_{ũ_i}^π(p) ≥ c_i for every i
    play π_k, count

which they write as a linear program over z_h(s, a, t), the extended one, with π_h(a | s) =
Σ_t z_h(s, a, t) / Σ_{a,t} z_h(s, a, t), and uniform where that is 0 / 0. Here the same optimum is
found by column generation, a column being a policy with the best rows for it
(`planning.batched_intervals`): H S² A variables are never written down.

The publication needs K for the logarithm of its widths, L = log(6 S A H K/δ). Here k stands for K,
so that the learner is anytime. It plans in every episode, which is `growth=0`; by default a plan is
played for a stretch of episodes (`replanner`), which costs a few per cent of regret and makes 10⁵
episodes a few hundred plans.
"""

from typing import NamedTuple

from jaxtyping import Array, Key

from cmdpax.learners.algorithm import Algorithm
from cmdpax.learners.base import Learner
from cmdpax.learners.estimates import Estimates
from cmdpax.learners.field.confidence import (
    BonusScale,
    FailureProbability,
    confidence_set,
    log_of_pairs,
)
from cmdpax.learners.replanner import Model, replanner
from cmdpax.learners.replanning import Growth, Stretch
from cmdpax.learners.statistics import Knowledge


class Parameters(NamedTuple):
    """The parameters of `opt-lp`."""

    bonus_scale: BonusScale = 0.01
    failure_probability: FailureProbability = 0.1
    growth: Growth = 0.05
    stretch: Stretch = 1.0


def opt_lp(knowledge: Knowledge, parameters: Parameters) -> Learner:
    """OptCMDP of Efroni et al. (2020)."""

    def make_model(estimates: Estimates, _: Key[Array, ""]) -> Model:
        delta = parameters.failure_probability
        log_term = log_of_pairs(knowledge, estimates.episode, delta, 6)
        allowed = confidence_set(knowledge, estimates, log_term, parameters.bonus_scale)
        signals = estimates.signals + allowed.mean_widths[:, None]
        return Model(allowed.lower, signals, upper=allowed.upper)

    return replanner(knowledge, make_model, growth=parameters.growth, stretch=parameters.stretch)


ALGORITHM = Algorithm(
    "opt-lp",
    opt_lp,
    summary="OptCMDP: exact plans in the best model that elementwise Bernstein bounds allow.",
    replans=True,
)
