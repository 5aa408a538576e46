"""Hyperparameters that change with the episode: x_k = initial · (k + offset)^(-exponent).

A schedule is three numbers, not a function, so that a grid over schedules is one compiled program;
a constant is the exponent 0.
"""

import math
import re
from typing import Any, NamedTuple, TypeAlias

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer

from cmdpax.checks import real_number
from cmdpax.errors import ParameterError, shown

_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?"
_WRITTEN = re.compile(
    rf"(?P<initial>{_NUMBER})\*(?:k|\(k(?P<offset>[+-]{_NUMBER})\))\^(?P<power>[+-]?{_NUMBER})"
)


class Schedule(NamedTuple):
    """x_k = initial · (k + offset)^(-exponent), for k = 1, 2, …; numbers or arrays of them."""

    initial: Any
    exponent: Any
    offset: Any

    def __str__(self) -> str:
        """As `parse_schedule` reads it: 0.1, 0.3*k^-0.2, 0.3*(k+10)^-0.2."""
        initial, exponent, offset = self
        if exponent == 0:
            return f"{initial:g}"
        return f"{initial:g}*{f'(k{offset:+g})' if offset else 'k'}^{-exponent:g}"


Scheduled: TypeAlias = float | int | Schedule
"""A number, or a schedule."""


def constant(value: float) -> Schedule:
    """x_k = value."""
    return Schedule(value, 0.0, 0.0)


def power(initial: float, exponent: float, offset: float = 0.0) -> Schedule:
    """x_k = initial · (k + offset)^(-exponent), for k = 1, 2, …

    Examples:
        >>> import cmdpax
        >>> schedule = cmdpax.schedules.power(0.3, 0.5)
        >>> [round(float(cmdpax.schedules.values(schedule, k)), 3) for k in (1, 4, 100)]
        [0.3, 0.15, 0.03]
    """
    if not offset > -1:
        raise ParameterError(f"offset is {offset}, it must exceed -1 (the first k is 1).")
    return Schedule(initial, exponent, offset)


def as_schedule(name: str, value: Scheduled) -> Schedule:
    """A number as a constant schedule; refuses what is neither a number nor a schedule."""
    schedule = value if isinstance(value, Schedule) else Schedule(value, 0.0, 0.0)
    found = Schedule(*map(real_number, schedule))
    if not all(map(math.isfinite, found)):
        raise ParameterError(
            f"{name} is {shown(value)}, it must be a finite number or a schedule "
            "(cmdpax.schedules.power)."
        )
    if found.offset <= -1:
        raise ParameterError(f"{name} has the offset {schedule.offset}, it must exceed -1.")
    return found


def parse_schedule(name: str, text: str) -> Schedule:
    """A schedule written as 0.3*k^-0.2 or 0.3*(k+10)^-0.2."""
    match = _WRITTEN.fullmatch(text.replace(" ", ""))
    if match is None:
        raise ParameterError(
            f"{name} is {shown(text)}, it must be a number or a schedule such as 0.3*k^-0.2 or "
            "0.3*(k+10)^-0.2."
        )
    return power(float(match["initial"]), -float(match["power"]), float(match["offset"] or 0))


def value_at(schedule: Scheduled, episode: Integer[Array, ""]) -> Float[Array, ""]:
    """x_k inside jitted code."""
    if not isinstance(schedule, Schedule):
        return jnp.asarray(schedule)
    index = episode.astype(jnp.result_type(schedule.initial)) + schedule.offset
    return schedule.initial * index**-schedule.exponent


def values(schedule: Scheduled, episodes: Any) -> np.ndarray:
    """x_k for one or several k, in NumPy."""
    initial, exponent, offset = as_schedule("schedule", schedule)
    try:
        places = np.asarray(episodes, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(f"episodes is {shown(episodes)}, it must be numbers.") from None
    return np.asarray(initial * (places + offset) ** -exponent)


def is_constant(schedule: Schedule) -> bool:
    """Whether a schedule never changes."""
    return bool(schedule.exponent == 0 or schedule.initial == 0)
