"""Optimistic steps with two sequences, which OPG-PD and OMWU-PD share.

Each player has an anchor, π̂_k and λ̂_k, that follows the gradients, and plays one step ahead of
it, by the gradient of the iteration before:

    π_k = step(π̂_k, Q_{k-1}),        λ_k = P(λ̂_k - η (V_u^{π_{k-1}} - c)),
    π̂_{k+1} = step(π̂_k, Q_k),        λ̂_{k+1} = P(λ̂_k - η (V_u^{π_k} - c)),

where Q_k are the Q-values of r + λ_kᵀu under π_k, and P clips to [0, λ_max]. There is no iteration
0: Q_0 = 0, so that the first policy is uniform and λ_1 = 0.
"""

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from cmdpax.model.availability import Flags
from cmdpax.model.cmdp import CMDP
from cmdpax.schemes.exact import evaluate_signals, first_log_policy
from cmdpax.schemes.known.primal_dual import MAX_MULTIPLIER, STEP_SIZE
from cmdpax.schemes.schedules import Scheduled
from cmdpax.schemes.scheme import Move, Rates
from cmdpax.schemes.updates import weighted

Ascent = Callable[[Array, Array, Array, Flags | None], Array]
"""From log π̂, Q, η and the flags of available actions to log π."""


class Parameters(NamedTuple):
    """What a user chooses."""

    step_size: Annotated[Scheduled, STEP_SIZE] = 0.1
    max_multiplier: Annotated[float, MAX_MULTIPLIER] = 6.0


class AnchoredState(NamedTuple):
    """Both anchors, and the gradients of the iteration before."""

    log_anchor: Float[Array, "H S A"]  # log π̂_k
    anchor: Float[Array, " I"]  # λ̂_k
    q_values: Float[Array, "H S A"]  # Q_{k-1}
    slacks: Float[Array, " I"]  # V_u - c of π_{k-1}


def init(cmdp: CMDP, _: Parameters) -> AnchoredState:
    """The uniform policy, λ_1 = 0, and no gradients yet."""
    start, uniform = jnp.zeros(cmdp.num_constraints, cmdp.initial.dtype), first_log_policy(cmdp)
    return AnchoredState(uniform, start, jnp.zeros(uniform.shape, uniform.dtype), start)


def step(cmdp: CMDP, rates: Rates, state: AnchoredState, ascend: Ascent) -> Move:
    """Play a step ahead of the anchors, and move them."""

    def moved(q_values: Any, slacks: Any) -> tuple[Array, Array]:
        log_policy = ascend(state.log_anchor, q_values, rates.step_size, cmdp.available)
        multipliers = jnp.clip(state.anchor - rates.step_size * slacks, 0, rates.max_multiplier)
        return log_policy, multipliers

    log_policy, multipliers = moved(state.q_values, state.slacks)
    every_q, values = evaluate_signals(cmdp, log_policy)
    q_values, slacks = weighted(every_q, multipliers), values[1:] - cmdp.thresholds
    following = AnchoredState(*moved(q_values, slacks), q_values, slacks)
    return Move(log_policy, multipliers, following)
