"""Learners that plan exactly on what they have counted, and rarely.

    for j = 1, 2, …, while episodes are left:                         k = k_j: the next episode
        a model of the counts, in which exploring is worth something
        π_j = the optimal policy of that model (column generation)    planning.batched
        play π_j for a stretch of
            m_j = max(1, min(⌊g k⌋, ⌊ρ min_{h,s,a} (n_h(s, a) ∨ 1) / d̂_h(s, a)⌋))
        episodes, count

with d̂ the occupancy of π_j in that model. The first bound alone gives about log(K)/log(1 + g)
plans. The second limits what a stretch is expected to add to a count to ρ times that count: without
it an action that was rarely tried, once it looks attractive, is played for a share g of all
episodes.
Both are fixed when a plan is made, so that the episodes of a stretch are independent draws, and
their counts are all that there is to know about them.

What differs between these learners is the model: `Model` and whoever makes it from `Estimates`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Integer, Key, UInt32

from cmdpax.learners.base import Info, Learner, Shown
from cmdpax.learners.statistics import (
    Counted,
    Knowledge,
    Statistics,
    Trajectory,
    add,
    empirical_model,
    empty_statistics,
    record,
)
from cmdpax.model.cmdp import CMDP
from cmdpax.model.evaluation import q_values
from cmdpax.model.transitions import Successors, Transitions, Transposed, at_step
from cmdpax.planning.batched import Plan, plan
from cmdpax.schemes.schedules import Scheduled, value_at

Number: TypeAlias = float | Float[Array, ""]
"""A parameter, which may be traced."""
_ROUNDING = 1e-9
_LONGEST = 2.0**52  # episodes, in the arithmetic of stretches


class Estimates(NamedTuple):
    """What a learner makes of its counts before it plans; H is not shortened to 1 anywhere here.

    V is the value of a signal under the last plan and p̂: V_{h+1} for the steps h = 1, …, H.
    """

    transitions: Transitions  # p̂; its first axis is 1 where the steps share their counts
    signals: Float[Array, "H J S A"]  # r̂, û
    visits: Float[Array, "H S A"]  # n ∨ 1
    variances: Float[Array, "H J S A"] | None  # of the observed signals; None: they are known
    counts: Float[Array, "H S A T"]  # how often each successor came; its first axis may be 1 too
    next_values: Float[Array, "H J S"]  # V_{h+1} of every signal
    multipliers: Float[Array, " I"]  # λ of the last feasible plan, capped

    @property
    def weights(self) -> Float[Array, " J"]:
        """(1, λ): what the Lagrangian r + λᵀu makes of the signals."""
        return jnp.concatenate([jnp.ones(1, self.multipliers.dtype), self.multipliers])

    def following(self, values: Float[Array, "H S"]) -> Float[Array, "H ... T"]:
        """The values of the states that may follow each pair, for values after each step."""
        if not isinstance(self.transitions, Successors):
            return values[:, None, None, :]
        lists = self.transitions.successors
        return jax.vmap(lambda step, one: one[at_step(lists, step)])(
            jnp.arange(values.shape[0]), values
        )

    @property
    def rows(self) -> Float[Array, "H S A T"]:
        """The probabilities of p̂, successor by successor."""
        if isinstance(self.transitions, Successors):
            return self.transitions.probabilities
        return self.transitions


class ReplannerState(NamedTuple):
    """What the next episode needs."""

    episode: Integer[Array, ""]  # k, the next one
    remaining: Integer[Array, ""]  # episodes that the plan is still played
    num_plans: Integer[Array, ""]  # j
    key: UInt32[Array, " 2"]  # of all plans
    log_policy: Float[Array, "H S A"]
    multipliers: Float[Array, " I"]  # of the last feasible plan
    constraint_values: Float[Array, " I"]  # V_u of the plan, in the model that was planned in
    feasible: Bool[Array, ""]
    next_values: Float[Array, "H J S"]  # of the plan under p̂: V_{h+1} of every signal
    statistics: Statistics


Model: TypeAlias = tuple[Transitions, Float[Array, "H J S A"]]
"""Transitions and signals of what is planned in: max V_r subject to V_{u_i} ≥ c_i + margin."""
MakeModel = Callable[[Estimates, Key[Array, ""]], Model]
"""From estimates and the key of a plan to the model that is planned in."""


def replanner(
    knowledge: Knowledge,
    make_model: MakeModel,
    *,
    growth: Number,
    stretch: Number,
    margin: Scheduled,
    multiplier_cap: Number = jnp.inf,
) -> Learner:
    """A learner that plans in models of its counts; g is `growth`, ρ is `stretch`.

    Bonuses are made with multipliers of at most `multiplier_cap`: a bonus for the Lagrangian grows
    with λ, and λ with the objective that it is part of, which without a cap runs away where the
    estimated model is barely feasible.
    """
    num_constraints, horizon, num_states, num_actions = knowledge.sizes
    dtype = knowledge.initial.dtype
    integer = jnp.result_type(int)

    def planned(state: ReplannerState) -> ReplannerState:
        """The state with plan j + 1, made of all episodes so far."""
        key = jax.random.wrap_key_data(state.key, impl="threefry2x32")
        estimates = _estimates(knowledge, state)
        capped = jnp.minimum(estimates.multipliers, multiplier_cap)
        estimates = estimates._replace(multipliers=capped)
        transitions, signals = make_model(estimates, jax.random.fold_in(key, state.num_plans))
        thresholds = knowledge.thresholds + value_at(margin, state.episode).astype(dtype)
        model = _cmdp(transitions, signals, thresholds, knowledge.initial)
        found = plan(model, state.multipliers)
        length = _stretch_length(knowledge, state, found, growth, stretch)
        return state._replace(
            remaining=length.astype(integer),
            num_plans=state.num_plans + 1,
            log_policy=jnp.log(found.policy),
            multipliers=jnp.where(found.feasible, found.multipliers, state.multipliers),
            constraint_values=found.constraint_values,
            feasible=found.feasible,
            next_values=_next_values(estimates, found.policy),
        )

    def follow(state: ReplannerState, statistics: Statistics, count: Array) -> ReplannerState:
        """Some episodes of the stretch later; plans anew when it is over."""
        later = state._replace(
            episode=state.episode + count, remaining=state.remaining - count, statistics=statistics
        )
        return jax.lax.cond(later.remaining <= 0, planned, lambda same: same, later)

    def init(key: Key[Array, ""]) -> ReplannerState:
        shape = (horizon, num_states, num_actions)
        nothing = ReplannerState(
            episode=jnp.ones((), integer),
            remaining=jnp.zeros((), integer),
            num_plans=jnp.zeros((), jnp.int32),
            key=jax.random.key_data(key),
            log_policy=jnp.full(shape, -jnp.log(num_actions), dtype),
            multipliers=jnp.zeros(num_constraints, dtype),
            constraint_values=jnp.zeros(num_constraints, dtype),
            feasible=jnp.ones((), bool),
            next_values=jnp.zeros((horizon, 1 + num_constraints, num_states), dtype),
            statistics=empty_statistics(knowledge, of_stretches=True),
        )
        return planned(nothing)

    def update(state: ReplannerState, trajectory: Trajectory, _: Key[Array, ""]) -> ReplannerState:
        statistics = record(knowledge, state.statistics, trajectory)
        return follow(state, statistics, jnp.ones((), integer))

    def absorb(state: ReplannerState, counted: Counted, count: Integer[Array, ""]) -> Any:
        return follow(state, add(knowledge, state.statistics, counted), count.astype(integer))

    def show(state: ReplannerState) -> Shown:
        info = Info(
            state.multipliers,
            state.constraint_values,
            statistics=state.statistics,
            num_plans=state.num_plans,
            feasible=state.feasible,
            remaining=state.remaining,
        )
        return Shown(state.log_policy, info)

    return Learner(init, update, show, absorb)


def _estimates(knowledge: Knowledge, state: ReplannerState) -> Estimates:
    """The empirical model, with all that bonuses are made of."""
    statistics, (_, *pairs) = state.statistics, knowledge.sizes
    model = empirical_model(knowledge, statistics)
    transitions = model.transitions
    if isinstance(transitions, Transposed):
        transitions = jnp.moveaxis(transitions.probabilities, 1, -1)
    dtype = knowledge.initial.dtype
    visits = jnp.maximum(statistics.visits, 1).astype(dtype)
    variances = None
    if statistics.reward_sums is not None and statistics.square_sums is not None:
        means = statistics.reward_sums / visits[:, None]
        spread = jnp.maximum(statistics.square_sums / visits[:, None] - means**2, 0)
        variances = jnp.broadcast_to(spread, (pairs[0], *spread.shape[1:]))
    counts, _ = statistics.storage
    return Estimates(
        transitions,
        jnp.broadcast_to(model.signals, (pairs[0], *model.signals.shape[1:])),
        jnp.broadcast_to(visits, pairs),
        variances,
        counts.astype(dtype),
        state.next_values,
        state.multipliers,
    )


def _cmdp(transitions: Transitions, signals: Array, thresholds: Array, initial: Array) -> CMDP:
    """The model as planning takes it; its arrays may be traced."""
    arrays = (transitions, signals[:, 0], jnp.swapaxes(signals[:, 1:], 0, 1))
    return CMDP.tree_unflatten(signals.shape[0], (*arrays, thresholds, initial))


def _next_values(estimates: Estimates, policy: Float[Array, "H S A"]) -> Float[Array, "H J S"]:
    """V_{h+1} of every signal under a policy and p̂, for h = 1, …, H."""
    every_q, _ = q_values(estimates.transitions, estimates.signals, policy)
    values = jnp.sum(policy[:, None] * every_q, axis=-1)
    return jnp.concatenate([values[1:], jnp.zeros_like(values[:1])])


def _stretch_length(
    knowledge: Knowledge, state: ReplannerState, found: Plan, growth: Number, stretch: Number
) -> Float[Array, ""]:
    """max(1, min(⌊g k⌋, ⌊ρ min (n ∨ 1)/d̂⌋)) episodes."""
    mass = found.occupancy
    if knowledge.stationary:
        mass = mass.sum(axis=0, keepdims=True)
    visits = jnp.maximum(state.statistics.visits, 1).astype(mass.dtype)
    bound = stretch * jnp.min(jnp.where(mass > 0, visits / jnp.where(mass > 0, mass, 1), jnp.inf))
    spaced = growth * state.episode.astype(mass.dtype)
    # Quotients of counts are often whole numbers, which rounding must not lower.
    return jnp.clip(jnp.floor(jnp.minimum(spaced, bound) * (1 + _ROUNDING)), 1, _LONGEST)
