"""A learner's episodes as the online statements need them: its estimates beside the truth."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from cmdpax.errors import ParameterError
from cmdpax.learners.base import Learner, learner_key
from cmdpax.learners.statistics import Knowledge, optimistic_model
from cmdpax.learners.truncated_evaluation import evaluate
from cmdpax.learning.loop import play
from cmdpax.model.evaluation import occupancy, signal_array
from cmdpax.model.transitions import Successors, Transposed, at_step
from cmdpax.paper.audit.problem import Problem, Step
from cmdpax.schemes.exact import evaluate_with_entropy
from cmdpax.schemes.potential import potential


def play_episode(
    problem: Problem,
    knowledge: Knowledge,
    learner: Learner,
    state: Any,
    expected_visits: Array,
    key: Array,
    iteration: Array,
) -> tuple[Any, Step]:
    """Play π_k with Bernoulli observations, let the learner update, and evaluate both worlds.

    A learner that plans has no Q̂_z.
    """
    log_policy, info = learner.show(state)
    statistics, q_lagrangian = info.statistics, info.q_values
    if statistics is None or (q_lagrangian is None and learner.absorb is None):
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
    return following, Step(
        iteration,
        log_policy,
        info.multipliers,
        next_log_policy,
        next_info.multipliers,
        every_q,
        q_lagrangian,
        true_values,
        potential(problem.saddle, log_policy, info.multipliers),
        potential(problem.saddle, next_log_policy, next_info.multipliers),
        constraint_values=info.constraint_values,
        optimistic_values=first_values @ knowledge.initial,
        means=model.signals - bonus,
        signals=signal_array(problem.cmdp),
        reward_bonus=reward_bonus,
        transition_bonus=model.transition_bonus,
        row_errors=row_errors(problem, model.transitions),
        visits=statistics.visits,
        expected_visits=expected_visits,
        occupancy=occupancy(problem.cmdp, jnp.exp(log_policy)),
    )


def row_errors(problem: Problem, estimated: Any) -> Float[Array, "H S A"]:
    """Compute ‖p_h(· | s, a) - p̄_h(· | s, a)‖₁; lists share their slots with the estimates."""

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
