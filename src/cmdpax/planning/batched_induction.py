"""Backward induction and steps forward in many models at once, with the models along the last axis.

Compilers turn the last axis into vector instructions. Small models have short axes, so that a
batch in front leaves nothing to vectorise: what `jax.vmap` makes of a backward induction with five
states takes ten times as long. Here a sum over successors is a sum of whole batches of numbers,

    Q_{j,h}(s, a) = z_{j,h}(s, a) + Σ_t p_h(t | s, a) W_{j,h+1}(t)      for all models b,

and the values W of all signals j come along, so that one pass plans and evaluates
(`dynamic_program`). From some number of states on a matrix product for each model is faster, and
the matrices are kept in the order that it wants.

An array whose last axis is 1 belongs to all models.
"""

import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Integer, Shaped

from cmdpax.model.availability import flags_at, only_available
from cmdpax.model.cmdp import CMDP
from cmdpax.model.transitions import Successors, pick_step

_MAX_UNROLLED = 16  # terms of a sum that are written out
TIED = {8: 1e-11, 4: 1e-5}  # by bytes of a number: a difference that small, relative, is a tie


class Stack(NamedTuple):
    """Models of one shape; each array has the batch, or 1, along its last axis unless it says so.

    Attributes:
        horizon: H.
        batch: how many models there are, B.
        successors: `[H, N, S, A, B]`, or None where probabilities are dense.
        probabilities: `[H, N, S, A, B]` for lists, `[H, T, S, A, B]` for few states, and
            `[H, B, S, A, T]` for many; H may be 1. With `rooms` the least that they may be.
        signals: r and u, `[H, J, S, A, B]`; H may be 1.
        initial: μ, `[S, B]`.
        available: flags of the actions, `[H, S, A, B]`, or None where all are; H may be 1.
        rooms: how much larger probabilities may be, in the same order; None: not at all.
    """

    horizon: int
    batch: int
    successors: Array | None
    probabilities: Array
    signals: Array
    initial: Array
    available: Array | None
    rooms: Array | None = None

    @property
    def by_products(self) -> bool:
        """Whether transitions are kept as matrices for products."""
        return self.successors is None and self.initial.shape[0] > _MAX_UNROLLED


def stack(cmdps: CMDP, batch: int, upper: Array | None = None) -> Stack:
    """From models that are stacked along the first axis, where 1 belongs to all of them.

    Args:
        cmdps: the models.
        batch: how many there are.
        upper: upper bounds on probabilities, whose lower bounds are those of the models; or None.
    """
    constraints = jnp.swapaxes(cmdps.constraint_rewards, 1, 2)  # [B, H, I, S, A]
    rewards = cmdps.rewards[:, :, None]
    shapes = (rewards.shape, constraints.shape)
    leading = tuple(max(shape[axis] for shape in shapes) for axis in (0, 1))
    parts = [jnp.broadcast_to(part, leading + part.shape[2:]) for part in (rewards, constraints)]
    signals = jnp.concatenate(parts, axis=2)
    lists = isinstance(cmdps.transitions, Successors)
    probabilities = cmdps.transitions.probabilities if lists else cmdps.transitions
    made = Stack(
        horizon=cmdps.horizon,
        batch=batch,
        successors=_slots_first(cmdps.transitions.successors) if lists else None,
        probabilities=probabilities,
        signals=jnp.moveaxis(signals, 0, -1),
        initial=jnp.swapaxes(cmdps.initial, 0, 1),
        available=None if cmdps.available is None else jnp.moveaxis(cmdps.available, 0, -1),
    )
    order = (lambda array: jnp.swapaxes(array, 0, 1)) if made.by_products else _slots_first
    rooms = None if upper is None else order(upper - probabilities)
    return made._replace(probabilities=order(probabilities), rooms=rooms)


def _slots_first(array: Array) -> Array:
    """From `[B, H, S, A, N]` to `[H, N, S, A, B]`."""
    return jnp.transpose(array, (1, 4, 2, 3, 0))


def scale(models: Stack) -> tuple[Stack, Float[Array, "J c"], Float[Array, "J c"]]:
    """Divide each signal by the power of two above its largest entry, exactly.

    Returns:
        The models, these powers of two, and the largest entries that they leave, in [1/2, 1).
    """
    largest = jnp.max(jnp.abs(models.signals), axis=(0, 2, 3))
    magnitudes, exponents = jnp.frexp(jnp.where(largest > 0, largest, 0.5))
    units = jnp.ldexp(jnp.ones_like(magnitudes), exponents)
    scaled = models._replace(signals=models.signals / units[None, :, None, None])
    return scaled, units, jnp.where(largest > 0, magnitudes, 1.0)


def plan_greedily(
    models: Stack, weights: Float[Array, "J B"]
) -> tuple[Float[Array, "J B"], Integer[Array, "H S B"]]:
    """Values of every signal, and actions, of the policies that maximise Σ_j w_j V_j."""
    num_signals, batch = weights.shape
    num_states = models.initial.shape[0]

    def step(values: Float[Array, "J S B"], index: Array) -> tuple[Array, Array]:
        q_values = pick_step(models.signals, index) + backup(
            models, *rows_at(models, index), values
        )
        return choose(q_values, weights, flags_at(models.available, index))

    zeros = jnp.zeros((num_signals, num_states, batch), weights.dtype)
    values, actions = jax.lax.scan(
        step, zeros, jnp.arange(models.horizon, dtype=jnp.int32), reverse=True
    )
    return jnp.sum(models.initial[None] * values, axis=1), actions


def kept(array: Array) -> Array:
    """The array as it is: otherwise it would be computed again for every number that is read."""
    same: Array = jax.lax.optimization_barrier(array)  # type: ignore[no-untyped-call]
    return same


def choose(
    q_values: Float[Array, "J S A B"],
    weights: Float[Array, "J B"],
    flags: Bool[Array, "S A b"] | None,
) -> tuple[Float[Array, "J S B"], Integer[Array, "S B"]]:
    """The available actions that maximise Σ_j w_j Q_j, the first where they tie; their values."""
    q_values = kept(q_values)
    terms = [weights[j][None, None] * q_values[j] for j in range(len(q_values))]
    actions = best_actions(functools.reduce(operator.add, terms), flags)
    return of_actions(q_values, actions), actions


def best_actions(
    q_values: Float[Array, "S A B"], flags: Bool[Array, "S A b"] | None
) -> Integer[Array, "S B"]:
    """The available action that is best in each state, the first where several tie."""
    total = kept(only_available(q_values, flags))
    kind = jnp.uint8 if q_values.shape[1] <= 256 else jnp.int32  # [H, S] can be large
    return kept(first_of_best(total, axis=1).astype(kind))


def of_actions(table: Shaped[Array, "N S A b"], actions: Integer[Array, "S B"]) -> Array:
    """The entries of one action in each state, `[N, S, B]`."""
    choices = jnp.arange(table.shape[2], dtype=actions.dtype)
    chosen = actions[:, None] == choices[None, :, None]
    # A sum with one term: choosing number by number is not vectorised.
    return jnp.sum(jnp.where(chosen[None], table, 0), axis=2)


def first_of_best(numbers: Float[Array, "..."], axis: int) -> Integer[Array, "..."]:
    """Where the largest number along an axis stands; the first place where several tie.

    Compilers round differently in batches of another size. If the last bit chose between actions
    that tie, a run would depend on the runs beside it.
    """
    largest = jnp.max(numbers, axis=axis, keepdims=True)
    return jnp.argmax(numbers >= largest - TIED[numbers.itemsize] * jnp.abs(largest), axis=axis)


def rows_at(models: Stack, step: Array) -> tuple[Array, Array | None]:
    """The probabilities and the successors of one step."""
    lists = None if models.successors is None else pick_step(models.successors, step)
    return pick_step(models.probabilities, step), lists


def backup(
    models: Stack, rows: Any, lists: Array | None, values: Float[Array, "J S B"]
) -> Float[Array, "J S A B"]:
    """Expected next values of every signal, with the rows of one step as in `rows_at`."""
    if models.by_products:
        if rows.shape[0] == 1:
            return jnp.einsum("sat,jtb->jsab", rows[0], values)
        return jnp.einsum("bsat,jtb->jsab", rows, values)
    if lists is None:
        return summed(lambda t: values[:, t, None, None] * rows[t][None], len(rows))
    return summed(lambda n: values_at(values, lists[n]) * rows[n][None], len(rows))


def summed(term: Callable[[Any], Array], count: int) -> Array:
    """Σ_n term(n), written out where it is short."""
    if count <= _MAX_UNROLLED:
        return functools.reduce(operator.add, [term(n) for n in range(count)])
    first = term(0)
    return jax.lax.fori_loop(1, count, lambda n, total: total + term(n), first)


def values_at(
    values: Float[Array, "J S B"], states: Integer[Array, "S A b"]
) -> Float[Array, "J S A B"]:
    """Values of the states that follow."""
    if states.shape[-1] == 1:
        return values[:, states[..., 0]]
    return values[:, states, jnp.arange(values.shape[-1], dtype=jnp.int32)[None, None]]


def push(
    models: Stack, rows: Array, lists: Array | None, mass: Float[Array, "S A B"]
) -> Float[Array, "S B"]:
    """Where the mass goes in one step, with its rows as in `rows_at`."""
    if models.by_products:
        if rows.shape[0] == 1:
            return jnp.einsum("sat,sab->tb", rows[0], mass)
        return jnp.einsum("bsat,sab->tb", rows, mass)
    if lists is None:
        arrivals = summed(lambda s: rows[:, s] * mass[s][None], rows.shape[1])  # [T, A, B]
        return jnp.sum(arrivals, axis=1)
    flow = rows * mass[None]
    empty = jnp.zeros((models.initial.shape[0], models.batch), mass.dtype)
    if lists.shape[-1] == 1:
        return empty.at[lists[..., 0]].add(flow)
    return empty.at[lists, jnp.arange(models.batch, dtype=jnp.int32)[None, None, None]].add(flow)
