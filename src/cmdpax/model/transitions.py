"""Transition probabilities in two storages, behind the same few operations.

* **dense**: an array `p [H, S, A, S]` with `p[h, s, a, t] = p_h(t | s, a)`;
* **successor lists**: `Successors(successors, probabilities)`, both `[H, S, A, N]`: slot n of
  (h, s, a) leads to state `successors[h, s, a, n]` with `probabilities[h, s, a, n]`. Unused slots
  have probability 0.

The leading axis may be 1: the same transitions at every step. Everything else in the library
goes through the operations below, each on the transitions of *one* step (`at_step`), and never
turns a list into a matrix:

* `backup`:  (p V)(s, a) = Σ_t p(t | s, a) V(t), the expectation of the next value;
* `push`:    (d p)(t) = Σ_{s,a} d(s, a) p(t | s, a), its transpose: where mass goes;
* `sample`:  t ~ p(· | s, a).

`choose` keeps one action per state, so that a deterministic policy costs one row per state.
"""

import functools
import operator
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Integer, Key


class Successors(NamedTuple):
    """Transition probabilities as lists of successors.

    Attributes:
        successors: `[H, S, A, N]` (or `[1, S, A, N]`), integers: the states that may follow.
        probabilities: the same shape: their probabilities; 0 marks an unused slot.
    """

    successors: Any
    probabilities: Any


class Transposed(NamedTuple):
    """Dense probabilities with the next state first, as learners keep their estimates.

    Its product with the values of a few signals is a plain matrix product, which takes half the
    time of the product with dense transitions. For `backup_signals` only.
    """

    probabilities: Any  # [H, T, S, A]


Transitions: TypeAlias = Array | Successors
"""Dense `[H, S, A, S]`, or successor lists; `H` may be 1."""

_MAX_UNROLLED_SLOTS = 16
_MAX_UNROLLED_STATES = 8


def pick_step(array: Array, step: Array | int) -> Array:
    """Entry `step` of an array whose leading axis is the horizon, or 1 (stationary)."""
    return jnp.asarray(array)[0 if array.shape[0] == 1 else step]


def support_of(transitions: Transitions) -> Integer[Array, "_ S A N"] | None:
    """The states that may follow, -1 for unused slots, where they are listed; None: any may."""
    if not isinstance(transitions, Successors):
        return None
    return jnp.where(transitions.probabilities > 0, transitions.successors, -1)


def at_step(transitions: Any, step: Array | int) -> Any:
    """The transitions (or the support) of one step: dense `[S, A, S]`, or lists `[S, A, N]`.

    A plain tuple holds them step by step.
    """
    if type(transitions) is tuple:
        return transitions[step]
    return jax.tree.map(lambda array: pick_step(array, step), transitions)


def row_at(
    transitions: Any, step: Array | int, state: Integer[Array, ""], action: Integer[Array, ""]
) -> Any:
    """One row of the transitions (or the support) of all steps, without reading the others."""

    def pick(array: Array) -> Array:
        return jnp.asarray(array)[0 if array.shape[0] == 1 else step, state, action]

    return jax.tree.map(pick, transitions)


def choose(transitions: Transitions, actions: Integer[Array, " S"]) -> Transitions:
    """Transitions of one step where action `actions[s]` is the only one: `[S, 1, ·]`."""
    index = actions[:, None, None].astype(jnp.int32)
    return jax.tree.map(lambda array: jnp.take_along_axis(array, index, axis=1), transitions)


def backup(
    transitions: Transitions, values: Float[Array, " S *signals"]
) -> Float[Array, " S A *signals"]:
    """Expected next values, (p V)(s, a) = Σ_t p(t | s, a) V(t), of one or several signals."""
    if not isinstance(transitions, Successors):
        return jnp.tensordot(transitions, values, axes=1)
    lists, probabilities = transitions
    weights = jnp.expand_dims(probabilities, tuple(range(3, 2 + values.ndim)))
    if lists.shape[-1] > _MAX_UNROLLED_SLOTS:
        return jnp.sum(weights * values[lists], axis=2)
    # Slot by slot: the gathered [S, A, N, …] is never stored.
    total = weights[:, :, 0] * values[lists[:, :, 0]]
    for slot in range(1, lists.shape[-1]):
        total = total + weights[:, :, slot] * values[lists[:, :, slot]]
    return total


def backup_signals(
    transitions: Transitions | Transposed, values: Float[Array, "L S"]
) -> Float[Array, "L S A"]:
    """`backup` of several signals, kept in front: the faster layout for small dense models."""
    if isinstance(transitions, Successors):
        return jax.vmap(lambda signal: backup(transitions, signal))(values)
    if isinstance(transitions, Transposed):
        return _backup_transposed(transitions.probabilities, values)
    num_states, num_actions, _ = transitions.shape
    rows = transitions.reshape(num_states * num_actions, num_states)
    expected = jnp.einsum("lt,kt->lk", values, rows)
    return expected.reshape(-1, num_states, num_actions)


def _backup_transposed(
    probabilities: Float[Array, "T S A"], values: Float[Array, "L T"]
) -> Float[Array, "L S A"]:
    following, *pairs = probabilities.shape
    if following > _MAX_UNROLLED_STATES:
        return (values @ probabilities.reshape(following, -1)).reshape(-1, *pairs)
    # A batch of tiny products: term by term the compiler joins them with what is around, which
    # takes an accelerator a quarter of the time of its matrix products.
    terms = [values[:, t, None, None] * probabilities[t][None] for t in range(following)]
    return functools.reduce(operator.add, terms)


def push(
    transitions: Transitions, mass: Float[Array, "S A"], num_states: int
) -> Float[Array, " T"]:
    """Where the mass goes in one step: (d p)(t) = Σ_{s,a} d(s, a) p(t | s, a)."""
    if not isinstance(transitions, Successors):
        return jnp.tensordot(mass, transitions, axes=2)
    flow = mass[:, :, None] * transitions.probabilities
    return jnp.zeros(num_states, flow.dtype).at[transitions.successors].add(flow)


def sample(
    key: Key[Array, ""],
    transitions: Transitions,
    state: Integer[Array, ""],
    action: Integer[Array, ""],
) -> Integer[Array, ""]:
    """Draw the next state t ~ p(· | state, action) of one step; consumes the key."""
    dtype = jax.tree.leaves(transitions)[-1].dtype
    row = jax.tree.map(lambda array: array[state, action], transitions)
    return sample_row(jax.random.uniform(key, dtype=dtype), row)


def sample_row(uniform: Float[Array, ""], row: Any) -> Integer[Array, ""]:
    """The next state at a number drawn uniformly from [0, 1); the row is dense or a list."""
    if isinstance(row, Successors):
        slot = sample_index(uniform, row.probabilities)
        return row.successors[slot].astype(jnp.int32)
    return sample_index(uniform, row)


def sample_index(
    uniform: Float[Array, ""], probabilities: Float[Array, " N"]
) -> Integer[Array, ""]:
    """Inverse transform: the first index whose cumulative probability exceeds the number."""
    cumulative = jnp.cumsum(probabilities)
    total = cumulative[-1]
    # Rounding may lift the product to the total itself, past the last possible outcome.
    reached = jnp.minimum(uniform * total, jnp.nextafter(total, jnp.zeros_like(total)))
    return jnp.sum(cumulative <= reached, dtype=jnp.int32)
