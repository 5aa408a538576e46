"""Trees of arrays in files: numbered leaves, and the tree again if they fit."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np


def leaves_of(tree: Any) -> list[np.ndarray]:
    """The leaves of a tree as NumPy arrays, in the order in which JAX flattens it."""
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def write_leaves(prefix: str, leaves: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """The leaves as entries of a file, named by a prefix and their numbers."""
    return {f"{prefix}{index}": leaf for index, leaf in enumerate(leaves)}


def read_leaves(prefix: str, count: int, entries: Mapping[str, Any]) -> list[np.ndarray]:
    """What `write_leaves` wrote; raises a `KeyError` where one is missing."""
    return [entries[f"{prefix}{index}"] for index in range(count)]


def is_alike(found: np.ndarray, wanted: Any) -> bool:
    """Whether an array has the shape and the type that are wanted."""
    return bool(found.shape == wanted.shape and found.dtype == wanted.dtype)


def restore_tree(
    leaves: Sequence[np.ndarray],
    like: Any,
    alike: Callable[[np.ndarray, Any], bool] = is_alike,
) -> Any:
    """The leaves in the structure of another tree; raises a `ValueError` if they do not fit."""
    wanted, structure = jax.tree.flatten(like)
    if len(leaves) != len(wanted) or not all(map(alike, leaves, wanted)):
        raise ValueError("the arrays are those of another tree")
    return jax.tree.unflatten(structure, leaves)
