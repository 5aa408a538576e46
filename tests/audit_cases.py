"""What several tests of the audit share: one small CMDP, one T, and schemes that are wrong.

Every new shape, scheme or list of statements compiles anew, so tests reuse few.
"""

import functools
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

import cmdpax
from cmdpax.learners import Hyperparameters, Info, Learner, Shown, rates_at
from cmdpax.learners.statistics import (
    Knowledge,
    OptimisticModel,
    Statistics,
    Trajectory,
    empty_statistics,
    optimistic_model,
    record,
)
from cmdpax.model.transitions import at_step, backup_signals
from cmdpax.paper.audit import Audit, Problem, library_scheme
from cmdpax.schemes.exact import evaluate_with_entropy
from cmdpax.schemes.updates import dual_descent, lagrangian, mirror_ascent
from learning_cases import model

T = 20
ONLINE: dict[str, Any] = {"online": True, "num_episodes": 30, "seeds": 6}


def audited(cmdp: cmdpax.CMDP | None = None, **changes: Any) -> Audit:
    """The audit of a model, S = 3, A = 2, H = 3, I = 2 unless another is given."""
    return cmdpax.audit(model(2) if cmdp is None else cmdp, num_iterations=T, **changes)


@functools.cache
def unbroken() -> Audit:
    """The audit of the library's own scheme and learner."""
    return audited(**ONLINE)


def failing(found: Audit) -> set[str]:
    """Names of the rows that fail."""
    return {row.name for row in found.rows if row.verdict == "fails"}


# ---------------------------------------------------------------------------------- wrong schemes


def _values(problem: Problem, log_policy: Array) -> tuple[Array, Array]:
    every_q, values = evaluate_with_entropy(problem.cmdp, log_policy)
    return every_q, values[1:-1] - problem.cmdp.thresholds


def _rates(problem: Problem) -> tuple[Any, Any, Any]:
    return problem.step_size, problem.regularization, problem.max_multiplier


def flipped_dual(problem: Problem, log_policy: Array, multipliers: Array) -> tuple[Array, Array]:
    """λ + η(V_u - c): the wrong sign."""
    following, _ = library_scheme(problem, log_policy, multipliers)
    _, slacks = _values(problem, log_policy)
    return following, dual_descent(multipliers, -slacks, *_rates(problem))


def flipped_ascent(problem: Problem, log_policy: Array, multipliers: Array) -> tuple[Array, Array]:
    """π exp(-ηQ): the wrong direction."""
    _, next_multipliers = library_scheme(problem, log_policy, multipliers)
    every_q, _ = _values(problem, log_policy)
    q_lagrangian = lagrangian(every_q, multipliers, problem.regularization)
    return mirror_ascent(log_policy, -q_lagrangian, problem.step_size), next_multipliers


def policy_first(problem: Problem, log_policy: Array, multipliers: Array) -> tuple[Array, Array]:
    """Alternating: λ_{k+1} from π_{k+1}."""
    following, _ = library_scheme(problem, log_policy, multipliers)
    _, slacks = _values(problem, following)
    return following, dual_descent(multipliers, slacks, *_rates(problem))


def multipliers_first(
    problem: Problem, log_policy: Array, multipliers: Array
) -> tuple[Array, Array]:
    """Alternating: π_{k+1} from λ_{k+1}."""
    _, next_multipliers = library_scheme(problem, log_policy, multipliers)
    every_q, _ = _values(problem, log_policy)
    q_lagrangian = lagrangian(every_q, next_multipliers, problem.regularization)
    return mirror_ascent(log_policy, q_lagrangian, problem.step_size), next_multipliers


# ---------------------------------------------------------------------------------- wrong learners


class Prepared(NamedTuple):
    """What an episode shows, and what the one after it needs."""

    episode: Array
    shown: Shown
    next_log_policy: Array
    next_multipliers: Array


def uncapped(knowledge: Knowledge, hyperparameters: Hyperparameters) -> Learner:
    """Algorithm 1 whose policy evaluation does not truncate."""
    num_constraints, *pairs = knowledge.sizes

    def prepare(
        episode: Array, log_policy: Array, multipliers: Array, statistics: Statistics
    ) -> Prepared:
        step_size, regularization, max_multiplier, _ = rates_at(hyperparameters, episode)
        every_q = _uncapped_q(optimistic_model(knowledge, statistics), log_policy)
        values = jnp.sum(jnp.exp(log_policy[0])[None] * every_q[0], axis=-1)[1:-1]
        values = values @ knowledge.initial
        q_lagrangian = lagrangian(every_q, multipliers, regularization)
        slacks = values - knowledge.thresholds
        return Prepared(
            episode,
            Shown(log_policy, Info(multipliers, values, q_lagrangian, statistics)),
            mirror_ascent(log_policy, q_lagrangian, step_size),
            dual_descent(multipliers, slacks, step_size, regularization, max_multiplier),
        )

    def init(_: Array) -> Prepared:
        start = jnp.full(pairs, -jnp.log(pairs[-1]), float)
        nothing = empty_statistics(knowledge)
        return prepare(jnp.asarray(1, jnp.int32), start, jnp.zeros(num_constraints), nothing)

    def update(state: Prepared, trajectory: Trajectory, _: Array) -> Prepared:
        counted = record(knowledge, state.shown.info.statistics, trajectory)
        policy, multipliers = state.next_log_policy, state.next_multipliers
        return prepare(state.episode + 1, policy, multipliers, counted)

    return Learner(init, update, lambda state: state.shown)


def _uncapped_q(model: OptimisticModel, log_policy: Array) -> Array:
    """Q̂ of r̂, of every û_i and of ψ̂ under p̂, `[H, L, S, A]`, as if they needed no cap."""
    horizon, num_states, num_actions = log_policy.shape
    log_a = jnp.log(num_actions).astype(log_policy.dtype)
    values = jnp.zeros((model.signals.shape[1] + 1, num_states))
    steps = []
    for h in reversed(range(horizon)):
        entropy = -log_policy[h] + model.transition_bonus[h] * log_a
        signals = jnp.concatenate([model.signals[h], entropy[None]])
        steps.append(signals + backup_signals(at_step(model.transitions, h), values))
        values = jnp.sum(jnp.exp(log_policy[h])[None] * steps[-1], axis=-1)
    return jnp.stack(steps[::-1])


def forgetful(knowledge: Knowledge, _: Hyperparameters) -> Learner:
    """A learner that always plays the uniform policy and counts nothing."""
    num_constraints, *pairs = knowledge.sizes
    zeros = jnp.zeros(num_constraints)
    uniform = jnp.full(pairs, -jnp.log(pairs[-1]), float)
    shown = Shown(uniform, Info(zeros, zeros, jnp.zeros(pairs)))
    return Learner(lambda key: (), lambda state, trajectory, key: state, lambda state: shown)
