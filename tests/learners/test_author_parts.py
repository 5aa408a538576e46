"""What authors of learners are given: counts and models in one layout, and a way out to NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cmdpax
from cmdpax.jax_context import cast
from cmdpax.learners import (
    Trajectory,
    empirical_model,
    empty_statistics,
    on_host,
    record,
    transition_counts,
)
from cmdpax.learning.loop import knowledge_of
from learning_cases import logged, model

pytestmark = pytest.mark.usefixtures("double_precision")


def as_lists(cmdp: cmdpax.CMDP) -> cmdpax.CMDP:
    """The same model with every state listed, the last one first."""
    order = np.arange(cmdp.num_states)[::-1]
    shape = cmdp.transitions.shape
    lists = cmdpax.Successors(np.broadcast_to(order, shape).copy(), cmdp.transitions[..., order])
    return cmdp.replace(transitions=lists)


def test_counts_and_models_are_the_same_in_both_storages() -> None:
    dense, log = model(2), logged(model(2))
    found = []
    for cmdp in (dense, as_lists(dense)):
        bonuses = cast(cmdpax.Optimism.live().numbers(cmdp.sizes), float)
        knowledge = knowledge_of(cast(cmdp, float), bonuses, False)
        statistics = empty_statistics(knowledge)
        for episode in zip(*log, strict=True):
            arrays = [jnp.asarray(array) for array in episode]
            whole = [array.astype(jnp.int32) for array in arrays[:2]]
            statistics = record(knowledge, statistics, Trajectory(*whole, *arrays[2:]))
        estimated = empirical_model(knowledge, statistics)
        expected = estimated.expected_next(0, jnp.eye(3))
        found.append((transition_counts(knowledge, statistics), estimated.signals, expected))
    for one, other in zip(*found, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-15)
    went = np.zeros((3, 3, 2, 3), int)
    for states, actions, *_ in zip(*log, strict=True):
        np.add.at(went, (np.arange(3), states[:-1], actions, states[1:]), 1)
    np.testing.assert_array_equal(found[0][0], went)


def test_a_function_of_numpy_arrays_gets_and_gives_double_precision() -> None:
    def scaled(numbers: np.ndarray, count: np.ndarray) -> dict[str, np.ndarray]:
        assert numbers.dtype == np.float64
        return {"sum": numbers.sum() / 3, "count": count + 1}

    shapes = {
        "sum": jax.ShapeDtypeStruct((), np.float64),
        "count": jax.ShapeDtypeStruct((), np.int32),
    }

    @jax.jit
    @jax.vmap
    def call(numbers: jax.Array, count: jax.Array) -> dict[str, jax.Array]:
        return on_host(scaled, shapes, numbers, count)

    numbers = np.random.default_rng(0).random((4, 5))
    found = call(jnp.asarray(numbers), jnp.arange(4, dtype=jnp.int32))
    np.testing.assert_array_equal(found["sum"], numbers.sum(axis=1) / 3)
    np.testing.assert_array_equal(found["count"], [1, 2, 3, 4])
