"""Replanning: constraints are estimated, and exploration belongs to the Lagrangian.

    p'   rows that are drawn for r + λᵀu, λ of the last plan  exploration
    π_j = argmax V_{r̂} subject to V_{û_i - κ b^u_i} ≥ c_i, under p', with V_u as under p̂

Optimism in û buys violations; here the constraints are what the counts say, and κ > 0 is a safety
dial. Other kinds of exploration plan under p̂, with a bonus for r + λᵀu. OptLP-bonus
("optimistic-planning") is the other extreme, κ = -1 with `count`:

    π_j = argmax V_{r̂ + scale/√n} subject to V_{û_i + scale/√n} ≥ c_i.

Posterior sampling takes everything from one draw p̃, r̃, ũ of the posterior, and adds nothing.
"""

from typing import Annotated, Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from cmdpax.errors import ParameterError
from cmdpax.learners.base import Learner
from cmdpax.learners.estimates import Estimates
from cmdpax.learners.exploration import (
    bernstein_bonus,
    count_bonus,
    doubted,
    drawn_model,
    posterior_model,
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
        str, Parameter("how it explores", choices=("posterior", "bernstein", "count", "none"))
    ] = "posterior"
    pooling: Pooling = "steps"
    prior: Prior = 1.0
    posterior_weight: Annotated[
        float, Parameter("weight of the draw in `posterior`", "w", at_least=0)
    ] = 0.35
    untried_weight: Annotated[
        float, Parameter("weight of the best that may follow, over n", "w'", at_least=0)
    ] = 0.05
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
    ] = 100.0
    margin: Margin = 0.0
    random_visits: Annotated[
        float,
        Parameter("about so many first visits to a state are random", "m", at_least=0, added=True),
    ] = 0.0
    doubt: Annotated[
        float,
        Parameter(
            "how many standard errors the constraints of each pair are reduced by",
            at_least=0,
            added=True,
        ),
    ] = 0.0


LIVE = (("posterior_weight", 0.1), ("untried_weight", 0.005), ("random_visits", 2.0))
"""What agents choose for `replanning`: a live system has hundreds of episodes, not millions."""
LIVE_SAFE = (*LIVE, ("doubt", 0.5))
"""With a baseline: a plan is worth little that is not safe enough to be played."""


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
    """The exact planner as a learner, which explores for the Lagrangian."""
    kind, cap, prior = parameters.exploration, parameters.multiplier_cap, parameters.prior
    pessimism = _per_constraint("pessimism", parameters.pessimism, knowledge.sizes.num_constraints)

    def make_model(estimates: Estimates, key: Key[Array, ""]) -> Model:
        estimates = doubted(knowledge, estimates, parameters.doubt)
        single = jnp.eye(len(estimates.weights), dtype=estimates.weights.dtype)[1:]
        own = _constraint_bonuses(estimates, single, kind, parameters.bonus_scale)
        reduced = pessimism[None, :, None, None] * own
        if kind == "posterior":
            weights = (parameters.posterior_weight, parameters.untried_weight)
            found = posterior_model(key, knowledge, estimates, reduced, weights, prior)
            assert found.hopeful is not None
            hopeful = jnp.where(parameters.doubt > 0, found.signals[:, 1:], found.hopeful)
            return found._replace(hopeful=hopeful)
        sums = jnp.concatenate([estimates.weights[None], single])
        return with_bonuses(estimates, _bonuses(estimates, sums, parameters), reduced)

    more = {"multiplier_cap": cap, "prior": prior, "random_visits": parameters.random_visits}
    return _replanner(knowledge, make_model, parameters, **more)


def posterior_sampling(knowledge: Knowledge, parameters: PosteriorSampling) -> Learner:
    """Plan in one draw of the posterior: transitions, and rewards where they are estimated."""

    def make_model(estimates: Estimates, key: Key[Array, ""]) -> Model:
        return drawn_model(key, knowledge, estimates, parameters.prior)

    return _replanner(knowledge, make_model, parameters, prior=parameters.prior)


def optimistic_planning(knowledge: Knowledge, parameters: OptimisticPlanning) -> Learner:
    """OptLP-bonus: optimistic in the objective and in every constraint."""

    def make_model(estimates: Estimates, key: Key[Array, ""]) -> Model:
        bonus = count_bonus(estimates, parameters.bonus_scale)
        return Model(estimates.transitions, estimates.signals + bonus[:, None])

    return _replanner(knowledge, make_model, parameters)


def _replanner(
    knowledge: Knowledge, make_model: MakeModel, parameters: Any, **more: Any
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


def _bonuses(
    estimates: Estimates, sums: Float[Array, "L J"], parameters: Replanning
) -> Float[Array, "H L S A"]:
    """Of several sums of signals: the Lagrangian, and every constraint by itself."""
    if parameters.exploration == "count":
        sizes = jnp.sum(sums, axis=1)[None, :, None, None]
        return sizes * count_bonus(estimates, parameters.bonus_scale)[:, None]
    if parameters.exploration == "bernstein":
        return bernstein_bonus(
            estimates, sums, parameters.deviation_weight, parameters.range_weight
        )
    return jnp.zeros_like(estimates.signals)


def _constraint_bonuses(
    estimates: Estimates, single: Float[Array, "I J"], kind: str, scale: Number
) -> Float[Array, "H I S A"]:
    """b^u, by which κ = 1 reduces the constraints."""
    if kind == "count":
        bonus = count_bonus(estimates, scale)[:, None]
        return jnp.broadcast_to(bonus, estimates.signals[:, 1:].shape)
    # Errors of steps that share their counts have one sign and add up; others partly cancel.
    shared = estimates.rows.common is not None or estimates.rows.counts.shape[0] == 1
    return bernstein_bonus(estimates, single, 2.0 if shared else 1.0, 1.0)
