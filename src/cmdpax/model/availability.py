"""Actions that are not available, for planners, schemes and learners.

The flags of a model, or of what a learner knows of it, are `[H, S, A]` or `[1, S, A]`; None says
that every action is available. Whether they are None is decided when a program is traced: the
program of a model without flags has no operation for them.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from cmdpax.model.cmdp import CMDP
from cmdpax.model.transitions import pick_step

Flags: TypeAlias = Bool[Array, "..."] | Bool[np.ndarray, "..."]
"""`[H or 1, S, A]`, of one step `[S, A]`; many models may be the last axis."""


def flags_at(available: Flags | None, step: Array | int) -> Bool[Array, "..."] | None:
    """The flags of one step."""
    return None if available is None else pick_step(jnp.asarray(available), step)


def only_available(numbers: Float[Array, "..."], flags: Flags | None) -> Float[Array, "..."]:
    """The numbers, and -∞ for actions that are not available, which no maximum then takes."""
    return numbers if flags is None else jnp.where(flags, numbers, -jnp.inf)


def surprisal_of(log_policy: Float[Array, "*H S A"], flags: Flags | None) -> Float[Array, "*H S A"]:
    """ψ = -log π, and 0 for actions that are not available: there π ψ would be 0 · ∞."""
    return -log_policy if flags is None else jnp.where(flags, -log_policy, 0.0)


def uniform_log_policy(
    pairs: Sequence[int], available: Flags | None, dtype: Any
) -> Float[Array, "H S A"]:
    """log π of the policy that is uniform over the available actions."""
    if available is None:
        return jnp.full(pairs, -jnp.log(pairs[-1]), dtype)
    counts = jnp.sum(available, axis=-1, keepdims=True).astype(dtype)
    rows = only_available(jnp.broadcast_to(-jnp.log(counts), available.shape), available)
    return jnp.broadcast_to(rows, tuple(pairs))


def stack_models(models: Sequence[CMDP]) -> CMDP:
    """Models of one shape along a new first axis.

    Where some have flags and others none, or for one step and for all, they are written out.
    """
    children, horizons = zip(*(cmdp.tree_flatten() for cmdp in models), strict=True)
    *arrays, flags = zip(*children, strict=True)
    stacked = [jax.tree.map(lambda *parts: np.stack(parts), *array) for array in arrays]
    if any(one is not None for one in flags):
        pairs = models[0].rewards.shape[1:]
        steps = max(1 if one is None else len(one) for one in flags)
        whole = [
            np.broadcast_to(np.True_ if one is None else one, (steps, *pairs)) for one in flags
        ]
        stacked.append(np.stack(whole))
    return CMDP.tree_unflatten(horizons[0], tuple(stacked))
