"""Checks of the environments' parameters, each with a sentence; and numbers fit to be stored."""

import math
from typing import Any

import numpy as np

from cmdpax.errors import ParameterError, shown
from cmdpax.limits import require_room


def count(name: str, value: Any, minimum: int = 1, maximum: int = 2**31 - 1) -> int:
    """A whole number from `minimum` to `maximum`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < minimum:
        raise ParameterError(
            f"{name} is {shown(value)}, it must be a whole number of at least {minimum}."
        )
    if value > maximum:
        raise ParameterError(f"{name} is {shown(value)}, it must be at most {maximum}.")
    return int(value)


def require_fitting(*shape: int) -> None:
    """Refuse sizes of which the largest array, of doubles, would not fit the memory."""
    require_room(f"an array of shape {shape}", 8 * math.prod(shape), "choose smaller sizes")


def number(name: str, value: Any, minimum: float = -math.inf, maximum: float = math.inf) -> float:
    """A finite number between `minimum` and `maximum`."""
    try:
        if isinstance(value, bool | str):
            raise TypeError
        result = float(value)
        if math.isfinite(result) and minimum <= result <= maximum:
            return result
    except (TypeError, ValueError, OverflowError):
        pass
    bounds = f"{minimum:g} and {maximum:g}".replace("inf", "infinity")
    raise ParameterError(f"{name} is {shown(value)}, it must be a number between {bounds}.")


def stable(values: np.ndarray) -> np.ndarray:
    """Computed numbers, rounded to 12 decimals.

    The last bits of a sum depend on the processor; without them the same parameters give the same
    arrays, and so the same fingerprint, on every machine.
    """
    return np.round(values, 12) + 0.0
