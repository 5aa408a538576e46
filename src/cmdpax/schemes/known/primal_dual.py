"""The primal-dual scheme of the paper, vanilla and regularized, and RPG-PD.

    π_{k+1} ∝ π_k exp(ηQ),  Q = Q^{π_k} of r + λ_kᵀu + τψ_k,  ψ_k = -log π_k         Eqs. (3), (6)
    λ_{k+1} = clip_[0, λ_max]((1 - ητ) λ_k - η (V_u^{π_k} - c))                       Eqs. (4), (7)

RPG-PD (Ding, Wei, Zhang and Ribeiro 2023, arXiv 2306.11700) projects π_{k+1} onto a restricted
simplex after the ascent, {x : x_a ≥ ε_0/A}, in KL divergence. With one constraint its last iterate
is within ε of the optimum after Õ(ε⁻⁶) iterations, if η, τ and ε_0 are chosen for ε; the defaults
are ours.
"""

from typing import Annotated, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from cmdpax.model.cmdp import CMDP
from cmdpax.schemes.exact import evaluate_with_entropy, first_log_policy
from cmdpax.schemes.hyperparameters import require_damped
from cmdpax.schemes.parameters import Parameter
from cmdpax.schemes.schedules import Scheduled
from cmdpax.schemes.scheme import Move, Rates, Scheme
from cmdpax.schemes.updates import primal_dual_step, raise_to_floor

STEP_SIZE = Parameter("step size", symbol="η", above=0)
REGULARIZATION = Parameter("weight of the regularization", symbol="τ", at_least=0)
MAX_MULTIPLIER = Parameter("largest multiplier", symbol="λ_max", above=0)
_FLOOR = Parameter("least A·π(a | s), with A actions", symbol="ε₀", at_least=0, at_most=1)


class Parameters(NamedTuple):
    """What a user chooses."""

    step_size: Annotated[Scheduled, STEP_SIZE] = 0.1
    regularization: Annotated[Scheduled, REGULARIZATION] = 0.0
    max_multiplier: Annotated[float, MAX_MULTIPLIER] = 6.0
    policy_floor: Annotated[float, _FLOOR] = 0.0


class RegularizedParameters(NamedTuple):
    """The same, with the defaults of RPG-PD."""

    step_size: Annotated[Scheduled, STEP_SIZE] = 0.1
    regularization: Annotated[Scheduled, REGULARIZATION] = 0.02
    max_multiplier: Annotated[float, MAX_MULTIPLIER] = 6.0
    policy_floor: Annotated[float, _FLOOR] = 0.01


class PrimalDualState(NamedTuple):
    """Both players."""

    log_policy: Float[Array, "H S A"]  # log π_k
    multipliers: Float[Array, " I"]  # λ_k


def init(cmdp: CMDP, _: Parameters | RegularizedParameters) -> PrimalDualState:
    """The uniform policy and λ_1 = 0."""
    start = jnp.zeros(cmdp.num_constraints, cmdp.initial.dtype)
    return PrimalDualState(first_log_policy(cmdp), start)


def step(cmdp: CMDP, rates: Rates, state: PrimalDualState) -> Move:
    """Both players move at the same time."""
    log_policy, multipliers = state
    every_q, values = evaluate_with_entropy(cmdp, log_policy)
    slacks = values[1:-1] - cmdp.thresholds
    ascended, descended, _ = primal_dual_step(log_policy, multipliers, every_q, slacks, rates)
    following = raise_to_floor(ascended, rates.policy_floor, cmdp.available)
    return Move(log_policy, multipliers, PrimalDualState(following, descended))


PRIMAL_DUAL = Scheme(
    "primal-dual",
    init,
    step,
    Parameters,
    summary="Mirror ascent in the policy, projected descent in the multipliers.",
    source="the paper, Eqs. (3)-(4) and (6)-(7)",
    has_potential=True,
    check=require_damped,
)
RPG_PD = Scheme(
    "rpg-pd",
    init,
    step,
    RegularizedParameters,
    summary="The regularized primal-dual scheme on a restricted simplex.",
    source="Ding, Wei, Zhang and Ribeiro 2023, arXiv 2306.11700",
    has_potential=True,
    check=require_damped,
)
