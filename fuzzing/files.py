"""One file of a case, changed as its ending suggests, or without regard to it."""

import json
import tomllib
from collections.abc import Sequence
from random import Random

from fuzzing import archives, arrays, frames, mangling, trees
from fuzzing.cases import Entry, Input
from fuzzing.hostile import Pairs

_BLIND = 0.3
"""How often bytes are changed without regard to what they mean."""


def mutate(rng: Random, path: str, content: bytes, donors: Sequence[bytes]) -> bytes:
    """The content of a file, changed."""
    ways = {
        ".json": _json,
        ".toml": _toml,
        ".npz": archives.mutate,
        ".npy": arrays.mutate,
        ".parquet": frames.mutate,
    }
    suffix = path[path.rfind(".") :]
    whole = content in donors  # what was changed before may not be readable
    if rng.random() < _BLIND or suffix not in ways or not whole:
        return mangling.mutate(rng, content, donors)
    try:
        return ways[suffix](rng, content)
    except Exception:  # whole, but a file of another kind: two were swapped
        return mangling.mutate(rng, content, donors)


def mutate_one(rng: Random, given: Input, donors: Sequence[bytes]) -> Input:
    """An input with one of its files changed, now and then with two."""
    files = [entry for entry in given.entries if entry.kind == "file" and not entry.foreign]
    for entry in rng.sample(files, min(len(files), 1 if rng.random() < 0.9 else 2)):
        given = given.with_entry(changed(rng, entry, donors))
    return given


def changed(rng: Random, entry: Entry, donors: Sequence[bytes]) -> Entry:
    """A file with other content."""
    return entry._replace(content=mutate(rng, entry.path, entry.content, donors))


def _json(rng: Random, content: bytes) -> bytes:
    return trees.as_json(trees.mutate(rng, json.loads(content))).encode("utf-8", "surrogatepass")


def _toml(rng: Random, content: bytes) -> bytes:
    tree = trees.mutate(rng, tomllib.loads(content.decode()))
    return trees.as_toml(tree if isinstance(tree, dict | Pairs) else {"a": tree}).encode()
