"""The dual scheme: plan for λ_k, then take a step in λ.

    π_k = argmax_π V_{r + λ_kᵀu}^π + τ·entropy(π)
    λ_{k+1} = clip_[0, λ_max]((1 - ητ) λ_k - η (V_u^{π_k} - c))                       Eqs. (4), (7)

With τ > 0 planning is soft backward induction; with τ = 0 it is greedy, another program.
"""

import functools
from typing import Annotated, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from cmdpax.model.cmdp import CMDP
from cmdpax.model.evaluation import signal_array
from cmdpax.model.transitions import at_step
from cmdpax.planning.dynamic_program import Plan, Rule, backward_plan, greedy, soft
from cmdpax.schemes.hyperparameters import require_damped
from cmdpax.schemes.known.primal_dual import MAX_MULTIPLIER, REGULARIZATION, STEP_SIZE
from cmdpax.schemes.schedules import Scheduled
from cmdpax.schemes.scheme import Move, Rates, Scheme
from cmdpax.schemes.updates import dual_descent, weighted


class Parameters(NamedTuple):
    """What a user chooses."""

    step_size: Annotated[Scheduled, STEP_SIZE] = 0.1
    regularization: Annotated[Scheduled, REGULARIZATION] = 0.0
    max_multiplier: Annotated[float, MAX_MULTIPLIER] = 6.0


def plan(cmdp: CMDP, multipliers: Float[Array, " I"], rule: Rule) -> Plan:
    """A policy for r + λᵀu, with its values (V_r, V_u)."""
    signals = signal_array(cmdp)
    reward = weighted(signals, multipliers)
    return backward_plan(
        lambda step: (at_step(cmdp.transitions, step), reward[step], signals[step]),
        cmdp.sizes,
        rule,
        jnp.asarray(cmdp.initial),
        available=cmdp.available,
    )


def init(cmdp: CMDP, _: Parameters) -> Float[Array, " I"]:
    """λ_1 = 0: there is no initial policy."""
    return jnp.zeros(cmdp.num_constraints, cmdp.initial.dtype)


def step(cmdp: CMDP, rates: Rates, multipliers: Float[Array, " I"], is_soft: bool) -> Move:
    """Plan, evaluate, descend."""
    rule = soft(rates.regularization) if is_soft else greedy
    _, values, planned = plan(cmdp, multipliers, rule)
    slacks = values[1:] - cmdp.thresholds
    return Move(planned, multipliers, dual_descent(multipliers, slacks, *rates))


DUAL = Scheme(
    "dual",
    init,
    functools.partial(step, is_soft=True),
    Parameters,
    summary="Planning in the policy, projected descent in the multipliers.",
    source="the paper; without regularization Paternain et al. 2019",
    greedy_step=functools.partial(step, is_soft=False),
    has_potential=True,
    check=require_damped,
)
