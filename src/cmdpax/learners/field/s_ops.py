"""S-OPS: any learner, mixed with a safe baseline so that every episode is safe on average.

After Stradi, Castiglioni, Marchesi and Gatti (2025), "Learning adversarial MDPs with stochastic
hard constraints", ICML, arXiv:2403.03672; constants ours:

    for k = 1, 2, …:
        π̂ = what the learner within would play
        V̌_i = min_p' V_{ǔ_i}^π̂ under p'                        all p' with |p' - p̄| ≤ β^p
        ρ = max_i (c_i - V̌_i)/(V_{u_i}^{π_0} - V̌_i), over the i with V̌_i < c_i; 0 if there is none
        draw: π_k = the baseline π_0 with probability ρ, else π̂
        play π_k for the whole episode, count; the learner within learns from it, whoever played

(The publication has costs: w_i = H - V̌_i, α_i = H - c_i, β_i = H - V_{u_i}^{π_0}.) The draw comes
from the learner's own key. If the true p is among the p', then ρ V_u^{π_0} + (1 - ρ) V_u^π̂ ≥ c: the
episode is safe in expectation, over the draw. A single draw of π̂ may be unsafe.

The publication's learner within is optimistic about the constraints, and plays against adversarial
losses. `s-ops` has `optimistic-planning` there; `mixed_with_baseline` in the registry takes any.

The minimum is one backward induction, in which each row moves as much probability as β^p permits
from good successors to bad ones. Where a pair was never tried, its row is anything, and its ǔ is 0.
ǔ = ū - β^r where rewards are estimated, else u. L = log(6 S A H k/δ) with δ = 0.1, and `caution`
multiplies β: 1 is what is published.
"""

import collections
import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Integer, Key

from cmdpax.errors import ParameterError
from cmdpax.learners.algorithm import Algorithm
from cmdpax.learners.base import Info, Learner, Shown
from cmdpax.learners.estimates import valid_slots
from cmdpax.learners.field.confidence import log_of_pairs, mean_widths, row_bounds, row_widths
from cmdpax.learners.replanning import optimistic_planning
from cmdpax.learners.statistics import (
    Knowledge,
    Statistics,
    Trajectory,
    empirical_model,
    empty_statistics,
    means_of_rows,
    record,
)
from cmdpax.model.transitions import pick_step
from cmdpax.schemes.parameters import Parameter

_FAILURE_PROBABILITY = 0.1  # δ
_CAUTION = Parameter(
    "multiplies the confidence widths that the share of the baseline is made with",
    at_least=0,
    name="caution",
    default=0.03,
)


class MixedState(NamedTuple):
    """What the next episode needs."""

    episode: Integer[Array, ""]  # k
    within: Any  # the state of the learner within
    statistics: Statistics  # of all episodes so far
    is_safe: Bool[Array, ""]  # whether the baseline was drawn
    constraint_values: Float[Array, " I"]  # V_u of the baseline if it was, else V̌


@functools.cache
def mix(within: Algorithm, name: str) -> Algorithm:
    """An algorithm whose episodes are played by a safe baseline with the probability they need.

    The same arguments give the same object, so that its programs are compiled once.

    Args:
        within: any algorithm; its parameters are those of the result, with `caution`.
        name: of the result.

    Raises:
        ParameterError: it has a parameter `caution` of its own.
    """
    if _CAUTION.name in within.names:
        raise ParameterError(
            f"{within.name} has a parameter 'caution', as the mixture with a baseline has; mix an "
            "algorithm that is not such a mixture, or give the parameter another name."
        )
    names = (*within.names, _CAUTION.name)
    record = collections.namedtuple("Mixed", names)  # type: ignore[misc]

    def factory(knowledge: Knowledge, parameters: Any) -> Learner:
        own = within.record(**{name: getattr(parameters, name) for name in within.names})
        known = knowledge if within.needs_baseline else knowledge._replace(baseline=None)
        return mixed_learner(knowledge, within.factory(known, own), parameters.caution)

    def check(chosen: Any, num_episodes: int) -> None:
        if within.check is not None:
            within.check(chosen, num_episodes)

    return dataclasses.replace(
        within,
        name=name,
        factory=factory,
        record=record,
        summary=f"S-OPS: {within.name}, mixed with a safe baseline by a draw in every episode.",
        parameters=(*within.parameters, _CAUTION),
        replans=False,
        baseline=False,
        needs_baseline=True,
        check=check,
    )


def mixed_learner(knowledge: Knowledge, within: Learner, caution: Any) -> Learner:
    """A learner that draws, before every episode, whether the baseline or another one plays it."""
    baseline = knowledge.baseline
    assert baseline is not None

    def drawn(
        key: Key[Array, ""], episode: Integer[Array, ""], state: Any, statistics: Statistics
    ) -> MixedState:
        policy = jnp.exp(within.show(state).log_policy)
        least = least_values(knowledge, statistics, policy, episode, caution)
        share = share_of_baseline(least, baseline.constraint_values, knowledge.thresholds)
        is_safe = jax.random.uniform(key, dtype=share.dtype) < share
        reached = jnp.where(is_safe, baseline.constraint_values, least)
        return MixedState(episode, state, statistics, is_safe, reached)

    def init(key: Key[Array, ""]) -> MixedState:
        first, second = jax.random.split(key)
        return drawn(second, jnp.int32(1), within.init(first), empty_statistics(knowledge))

    def update(state: MixedState, trajectory: Trajectory, key: Key[Array, ""]) -> MixedState:
        first, second = jax.random.split(key)
        following = within.update(state.within, trajectory, first)
        statistics = record(knowledge, state.statistics, trajectory)
        return drawn(second, state.episode + 1, following, statistics)

    def show(state: MixedState) -> Shown:
        shown = within.show(state.within)
        log_policy = jnp.where(state.is_safe, jnp.log(baseline.policy), shown.log_policy)
        info = Info(shown.info.multipliers, state.constraint_values, statistics=state.statistics)
        return Shown(log_policy, info)

    return Learner(init, update, show)


def share_of_baseline(
    least: Float[Array, " I"], safe: Float[Array, " I"], thresholds: Float[Array, " I"]
) -> Float[Array, ""]:
    """ρ = max_i (c_i - V̌_i)/(V_{u_i}^{π_0} - V̌_i), over the i with V̌_i < c_i."""
    missing = jnp.maximum(thresholds - least, 0)
    shares = missing / jnp.where(missing > 0, safe - least, 1)
    return jnp.clip(jnp.max(shares, initial=0), 0, 1)


def least_values(
    knowledge: Knowledge,
    statistics: Statistics,
    policy: Float[Array, "H S A"],
    episode: Integer[Array, ""],
    caution: Any,
) -> Float[Array, " I"]:
    """V̌ of a policy: the least that V_u may be, by one backward induction."""
    (_, horizon, num_states, _), dtype = knowledge.sizes, knowledge.initial.dtype
    log_term = log_of_pairs(knowledge, episode.astype(dtype), _FAILURE_PROBABILITY, 6)
    least, most = _row_bounds(knowledge, statistics, log_term, caution)
    signals = _least_signals(knowledge, statistics, log_term, caution)
    support = knowledge.support

    def step(
        values: Float[Array, "I S"], at: tuple[Array, Array, Array]
    ) -> tuple[Float[Array, "I S"], None]:
        index, decision, signal = at
        following = values[:, None, None]
        if support is not None:
            following = values[:, jnp.maximum(pick_step(support, index), 0)]
        later = least_expected(pick_step(least, index), pick_step(most, index), following)
        return jnp.sum(decision[None] * (signal + later), axis=-1), None

    start = jnp.zeros((signals.shape[1], num_states), dtype)
    values, _ = jax.lax.scan(step, start, (jnp.arange(horizon), policy, signals), reverse=True)
    return values @ knowledge.initial


def least_expected(
    least: Float[Array, "S A T"],
    most: Float[Array, "S A T"],
    following: Float[Array, "I s a T"],
) -> Float[Array, "I S A"]:
    """min Σ_t p(t) V(t) over rows p between two bounds: fill the worst successors first."""
    order = jnp.argsort(following, axis=-1)
    least, room = (jnp.take_along_axis(one[None], order, -1) for one in (least, most - least))
    left = 1 - jnp.sum(least, axis=-1, keepdims=True)
    filled = jnp.clip(left - (jnp.cumsum(room, axis=-1) - room), 0, room)
    return jnp.sum(jnp.take_along_axis(following, order, -1) * (least + filled), axis=-1)


def _row_bounds(
    knowledge: Knowledge, statistics: Statistics, log_term: Array, caution: Any
) -> tuple[Float[Array, "_ S A T"], Float[Array, "_ S A T"]]:
    """What the rows may be."""
    rows = means_of_rows(knowledge, statistics)
    visits, valid = statistics.visits.astype(rows.dtype), valid_slots(knowledge)
    return row_bounds(rows, row_widths(rows, visits, log_term, caution), visits, valid)


def _least_signals(
    knowledge: Knowledge, statistics: Statistics, log_term: Array, caution: Any
) -> Float[Array, "H I S A"]:
    """ǔ."""
    signals = empirical_model(knowledge, statistics).signals[:, 1:]
    if knowledge.signals is not None:
        return signals
    visits = statistics.visits.astype(signals.dtype)
    widths = mean_widths(visits, log_term, caution)[:, None]
    return jnp.where((visits > 0)[:, None], jnp.maximum(signals - widths, 0), 0)


ALGORITHM = mix(Algorithm("optimistic-planning", optimistic_planning), "s-ops")
