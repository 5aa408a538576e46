"""Optimistic models with published widths, and greedy plans in them.

Uncertainty about p is paid in the signals, and p̄ is kept: with the widths β of `confidence`,

    r̂_h(s, a) = r̄_h(s, a) + b_h(s, a),    û_h(s, a) = ū_h(s, a) + b_h(s, a),
    b_h(s, a) = H Σ_t β^p_h(t | s, a) + β^r_h(s, a),    L = log(6 S A H K/δ),

and β^r = 0 where the signals are known (Efroni et al., 2020, after the public code of UOpt-RPGPD).
"""

from typing import Annotated, Any

import jax.numpy as jnp
from jaxtyping import Array, Float, Integer

from cmdpax.learners.field.confidence import log_of_pairs, mean_widths, row_widths
from cmdpax.learners.replanner import Model
from cmdpax.learners.statistics import (
    Knowledge,
    OptimisticModel,
    Statistics,
    empirical_model,
    is_short,
    means_of_rows,
)
from cmdpax.model.transitions import at_step
from cmdpax.planning.dynamic_program import backward_plan, greedy
from cmdpax.schemes.parameters import Parameter

SlaterGap = Annotated[float, Parameter("Slater gap that the learner relies on", "Ξ", above=0)]


def given_or(given: Any, published: Float[Array, ""]) -> Float[Array, ""]:
    """A number that the user gave, or the published one where that is 0."""
    return jnp.where(given > 0, given, published)


def optimistic_signals(
    knowledge: Knowledge, statistics: Statistics, bonus: Float[Array, "_ S A"]
) -> OptimisticModel:
    """The empirical model with one bonus for the reward and every constraint."""
    model = empirical_model(knowledge, statistics)
    everywhere = jnp.broadcast_to(bonus, tuple(knowledge.sizes[1:]))
    return model._replace(signals=model.signals + everywhere[:, None])


def published_model(
    knowledge: Knowledge,
    statistics: Statistics,
    num_episodes: Integer[Array, ""] | None,
    parameters: Any,
) -> OptimisticModel:
    """r̂, û and p̄; the parameters have `failure_probability` and `bonus_scale`.

    `num_episodes` is the K of the logarithm.
    """
    assert num_episodes is not None
    visits = statistics.visits.astype(knowledge.initial.dtype)
    episodes = num_episodes.astype(visits.dtype)
    log_term = log_of_pairs(knowledge, episodes, parameters.failure_probability, 6)
    valid = None if knowledge.support is None else knowledge.support >= 0
    scale, rows = parameters.bonus_scale, means_of_rows(knowledge, statistics)
    widths = row_widths(rows, visits, log_term, scale, valid)
    bonus = knowledge.sizes.horizon * jnp.sum(widths, axis=-1)
    if knowledge.signals is None:
        bonus = bonus + mean_widths(visits, log_term, scale)
    return optimistic_signals(knowledge, statistics, bonus)


def plan_greedily(
    knowledge: Knowledge, model: OptimisticModel | Model, multipliers: Float[Array, " I"]
) -> tuple[Float[Array, "H S A"], Float[Array, " I"]]:
    """log π of argmax_π V_{r̂ + λᵀû}^π in the model, and V_û of it; nothing is truncated."""
    constraints = jnp.einsum("i,hisa->hsa", multipliers, model.signals[:, 1:])
    reward = model.signals[:, 0] + constraints
    _, values, log_policy = backward_plan(
        lambda step: (at_step(model.transitions, step), reward[step], model.signals[step]),
        knowledge.sizes,
        greedy,
        knowledge.initial,
        unrolled=is_short(knowledge.sizes.horizon),
        available=knowledge.available,
    )
    return log_policy, values[1:]
