from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest

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
    assert isinstance(restore_tree(fitting, like), Pair)
    others = [np.ones(4), fitting[1]]
    for wrong in (fitting[:1], others, [fitting[0].astype(int), fitting[1]]):
        with pytest.raises(ValueError, match="those of another tree"):
            restore_tree(wrong, like)


def test_nothing_is_a_tree_too() -> None:
    assert restore_tree([], None) is None
