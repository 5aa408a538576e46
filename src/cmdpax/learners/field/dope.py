"""DOPE: optimistic about the objective twice, cautious about the constraints, safe while it learns.

After Bura, HasanzadeZonuzy, Kalathil, Shakkottai and Chamberland, "DOPE: Doubly Optimistic and
Pessimistic Exploration for Safe Reinforcement Learning" (2022, arXiv 2112.00885), and its public
code; constants ours. Let π_0 be the baseline and Ξ_0 = min_i V_{u_i}^{π_0} - c_i its slack. In
episode k, with β^p and β^r of `confidence` and L = log(6 S² H K/δ),

    if k ≤ K_0 = S² A H³/Ξ_0²: play π_0, count
    r̃ = r̄ + (H²/Ξ_0) Σ_t β^p + (3H/Ξ_0) β^r,    ũ_i = ū_i - H Σ_t β^p - β^r
    π_k, p̃_k = argmax over policies and p̄ - β^p ≤ p ≤ p̄ + β^p of V_{r̃}^π(p)
               subject to V_{ũ_i}^π(p) ≥ c_i for every i
    play π_k, or π_0 if nothing is feasible; count

β^r is 0 where rewards are known. The plan is made as in `opt-lp`, and `growth` is as there. With
several constraints the slack of the baseline is the smallest that it has.

As published, K_0 alone is 10⁵ episodes and more for five states. It is as large as it must be for
widths that shrink with 1/√n to become smaller than the slack, so widths s times as large need s²
times as many episodes: with s = `bonus_scale` the baseline is played for s² K_0 episodes.
"""

from typing import NamedTuple

from jaxtyping import Array, Key

from cmdpax.learners.algorithm import Algorithm
from cmdpax.learners.base import Learner
from cmdpax.learners.estimates import Estimates
from cmdpax.learners.field.confidence import (
    BonusScale,
    FailureProbability,
    baseline_slack,
    confidence_set,
    log_of_successors,
    with_bonus,
)
from cmdpax.learners.replanner import Model, replanner
from cmdpax.learners.replanning import Growth, Stretch
from cmdpax.learners.statistics import Knowledge


class Parameters(NamedTuple):
    """The parameters of `dope`."""

    bonus_scale: BonusScale = 0.0002
    failure_probability: FailureProbability = 0.01
    growth: Growth = 0.05
    stretch: Stretch = 1.0


def dope(knowledge: Knowledge, parameters: Parameters) -> Learner:
    """DOPE of Bura et al. (2022)."""
    _, horizon, num_states, num_actions = knowledge.sizes
    slack, scale = baseline_slack(knowledge), parameters.bonus_scale
    waits = scale**2 * float(num_states**2 * num_actions * horizon**3) / slack**2  # s² K_0

    def make_model(estimates: Estimates, _: Key[Array, ""]) -> Model:
        log_term = log_of_successors(knowledge, 6, parameters.failure_probability)
        allowed = confidence_set(knowledge, estimates, log_term, scale)
        rows, means = allowed.row_widths, allowed.mean_widths
        hoped = horizon**2 / slack * rows + 3 * horizon / slack * means
        signals = with_bonus(estimates, hoped, -horizon * rows - means)
        trusted = estimates.episode > waits
        return Model(allowed.lower, signals, upper=allowed.upper, trusted=trusted)

    return replanner(
        knowledge,
        make_model,
        growth=parameters.growth,
        stretch=parameters.stretch,
        falls_back=True,
    )


ALGORITHM = Algorithm(
    "dope",
    dope,
    summary="DOPE: optimistic plans within bounds, cautious in the constraints; safe meanwhile.",
    replans=True,
    anytime=False,
    needs_baseline=True,
)
