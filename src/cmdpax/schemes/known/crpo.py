"""CRPO: no multipliers, the policy ascends one signal at a time, after Xu, Liang and Lan (2021).

    if V_{u_i}^{π_k} ≥ c_i - ε for every i:    π_{k+1} ∝ π_k exp(ηQ_r^{π_k})
    else, for the i with the largest c_i - V_{u_i}^{π_k}:    π_{k+1} ∝ π_k exp(ηQ_{u_i}^{π_k})

The output of the publication (arXiv 2011.05869) is drawn from the iterates that ascended the
reward: these alone are in the mixture. It is within O(1/√T) of the optimum in value and in
constraints, if η and ε are chosen for T; constants ours. The last iterate goes back and forth
across the threshold.
"""

from typing import Annotated, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from cmdpax.model.cmdp import CMDP
from cmdpax.schemes.exact import evaluate_signals, first_log_policy
from cmdpax.schemes.known.primal_dual import STEP_SIZE
from cmdpax.schemes.parameters import Parameter
from cmdpax.schemes.schedules import Scheduled
from cmdpax.schemes.scheme import Move, Rates, Scheme
from cmdpax.schemes.updates import mirror_ascent

_TOLERANCE = Parameter("the violation that is tolerated", symbol="ε", at_least=0)


class Parameters(NamedTuple):
    """What a user chooses."""

    step_size: Annotated[Scheduled, STEP_SIZE] = 0.1
    tolerance: Annotated[Scheduled, _TOLERANCE] = 0.01


def init(cmdp: CMDP, _: Parameters) -> Float[Array, "H S A"]:
    """The uniform policy."""
    return first_log_policy(cmdp)


def step(cmdp: CMDP, rates: Rates, log_policy: Float[Array, "H S A"]) -> Move:
    """Ascend the reward, or the constraint that is missed by most."""
    every_q, values = evaluate_signals(cmdp, log_policy)
    shortfalls = cmdp.thresholds - values[1:]
    is_met = jnp.all(shortfalls <= rates.tolerance)
    # Signal 0 is the reward; without constraints it is the only one.
    ascended = jnp.where(is_met, 0, 1 + jnp.argmax(jnp.append(shortfalls, -jnp.inf)))
    q_values = jnp.take(every_q, ascended, axis=1)
    following = mirror_ascent(log_policy, q_values, rates.step_size)
    return Move(log_policy, jnp.zeros_like(shortfalls), following, is_met.astype(values.dtype))


CRPO = Scheme(
    "crpo",
    init,
    step,
    Parameters,
    summary="Ascends the reward, or a constraint that is violated; no multipliers.",
    source="Xu, Liang and Lan 2021, arXiv 2011.05869",
)
