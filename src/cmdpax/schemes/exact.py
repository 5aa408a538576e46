"""Exact values of a policy in a known model: what every scheme is made of."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from cmdpax.model.availability import surprisal_of, uniform_log_policy
from cmdpax.model.cmdp import CMDP
from cmdpax.model.evaluation import q_values, signal_array


def first_log_policy(cmdp: CMDP) -> Float[Array, "H S A"]:
    """log π_1, uniform over the available actions."""
    _, *pairs = cmdp.sizes
    kind = cmdp.initial.dtype
    if cmdp.available is None:
        return jnp.asarray(np.full(pairs, -np.log(pairs[-1]), kind))
    return uniform_log_policy(pairs, cmdp.available, kind)


def evaluate_signals(
    cmdp: CMDP, log_policy: Float[Array, "H S A"]
) -> tuple[Float[Array, "H J S A"], Float[Array, " J"]]:
    """Q and V of the rewards and of every constraint, in this order."""
    every_q, values = q_values(cmdp.transitions, signal_array(cmdp), jnp.exp(log_policy))
    return every_q, values @ cmdp.initial


def evaluate_with_entropy(
    cmdp: CMDP, log_policy: Float[Array, "H S A"]
) -> tuple[Float[Array, "H L S A"], Float[Array, " L"]]:
    """Q and V of the rewards, of every constraint and of ψ = -log π, in this order."""
    flags = None if cmdp.available is None else cmdp.available[:, None]
    known = signal_array(cmdp)
    signals = jnp.concatenate([known, surprisal_of(log_policy[:, None], flags)], axis=1)
    every_q, values = q_values(cmdp.transitions, signals, jnp.exp(log_policy))
    return every_q, values @ cmdp.initial
