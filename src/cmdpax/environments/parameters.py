"""Checks of the environments' parameters, each with a sentence; and numbers fit to be stored."""

import math
from typing import Any

import numpy as np

from cmdpax.errors import ParameterError


def count(name: str, value: Any, minimum: int = 1) -> int:
    """A whole number that is at least `minimum`."""
    if isinstance(value, bool | str) or not hasattr(value, "__index__") or value < minimum:
        raise ParameterError(
            f"{name} is {value!r}, it must be a whole number of at least {minimum}."
        )
    return int(value)


def number(name: str, value: Any, minimum: float = -math.inf, maximum: float = math.inf) -> float:
    """A finite number between `minimum` and `maximum`."""
    try:
        if isinstance(value, bool | str):
            raise TypeError
        result = float(value)
        if math.isfinite(result) and minimum <= result <= maximum:
            return result
    except (TypeError, ValueError):
        pass
    bounds = f"{minimum:g} and {maximum:g}".replace("inf", "infinity")
    raise ParameterError(f"{name} is {value!r}, it must be a number between {bounds}.")


def flag(name: str, value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise ParameterError(f"{name} is {value!r}, it must be true or false.")
    return value


def stable(values: np.ndarray) -> np.ndarray:
    """Computed numbers, rounded to 12 decimals.

    The last bits of a sum depend on the processor; without them the same parameters give the same
    arrays, and so the same fingerprint, on every machine.
    """
    return np.round(values, 12) + 0.0
