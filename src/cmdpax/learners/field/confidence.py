"""How far a row or a mean may be from its estimate: the widths that published learners start from.

With n visits and a logarithm L that each learner says,

    β^p_h(t | s, a) = 2 √(p̄ (1 - p̄) L/(n ∨ 1)) + (14/3) L/(n ∨ 1)     empirical Bernstein
    β^r_h(s, a) = √(L/(n ∨ 1))                                          Hoeffding

as Efroni et al. (2020) have them, after the public code of DOPE, but never more than 1, which no
probability and no mean can be off by. They are so wide that a learner with them hardly learns
within 10⁵ episodes, so that each learner multiplies them by a parameter `bonus_scale`: 1 is what is
published.

A set of models that the counts allow has every row within β^p of p̄,

    max(p̄ - β^p, 0) ≤ p ≤ min(p̄ + β^p, 1),

and any row where a pair was never tried, which is what the published widths come to there.
"""

from typing import Annotated, Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from cmdpax.learners.estimates import Estimates, valid_slots, with_probabilities
from cmdpax.learners.statistics import Knowledge
from cmdpax.model.transitions import Transitions
from cmdpax.schemes.parameters import Parameter

FailureProbability = Annotated[
    float, Parameter("chance that a confidence set misses", "δ", above=0, at_most=1)
]
BonusScale = Annotated[float, Parameter("multiplies the published confidence widths", at_least=0)]


def row_widths(
    probabilities: Float[Array, "*H S A T"],
    visits: Float[Array, "*H S A"],
    log_term: Any,
    scale: Any,
    valid: Bool[Array, "... T"] | None = None,
) -> Float[Array, "*H S A T"]:
    """min(scale β^p, 1), entry by entry; 0 in slots of a list that hold no state."""
    worth = jnp.maximum(visits, 1)[..., None]
    deviation = jnp.sqrt(probabilities * (1 - probabilities) * log_term / worth)
    widths = jnp.minimum(scale * (2 * deviation + 14 / 3 * log_term / worth), 1)
    return widths if valid is None else jnp.where(valid, widths, 0)


def mean_widths(
    visits: Float[Array, "*H S A"], log_term: Any, scale: Any
) -> Float[Array, "*H S A"]:
    """min(scale β^r, 1), for a signal in [0, 1] that is estimated."""
    return jnp.minimum(scale * jnp.sqrt(log_term / jnp.maximum(visits, 1)), 1)


def row_bounds(
    probabilities: Float[Array, "_ S A T"],
    widths: Float[Array, "_ S A T"],
    visits: Float[Array, "_ S A"],
    valid: Float[Array, "_ S A T"],
) -> tuple[Float[Array, "_ S A T"], Float[Array, "_ S A T"]]:
    """p̄ - β^p and p̄ + β^p within [0, 1]; any row where a pair was never tried."""
    untried = (visits == 0)[..., None]
    lower = jnp.where(untried, 0, jnp.maximum(probabilities - widths, 0))
    return lower, jnp.where(untried, valid, jnp.minimum(probabilities + widths, valid))


class ConfidenceSet(NamedTuple):
    """What rows and signals may be; where signals are known, their widths are 0."""

    lower: Transitions  # of every row
    upper: Float[Array, "_ S A T"]
    row_widths: Float[Array, "H S A"]  # Σ_t β^p_h(t | s, a)
    mean_widths: Float[Array, "H S A"]  # β^r


def confidence_set(
    knowledge: Knowledge, estimates: Estimates, log_term: Any, scale: Any
) -> ConfidenceSet:
    """The models that the counts allow.

    Args:
        knowledge: what the learner knows.
        estimates: p̄ and the visits, not pooled.
        log_term: L.
        scale: what multiplies the widths.
    """
    rows = estimates.probabilities
    visits, valid = estimates.visits[: rows.shape[0]], valid_slots(knowledge)
    widths = row_widths(rows, visits, log_term, scale, valid > 0)
    lower, upper = row_bounds(rows, widths, visits, valid)
    of_means = jnp.zeros_like(estimates.visits)
    if estimates.errors is not None:
        of_means = mean_widths(estimates.visits, log_term, scale)
    return ConfidenceSet(
        with_probabilities(estimates.transitions, lower),
        upper,
        jnp.broadcast_to(jnp.sum(widths, axis=-1), estimates.visits.shape),
        of_means,
    )


def log_of_pairs(knowledge: Knowledge, count: Any, failure_probability: Any, factor: Any) -> Any:
    """L = log(factor · S A H n/δ), with so many episodes n."""
    _, horizon, num_states, num_actions = knowledge.sizes
    pairs = float(num_states * num_actions * horizon)
    return jnp.log(factor * pairs * count / failure_probability)


def log_of_successors(knowledge: Knowledge, factor: Any, failure_probability: Any) -> Any:
    """L = log(factor · S² H K/δ), as the code of DOPE has it."""
    _, horizon, num_states, _ = knowledge.sizes
    episodes = jnp.asarray(knowledge.num_episodes).astype(knowledge.initial.dtype)
    return jnp.log(factor * float(num_states**2 * horizon) * episodes / failure_probability)


def baseline_slack(knowledge: Knowledge) -> Float[Array, ""]:
    """min_i V_{u_i} - c_i of the baseline; infinite without constraints."""
    assert knowledge.baseline is not None
    slacks = knowledge.baseline.constraint_values - knowledge.thresholds
    return jnp.min(slacks, initial=jnp.inf)


def with_bonus(
    estimates: Estimates, of_objective: Float[Array, "H S A"], of_constraints: Float[Array, "H S A"]
) -> Float[Array, "H J S A"]:
    """The signals with one bonus for the objective, and another one for every constraint."""
    first, others = estimates.signals[:, :1], estimates.signals[:, 1:]
    return jnp.concatenate(
        [first + of_objective[:, None], others + of_constraints[:, None]], axis=1
    )
