from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from cmdpax.storage.trees import leaves_of, read_leaves, restore_tree, write_leaves


class Pair(NamedTuple):
    first: Any
    second: Any


TREE = Pair(jnp.arange(3), {"b": np.ones((2, 2)), "a": (1.5, None)})


def test_a_tree_survives_its_entries() -> None:
    leaves = leaves_of(TREE)
    entries = write_leaves("leaf_", leaves)
    assert sorted(entries) == ["leaf_0", "leaf_1", "leaf_2"]
    again = restore_tree(read_leaves("leaf_", 3, entries), Pair(*TREE), lambda one, other: True)
    assert isinstance(again, Pair)
    np.testing.assert_array_equal(again.first, [0, 1, 2])
    assert again.second["a"] == (1.5, None)
    np.testing.assert_array_equal(again.second["b"], np.ones((2, 2)))


def test_leaves_that_do_not_fit_are_no_tree() -> None:
    like = Pair(np.zeros(3), np.zeros((2, 2)))
    fitting = [np.ones(3), np.ones((2, 2))]
    assert restore_tree(fitting, like) is not None
    assert restore_tree(fitting[:1], like) is None
    assert restore_tree([np.ones(4), fitting[1]], like) is None
    assert restore_tree([fitting[0].astype(int), fitting[1]], like) is None
