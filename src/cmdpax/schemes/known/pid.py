"""PID Lagrangian, after Stooke, Achiam and Abbeel (2020).

The multipliers are what a controller answers to the shortfall Δ_k = c - V_u^{π_k}:

    E_k = clip_[0, λ_max](E_{k-1} + K_I Δ_k)                        the integral, K_I times a sum
    λ_k = clip_[0, λ_max](K_P Δ_k + E_k + K_D [V_u^{π_{k-1}} - V_u^{π_k}]_+)
    π_{k+1} ∝ π_k exp(ηQ_k),    Q_k = Q^{π_k} of (r + λ_kᵀu)/(1 + Σ_i λ_{k,i})

λ_k is an answer to π_k, and the policy ascends by it at once. With K_P = K_D = 0 the multipliers
make the vanilla dual step of size K_I. (arXiv 2007.03964; constants, the upper bound λ_max and the
sum over several constraints are ours.) No rate is known.
"""

from typing import Annotated, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from cmdpax.model.cmdp import CMDP
from cmdpax.schemes.exact import evaluate_signals, first_log_policy
from cmdpax.schemes.known.primal_dual import MAX_MULTIPLIER, STEP_SIZE
from cmdpax.schemes.parameters import Parameter
from cmdpax.schemes.schedules import Scheduled
from cmdpax.schemes.scheme import Move, Rates, Scheme
from cmdpax.schemes.updates import mirror_ascent, weighted


def _gain(text: str, symbol: str) -> Parameter:
    return Parameter(text, symbol=symbol, at_least=0)


class Parameters(NamedTuple):
    """What a user chooses."""

    step_size: Annotated[Scheduled, STEP_SIZE] = 0.1
    proportional_gain: Annotated[Scheduled, _gain("weight of the shortfall itself", "K_P")] = 1.0
    integral_gain: Annotated[Scheduled, _gain("weight of the shortfalls' sum", "K_I")] = 0.1
    derivative_gain: Annotated[Scheduled, _gain("weight of the shortfall's rise", "K_D")] = 0.0
    max_multiplier: Annotated[float, MAX_MULTIPLIER] = 6.0


class ControlledState(NamedTuple):
    """The policy, and what the controller remembers."""

    log_policy: Float[Array, "H S A"]  # log π_k
    integral: Float[Array, " I"]  # E_{k-1}
    constraint_values: Float[Array, " I"]  # V_u of π_{k-1}
    is_first: Bool[Array, ""]


def init(cmdp: CMDP, _: Parameters) -> ControlledState:
    """The uniform policy and nothing to remember."""
    start = jnp.zeros(cmdp.num_constraints, cmdp.initial.dtype)
    return ControlledState(first_log_policy(cmdp), start, start, jnp.array(True))


def step(cmdp: CMDP, rates: Rates, state: ControlledState) -> Move:
    """Measure, control, ascend."""
    log_policy, integral, before, is_first = state
    every_q, values = evaluate_signals(cmdp, log_policy)
    reached = values[1:]
    shortfall = cmdp.thresholds - reached
    integral = jnp.clip(integral + rates.integral_gain * shortfall, 0, rates.max_multiplier)
    rise = jnp.where(is_first, 0, jnp.maximum(before - reached, 0))
    control = rates.proportional_gain * shortfall + integral + rates.derivative_gain * rise
    multipliers = jnp.clip(control, 0, rates.max_multiplier)
    q_values = weighted(every_q, multipliers) / (1 + jnp.sum(multipliers))
    following = mirror_ascent(log_policy, q_values, rates.step_size)
    remembered = ControlledState(following, integral, reached, jnp.zeros_like(is_first))
    return Move(log_policy, multipliers, remembered)


PID = Scheme(
    "pid",
    init,
    step,
    Parameters,
    summary="Multipliers by a controller: proportional, integral and derivative.",
    source="Stooke, Achiam and Abbeel 2020, arXiv 2007.03964",
)
