"""OptAug-CMDP: an augmented Lagrangian in the optimistic model.

After Müller, Alatur, Ramponi and He (2023), "Cancellation-free regret bounds for Lagrangian
approaches in constrained Markov decision processes", arXiv:2306.07001; constants ours:

    for k = 1, 2, …:
        r̂, û, p̄ from the episodes before                     `models`, with k in place of K
        π_k = argmax_π V_r̂ - 1/(2η) Σ_i [λ_i + η (c_i - V_û_i)]_+²            under p̄
        play π_k, count
        λ_{k+1} = [λ_k + η (c - V_û^{π_k})]_+

The quadratic term makes the maximiser a mixture that is near to the constraints, where that of the
Lagrangian jumps from one side to the other, so that errors of different episodes do not cancel
out, and violations are bounded strongly.

What is maximised is concave in the occupancy d, with V_r̂ = ⟨d, r̂⟩. The publication asks for an
accuracy ε_k; here Frank-Wolfe reaches it, from the occupancy of the last policy under the new p̄:

    w = [λ + η (c - ⟨d, û⟩)]_+
    v = the occupancy of argmax_π V_{r̂ + wᵀû}                             one dynamic program
    d ← d + γ (v - d), γ ∈ [0, 1] the best                        piecewise linear derivative

until the derivative at γ = 0, which bounds what is missing to the maximum, is at most ε_k, or for
`inner_steps` steps. Occupancies are mixed, and then π_k(a | s) = d(s, a)/Σ_a d(s, a), uniform where
that is 0/0.
"""

from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Integer, Key

from cmdpax.learners.algorithm import Algorithm
from cmdpax.learners.base import Info, Learner, Shown
from cmdpax.learners.field.confidence import BonusScale, FailureProbability
from cmdpax.learners.field.models import published_model
from cmdpax.learners.statistics import (
    Knowledge,
    Statistics,
    Trajectory,
    empty_statistics,
    means_of_rows,
    record,
)
from cmdpax.model.cmdp import CMDP
from cmdpax.model.evaluation import evaluate_policy, occupancy, signals_at
from cmdpax.model.transitions import Successors, at_step
from cmdpax.planning.dynamic_program import backward_plan, greedy
from cmdpax.schemes.parameters import Parameter
from cmdpax.schemes.schedules import Scheduled, power, value_at


class OptAug(NamedTuple):
    """The parameters of `opt-aug`."""

    penalty: Annotated[Scheduled, Parameter("weight of the squared violation", "η", above=0)] = 1.0
    accuracy: Annotated[
        Scheduled, Parameter("what may be missing to the maximum", "ε", above=0)
    ] = power(0.1, 1.0)
    inner_steps: Annotated[
        int, Parameter("the most Frank-Wolfe steps in an episode", at_least=1)
    ] = 20
    failure_probability: FailureProbability = 0.1
    bonus_scale: BonusScale = 0.0001


class OptAugState(NamedTuple):
    """What the next episode needs."""

    episode: Integer[Array, ""]  # k
    log_policy: Float[Array, "H S A"]  # log π_k
    multipliers: Float[Array, " I"]  # λ_k
    constraint_values: Float[Array, " I"]  # V_û of π_k
    statistics: Statistics  # of episodes 1 … k-1


class _Mixture(NamedTuple):
    """d, its values, and how far it may be from the best."""

    turn: Integer[Array, ""]
    occupancy: Float[Array, "H S A"]
    values: Float[Array, " J"]  # ⟨d, r̂⟩, ⟨d, û⟩
    missing: Float[Array, ""]


def opt_aug(knowledge: Knowledge, parameters: OptAug) -> Learner:
    """The augmented Lagrangian, maximised by Frank-Wolfe in the optimistic model."""
    dtype = knowledge.initial.dtype

    def penalty_at(episode: Integer[Array, ""]) -> Float[Array, ""]:
        return value_at(parameters.penalty, episode).astype(dtype)

    def planned(
        episode: Integer[Array, ""],
        multipliers: Float[Array, " I"],
        statistics: Statistics,
        log_policy: Float[Array, "H S A"],
    ) -> OptAugState:
        """π_k, starting from the last policy."""
        cmdp = _optimistic(knowledge, statistics, episode, parameters)
        values, start = evaluate_policy(cmdp, jnp.exp(log_policy))
        accuracy = value_at(parameters.accuracy, episode).astype(dtype)
        first = _Mixture(jnp.int32(0), start, values, jnp.full((), jnp.inf, dtype))
        found = jax.lax.while_loop(
            lambda now: (now.turn < parameters.inner_steps) & (now.missing > accuracy),
            lambda now: _frank_wolfe(cmdp, now, multipliers, penalty_at(episode), accuracy),
            first,
        )
        chosen = _log_policy(knowledge, found.occupancy)
        return OptAugState(episode, chosen, multipliers, found.values[1:], statistics)

    def init(_: Key[Array, ""]) -> OptAugState:
        statistics, nothing = empty_statistics(knowledge), jnp.zeros_like(knowledge.thresholds)
        return planned(jnp.int32(1), nothing, statistics, knowledge.uniform_log_policy)

    def update(state: OptAugState, trajectory: Trajectory, _: Key[Array, ""]) -> OptAugState:
        missing = knowledge.thresholds - state.constraint_values
        multipliers = jnp.maximum(state.multipliers + penalty_at(state.episode) * missing, 0)
        statistics = record(knowledge, state.statistics, trajectory)
        return planned(state.episode + 1, multipliers, statistics, state.log_policy)

    def show(state: OptAugState) -> Shown:
        info = Info(state.multipliers, state.constraint_values, statistics=state.statistics)
        return Shown(state.log_policy, info)

    return Learner(init, update, show)


def _optimistic(
    knowledge: Knowledge, statistics: Statistics, episode: Integer[Array, ""], parameters: OptAug
) -> CMDP:
    """r̂, û and p̄ as a CMDP."""
    signals = published_model(knowledge, statistics, episode, parameters).signals
    rows: Any = means_of_rows(knowledge, statistics)
    if knowledge.support is not None:
        lists = jnp.broadcast_to(jnp.maximum(knowledge.support, 0), rows.shape)
        rows = Successors(lists, rows)
    arrays = (rows, signals[:, 0], jnp.swapaxes(signals[:, 1:], 0, 1), knowledge.thresholds)
    known = (knowledge.initial, knowledge.available)
    return CMDP.tree_unflatten(knowledge.sizes.horizon, (*arrays, *known))


def _frank_wolfe(
    cmdp: CMDP,
    now: _Mixture,
    multipliers: Float[Array, " I"],
    penalty: Float[Array, ""],
    accuracy: Float[Array, ""],
) -> _Mixture:
    """One step towards the vertex that the gradient points to, if it is worth it."""
    pushes = multipliers + penalty * (cmdp.thresholds - now.values[1:])
    weights = jnp.concatenate([jnp.ones(1, pushes.dtype), jnp.maximum(pushes, 0)])  # (1, w)

    def stage_at(index: Any) -> Any:
        signals = signals_at(cmdp, index)
        reward = jnp.tensordot(weights, signals, axes=1)
        return at_step(cmdp.transitions, index), reward, signals

    _, values, log_policy = backward_plan(
        stage_at, cmdp.sizes, greedy, cmdp.initial, available=cmdp.available
    )
    vertex = occupancy(cmdp, jnp.exp(log_policy))
    gained = values - now.values
    missing = jnp.sum(weights * gained)
    share = jnp.where(missing > accuracy, _best_share(gained, pushes, penalty), 0)
    return _Mixture(
        now.turn + 1,
        now.occupancy + share * (vertex - now.occupancy),
        now.values + share * gained,
        missing,
    )


def _best_share(
    gained: Float[Array, " J"], pushes: Float[Array, " I"], penalty: Float[Array, ""]
) -> Float[Array, ""]:
    """The γ ∈ [0, 1] where the derivative Δ_r + Σ_i [a_i - γ η Δ_i]_+ Δ_i changes its sign.

    It decreases and is linear between the points where one of the brackets becomes 0.
    """
    changes = penalty * gained[1:]
    kinks = jnp.where(changes != 0, pushes / jnp.where(changes != 0, changes, 1), 0)
    ends = jnp.arange(2, dtype=pushes.dtype)
    points = jnp.sort(jnp.concatenate([ends, jnp.clip(kinks, 0, 1)]))
    left = jnp.maximum(pushes[None] - points[:, None] * changes[None], 0)
    slopes = gained[0] + left @ gained[1:]
    last = jnp.maximum(jnp.sum(slopes >= 0) - 1, 0)
    following = jnp.minimum(last + 1, len(points) - 1)
    drop = slopes[last] - slopes[following]
    part = jnp.where(drop > 0, slopes[last] / jnp.where(drop > 0, drop, 1), 0)
    return points[last] + jnp.clip(part, 0, 1) * (points[following] - points[last])


def _log_policy(knowledge: Knowledge, mass: Float[Array, "H S A"]) -> Float[Array, "H S A"]:
    """log π of an occupancy."""
    total = jnp.sum(mass, axis=-1, keepdims=True)
    shares = jnp.log(mass / jnp.where(total > 0, total, 1))
    return jnp.where(total > 0, shares, knowledge.uniform_log_policy)


ALGORITHM = Algorithm(
    "opt-aug",
    opt_aug,
    summary="OptAug-CMDP: an augmented Lagrangian in the optimistic model, by Frank-Wolfe.",
)
