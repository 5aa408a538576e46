"""Rewards and costs that users give for a table, and what is expected of them."""

import math
import reprlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cmdpax.errors import ParameterError, shown
from cmdpax.gymnasium.outcomes import expected
from cmdpax.gymnasium.readers import function_kind
from cmdpax.model.arrays import ArrayLike

Signal = ArrayLike | Callable[[int, int, int], float]
"""An array `[S]`, `[S, A]` or `[S, A, S]`, or a function `signal(state, action, next_state)`."""


def named_costs(
    costs: Signal | Sequence[Signal] | None, limits: Any
) -> tuple[dict[str, Any], np.ndarray]:
    """The costs by their names in messages, and one limit for each."""
    if (costs is None) != (limits is None):
        given, missing = ("costs", "limits") if limits is None else ("limits", "costs")
        raise ParameterError(f"{given} came without {missing}; give both or neither.")
    if costs is None:
        return {}, np.zeros(0)
    # A list of numbers is one array; any other list holds one cost for each constraint.
    several = isinstance(costs, list | tuple) and not (costs and np.isscalar(costs[0]))
    if several and isinstance(costs, list | tuple):
        named = {f"costs[{index}]": cost for index, cost in enumerate(costs)}
    else:
        named = {"costs": costs}
    return named, as_limits(limits, len(named))


def as_limits(limits: Any, count: int | None = None) -> np.ndarray:
    """One finite number for each cost; a number will do for one. None: as many as there are."""
    bounds = np.atleast_1d(_as_numbers("limits", limits))
    if count is None:
        count = len(bounds)
    if bounds.shape != (count,):
        raise ParameterError(
            f"limits is {reprlib.repr(limits)}, but the number of costs is {count}; give one "
            "limit for each."
        )
    if not np.isfinite(bounds).all():
        raise ParameterError(f"limits is {shown(limits)}; every limit must be a finite number.")
    return bounds


def expectation(
    name: str, signal: Signal, outcomes: np.ndarray, shape: tuple[int, int]
) -> np.ndarray:
    """What is expected of a signal in every pair, `[S, A]`; outcomes need not be all."""
    if callable(signal):
        if function_kind(signal, name) == "info":
            raise ParameterError(
                f"{name} is a function of one argument, but a table has no info; give one of "
                "(state, action, next_state)."
            )
        triples = outcomes[["state", "action", "successor"]].tolist()
        values = [_call(name, signal, *triple) for triple in triples]
        return expected(outcomes, np.array(values), shape)
    array = _as_numbers(name, signal)
    by_transition = (*shape, shape[0])
    if array.shape not in (shape[:1], shape, by_transition):
        raise ParameterError(
            f"{name} has shape {array.shape}, expected (S,) = {shape[:1]}, (S, A) = {shape} or "
            f"(S, A, S) = {by_transition}."
        )
    finite = np.isfinite(array)
    if not finite.all():
        index = [int(i) for i in np.argwhere(~finite)[0]]
        raise ParameterError(
            f"{name} at {index} is {array[tuple(index)]}; {_each(name)} must be a finite number."
        )
    if array.ndim == 3:
        places = outcomes["state"], outcomes["action"], outcomes["successor"]
        return expected(outcomes, array[places], shape)
    return np.broadcast_to(array.reshape(shape[0], -1), shape)


def _each(name: str) -> str:
    return "every reward" if name.startswith("reward") else "every cost"


def _call(
    name: str, signal: Callable[[int, int, int], Any], state: int, action: int, next_state: int
) -> float:
    value = signal(state, action, next_state)
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ParameterError(
            f"{name} is {shown(value)} for (state, action, next_state) = "
            f"({state}, {action}, {next_state}); {_each(name)} must be a finite number."
        )
    return number


def _as_numbers(name: str, value: Any) -> np.ndarray:
    try:
        return np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(
            f"{name} is {reprlib.repr(value)}, which cannot be read as an array of numbers."
        ) from None
