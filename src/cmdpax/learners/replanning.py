"""Replanning: constraints are estimated, and exploration belongs to the Lagrangian.

    b    a bonus for r + λᵀu, λ of the last plan             exploration
    π_j = argmax V_{r̂ + b} subject to V_{û_i - κ b^u_i} ≥ c_i, under p̂

Optimism in û buys violations; here the constraints are what the counts say, and κ > 0 is a safety
dial. OptLP-bonus ("optimistic-planning") is the other extreme, κ = -1 with `count`:

    π_j = argmax V_{r̂ + scale/√n} subject to V_{û_i + scale/√n} ≥ c_i.

Posterior sampling takes everything from one draw p̃, r̃, ũ of the posterior, and adds nothing.
"""

from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from cmdpax.errors import ParameterError
from cmdpax.learners.base import Learner
from cmdpax.learners.estimates import Estimates
from cmdpax.learners.exploration import (
    bernstein_bonus,
    count_bonus,
    posterior_bonus,
    sample_noise,
    sampled_transitions,
    span_bonus,
    with_bonuses,
)
from cmdpax.learners.replanner import MakeModel, Model, Number, replanner
from cmdpax.learners.statistics import Knowledge
from cmdpax.schemes.parameters import Numbers, Parameter
from cmdpax.schemes.schedules import Scheduled

Growth = Annotated[
    float,
    Parameter("a plan is played for at most this share of the episodes so far", "g", at_least=0),
]
Stretch = Annotated[
    float, Parameter("a plan adds at most so many times a count to it", "ρ", above=0)
]
Prior = Annotated[float, Parameter("weight of the uniform prior on each row", at_least=1e-6)]
Pooling = Annotated[
    str, Parameter("whether steps share what they have in common", choices=("steps", "none"))
]
Scale = Annotated[float, Parameter("the bonus times √n", at_least=0)]
Margin = Annotated[Scheduled, Parameter("what the learner adds to the thresholds")]


class Replanning(NamedTuple):
    """The parameters of `replanning`."""

    growth: Growth = 0.05
    stretch: Stretch = 1.0
    exploration: Annotated[
        str, Parameter("the bonus", choices=("posterior", "bernstein", "count", "none"))
    ] = "posterior"
    pooling: Pooling = "steps"
    prior: Prior = 1.0
    posterior_weight: Annotated[
        float, Parameter("weight of the draw in `posterior`", "w", at_least=0)
    ] = 0.3
    span_weight: Annotated[
        float, Parameter("weight of the span of values in `posterior`", "w'", at_least=0)
    ] = 0.03
    deviation_weight: Annotated[
        float, Parameter("weight of the standard deviation in `bernstein`", "a", at_least=0)
    ] = 0.5
    range_weight: Annotated[
        float, Parameter("weight of the range over n in `bernstein`", "b", at_least=0)
    ] = 0.2
    bonus_scale: Scale = 0.08
    pessimism: Annotated[
        Numbers, Parameter("how many bonuses the constraints are reduced by", "κ")
    ] = 0.0
    multiplier_cap: Annotated[
        float, Parameter("the largest multiplier that a bonus is made with", above=0)
    ] = 10.0
    margin: Margin = 0.0


class PosteriorSampling(NamedTuple):
    """The parameters of `posterior-sampling`."""

    growth: Growth = 0.05
    stretch: Stretch = 1.0
    pooling: Pooling = "none"
    prior: Prior = 1.0
    margin: Margin = 0.0


class OptimisticPlanning(NamedTuple):
    """The parameters of `optimistic-planning`."""

    growth: Growth = 0.05
    stretch: Stretch = 1.0
    pooling: Pooling = "none"
    bonus_scale: Scale = 0.08
    margin: Margin = 0.0


def replanning(knowledge: Knowledge, parameters: Replanning) -> Learner:
    """The exact planner as a learner, with a bonus for the Lagrangian."""
    scale, kind = parameters.bonus_scale, parameters.exploration
    pessimism = _per_constraint("pessimism", parameters.pessimism, knowledge.sizes.num_constraints)

    def bonuses(estimates: Estimates, key: Key[Array, ""]) -> Float[Array, "H J S A"]:
        """Of the Lagrangian, and of every constraint by itself."""
        single = jnp.eye(len(estimates.weights), dtype=estimates.weights.dtype)[1:]
        sums = jnp.concatenate([estimates.weights[None], single])
        if kind == "count":
            sizes = jnp.sum(sums, axis=1)[None, :, None, None]
            return sizes * count_bonus(estimates, scale)[:, None]
        if kind == "bernstein":
            both = (parameters.deviation_weight, parameters.range_weight)
            return bernstein_bonus(estimates, sums, *both)
        if kind == "posterior":
            drawn = posterior_bonus(key, knowledge, estimates, sums, parameters.prior)
            rarely = span_bonus(knowledge, estimates, sums)
            growing = jnp.log1p(estimates.episode)
            weight = parameters.posterior_weight * jnp.sqrt(growing)
            return weight * drawn + parameters.span_weight * growing * rarely
        return jnp.zeros_like(estimates.signals)

    def make_model(estimates: Estimates, key: Key[Array, ""]) -> Model:
        of_constraints = _constraint_bonuses(estimates, kind, scale)
        return with_bonuses(estimates, bonuses(estimates, key), of_constraints, pessimism)

    cap, prior = parameters.multiplier_cap, parameters.prior
    return _replanner(knowledge, make_model, parameters, multiplier_cap=cap, prior=prior)


def posterior_sampling(knowledge: Knowledge, parameters: PosteriorSampling) -> Learner:
    """Plan in one draw of the posterior: transitions, and rewards where they are estimated."""

    def make_model(estimates: Estimates, key: Key[Array, ""]) -> Model:
        first, second = jax.random.split(key)
        signals = estimates.signals
        if estimates.errors is not None:
            signals = signals + sample_noise(second, estimates)
        return Model(sampled_transitions(first, knowledge, estimates, parameters.prior), signals)

    return _replanner(knowledge, make_model, parameters, prior=parameters.prior)


def optimistic_planning(knowledge: Knowledge, parameters: OptimisticPlanning) -> Learner:
    """OptLP-bonus: optimistic in the objective and in every constraint."""

    def make_model(estimates: Estimates, key: Key[Array, ""]) -> Model:
        bonus = count_bonus(estimates, parameters.bonus_scale)
        return Model(estimates.transitions, estimates.signals + bonus[:, None])

    return _replanner(knowledge, make_model, parameters)


def _replanner(
    knowledge: Knowledge, make_model: MakeModel, parameters: Any, **more: Number
) -> Learner:
    """With the parameters that all of them have, and more."""
    return replanner(
        knowledge,
        make_model,
        growth=parameters.growth,
        stretch=parameters.stretch,
        margin=parameters.margin,
        pooling=parameters.pooling,
        **more,
    )


def _per_constraint(name: str, given: Any, count: int) -> Float[Array, " I"]:
    """One number for each constraint, or one for all."""
    numbers = jnp.atleast_1d(jnp.asarray(given))
    if len(numbers) not in (1, count):
        raise ParameterError(
            f"{name} has {len(numbers)} numbers, the CMDP has {count} constraints; give one "
            "number, or one for each."
        )
    return jnp.broadcast_to(numbers, (count,))


def _constraint_bonuses(estimates: Estimates, kind: str, scale: Number) -> Float[Array, "H I S A"]:
    """b^u, by which κ = 1 reduces the constraints."""
    of_constraints = estimates.signals[:, 1:]
    if kind == "count":
        return jnp.broadcast_to(count_bonus(estimates, scale)[:, None], of_constraints.shape)
    single = jnp.eye(1 + of_constraints.shape[1], dtype=of_constraints.dtype)[1:]
    # Errors of steps that share their counts have one sign and add up; others partly cancel.
    shared = estimates.rows.common is not None or estimates.rows.counts.shape[0] == 1
    return bernstein_bonus(estimates, single, 2.0 if shared else 1.0, 1.0)
