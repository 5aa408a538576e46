"""Arguments of Python functions: arrays and plain values that are read from files of a case.

The files are always readable, since it is not they that are tested, but what they hold.
"""

import io
import json
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np

from fuzzing import archives, arrays, trees
from fuzzing.cases import Entry, Input

_TRIES = 20


def file_of_value(path: str, value: Any) -> Entry:
    """A value as JSON, an array as `.npy`, several as `.npz`."""
    if path.endswith(".npy"):
        return Entry(path, arrays.write(value))
    if path.endswith(".npz"):
        file = io.BytesIO()
        np.savez(file, **value)
        return Entry(path, file.getvalue())
    return Entry(path, json.dumps(value).encode())


def read_value(path: str) -> Any:
    """What such a file holds."""
    with open(path, "rb") as file:
        return _parse(path, file.read())


def _parse(path: str, content: bytes) -> Any:
    if path.endswith(".npy"):
        return arrays.read(content)
    if path.endswith(".npz"):
        members = archives.members_of(content)
        return {one.name.removesuffix(".npy"): arrays.read(one.data) for one in members}
    return json.loads(content)


def mutate_values(rng: Random, given: Input, donors: Sequence[bytes]) -> Input:
    """An input of which one file holds another value."""
    entry = rng.choice(given.entries)
    for _ in range(_TRIES):
        content = _mutate(rng, entry)
        try:
            _parse(entry.path, content)
        except (ValueError, RecursionError, TypeError, SyntaxError, EOFError):
            continue
        return given.with_entry(entry._replace(content=content))
    return given


def _mutate(rng: Random, entry: Entry) -> bytes:
    if entry.path.endswith(".npy"):
        return arrays.write(arrays.changed(rng, arrays.read(entry.content)))
    if entry.path.endswith(".npz"):
        members = archives.members_of(entry.content)
        name = rng.choice(members).name.removesuffix(".npy")
        return archives.replaced(entry.content, name, lambda array: arrays.changed(rng, array))
    return trees.as_json(trees.mutate(rng, json.loads(entry.content))).encode()
