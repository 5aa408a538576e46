"""What a learner that plans makes of its counts: a model, and how sure it is of it."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Integer

from cmdpax.learners.pooling import Errors, pool_rows, pool_signals, usual_variance
from cmdpax.learners.statistics import Knowledge, Statistics, empirical_model
from cmdpax.model.transitions import Successors, Transitions, Transposed, at_step


class RowPosterior(NamedTuple):
    """What rows are drawn from: p̃_h ~ Dirichlet(counts + α m̃), m̃ ~ Dirichlet(common + prior/T).

    Without a common row p̃_h ~ Dirichlet(counts + prior/T).
    """

    counts: Float[Array, "H S A T"]  # how often each successor came; 1 step where they share it
    common: Float[Array, "1 S A T"] | None = None
    concentration: Float[Array, ""] | None = None  # α


class Estimates(NamedTuple):
    """What a learner makes of its counts before it plans; H is not shortened to 1 anywhere here.

    V is the value of a signal under the last plan and p̂: V_{h+1} for the steps h = 1, …, H.
    """

    transitions: Transitions  # p̂; its first axis is 1 where the steps share their counts
    signals: Float[Array, "H J S A"]  # r̂, û
    visits: Float[Array, "H S A"]  # n, or what pooled estimates are worth
    errors: Errors | None  # of the signals; None: they are known
    rows: RowPosterior
    next_values: Float[Array, "H J S"]  # V_{h+1} of every signal
    multipliers: Float[Array, " I"]  # λ of the last feasible plan, capped
    episode: Float[Array, ""]  # k, the next one

    @property
    def weights(self) -> Float[Array, " J"]:
        """(1, λ): what the Lagrangian r + λᵀu makes of the signals."""
        return jnp.concatenate([jnp.ones(1, self.multipliers.dtype), self.multipliers])

    @property
    def visits_or_one(self) -> Float[Array, "H S A"]:
        """n ∨ 1."""
        return jnp.maximum(self.visits, 1)

    def following(self, values: Float[Array, "H S"]) -> Float[Array, "H ... T"]:
        """The values of the states that may follow each pair, for values after each step."""
        return jax.vmap(self.following_at)(jnp.arange(values.shape[0]), values)

    def following_at(
        self, step: Integer[Array, ""], values: Float[Array, " S"]
    ) -> Float[Array, "... T"]:
        """The same at one step."""
        if not isinstance(self.transitions, Successors):
            return values[None, None]
        return values[at_step(self.transitions.successors, step)]

    @property
    def probabilities(self) -> Float[Array, "H S A T"]:
        """The probabilities of p̂, successor by successor."""
        if isinstance(self.transitions, Successors):
            return self.transitions.probabilities
        return self.transitions


def make_estimates(
    knowledge: Knowledge,
    statistics: Statistics,
    next_values: Float[Array, "H J S"],
    multipliers: Float[Array, " I"],
    episode: Integer[Array, ""],
    pooling: str,
    prior: Any,
) -> Estimates:
    """The empirical model, with all that bonuses are made of.

    Args:
        knowledge: what the learner knows.
        statistics: its counts.
        next_values: V_{h+1} of every signal under the last plan.
        multipliers: λ of the last feasible plan, capped.
        episode: k, the next one.
        pooling: "steps" draws the estimates of all steps together, "none" does not.
        prior: weight of the uniform prior on each row.
    """
    (_, *pairs), dtype = knowledge.sizes, knowledge.initial.dtype
    model = empirical_model(knowledge, statistics)
    transitions = model.transitions
    if isinstance(transitions, Transposed):
        transitions = jnp.moveaxis(transitions.probabilities, 1, -1)
    visits = statistics.visits.astype(dtype)
    counts = statistics.storage[0].astype(dtype)
    signals, errors = model.signals, _errors(statistics, visits)
    rows, worth = RowPosterior(counts), visits
    if pooling == "steps" and _can_pool(knowledge):
        pooled = pool_rows(counts, _unvisited_row(knowledge), prior)
        rows = RowPosterior(counts, pooled.common, pooled.concentration)
        worth = pooled.visits
        transitions = with_probabilities(transitions, pooled.means)
        if statistics.reward_sums is not None and statistics.square_sums is not None:
            unvisited = jnp.nan_to_num(jnp.asarray(knowledge.bonuses.unvisited_reward, dtype))
            sums = (statistics.reward_sums, statistics.square_sums)
            signals, errors = pool_signals(visits, *sums, unvisited)
    return Estimates(
        transitions,
        jnp.broadcast_to(signals, (pairs[0], *signals.shape[1:])),
        jnp.broadcast_to(worth, pairs),
        errors,
        rows,
        next_values,
        multipliers,
        episode.astype(dtype),
    )


def with_probabilities(transitions: Transitions, rows: Float[Array, "_ S A T"]) -> Transitions:
    """Other probabilities in the same storage."""
    if isinstance(transitions, Successors):
        return transitions._replace(probabilities=rows)
    return rows


def valid_slots(knowledge: Knowledge) -> Float[Array, "_ S A T"]:
    """1 where a row has an entry, 0 in unused slots of lists; its first axis may be 1."""
    dtype = knowledge.initial.dtype
    if knowledge.support is not None:
        return (knowledge.support >= 0).astype(dtype)
    _, _, num_states, num_actions = knowledge.sizes
    return jnp.ones((1, num_states, num_actions, num_states), dtype)


def _can_pool(knowledge: Knowledge) -> bool:
    """Whether there are several tables, with the same successors in the same slots."""
    lists = knowledge.support
    return knowledge.num_tables > 1 and (lists is None or lists.shape[0] == 1)


def _unvisited_row(knowledge: Knowledge) -> Float[Array, "1 S A T"]:
    valid = valid_slots(knowledge)
    mass = jnp.asarray(knowledge.bonuses.unvisited_mass, valid.dtype)
    return mass * valid / jnp.sum(valid, axis=-1, keepdims=True)


def _errors(statistics: Statistics, visits: Float[Array, "_ S A"]) -> Errors | None:
    """Of means of each step: normal, of variance (n v + σ²)/(n + 1)², σ² as in `pooling`."""
    if statistics.reward_sums is None or statistics.square_sums is None:
        return None
    worth = jnp.broadcast_to(visits[:, None], statistics.reward_sums.shape)
    number = jnp.maximum(worth, 1)
    means = statistics.reward_sums / number
    variances = jnp.maximum(statistics.square_sums / number - means**2, 0)
    own = jnp.sqrt(number * variances + usual_variance(worth, variances)) / (number + 1)
    return Errors(jnp.zeros_like(own), own, worth)
