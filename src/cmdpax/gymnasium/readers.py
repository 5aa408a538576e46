"""Where the signals of a step come from: an entry of `info`, a function, or a table."""

import inspect
import numbers
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from cmdpax.checks import real_number
from cmdpax.errors import ParameterError, cut, in_line, shown

Reader = Callable[[Any, int, Any, Mapping[str, Any]], np.ndarray]
"""The numbers of a step, `[n]`, by state, action, next state and `info`."""

_LISTED = 200  # characters of a list of keys


class _Source(NamedTuple):
    """What reads a value, and what to call it."""

    read: Callable[[Any, int, Any, Mapping[str, Any]], Any]
    name: str
    path: str | None = None  # in info, as the user wrote it


def reader_of(source: Any, pairs: tuple[int, int] | None) -> Reader:
    """Read one source, or a list that has one for each constraint.

    Args:
        source: the name of an entry of `info`, with dots for what is further inside; a function
            of (state, action, next_state) or of `info`; an array `[S]` or `[S, A]`; or a list of
            these. A list of numbers is an array.
        pairs: (S, A); None where states are not numbered, and arrays are refused.
    """
    if not isinstance(source, list | tuple) or all(isinstance(c, numbers.Real) for c in source):
        one = _one(source, pairs, "costs")
        return lambda *step: as_numbers(one.read(*step), one.name, one.path)
    several = [_one(entry, pairs, f"costs[{index}]") for index, entry in enumerate(source)]
    return lambda *step: np.array(
        [_single(one.read(*step), one.name, one.path) for one in several], dtype=float
    )


def given_cost(cost: Any, info: Mapping[str, Any]) -> np.ndarray:
    """The cost of a step with six values, or what `info` has."""
    if cost is not None:
        return as_numbers(cost, "the cost of a step")
    name = "costs" if "costs" in info else "cost"
    if name not in info:
        raise ParameterError(
            f"the environment's info has neither 'costs' nor 'cost' (it has {_keys(info)}); "
            "say with costs= or signals= where they come from."
        )
    return as_numbers(info[name], f"info[{name!r}]", name)


def as_numbers(value: Any, name: str, path: str | None = None) -> np.ndarray:
    """A value as numbers, `[n]`; what is none gets a sentence."""
    try:
        array = np.asarray(value)
    except ValueError:  # lists of various lengths
        array = np.array(None)
    if array.dtype.kind == "O" and array.ndim == 0:  # a fraction, or something that is no number
        array = np.asarray(real_number(value))
        if np.isnan(array):
            array = np.array(None)
    if array.dtype.kind in "biuf" and array.ndim < 2:
        return np.atleast_1d(array.astype(float))
    if isinstance(value, Mapping):
        fix = "name one of these"
        if path is not None and value:
            fix += f", such as '{path}.{min(map(str, value))}'"
        raise ParameterError(f"{name} is a {type(value).__name__} with {_keys(value)}; {fix}.")
    raise ParameterError(
        f"{name} is {shown(value)}, of the type {type(value).__name__}; it must be a number."
    )


def function_kind(function: Callable[..., Any], name: str) -> str:
    """What a function takes: "step", (state, action, next_state), or "info"."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # built in, or something that does not tell
        return "step"
    for kind, count in (("step", 3), ("info", 1)):
        try:
            signature.bind(*[None] * count)
        except TypeError:
            continue
        return kind
    raise ParameterError(
        f"{name} is {shown(function)}, which takes neither (state, action, next_state) nor info."
    )


def entry(info: Mapping[str, Any], path: str) -> Any:
    """The entry of `info` with this name, or the one to which the parts between dots lead."""
    if path in info:
        return info[path]
    found: Any = info
    name = "info"
    for part in path.split("."):
        found = _step_in(found, part, name)
        name += f"[{part!r}]"
    return found


def _step_in(found: Any, part: str, name: str) -> Any:
    """One step further inside a mapping, a list or an array."""
    if isinstance(found, Mapping):
        if part in found:
            return found[part]
        if part.isdecimal() and int(part) in found:
            return found[int(part)]
        owner = "the environment's info" if name == "info" else name
        raise ParameterError(f"{owner} has no {part!r}, it has {_keys(found)}; name one of these.")
    if isinstance(found, list | tuple) or (isinstance(found, np.ndarray) and found.ndim):
        if part.isdecimal() and int(part) < len(found):
            return found[int(part)]
        raise ParameterError(
            f"{name} has no {part!r}, it is a list of {len(found)}; name one of "
            f"0 … {len(found) - 1}."
        )
    raise ParameterError(
        f"{name} is {shown(found)}, of the type {type(found).__name__}, and has no entry {part!r}."
    )


def _one(source: Any, pairs: tuple[int, int] | None, name: str) -> _Source:
    if isinstance(source, str):
        inside = "".join(f"[{part!r}]" for part in source.split("."))
        return _Source(lambda s, a, t, info: entry(info, source), f"info{inside}", source)
    if callable(source):
        if function_kind(source, name) == "info":
            return _Source(lambda s, a, t, info: _called(source, info, name), f"{name}(info)")
        return _Source(lambda s, a, t, info: source(s, a, t), f"{name}(state, action, next_state)")
    table = _table(source, pairs)
    if table.ndim == 1:
        return _Source(lambda s, a, t, info: table[s], name)
    return _Source(lambda s, a, t, info: table[s, a], name)


def _called(function: Callable[..., Any], info: Mapping[str, Any], name: str) -> Any:
    """What a function finds in `info`, or a sentence on what there is where it finds nothing."""
    try:
        return function(info)
    except (LookupError, TypeError) as error:
        raise ParameterError(
            f"{name}(info) raised {type(error).__name__}: {in_line(error)}; the environment's info "
            f"has {_keys(info)}."
        ) from error


def _table(source: Any, pairs: tuple[int, int] | None) -> np.ndarray:
    try:
        table = np.array(source)
    except ValueError:  # lists of various lengths
        table = np.array(None)
    if table.dtype.kind not in "biuf" or table.ndim not in (1, 2):
        raise ParameterError(
            f"costs is {shown(source)}; it must be a name in info, a function of (state, action, "
            "next_state) or of info, an array [S] or [S, A], or a list of these."
        )
    if pairs is None:
        raise ParameterError(
            f"costs has shape {table.shape}, but states have no numbers before they are found; "
            "give a function of (state, action, next_state), or a name in info."
        )
    if table.shape != pairs[: table.ndim]:
        raise ParameterError(
            f"costs has shape {table.shape}, expected {pairs[:1]} or {pairs}: a number for every "
            "state, or for every state and action."
        )
    return table


def _single(value: Any, name: str, path: str | None) -> float:
    found = as_numbers(value, name, path)
    if found.shape != (1,):
        raise ParameterError(f"{name} is {shown(value)}; it must be one number.")
    return float(found[0])


def _keys(found: Mapping[Any, Any]) -> str:
    return cut(str(sorted(map(str, found))), _LISTED)


def require_one_each(found: np.ndarray, count: int, told: str) -> np.ndarray:
    """One number for each constraint; `told` says how many these are."""
    if found.shape != (count,):
        raise ParameterError(
            f"a step has costs of shape {found.shape}, {told}; give one cost for each."
        )
    return found
