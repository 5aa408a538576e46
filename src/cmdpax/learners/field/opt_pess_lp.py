"""OptPess-LP: optimistic about the objective, cautious about the constraints, in the mean model.

After Liu, Zhou, Kalathil, Kumar and Tian, "Learning Policies with Zero or Bounded Constraint
Violation for Constrained MDPs" (2021, arXiv 2106.02684), and the code of DOPE; constants ours. Let
π_0 be the baseline, Ξ_0 = min_i V_{u_i}^{π_0} - c_i its slack, L = log(32 S² H K/δ),
β = √(L/(n ∨ 1)), and e = 1 where rewards are estimated, 0 where they are known. In episode k

    α = e + S H,    ũ_i = ū_i - α β,    r̃ = r̄ + (α + 4 H α/Ξ_0) β
    if V_{ũ_i}^{π_0}(p̄) < (c_i + V_{u_i}^{π_0})/2 for some i: play π_0, count
    π_k = argmax V_{r̃} subject to V_{ũ_i} ≥ c_i for every i, under p̄
    play π_k, or π_0 if nothing is feasible; count

so the baseline is played until it looks safe in the cautious model too, with half of its slack.
`growth=0` plans in every episode, as published. The bonuses have factors S H and 4 S H²/Ξ_0, which
`bonus_scale` makes up for; DOPE, which is cautious by β^p of every row instead, needs less.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from cmdpax.learners.algorithm import Algorithm
from cmdpax.learners.base import Learner
from cmdpax.learners.estimates import Estimates
from cmdpax.learners.field.confidence import (
    BonusScale,
    FailureProbability,
    baseline_slack,
    log_of_successors,
    with_bonus,
)
from cmdpax.learners.replanner import Model, replanner
from cmdpax.learners.replanning import Growth, Stretch
from cmdpax.learners.statistics import Knowledge
from cmdpax.model.evaluation import q_values


class Parameters(NamedTuple):
    """The parameters of `opt-pess-lp`."""

    bonus_scale: BonusScale = 0.0005
    failure_probability: FailureProbability = 0.01
    growth: Growth = 0.05
    stretch: Stretch = 1.0


def opt_pess_lp(knowledge: Knowledge, parameters: Parameters) -> Learner:
    """OptPess-LP of Liu et al. (2021)."""
    _, horizon, num_states, _ = knowledge.sizes
    estimated = knowledge.signals is None
    caution = float(estimated + num_states * horizon)  # α
    hope = caution + 4 * horizon * caution / baseline_slack(knowledge)

    def make_model(estimates: Estimates, _: Key[Array, ""]) -> Model:
        log_term = log_of_successors(knowledge, 32, parameters.failure_probability)
        widths = parameters.bonus_scale * jnp.sqrt(log_term / estimates.visits_or_one)  # β
        signals = with_bonus(estimates, hope * widths, -caution * widths)
        trusted = _looks_safe(knowledge, estimates, signals)
        return Model(estimates.transitions, signals, trusted=trusted)

    return replanner(
        knowledge,
        make_model,
        growth=parameters.growth,
        stretch=parameters.stretch,
        falls_back=True,
    )


def _looks_safe(
    knowledge: Knowledge, estimates: Estimates, signals: Float[Array, "H J S A"]
) -> Bool[Array, ""]:
    """Whether the baseline keeps half of its slack in the cautious model."""
    baseline = knowledge.baseline
    assert baseline is not None
    _, values = q_values(estimates.transitions, signals[:, 1:], baseline.policy)
    middle = (knowledge.thresholds + baseline.constraint_values) / 2
    return jnp.all(values @ knowledge.initial >= middle)


ALGORITHM = Algorithm(
    "opt-pess-lp",
    opt_pess_lp,
    summary="OptPess-LP: exact plans, hopeful in the objective and cautious in the constraints.",
    replans=True,
    anytime=False,
    needs_baseline=True,
)
