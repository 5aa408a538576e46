"""The user's units: the range and the sense of every signal, declared once.

Inside, rewards and constraint rewards are in [0, 1] and reach at least a threshold. A signal x of
the user's, declared to lie in [low, high], becomes (x - low)/(high - low), or, where it must stay
*at most* at its threshold, (high - x)/(high - low); thresholds on the sum over H steps go with it.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cmdpax.checks import real_number
from cmdpax.errors import ParameterError, shown
from cmdpax.model.arrays import ROUNDING as SINGLE_ROUNDING
from cmdpax.model.arrays import is_single
from cmdpax.model.words import SENSES, as_senses

ROUNDING = 1e-9
"""What rounding explains in sums, as a share of a signal's range."""


class Units(NamedTuple):
    """The range and the sense of every signal: the reward is entry 0, then the constraints."""

    low: np.ndarray
    high: np.ndarray
    at_most: np.ndarray  # whether less is better; never for the reward

    @property
    def scale(self) -> np.ndarray:
        """The user's units per unit inside."""
        return self.high - self.low

    @property
    def senses(self) -> tuple[str, ...]:
        """The senses of the constraints, in words."""
        return tuple(SENSES[int(most)] for most in self.at_most[1:])

    def inward(self, signals: np.ndarray) -> np.ndarray:
        """Signals of one step, the last axis being the signals, as the learner takes them."""
        share = (np.clip(signals, self.low, self.high) - self.low) / self.scale
        return np.where(self.at_most, 1 - share, share)

    def thresholds_inward(self, thresholds: np.ndarray, horizon: int) -> np.ndarray:
        """Thresholds on sums over the horizon, as the learner takes them."""
        low, high, at_most = (array[1:] for array in self)
        room = np.where(at_most, horizon * high - thresholds, thresholds - horizon * low)
        return room / self.scale[1:]

    def require_reachable(self, thresholds: np.ndarray, names: Sequence[str], horizon: int) -> None:
        """Refuse a threshold that no episode can meet, whatever happens in it."""
        inside = self.thresholds_inward(thresholds, horizon)
        for index, name in enumerate(names):
            if inside[index] > horizon * (1 + ROUNDING):
                low, high = horizon * self.low[1 + index], horizon * self.high[1 + index]
                raise ParameterError(
                    f"the threshold of {name} is {self.senses[index]} {thresholds[index]:g}, but "
                    f"sums of {horizon} steps lie in [{low:g}, {high:g}]; correct it, its sense or "
                    "its range."
                )

    def constraint_values(self, inside: np.ndarray, horizon: int) -> np.ndarray:
        """V_u, the last axis being the constraints, in the user's units."""
        low, high, at_most = (array[1:] for array in self)
        value = inside * self.scale[1:]
        return np.where(at_most, horizon * high - value, value + horizon * low)

    def prices(self, multipliers: np.ndarray) -> np.ndarray:
        """λ in the user's units: reward per unit of each constraint."""
        return multipliers * self.scale[0] / self.scale[1:]

    def misses(self, returns: np.ndarray, thresholds: np.ndarray, missing: int) -> np.ndarray:
        """Which constraints' returns miss their thresholds, however the missing steps end."""
        low, high, at_most = (array[1:] for array in self)
        best = returns + missing * np.where(at_most, low, high)
        slack = np.where(at_most, thresholds - best, best - thresholds)
        return slack < -ROUNDING * self.scale[1:]

    def require_inside(self, signals: np.ndarray, names: Sequence[str]) -> None:
        """Refuse signals, `[J]`, that are not numbers or lie outside their ranges."""
        room = SINGLE_ROUNDING * self.scale  # then they are moved to the end of the range
        inside = (signals >= self.low - room) & (signals <= self.high + room)  # false for NaN
        if inside.all():
            return
        worst = int(np.argmin(inside))
        if np.isnan(signals[worst]):
            raise ParameterError(
                f"{names[worst]} is not a number (NaN); nothing was counted; correct what is "
                "observed."
            )
        raise ParameterError(
            f"{names[worst]} is {signals[worst]:.10g}, outside its declared range "
            f"[{self.low[worst]:g}, {self.high[worst]:g}]; nothing was counted; declare a wider "
            "range, or correct what is observed."
        )


def declare_units(
    reward_range: Any, constraint_ranges: Any, senses: Any, num_constraints: int
) -> Units:
    """The units as the user declares them: one entry for all constraints, or one for each."""
    ranges = [_range("reward_range", reward_range)]
    ranges += _constraint_ranges(constraint_ranges, num_constraints)
    chosen = as_senses(senses, num_constraints)
    low, high = np.array(ranges, dtype=float).T.copy()
    units = Units(low, high, np.array([False] + [sense == "at most" for sense in chosen]))
    for array in units:
        array.setflags(write=False)
    return units


def _constraint_ranges(given: Any, num_constraints: int) -> list[tuple[float, float]]:
    listed = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str)
    if listed and len(given) == 2 and all(map(is_single, given)):
        return [_range("constraint_ranges", given)] * num_constraints
    if not listed or len(given) != num_constraints:
        raise ParameterError(
            f"constraint_ranges is {shown(given)}, there are {num_constraints} thresholds; give "
            "one pair (low, high) for all, or one for each."
        )
    return [_range(f"constraint_ranges[{i}]", pair) for i, pair in enumerate(given)]


def _range(name: str, given: Any) -> tuple[float, float]:
    try:
        low, high = map(real_number, given)
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    with np.errstate(all="ignore"):
        usable = low < high and np.isfinite([high - low, np.divide(1.0, high - low)]).all()
    if not usable:
        raise ParameterError(
            f"{name} is {shown(given)}, it must be two numbers (low, high), low below high."
        )
    return low, high
