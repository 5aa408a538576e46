"""The augmented Lagrangian on occupancies, after Müller, Alatur, Ramponi and He (2023).

    π_k ≈ argmax_π V_r^π - 1/(2ρ) Σ_i [λ_{k,i} + ρ (c_i - V_{u_i}^π)]_+²
    λ_{k+1} = [λ_k + ρ (c - V_u^{π_k})]_+

The objective F is concave in the occupancy d, of which the values are linear. Frank and Wolfe's
method maximises it, from where iteration k - 1 ended; one of its steps is

    w_i = [λ_{k,i} + ρ (c_i - V_{u_i}(d))]_+                        ∇F(d) = r + wᵀu
    d' = the occupancy of argmax_π V_{r + wᵀu}^π                    greedy backward induction
    d ← (1 - γ) d + γ d'                                            γ maximises F: exact line search

π_k is the policy of d, uniform where nobody comes. (arXiv 2306.07001, its step for a model that is
known; the solver of the step and the constants are ours.) We know of no published rate for this
form; in practice λ_k is near λ* after a handful of iterations.
"""

from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from cmdpax.model.cmdp import CMDP
from cmdpax.model.evaluation import occupancy, occupancy_values
from cmdpax.planning.dynamic_program import greedy_plan
from cmdpax.schemes.exact import first_log_policy
from cmdpax.schemes.parameters import Parameter
from cmdpax.schemes.schedules import Scheduled
from cmdpax.schemes.scheme import Move, Rates, Scheme

_INNER = Parameter("steps of Frank and Wolfe per iteration", above=0, at_most=10_000)


class Parameters(NamedTuple):
    """What a user chooses."""

    penalty: Annotated[Scheduled, Parameter("weight of the squares", symbol="ρ", above=0)] = 1.0
    inner_steps: Annotated[int, _INNER] = 20


class AugmentedState(NamedTuple):
    """What an iteration starts from."""

    mass: Float[Array, "H S A"]  # d
    values: Float[Array, " J"]  # (V_r, V_u) of d
    multipliers: Float[Array, " I"]  # λ_k


def init(cmdp: CMDP, _: Parameters) -> AugmentedState:
    """The occupancy of the uniform policy, and λ_1 = 0."""
    mass = occupancy(cmdp, jnp.exp(first_log_policy(cmdp)))
    start = jnp.zeros(cmdp.num_constraints, mass.dtype)
    return AugmentedState(mass, occupancy_values(cmdp, mass), start)


def step(cmdp: CMDP, rates: Rates, state: AugmentedState) -> Move:
    """Maximise over occupancies, and move the multipliers."""
    start, penalty = state.multipliers, rates.penalty

    def prices(values: Float[Array, " J"]) -> Float[Array, " I"]:
        return start + penalty * (cmdp.thresholds - values[1:])

    def improve(_: Array, found: tuple[Array, Array]) -> tuple[Array, Array]:
        mass, values = found
        weights = jnp.append(jnp.ones(1, values.dtype), jnp.maximum(prices(values), 0))
        _, actions = greedy_plan(cmdp, weights)
        certain = jax.nn.one_hot(actions, cmdp.num_actions, dtype=values.dtype)
        vertex = occupancy(cmdp, certain)
        reached = occupancy_values(cmdp, vertex)
        share = line_search(reached - values, prices(values), penalty)
        return mass + share * (vertex - mass), values + share * (reached - values)

    mass, values = jax.lax.fori_loop(0, rates.inner_steps, improve, (state.mass, state.values))
    following = AugmentedState(mass, values, jnp.maximum(prices(values), 0))
    return Move(_log_policy_of(cmdp, mass), start, following)


def line_search(
    change: Float[Array, " J"], prices: Float[Array, " I"], penalty: Float[Array, ""]
) -> Float[Array, ""]:
    """The γ ∈ [0, 1] that maximises F(d + γ (d' - d)), from the change of (V_r, V_u).

    F'(γ) = ΔV_r + Σ_i [q_i - γρ ΔV_{u_i}]_+ ΔV_{u_i} with the prices q = λ + ρ (c - V_u) never
    rises, and is linear between the points where a bracket becomes 0.
    """
    gained, moved = change[0], change[1:]
    scaled = penalty * moved
    corners = jnp.where(scaled == 0, 1, prices / jnp.where(scaled == 0, 1, scaled))
    ends = jnp.array([0, 1], change.dtype)
    points = jnp.sort(jnp.concatenate([ends, jnp.clip(corners, 0, 1)]))
    brackets = jnp.maximum(prices[None] - points[:, None] * scaled[None], 0)
    slopes = gained + brackets @ moved
    last = jnp.maximum(jnp.sum(slopes > 0) - 1, 0)  # F still rises there
    low, high = points[last], points[jnp.minimum(last + 1, points.size - 1)]
    at_low, at_high = slopes[last], slopes[jnp.minimum(last + 1, points.size - 1)]
    fall = at_low - at_high
    inside = low + (high - low) * at_low / jnp.where(fall > 0, fall, 1)
    return jnp.where(slopes[-1] > 0, 1, jnp.where(slopes[0] > 0, inside, 0)).astype(change.dtype)


def _log_policy_of(cmdp: CMDP, mass: Float[Array, "H S A"]) -> Float[Array, "H S A"]:
    """log d(s, a)/Σ_a d(s, a); uniform over the available actions where no mass arrives."""
    total = jnp.sum(mass, axis=-1, keepdims=True)
    reached = jnp.log(mass) - jnp.log(jnp.where(total > 0, total, 1))
    return jnp.where(total > 0, reached, first_log_policy(cmdp))


AUGMENTED_LAGRANGIAN = Scheme(
    "augmented-lagrangian",
    init,
    step,
    Parameters,
    summary="Multipliers and squared violations; Frank-Wolfe on occupancies.",
    source="Müller, Alatur, Ramponi and He 2023, arXiv 2306.07001",
)
