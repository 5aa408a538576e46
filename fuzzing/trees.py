"""JSON and TOML as trees: changed in one place or a few, and written with all their oddities."""

import datetime
import json
import math
from collections.abc import Callable
from random import Random
from typing import Any

from fuzzing import hostile
from fuzzing.hostile import Pairs, Raw

_DEEPER = 0.7
Tree = Any


def mutate(rng: Random, tree: Tree) -> Tree:
    """The tree with one place changed, now and then with several."""
    for _ in range(1 if rng.random() < 0.75 else rng.randrange(2, 5)):
        tree = _change(rng, tree)
    return tree


def _change(rng: Random, tree: Tree) -> Tree:
    """Go down to some place, and change what is there."""
    children = _keys(tree)
    if children and rng.random() < _DEEPER:
        key = rng.choice(children)
        changed = _change(rng, tree[key])
        if isinstance(tree, dict):
            return tree | {key: changed}
        return [*tree[:key], changed, *tree[key + 1 :]]
    if isinstance(tree, dict) and rng.random() < 0.6:
        return rng.choice(_OF_TABLES)(rng, tree)
    if isinstance(tree, list) and rng.random() < 0.5:
        return rng.choice(_OF_LISTS)(rng, tree)
    if isinstance(tree, int | float) and rng.random() < 0.5:
        return _near(rng, tree)
    return hostile.value(rng) if rng.random() < 0.9 else [tree]


def _keys(tree: Tree) -> list[Any]:
    if isinstance(tree, dict):
        return list(tree)
    return list(range(len(tree))) if isinstance(tree, list) else []


def _near(rng: Random, number: float) -> Any:
    """A number that is almost right."""
    choices: list[Callable[[], Any]] = [
        lambda: number + 1,
        lambda: number - 1,
        lambda: -number,
        lambda: float(number),
        lambda: number * 2,
        lambda: number + 1e-7,
        lambda: str(number),
        lambda: bool(number),
        lambda: int(number) if math.isfinite(number) else 0,
    ]
    return rng.choice(choices)()


# ------------------------------------------------------------------------------------------ tables


def _without(rng: Random, table: dict[str, Tree]) -> Tree:
    gone = rng.choice(list(table)) if table else None
    return {key: entry for key, entry in table.items() if key != gone}


def _twice(rng: Random, table: dict[str, Tree]) -> Tree:
    again = rng.choice(list(table)) if table else "a"
    return Pairs((*table.items(), (again, table.get(again)), (again, hostile.value(rng))))


def _renamed(rng: Random, table: dict[str, Tree]) -> Tree:
    if not table:
        return {"a": 1}
    old = rng.choice(list(table))
    new = rng.choice((old.upper(), old[:-1], f"{old}_", *hostile.TEXTS))
    return {new if key == old else key: entry for key, entry in table.items()}


def _added(rng: Random, table: dict[str, Tree]) -> Tree:
    return table | {rng.choice(("unknown", "__class__", *hostile.TEXTS)): hostile.value(rng)}


def _swapped(rng: Random, table: dict[str, Tree]) -> Tree:
    if len(table) < 2:
        return table
    one, other = rng.sample(list(table), 2)
    return table | {one: table[other], other: table[one]}


def _set(rng: Random, table: dict[str, Tree]) -> Tree:
    return table | {rng.choice(list(table)): hostile.value(rng)} if table else table


_OF_TABLES = (_without, _twice, _renamed, _added, _swapped, _set, _set)


# ------------------------------------------------------------------------------------------- lists


def _shorter(rng: Random, entries: list[Tree]) -> Tree:
    return entries[: rng.randrange(len(entries) + 1)]


def _longer(rng: Random, entries: list[Tree]) -> Tree:
    return entries + entries[: rng.randrange(1, 3)]


def _with_value(rng: Random, entries: list[Tree]) -> Tree:
    return [*entries, hostile.value(rng)]


def _deeper(rng: Random, entries: list[Tree]) -> Tree:
    return [entries]


_OF_LISTS = (_shorter, _longer, _with_value, _deeper)


# ----------------------------------------------------------------------------------------- writing


def as_json(tree: Tree) -> str:
    """JSON, with what Python's reader takes besides: NaN, infinities, duplicate keys."""
    if isinstance(tree, Raw):
        return tree.text
    if isinstance(tree, Pairs):
        return "{" + ",".join(f"{json.dumps(key)}:{as_json(x)}" for key, x in tree.pairs) + "}"
    if isinstance(tree, dict):
        return as_json(Pairs(tuple(tree.items())))
    if isinstance(tree, list | tuple):
        return "[" + ",".join(as_json(entry) for entry in tree) + "]"
    if isinstance(tree, datetime.date | datetime.time):
        return json.dumps(tree.isoformat())
    return json.dumps(tree)


def as_toml(table: Tree) -> str:
    """A table as TOML: a line per key, tables inside it in one line."""
    if isinstance(table, Raw):
        return table.text
    pairs = table.pairs if isinstance(table, Pairs) else tuple(table.items())
    return "".join(f"{_text(key)} = {_toml(entry)}\n" for key, entry in pairs if entry is not None)


def _toml(tree: Tree) -> str:
    if isinstance(tree, Raw):
        return tree.text
    if isinstance(tree, Pairs):
        pairs = ", ".join(f"{_text(key)} = {_toml(entry)}" for key, entry in tree.pairs)
        return f"{{ {pairs} }}"
    if isinstance(tree, dict):
        return _toml(Pairs(tuple((k, x) for k, x in tree.items() if x is not None)))
    if isinstance(tree, list | tuple):
        return "[" + ", ".join(_toml(entry) for entry in tree) + "]"
    if isinstance(tree, datetime.date | datetime.time):
        return tree.isoformat()
    if isinstance(tree, bool):
        return "true" if tree else "false"
    if isinstance(tree, float) and not math.isfinite(tree):
        return str(tree)
    return _text(tree) if isinstance(tree, str) else '""' if tree is None else repr(tree)


def _text(text: str) -> str:
    """A TOML string; a surrogate is escaped, which TOML forbids."""
    return json.dumps(text)
