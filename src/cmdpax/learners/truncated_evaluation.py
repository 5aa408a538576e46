"""Truncated policy evaluation in the optimistic model: Algorithm 2."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from cmdpax.learners.statistics import OptimisticModel, is_short
from cmdpax.model.availability import flags_at, surprisal_of
from cmdpax.model.evaluation import backward_scan


def evaluate(
    model: OptimisticModel, log_policy: Float[Array, "H S A"], initial: Float[Array, " S"]
) -> tuple[Float[Array, "H L S A"], Float[Array, " I"]]:
    """Algorithm 2: truncated Q̂ of r̂, of every û_i and of ψ̂ (in this order), and V̂_u.

    Each is capped on its own, in every step: Q̂_r and Q̂_u at H - h + 1, Q̂_ψ at
    ψ + (H - h + 1) log A. Actions that are not available have ψ = 0, and no effect.
    """
    horizon, num_states, num_actions = log_policy.shape
    log_num_actions = jnp.log(num_actions).astype(log_policy.dtype)

    def step(values: Float[Array, "L S"] | None, at: tuple[Any, ...]) -> tuple[Array, Array]:
        index, signals, bonus, log_decision, steps_left = at  # H - h + 1
        surprisal = surprisal_of(log_decision, flags_at(model.available, index))  # ψ_k
        plain, entropy = signals, surprisal + bonus * log_num_actions  # r̂ and û; ψ̂_k
        if values is not None:
            expected = model.expected_next(index, values)
            plain, entropy = plain + expected[:-1], entropy + expected[-1]
        plain = jnp.minimum(plain, steps_left)
        entropy = jnp.minimum(entropy, surprisal + steps_left * log_num_actions)
        every_q = jnp.concatenate([plain, entropy[None]])
        return jnp.sum(jnp.exp(log_decision)[None] * every_q, axis=-1), every_q

    steps_left = jnp.arange(horizon, 0, -1, dtype=log_policy.dtype)
    stages = (jnp.arange(horizon), model.signals, model.transition_bonus, log_policy, steps_left)
    nothing = jnp.zeros((model.signals.shape[1] + 1, num_states), log_policy.dtype)
    values, every_q = backward_scan(step, nothing, stages, is_short(horizon))
    return every_q, (values @ initial)[1:-1]
