"""Results as arrays with names, and how far two sets of them are apart.

Only public attributes are read, so that two versions of the library can be compared whose insides
differ. A later version may add fields and columns: what only one side has is counted, not compared.
"""

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

Arrays = dict[str, np.ndarray]

HISTORY = (
    "episodes",
    "value",
    "constraint_values",
    "multipliers",
    "strong_regret",
    "weak_regret",
    "unsafe",
    "potential",
    "policy",
    "log",
    "optimum",
    "thresholds",
)
ACCOUNT = (
    "value",
    "constraint_values",
    "suboptimality",
    "violation",
    "strong_regret",
    "weak_regret",
    "unsafe",
)
AGENT = ("policy", "multipliers", "visits", "recent", "num_episodes", "step", "expects", "account")
MODEL = ("transitions", "rewards", "constraint_rewards", "thresholds", "initial", "fingerprint")

DOUBLE, SINGLE = 1e-10, 1e-4
"""Largest relative differences that pass, by the precision of a case."""


def chosen(value: Any, names: Iterable[str]) -> dict[str, Any]:
    """Some attributes of an object by name."""
    return {name: getattr(value, name) for name in names}


def named_arrays(name: str, value: Any) -> Arrays:
    """Flatten a result into arrays; what is None has none.

    Named tuples, dataclasses and mappings are entered, and so are lists of anything but numbers
    and text. A frame of polars gives one array per column.
    """
    if value is None:
        return {}
    if hasattr(value, "get_columns"):
        return {f"{name}/{column.name}": _column(column) for column in value.get_columns()}
    if hasattr(value, "_asdict"):
        value = value._asdict()
    elif dataclasses.is_dataclass(value):
        value = chosen(value, (field.name for field in dataclasses.fields(value)))
    elif isinstance(value, list | tuple) and not _is_plain(value):
        value = dict(enumerate(value))
    if not isinstance(value, Mapping):
        return {name: np.asarray(value)}
    found: Arrays = {}
    for key, entry in value.items():
        found |= named_arrays(f"{name}/{key}", entry)
    return found


def _is_plain(values: Iterable[Any]) -> bool:
    return all(isinstance(value, int | float | str | np.generic) for value in values)


def _column(column: Any) -> np.ndarray:
    """A column of a frame; nulls are NaN among numbers and empty in text."""
    if column.dtype.is_nested():
        column = column.explode()
    values = column.to_list()
    if any(isinstance(value, str) for value in values):
        return np.array([value or "" for value in values], dtype=str)
    return np.array([math.nan if value is None else value for value in values])


# ------------------------------------------------------------------------------------- comparing


class Difference(NamedTuple):
    """How one array compares with its counterpart."""

    kind: str  # "equal" bit for bit, "differs", "missing", or "shape"
    size: float = 0.0  # the largest difference, relative to the largest entry before

    def passes(self, name: str) -> bool:
        """Whether it is small enough for the precision that the name of the case gives."""
        limit = SINGLE if "single" in name.split("/") else DOUBLE
        return self.kind in ("equal", "differs") and self.size <= limit


def compare(before: np.ndarray, after: np.ndarray | None) -> Difference:
    """Compare one array; NaNs in the same places are equal.

    Sizes are relative to the largest finite entry of the array before, not entry by entry: a
    regret that passes through zero has no relative difference of its own.
    """
    if after is None:
        return Difference("missing")
    if before.shape != after.shape:
        return Difference("shape")
    if before.dtype.kind not in "biuf" or after.dtype.kind not in "biuf":
        same = before.dtype.kind == after.dtype.kind and bool((before == after).all())
        return Difference("equal") if same else Difference("differs", math.inf)
    if before.dtype == after.dtype and _bits(before) == _bits(after):
        return Difference("equal")
    return Difference("differs", _relative(before.astype(float), after.astype(float)))


def _bits(array: np.ndarray) -> bytes:
    """Its content; NaNs are all alike, whatever their own bits are."""
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), array.dtype.type(np.nan), array)
    return array.tobytes()


def _relative(before: np.ndarray, after: np.ndarray) -> float:
    """Infinite where one side has a number and the other has none."""
    same = (before == after) | (np.isnan(before) & np.isnan(after))
    if same.all():  # zeros of another sign, or another type
        return 0.0
    apart = np.abs(after[~same] - before[~same])
    if not np.isfinite(apart).all():
        return math.inf
    scale = np.abs(before[np.isfinite(before)]).max(initial=0.0)
    return float(apart.max() / (scale or 1.0))


def compare_all(before: Arrays, after: Arrays) -> dict[str, Difference]:
    """Compare every array that was there before."""
    return {name: compare(array, after.get(name)) for name, array in before.items()}
