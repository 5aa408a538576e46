"""A learner's episodes as the online statements need them: its estimates beside the truth."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Integer

from cmdpax.errors import ParameterError
from cmdpax.learners.base import Factory, learner_key
from cmdpax.learners.contract import make_checked
from cmdpax.learners.statistics import Knowledge, optimistic_model
from cmdpax.learners.truncated_evaluation import evaluate
from cmdpax.learning.loop import play
from cmdpax.model.evaluation import occupancy, signal_array
from cmdpax.model.transitions import Successors, Transposed, at_step, backup
from cmdpax.paper.audit.problem import Problem
from cmdpax.schemes.hyperparameters import Hyperparameters
from cmdpax.schemes.iteration import evaluate_with_entropy
from cmdpax.schemes.potential import potential
from cmdpax.schemes.schedules import Schedule


class Episode(NamedTuple):
    """Episode k of a run.

    Attributes:
        iteration: k.
        log_policy: log π_k.
        multipliers: λ_k.
        next_log_policy: log π_{k+1}.
        next_multipliers: λ_{k+1}.
        every_q: Q̂_r, Q̂_{u_i} and Q̂_ψ of Algorithm 2, `[H, L, S, A]`, from the learner's counts.
        q_lagrangian: Q̂_z as the learner used it.
        constraint_values: V̂_u as the learner used it.
        values: V_r, V_{u_i} and the entropy of π_k in the true model, `[L]`.
        optimistic_values: V̂_r, V̂_{u_i} and V̂_ψ at the start, `[L]`.
        means: r̄ and ū, `[H, J, S, A]`.
        signals: r and u, `[H, J, S, A]`.
        reward_bonus: b^r.
        transition_bonus: b^p.
        row_errors: ‖p - p̄‖₁, `[H, S, A]`.
        visits: n.
        expected_visits: Σ_{j<k} d^{π_j}.
        occupancy: d^{π_k}.
        potential: Φ_k.
        next_potential: Φ_{k+1}.
    """

    iteration: Integer[Array, ""]
    log_policy: Float[Array, "H S A"]
    multipliers: Float[Array, " I"]
    next_log_policy: Float[Array, "H S A"]
    next_multipliers: Float[Array, " I"]
    every_q: Float[Array, "H L S A"]
    q_lagrangian: Float[Array, "H S A"]
    constraint_values: Float[Array, " I"]
    values: Float[Array, " L"]
    optimistic_values: Float[Array, " L"]
    means: Float[Array, "H J S A"]
    signals: Float[Array, "H J S A"]
    reward_bonus: Float[Array, "H S A"]
    transition_bonus: Float[Array, "H S A"]
    row_errors: Float[Array, "H S A"]
    visits: Integer[Array, "H S A"]
    expected_visits: Float[Array, "H S A"]
    occupancy: Float[Array, "H S A"]
    potential: Float[Array, ""]
    next_potential: Float[Array, ""]

    @property
    def policy(self) -> Float[Array, "H S A"]:
        """π_k."""
        return jnp.exp(self.log_policy)


def hyperparameters_of(problem: Problem) -> Hyperparameters:
    """Those of the problem, as constants."""
    zero = jnp.zeros(())
    return Hyperparameters(
        Schedule(problem.step_size, zero, zero),
        Schedule(problem.regularization, zero, zero),
        problem.max_multiplier,
        Schedule(zero, zero, zero),
    )


def play_episode(
    problem: Problem,
    knowledge: Knowledge,
    factory: Factory,
    state: Any,
    expected_visits: Array,
    key: Array,
    iteration: Array,
) -> tuple[Any, Episode]:
    """Play π_k with Bernoulli observations, let the learner update, and evaluate both worlds."""
    learner = make_checked(factory, knowledge, hyperparameters_of(problem))
    log_policy, info = learner.show(state)
    statistics, q_lagrangian = info.statistics, info.q_values
    if statistics is None or q_lagrangian is None:
        raise ParameterError(
            "the online audit reads the learner's counts and checks its Q̂: the Info that it shows "
            "must have statistics and q_values."
        )
    trajectory = play(jax.random.fold_in(key, iteration), problem.cmdp, jnp.exp(log_policy), True)
    following = learner.update(state, trajectory, learner_key(key, iteration))
    next_log_policy, next_info = learner.show(following)
    model = optimistic_model(knowledge, statistics)
    visits = jnp.maximum(statistics.visits, 1).astype(log_policy.dtype)
    reward_bonus = knowledge.bonuses.reward / jnp.sqrt(visits)
    every_q, _ = evaluate(model, log_policy, knowledge.initial)
    first_values = jnp.sum(jnp.exp(log_policy[0])[None] * every_q[0], axis=-1)
    _, true_values = evaluate_with_entropy(problem.cmdp, log_policy)
    bonus = (reward_bonus + model.transition_bonus)[:, None]
    return following, Episode(
        iteration,
        log_policy,
        info.multipliers,
        next_log_policy,
        next_info.multipliers,
        every_q,
        q_lagrangian,
        info.constraint_values,
        true_values,
        first_values @ knowledge.initial,
        model.signals - bonus,
        signal_array(problem.cmdp),
        reward_bonus,
        model.transition_bonus,
        row_errors(problem, model.transitions),
        statistics.visits,
        expected_visits,
        occupancy(problem.cmdp, jnp.exp(log_policy)),
        potential(problem.saddle, log_policy, info.multipliers),
        potential(problem.saddle, next_log_policy, next_info.multipliers),
    )


def row_errors(problem: Problem, estimated: Any) -> Float[Array, "H S A"]:
    """‖p_h(· | s, a) - p̄_h(· | s, a)‖₁; lists share their slots with the estimates."""

    def one(step: int) -> Array:
        true = at_step(problem.cmdp.transitions, step)
        guess = at_step(estimated, step)
        if isinstance(guess, Transposed):
            rows = jnp.moveaxis(guess.probabilities, 0, -1)
            return jnp.sum(jnp.abs(true - rows), axis=-1)
        assert isinstance(true, Successors)
        # A state may be listed twice: its slots count together, in the first of them.
        same = true.successors[..., :, None] == true.successors[..., None, :]
        missed = (true.probabilities - guess.probabilities)[..., None, :]
        together = jnp.sum(jnp.where(same, missed, 0), axis=-1)
        first = jnp.argmax(same, axis=-1) == jnp.arange(same.shape[-1])[None, None]
        return jnp.sum(jnp.where(first, jnp.abs(together), 0), axis=-1)

    return jnp.stack([one(step) for step in range(problem.horizon)])


def expected_next(problem: Problem, values: Float[Array, "H S"]) -> Float[Array, "H S A"]:
    """Σ_t p_h(t | s, a) V_{h+1}(t), with V_{H+1} = 0."""
    later = jnp.concatenate([values[1:], jnp.zeros_like(values[:1])])
    return jax.vmap(lambda step, value: backup(at_step(problem.cmdp.transitions, step), value))(
        jnp.arange(problem.horizon), later
    )
