"""FlexDOME: Algorithm 1 against thresholds with a margin that decays.

    Algorithm 1 (`learners/primal_dual`) with
    thresholds c + ε_k,    ε_k = a Ξ k^-1/6,    η_k and τ_k that decay,    λ_max = H/((1 - a) Ξ)

After Zuo, Wang and He (2026), "Near-Constant Strong Violation and Last-Iterate Convergence for
Online CMDPs via Decaying Safety Margins", arXiv 2602.10917; constants ours. The margin majorizes
what the steps and the estimates still get wrong, so that the strong violation hardly grows, while
the regret grows like Σ_k ε_k, which is of order K^{5/6}; an earlier version has k^-1/8 and K^{7/8}.
The margin is given as a share a of the Slater gap Ξ, since no policy meets a margin beyond it. With
a share below 1, a multiplier that is optimal for thresholds with a margin is at most λ_max.
"""

from typing import Annotated, NamedTuple

from cmdpax.learners.algorithm import Algorithm
from cmdpax.learners.base import Learner
from cmdpax.learners.field.models import SlaterGap
from cmdpax.learners.primal_dual import primal_dual
from cmdpax.learners.statistics import Knowledge
from cmdpax.schemes.hyperparameters import Hyperparameters, require_damped
from cmdpax.schemes.parameters import Parameter
from cmdpax.schemes.schedules import Schedule, Scheduled


class Parameters(NamedTuple):
    """What the user of FlexDOME chooses."""

    step_size: Annotated[Scheduled, Parameter("step size", "η", above=0)] = Schedule(1, 1 / 3, 0)
    regularization: Annotated[
        Scheduled, Parameter("weight of the regularization", "τ", at_least=0)
    ] = Schedule(0.2, 1 / 3, 0)
    margin_share: Annotated[
        Scheduled, Parameter("margin, as a share of the Slater gap", "ε/Ξ", at_least=0, at_most=0.9)
    ] = Schedule(0.5, 1 / 6, 0)
    slater_gap: SlaterGap = 1.0


def flexdome(knowledge: Knowledge, parameters: Parameters) -> Learner:
    """FlexDOME."""
    assert isinstance(parameters.margin_share, Schedule)  # as numbers of the user become, too
    gap, (share, exponent, offset) = parameters.slater_gap, parameters.margin_share
    largest = share * (1 + offset) ** -exponent  # the first episode's share
    chosen = Hyperparameters(
        parameters.step_size,
        parameters.regularization,
        knowledge.sizes.horizon / ((1 - largest) * gap),
        Schedule(share * gap, exponent, offset),
    )
    return primal_dual(knowledge, chosen)


ALGORITHM = Algorithm(
    "flexdome",
    flexdome,
    summary="FlexDOME: Algorithm 1 with decaying steps, regularization and threshold margin.",
    check=require_damped,
)
