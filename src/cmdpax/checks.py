"""Checks of arguments: what counts as a number, and the sentences for what does not.

A flag is not a number, and neither is text that could be read as one. Whole numbers and real
numbers may come from Python, NumPy or JAX, also as arrays without axes.
"""

import math
import operator
from typing import Any

import numpy as np

from cmdpax.errors import ParameterError, nearest_name, shown

_LARGEST_COUNT = 2**31 - 1


def whole_number(value: Any) -> int | None:
    """The value as a Python integer; None where it is not a whole number."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def real_number(value: Any) -> float:
    """The value as a Python float; NaN where it is not a real number that a double can hold."""
    try:
        array = np.asarray(value)
        if array.ndim == 0 and array.dtype.kind in "iufO":  # objects: fractions, large integers
            return float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    return math.nan


def require_count(name: str, value: object, minimum: int = 1, maximum: int = _LARGEST_COUNT) -> int:
    """A whole number from `minimum` to `maximum`."""
    number = whole_number(value)
    if number is None or number < minimum:
        raise ParameterError(
            f"{name} is {shown(value)}, it must be a whole number of at least {minimum}."
        )
    if number > maximum:
        counted = maximum == _LARGEST_COUNT
        bound = "below 2^31: counts are integers" if counted else f"at most {maximum}"
        raise ParameterError(f"{name} is {shown(value)}, it must be {bound}.")
    return number


def require_index(what: str, given: object, size: int, of: str) -> int:
    """A whole number below a size; `of` says of what, such as states."""
    index = whole_number(given)
    if index is None:
        raise ParameterError(
            f"{what} is {shown(given)}, it must be one of the {of} 0 … {size - 1}."
        )
    if not 0 <= index < size:
        raise ParameterError(f"{what} is {shown(index)}, the {of} are 0 … {size - 1}.")
    return index


def require_number(
    name: str, value: object, minimum: float = -math.inf, maximum: float = math.inf
) -> float:
    """A finite number from `minimum` to `maximum`."""
    number = real_number(value)
    if not (math.isfinite(number) and minimum <= number <= maximum):
        free = (minimum, maximum) == (-math.inf, math.inf)
        bounds = "" if free else f" between {minimum:g} and {maximum:g}".replace("inf", "infinity")
        raise ParameterError(f"{name} is {shown(value)}, it must be a number{bounds}.")
    return number


def require_positive(name: str, value: object) -> float:
    """A positive number that a double can hold."""
    number = real_number(value)
    if not 0 < number < math.inf:
        raise ParameterError(f"{name} is {shown(value)}, it must be a positive number.")
    return number


def require_share(name: str, value: object) -> float:
    """A number above 0 and below 1."""
    number = real_number(value)
    if not 0 < number < 1:
        raise ParameterError(f"{name} is {shown(value)}, it must be between 0 and 1.")
    return number


def require_flag(name: str, value: object) -> bool:
    """True or false, of Python or of NumPy; nothing else that could pass for one."""
    if not isinstance(value, bool | np.bool):
        raise ParameterError(f"{name} is {shown(value)}, it must be true or false.")
    return bool(value)


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse what is not one of the choices, with the nearest one."""
    if not isinstance(value, str) or value not in choices:  # an array is neither in nor not in
        raise ParameterError(f"{name} is {shown(value)}; {nearest_name(value, choices)}.")
