"""Backward induction where the planner also chooses the transitions, within bounds, in many models.

The rows of a model are not known, but every probability lies between two bounds, l ≤ p ≤ u, and the
planner hopes for the best of them: extended value iteration (Jaksch, Ortner and Auer, 2010; Efroni
et al., 2020, with a bound for every entry). For W = Σ_j w_j V_j of the next step, the best row is

    p(t) = l(t) + min(u(t) - l(t), what is left of 1 - Σ l after all better states are full),

so the successors are filled in the order of W. It is the same for all pairs: which state is better
than which is found once per step, and what is ahead of t is a weighted sum of rooms, u - l.

A policy with its rows is a vertex of the linear program over z_h(s, a, t) that Efroni et al. call
extended, so that column generation with these vertices ends at its optimum. As each has transitions
of its own, it brings its own occupancy.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Integer

from cmdpax.model.availability import flags_at
from cmdpax.model.transitions import pick_step
from cmdpax.planning.batched_induction import (
    TIED,
    Stack,
    backup,
    best_actions,
    kept,
    of_actions,
    push,
    rows_at,
    summed,
    values_at,
)


def plan_optimistically(
    models: Stack, weights: Float[Array, "J B"]
) -> tuple[Float[Array, "J B"], Integer[Array, "H S B"], Float[Array, "H S B"]]:
    """Values of every signal, actions and state occupancies, Σ_j w_j V_j being maximal.

    The maximum is over policies and over rows within the bounds of the models.
    """
    num_signals, batch = weights.shape
    num_states = models.initial.shape[0]
    steps = jnp.arange(models.horizon, dtype=jnp.int32)

    def backward(values: Float[Array, "J S B"], index: Array) -> tuple[Array, tuple[Any, ...]]:
        _, lists = rows_at(models, index)
        best = jnp.sum(weights[:, None] * values, axis=0)  # W
        rows = _best_rows(models, index, best)
        signals = pick_step(models.signals, index)
        immediate = jnp.sum(weights[:, None, None] * signals, axis=0)
        q_values = immediate + backup(models, rows, lists, best[None])[0]
        actions = best_actions(q_values, flags_at(models.available, index))
        # What follows is wanted of the chosen rows alone, and of every signal.
        rows, lists = _of_actions(models, rows, lists, actions)
        following = backup(models, rows, lists, values)[:, :, 0]
        return of_actions(signals, actions) + following, (actions, rows, lists)

    def forward(mass: Float[Array, "S B"], at: tuple[Array, Any]) -> tuple[Array, Array]:
        rows, lists = at
        return push(models, rows, lists, mass[:, None]), mass

    zeros = jnp.zeros((num_signals, num_states, batch), weights.dtype)
    values, (actions, *rows) = jax.lax.scan(backward, zeros, steps, reverse=True)
    start = jnp.broadcast_to(models.initial, (num_states, batch))
    _, mass = jax.lax.scan(forward, start, tuple(rows))
    return jnp.sum(models.initial[None] * values, axis=1), actions, mass


def _best_rows(models: Stack, step: Array, values: Float[Array, "S B"]) -> Any:
    """The rows that maximise the expected next value, in the order of `Stack.probabilities`."""
    assert models.rooms is not None
    (lower, lists), rooms = rows_at(models, step), pick_step(models.rooms, step)
    ranks = _ranks(values)
    if models.by_products:
        left = 1 - jnp.sum(lower, axis=-1, keepdims=True)
        every = jnp.broadcast_to(rooms, (models.batch, *rooms.shape[1:]))
        ahead = jnp.einsum("bsau,utb->bsat", every, _is_ahead(ranks))
        return lower + jnp.clip(left - ahead, 0, rooms)
    left = 1 - jnp.sum(lower, axis=0)
    if lists is not None:
        ahead = _ahead_in_lists(ranks, lists, rooms)
        return kept(lower + jnp.clip(left[None] - ahead, 0, rooms))
    first, count = kept(_is_ahead(ranks)), len(rooms)

    def towards(t: int) -> Array:
        ahead = summed(lambda m: first[m, t][None, None] * rooms[m], count)
        return kept(lower[t] + jnp.clip(left - ahead, 0, rooms[t]))

    # Successor by successor: arrays that are joined would be computed number by number.
    return tuple(towards(t) for t in range(count))


def _ranks(values: Float[Array, "S B"]) -> Float[Array, "S B"]:
    """The values as whole numbers: what ties up to rounding must not be ordered by rounding."""
    largest = jnp.max(jnp.abs(values), axis=0, keepdims=True)
    grain = TIED[values.itemsize] * jnp.where(largest > 0, largest, 1)
    return jnp.round(values / grain)


def _is_ahead(ranks: Float[Array, "S B"]) -> Float[Array, "S S B"]:
    """1 where the first state is filled before the second: it is better, or ties and is first."""
    places = jnp.arange(len(ranks), dtype=jnp.int32)
    earlier = (places[:, None] < places[None])[..., None]
    one, other = ranks[:, None], ranks[None]
    return ((one > other) | ((one == other) & earlier)).astype(ranks.dtype)


def _ahead_in_lists(
    ranks: Float[Array, "S B"], lists: Integer[Array, "N S A b"], rooms: Float[Array, "N S A b"]
) -> Float[Array, "N S A B"]:
    """What is filled before each slot."""
    num_slots = len(lists)
    slots = jnp.arange(num_slots, dtype=jnp.int32)[:, None, None, None]
    of_slots = kept(jnp.stack([values_at(ranks[None], lists[n])[0] for n in range(num_slots)]))

    def of_slot(m: int | Array) -> Array:
        one = of_slots[m][None]
        first = (one > of_slots) | ((one == of_slots) & (m < slots))
        return jnp.where(first, rooms[m][None], 0)

    return summed(of_slot, num_slots)


def _of_actions(
    models: Stack, rows: Any, lists: Array | None, actions: Integer[Array, "S B"]
) -> tuple[Array, Array | None]:
    """The rows, and the successors if they are listed, of one action in each state."""
    if models.by_products:
        choices = jnp.arange(rows.shape[2], dtype=actions.dtype)[None, None, :, None]
        chosen = actions.T[:, :, None, None] == choices
        return jnp.sum(jnp.where(chosen, rows, 0), axis=2, keepdims=True), None
    listed = None if lists is None else of_actions(lists, actions)[:, :, None]
    if not isinstance(rows, tuple):
        return of_actions(rows, actions)[:, :, None], listed
    each = [of_actions(row[None], actions) for row in rows]
    return jnp.concatenate(each)[:, :, None], listed
