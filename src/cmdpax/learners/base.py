"""What a learner is: three pure functions, and what they exchange with whoever runs it.

    init(key)                       -> state    before the first episode
    show(state)                     -> Shown    what the next episode plays, and what may be seen
    update(state, trajectory, key)  -> state    after an episode

A learner that keeps its policy for a *stretch* of episodes has a fourth, which takes all of them
at once, so that 10⁹ episodes cost as much as the few hundred plans that are made in them:

    absorb(state, counted, n)       -> state    after n episodes of one stretch

A live system may show a signal beyond the range that was assumed for it. A learner that can go on
in a wider one has a fifth:

    rescale(state, slopes, offsets) -> state    every signal x of a step is now slope · x + offset

A learner is made by a factory from `Knowledge` (sizes, the start, thresholds, what is known of the
rewards, the bonuses) and from the record of its parameters. It never sees the true model and
computes no regret. Nobody reads a state: `show` says all that an observer may know. Everything but
the sizes and what is compiled in may be traced, so one definition runs once, jitted, vmapped over
seeds, parameters and stacked models.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Integer, Key

from cmdpax.learners.statistics import Counted, Knowledge, Statistics, Trajectory

_LEARNER_KEYS = 2**31  # the simulator folds in k itself, which is smaller


class Info(NamedTuple):
    """What an observer may want to know about an episode."""

    multipliers: Float[Array, " I"]  # λ_k
    constraint_values: Float[Array, " I"]  # V̂_u of π_k, the optimistic estimates
    q_values: Float[Array, "H S A"] | None = None  # Q̂_z of π_k, where there is one
    statistics: Statistics | None = None  # of the episodes before, where it keeps them
    # Of a learner that plans now and then:
    num_plans: Integer[Array, ""] | None = None  # so far, with the one that is played
    feasible: Bool[Array, ""] | None = None  # whether the model that was planned in is
    remaining: Integer[Array, ""] | None = None  # episodes that the plan is still played


class Shown(NamedTuple):
    """The coming episode k: the policy that is played, exp(log_policy), and what may be seen."""

    log_policy: Float[Array, "H S A"]  # log π_k
    info: Info


class Learner(NamedTuple):
    """A learner: three pure functions, and two more that it may have."""

    init: Callable[[Key[Array, ""]], Any]
    update: Callable[[Any, Trajectory, Key[Array, ""]], Any]
    show: Callable[[Any], Shown] = None  # type: ignore[assignment]  # refused with a sentence
    absorb: Callable[[Any, Counted, Integer[Array, ""]], Any] | None = None
    rescale: Callable[[Any, Float[Array, " J"], Float[Array, " J"]], Any] | None = None


Factory: TypeAlias = Callable[[Knowledge, Any], Learner]
"""Makes a learner from what it knows and from the record of what the user chose."""


def learner_key(run_key: Key[Array, ""], episode: int | Integer[Array, ""]) -> Key[Array, ""]:
    """The key of a learner's own randomness after episode k < 2³¹; for `init`, k = 0."""
    index = jnp.asarray(episode).astype(jnp.uint32) + jnp.uint32(_LEARNER_KEYS)
    return jax.random.fold_in(run_key, index)


# ------------------------------------------------------------------------------ leaving the program


def on_host(function: Callable[..., Any], shapes: Any, *arrays: Any) -> Any:
    """Call a function of NumPy arrays from within a learner, once for every run of a batch.

    `jax.pure_callback` hands arrays over in a thread that does not know about double precision,
    and rounds them to single precision there. Here 64-bit numbers travel as pairs of 32-bit ones.

    Args:
        function: from NumPy arrays to a tree of NumPy arrays; it has no side effects.
        shapes: what it returns, a tree of `jax.ShapeDtypeStruct`.
        arrays: what it is called with, trees of arrays.
    """
    leaves, structure = jax.tree.flatten(arrays)
    leaves = [jnp.asarray(leaf) for leaf in leaves]
    wanted, result = jax.tree.flatten(shapes)

    def call(*packed: Any) -> list[np.ndarray]:
        given = [_joined(one, leaf.dtype) for one, leaf in zip(packed, leaves, strict=True)]
        found = jax.tree.leaves(function(*jax.tree.unflatten(structure, given)))
        return [
            _halved(np.broadcast_to(np.asarray(one, shape.dtype), shape.shape))
            for one, shape in zip(found, wanted, strict=True)
        ]

    halves = [
        shape.update(shape=(*shape.shape, 2), dtype=np.dtype(np.uint32))
        if shape.dtype.itemsize == 8
        else shape
        for shape in wanted
    ]
    packed = [
        jax.lax.bitcast_convert_type(leaf, jnp.uint32) if leaf.dtype.itemsize == 8 else leaf
        for leaf in leaves
    ]
    found = jax.pure_callback(call, halves, *packed, vmap_method="sequential")
    whole = [
        jax.lax.bitcast_convert_type(one, shape.dtype) if shape.dtype.itemsize == 8 else one
        for one, shape in zip(found, wanted, strict=True)
    ]
    return jax.tree.unflatten(result, whole)


def _joined(halves: Any, dtype: Any) -> np.ndarray:
    """64-bit numbers of pairs of 32-bit ones; others as they are."""
    array = np.asarray(halves)
    return array.view(dtype)[..., 0] if dtype.itemsize == 8 else array


def _halved(array: np.ndarray) -> np.ndarray:
    """The reverse."""
    if array.dtype.itemsize < 8:
        return array
    return np.ascontiguousarray(array[..., None]).view(np.uint32)
