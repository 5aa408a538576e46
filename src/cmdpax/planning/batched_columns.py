"""The columns of column generation: what a round prices, and what becomes of a mixture of them.

A model whose transitions are known has policies for columns, and a policy's occupancy is that of
the model. Where transitions are chosen within bounds, a column is a policy with transitions of its
own, and keeps the occupancy that it has under them.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Integer

from cmdpax.planning.batched_induction import Stack, plan_greedily, push, rows_at
from cmdpax.planning.batched_intervals import plan_optimistically


class Column(NamedTuple):
    """One column of each model, or several of them, along another axis in front."""

    actions: Integer[Array, "*N H S B"]
    mass: Float[Array, "*N H S B"] | None  # of the states under its own transitions, if it has any


def price(models: Stack, weights: Float[Array, "J B"]) -> tuple[Float[Array, "J B"], Column]:
    """The column that maximises Σ_j w_j V_j, and its values."""
    if models.rooms is None:
        values, actions = plan_greedily(models, weights)
        return values, Column(actions, None)
    values, actions, mass = plan_optimistically(models, weights)
    return values, Column(actions, mass)


def no_columns(models: Stack, slots: int) -> Column:
    """As many columns as there are slots, all of them empty."""
    shape = (slots, models.horizon, models.initial.shape[0], models.batch)
    small = jnp.uint8 if models.signals.shape[3] <= 256 else jnp.int32
    mass = None if models.rooms is None else jnp.zeros(shape, models.initial.dtype)
    return Column(jnp.zeros(shape, small), mass)


def occupancy_of(models: Stack, column: Column) -> Float[Array, "H S A B"]:
    """d_h(s, a) of a column."""
    num_states, num_actions = models.initial.shape[0], models.signals.shape[3]
    actions = column.actions
    choices = jnp.arange(num_actions, dtype=jnp.int32)[None, :, None].astype(actions.dtype)
    if column.mass is not None:
        return jnp.where(actions[:, :, None] == choices[None], column.mass[:, :, None], 0.0)

    def step(mass: Float[Array, "S B"], at: tuple[Array, Array]) -> tuple[Array, Array]:
        index, chosen = at
        taken = jnp.where(chosen[:, None] == choices, mass[:, None], 0.0)
        return push(models, *rows_at(models, index), taken), taken

    start = jnp.broadcast_to(models.initial, (num_states, models.batch))
    _, occupancy = jax.lax.scan(step, start, (jnp.arange(models.horizon, dtype=jnp.int32), actions))
    return occupancy


def mixed_occupancy(
    models: Stack,
    columns: Column,
    slots: Integer[Array, "M B"],
    weights: Float[Array, "M B"],
) -> Float[Array, "H S A B"]:
    """Occupancy of a mixture: the weighted sum of those of its columns."""
    num_actions = models.signals.shape[3]

    def add(total: Array, at: tuple[Array, Array]) -> tuple[Array, None]:
        slot, weight = at
        chosen = jax.tree.map(
            lambda kept: jnp.take_along_axis(kept, slot[None, None, None], axis=0)[0], columns
        )
        return total + weight[None, None, None] * occupancy_of(models, chosen), None

    _, horizon, num_states, batch = columns.actions.shape
    zeros = jnp.zeros((horizon, num_states, num_actions, batch), weights.dtype)
    return jax.lax.scan(add, zeros, (slots, weights))[0]


def mixed_values(
    values: Float[Array, "J N B"], slots: Integer[Array, "M B"], weights: Float[Array, "M B"]
) -> Float[Array, "J B"]:
    """Values of a mixture of columns."""
    of_basis = jnp.take_along_axis(values, slots[None], axis=1)
    return jnp.sum(weights[None] * of_basis, axis=1)


def markov_policy(
    models: Stack, occupancy: Float[Array, "H S A B"], actions: Integer[Array, "H S B"]
) -> Float[Array, "H S A B"]:
    """π_h(a | s) = d_h(s, a) / Σ_a d_h(s, a), and where that is 0 / 0 the given action.

    Where transitions are chosen, a state without mass is one that is hoped not to follow, and may
    follow all the same: there the policy is uniform over the available actions.
    """
    mass = jnp.sum(occupancy, axis=2, keepdims=True)
    if models.rooms is None:
        choices = jnp.arange(occupancy.shape[2], dtype=jnp.int32)[None, None, :, None]
        other = (actions[:, :, None] == choices.astype(actions.dtype)).astype(occupancy.dtype)
    else:
        flags = jnp.ones(1, bool) if models.available is None else models.available
        allowed = jnp.broadcast_to(flags, occupancy.shape).astype(occupancy.dtype)
        other = allowed / jnp.sum(allowed, axis=2, keepdims=True)
    return jnp.where(mass > 0, occupancy / jnp.where(mass > 0, mass, 1.0), other)
