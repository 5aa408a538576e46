"""OptCMDP-bonus, here `opt-lp-bonus`: plan in p̄, and put what is uncertain into the signals.

After Efroni, Mannor and Pirotta, "Exploration-Exploitation in Constrained MDPs" (2020,
arXiv 2003.02189); constants ours. In episode k, with β^p and β^r of `confidence`,

    b = β^r + H Σ_t β^p_h(t | s, a)                                  β^r = 0 where rewards are known
    π_k = argmax V_{r̄ + b} subject to V_{ū_i + b} ≥ c_i for every i, under p̄
    play π_k, count

with L = log(6 S A H k/δ). The publication has K for k, and plans in every episode (`growth=0`).
Our `optimistic-planning` is the same plan with the simplest bonus, scale/√n. This one knows more:
rows that are all but certain have hardly a bonus, and it grows with the logarithm of k.
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
    """The parameters of `opt-lp-bonus`."""

    bonus_scale: BonusScale = 0.0002
    failure_probability: FailureProbability = 0.1
    growth: Growth = 0.05
    stretch: Stretch = 1.0


def opt_lp_bonus(knowledge: Knowledge, parameters: Parameters) -> Learner:
    """OptCMDP-bonus of Efroni et al. (2020)."""

    def make_model(estimates: Estimates, _: Key[Array, ""]) -> Model:
        delta = parameters.failure_probability
        log_term = log_of_pairs(knowledge, estimates.episode, delta, 6)
        widths = confidence_set(knowledge, estimates, log_term, parameters.bonus_scale)
        bonus = widths.mean_widths + knowledge.sizes.horizon * widths.row_widths
        return Model(estimates.transitions, estimates.signals + bonus[:, None])

    return replanner(knowledge, make_model, growth=parameters.growth, stretch=parameters.stretch)


ALGORITHM = Algorithm(
    "opt-lp-bonus",
    opt_lp_bonus,
    summary="OptCMDP-bonus: exact plans with Bernstein bonuses in objective and constraints.",
    replans=True,
)
