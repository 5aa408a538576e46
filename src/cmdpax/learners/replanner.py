"""Learners that plan exactly on what they have counted, and rarely.

    for j = 1, 2, …, while episodes are left:                         k = k_j: the next episode
        a model of the counts, in which exploring is worth something
        π_j = the optimal policy of that model (column generation)    planning.batched
        play π_j for a stretch of
            m_j = max(1, min(⌊g k⌋, ⌊ρ min_{h,s,a} (n_h(s, a) ∨ 1) / d̂_h(s, a)⌋))
        episodes, count

with d̂ the occupancy of π_j in that model; where the steps share what they have in common, n is what
an estimate is worth. The first bound alone gives about log(K)/log(1 + g) plans. The second limits
what a stretch is expected to add to a count to ρ times that count: without it an action that was
rarely tried, once it looks attractive, is played for a share g of all episodes. Both are fixed when
a plan is made, so that the episodes of a stretch are independent draws, and their counts are all
that there is to know about them.

What differs between these learners is the model: `Model` and whoever makes it from `Estimates`. The
transitions of a model may also be bounds, between which the planner chooses. A learner that is
cautious about its constraints can fall back on its baseline, which it then plays where no policy
is feasible in its model, or where it does not trust the plan yet.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Integer, Key, UInt32

from cmdpax.learners.base import Info, Learner, Shown
from cmdpax.learners.estimates import Estimates, make_estimates
from cmdpax.learners.statistics import (
    Counted,
    Knowledge,
    Statistics,
    Trajectory,
    add,
    empty_statistics,
    record,
    rescale_signals,
)
from cmdpax.model.cmdp import CMDP
from cmdpax.model.evaluation import occupancy, q_values
from cmdpax.model.transitions import Transitions
from cmdpax.planning.batched import Plan, plan
from cmdpax.schemes.schedules import Scheduled, value_at

Number: TypeAlias = float | Float[Array, ""]
"""A parameter, which may be traced."""
_ROUNDING = 1e-9
_RARELY = 0.01  # shares of random actions below it are 0, and the plan is played as it is
_LONGEST = 2.0**52  # episodes, in the arithmetic of stretches


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


class Model(NamedTuple):
    """What is planned in: max V_r subject to V_{u_i} ≥ c_i + margin.

    Where no policy is feasible, the one with the largest worst slack is played. A learner that is
    cautious about its constraints would then play what it knows for ever, however unsafe that is;
    `hopeful` says what u may be, and it is the worst slack of these that is maximised.
    """

    transitions: Transitions
    signals: Float[Array, "H J S A"]
    hopeful: Float[Array, "H I S A"] | None = None  # u where nothing is feasible; None: the same
    upper: Float[Array, "_ S A T"] | None = None  # if given, the transitions are lower bounds
    trusted: Bool[Array, ""] | None = None  # whether the plan may be played; None: it may


MakeModel = Callable[[Estimates, Key[Array, ""]], Model]
"""From estimates and the key of a plan to the model that is planned in."""


def replanner(
    knowledge: Knowledge,
    make_model: MakeModel,
    *,
    growth: Number,
    stretch: Number,
    margin: Scheduled = 0.0,
    multiplier_cap: Number = jnp.inf,
    pooling: str = "none",
    prior: Number = 1.0,
    random_visits: Number = 0.0,
    falls_back: bool = False,
) -> Learner:
    """A learner that plans in models of its counts; g is `growth`, ρ is `stretch`.

    One that `falls_back` plays its baseline where a plan is infeasible or not trusted.

    With `pooling` "steps" the estimates of all steps are drawn together (`learners.pooling`);
    `prior` is the weight of the uniform prior on each row. In a state that was visited n times, the
    share min(1, (`random_visits`/(n ∨ 1))²) of the actions is random: in a long episode a plan that
    has reached what is unknown then walks on through it, where it would repeat one untried action.

    Bonuses are made with multipliers of at most `multiplier_cap`: a bonus for the Lagrangian grows
    with λ, and λ with the objective that it is part of, which without a cap runs away where the
    estimated model is barely feasible.
    """
    dtype, integer = knowledge.initial.dtype, jnp.result_type(int)

    def planned(state: ReplannerState) -> ReplannerState:
        """The state with plan j + 1, made of all episodes so far."""
        key = jax.random.wrap_key_data(state.key, impl="threefry2x32")
        capped = jnp.minimum(state.multipliers, multiplier_cap)
        estimates = make_estimates(
            knowledge, state.statistics, state.next_values, capped, state.episode, pooling, prior
        )
        model = make_model(estimates, jax.random.fold_in(key, state.num_plans))
        thresholds = knowledge.thresholds + value_at(margin, state.episode).astype(dtype)
        found = _plan(knowledge, model, thresholds, state.multipliers)
        if falls_back:
            found = _or_baseline(knowledge, estimates, model, found)
        length = _stretch_length(knowledge, state, estimates, found, growth, stretch)
        return state._replace(
            remaining=length.astype(integer),
            num_plans=state.num_plans + 1,
            log_policy=jnp.log(_played(knowledge, estimates, found.policy, random_visits)),
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
        return planned(_first_state(knowledge, key))

    def update(state: ReplannerState, trajectory: Trajectory, _: Key[Array, ""]) -> ReplannerState:
        statistics = record(knowledge, state.statistics, trajectory)
        return follow(state, statistics, jnp.ones((), integer))

    def absorb(state: ReplannerState, counted: Counted, count: Integer[Array, ""]) -> Any:
        return follow(state, add(knowledge, state.statistics, counted), count.astype(integer))

    return Learner(init, update, _show, absorb, _rescale)


def _played(
    knowledge: Knowledge,
    estimates: Estimates,
    policy: Float[Array, "H S A"],
    random_visits: Number,
) -> Float[Array, "H S A"]:
    """The plan, with a share of random actions in states that were hardly visited."""
    visits = jnp.sum(estimates.visits, axis=-1, keepdims=True)
    share = jnp.minimum((random_visits / jnp.maximum(visits, 1)) ** 2, 1)
    share = jnp.where(share < _RARELY, 0, share)
    return (1 - share) * policy + share * jnp.exp(knowledge.uniform_log_policy)


def _first_state(knowledge: Knowledge, key: Key[Array, ""]) -> ReplannerState:
    """Before the first plan."""
    num_constraints, horizon, num_states, _ = knowledge.sizes
    dtype, integer = knowledge.initial.dtype, jnp.result_type(int)
    return ReplannerState(
        episode=jnp.ones((), integer),
        remaining=jnp.zeros((), integer),
        num_plans=jnp.zeros((), jnp.int32),
        key=jax.random.key_data(key),
        log_policy=knowledge.uniform_log_policy,
        multipliers=jnp.zeros(num_constraints, dtype),
        constraint_values=jnp.zeros(num_constraints, dtype),
        feasible=jnp.ones((), bool),
        next_values=jnp.zeros((horizon, 1 + num_constraints, num_states), dtype),
        statistics=empty_statistics(knowledge, of_stretches=True),
    )


def _show(state: ReplannerState) -> Shown:
    info = Info(
        state.multipliers,
        state.constraint_values,
        statistics=state.statistics,
        num_plans=state.num_plans,
        feasible=state.feasible,
        remaining=state.remaining,
    )
    return Shown(state.log_policy, info)


def _rescale(
    state: ReplannerState, slopes: Float[Array, " J"], offsets: Float[Array, " J"]
) -> ReplannerState:
    """The same state where every signal x of a step is slope · x + offset."""
    horizon = state.next_values.shape[0]
    steps = jnp.arange(horizon - 1, -1, -1, dtype=slopes.dtype)  # after step h: H - h
    values = slopes[None, :, None] * state.next_values + jnp.outer(steps, offsets)[..., None]
    return state._replace(
        multipliers=state.multipliers * slopes[0] / slopes[1:],
        constraint_values=slopes[1:] * state.constraint_values + horizon * offsets[1:],
        next_values=values,
        statistics=rescale_signals(state.statistics, slopes, offsets),
    )


def _plan(knowledge: Knowledge, model: Model, thresholds: Array, multipliers: Array) -> Plan:
    """The optimal plan; where nothing is feasible, the largest worst slack of what is hoped for."""
    signals = model.signals
    cautious = jnp.swapaxes(signals[:, 1:], 0, 1)

    def planned(constraint_rewards: Array, thresholds: Array) -> Plan:
        arrays = (model.transitions, signals[:, 0], constraint_rewards, thresholds)
        known = (knowledge.initial, knowledge.available)
        cmdp = CMDP.tree_unflatten(signals.shape[0], (*arrays, *known))
        return plan(cmdp, multipliers, model.upper)

    if model.hopeful is None or not cautious.shape[0]:
        return planned(cautious, thresholds)
    hopeful = jnp.swapaxes(model.hopeful, 0, 1)
    # More than any value, in units of each: nothing is feasible, and the slacks keep their order.
    above = 4.0 * (signals.shape[0] + 1) * jnp.max(jnp.abs(hopeful), axis=(1, 2, 3))

    def attempt(carry: tuple[Array, Plan]) -> tuple[Array, Plan]:
        """A loop instead of two calls: the planner is compiled once, and runs twice if it must."""
        number, _ = carry
        first = number == 0
        found = planned(
            jnp.where(first, cautious, hopeful), thresholds + jnp.where(first, 0.0, above)
        )
        return number + 1, found._replace(feasible=found.feasible & first)

    def unfinished(carry: tuple[Array, Plan]) -> Array:
        number, found = carry
        return (number == 0) | ((number == 1) & ~found.feasible)

    shapes = jax.eval_shape(planned, cautious, thresholds)
    nothing = jax.tree.map(lambda one: jnp.zeros(one.shape, one.dtype), shapes)
    return jax.lax.while_loop(unfinished, attempt, (jnp.int32(0), nothing))[1]


def _or_baseline(knowledge: Knowledge, estimates: Estimates, model: Model, found: Plan) -> Plan:
    """The plan where it may be played, elsewhere the baseline, which counts as infeasible."""
    baseline = knowledge.baseline
    assert baseline is not None
    plays = found.feasible if model.trusted is None else found.feasible & model.trusted
    arrays = (estimates.transitions, *(model.signals[:, 0],) * 2, knowledge.thresholds)
    known = (knowledge.initial, knowledge.available)
    cmdp = CMDP.tree_unflatten(model.signals.shape[0], (*arrays, *known))
    return found._replace(
        policy=jnp.where(plays, found.policy, baseline.policy),
        occupancy=jnp.where(plays, found.occupancy, occupancy(cmdp, baseline.policy)),
        constraint_values=jnp.where(plays, found.constraint_values, baseline.constraint_values),
        feasible=plays,
    )


def _next_values(estimates: Estimates, policy: Float[Array, "H S A"]) -> Float[Array, "H J S"]:
    """V_{h+1} of every signal under a policy and p̂, for h = 1, …, H."""
    every_q, _ = q_values(estimates.transitions, estimates.signals, policy)
    values = jnp.sum(policy[:, None] * every_q, axis=-1)
    return jnp.concatenate([values[1:], jnp.zeros_like(values[:1])])


def _stretch_length(
    knowledge: Knowledge,
    state: ReplannerState,
    estimates: Estimates,
    found: Plan,
    growth: Number,
    stretch: Number,
) -> Float[Array, ""]:
    """max(1, min(⌊g k⌋, ⌊ρ min (n ∨ 1)/d̂⌋)) episodes; n is what pooled estimates are worth."""
    mass, visits = found.occupancy, estimates.visits_or_one
    if knowledge.stationary:
        mass, visits = mass.sum(axis=0, keepdims=True), visits[:1]
    bound = stretch * jnp.min(jnp.where(mass > 0, visits / jnp.where(mass > 0, mass, 1), jnp.inf))
    spaced = growth * state.episode.astype(mass.dtype)
    # Quotients of counts are often whole numbers, which rounding must not lower.
    return jnp.clip(jnp.floor(jnp.minimum(spaced, bound) * (1 + _ROUNDING)), 1, _LONGEST)
