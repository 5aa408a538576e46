"""The user's units: the range and the sense of every signal.

Inside, rewards and constraint rewards are in [0, 1] and reach at least a threshold. A signal x of
the user's that lies in [low, high] becomes (x - low)/(high - low), or, where it must stay *at most*
at its threshold, (high - x)/(high - low); thresholds on the sum over H steps go with it.

A range that is not declared is that of what was observed so far. It is widened when something
outside is observed, a little further than that, so that it soon stays as it is. That of a
constraint begins with 0 and four times the share c/H of its threshold that falls to a step: what
was never observed may be as bad as that.
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
_OFTEN = 4.0  # times c/H: what a step may bring, as long as nothing else was seen
_ROOM = 0.1  # of a range that is widened, beyond what was observed
_LARGEST, _SMALLEST = 1e100, 1e-100  # what may be observed, and the width of a range


class Units(NamedTuple):
    """The range and the sense of every signal: the reward is entry 0, then the constraints."""

    low: np.ndarray
    high: np.ndarray
    at_most: np.ndarray  # whether less is better; never for the reward
    declared: np.ndarray  # whether the range is the user's; otherwise it is what was observed

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
        low, high, at_most, _ = (array[1:] for array in self)
        room = np.where(at_most, horizon * high - thresholds, thresholds - horizon * low)
        return room / self.scale[1:]

    def require_reachable(self, thresholds: np.ndarray, names: Sequence[str], horizon: int) -> None:
        """Refuse a threshold that no episode can meet, whatever happens in it."""
        inside = self.thresholds_inward(thresholds, horizon)
        for index, name in enumerate(names):
            if self.declared[1 + index] and inside[index] > horizon * (1 + ROUNDING):
                low, high = horizon * self.low[1 + index], horizon * self.high[1 + index]
                raise ParameterError(
                    f"the threshold of {name} is {self.senses[index]} {thresholds[index]:g}, but "
                    f"sums of {horizon} steps lie in [{low:g}, {high:g}]; correct it, its sense or "
                    "its range."
                )

    def constraint_values(self, inside: np.ndarray, horizon: int) -> np.ndarray:
        """V_u, the last axis being the constraints, in the user's units."""
        low, high, at_most, _ = (array[1:] for array in self)
        value = inside * self.scale[1:]
        return np.where(at_most, horizon * high - value, value + horizon * low)

    def prices(self, multipliers: np.ndarray) -> np.ndarray:
        """λ in the user's units: reward per unit of each constraint."""
        return multipliers * self.scale[0] / self.scale[1:]

    def misses(self, returns: np.ndarray, thresholds: np.ndarray, missing: int) -> np.ndarray:
        """Which constraints' returns miss their thresholds, however the missing steps end.

        Where steps are missing and no range is declared, they may bring anything.
        """
        low, high, at_most, declared = (array[1:] for array in self)
        low, high = np.where(declared, low, -np.inf), np.where(declared, high, np.inf)
        best = returns + (missing * np.where(at_most, low, high) if missing else 0.0)
        slack = np.where(at_most, thresholds - best, best - thresholds)
        return slack < -ROUNDING * self.scale[1:]

    def require_inside(self, signals: np.ndarray, names: Sequence[str]) -> None:
        """Refuse signals, `[J]`, that are not numbers or lie outside their ranges."""
        room = SINGLE_ROUNDING * self.scale  # then they are moved to the end of the range
        inside = (signals >= self.low - room) & (signals <= self.high + room)  # false for NaN
        inside |= ~self.declared & (np.abs(signals) <= _LARGEST)
        if inside.all():
            return
        worst = int(np.argmin(inside))
        if np.isnan(signals[worst]):
            raise ParameterError(
                f"{names[worst]} is not a number (NaN); nothing was counted; correct what is "
                "observed."
            )
        if not self.declared[worst]:
            raise ParameterError(
                f"{names[worst]} is {signals[worst]:g}; nothing was counted; observe numbers of at "
                f"most {_LARGEST:g}."
            )
        raise ParameterError(
            f"{names[worst]} is {signals[worst]:.10g}, outside its declared range "
            f"[{self.low[worst]:g}, {self.high[worst]:g}]; nothing was counted; declare a wider "
            "range, or correct what is observed."
        )

    def widened(self, least: np.ndarray, largest: np.ndarray, *, anew: bool) -> "Units":
        """The units in which observations between these fit.

        Args:
            least: of each signal, `[J]`.
            largest: likewise.
            anew: nothing was observed before, so that the range of the reward is only a guess.
        """
        guessed = np.arange(len(self.low)) == 0 if anew else np.zeros(len(self.low), bool)
        outside = ~self.declared & ((least < self.low) | (largest > self.high) | guessed)
        if not outside.any():
            return self
        low = np.where(guessed, least, np.minimum(self.low, least))
        high = np.where(guessed, largest, np.maximum(self.high, largest))
        varies = high - low > _SMALLEST
        size = np.where(varies, high - low, np.maximum(np.abs(low), 1.0))
        below = np.where(guessed | (least < self.low), low - _ROOM * size, self.low)
        above = np.where(guessed | (largest > self.high), high + _ROOM * size, self.high)
        return self._replace(
            low=_read_only(np.where(outside, below, self.low)),
            high=_read_only(np.where(outside, above, self.high)),
        )

    def conversion(self, new: "Units") -> tuple[np.ndarray, np.ndarray]:
        """Slopes and offsets, `[J]` each, from the learner's signals to those in `new` units."""
        offsets = np.where(self.at_most, new.high - self.high, self.low - new.low) / new.scale
        return self.scale / new.scale, offsets


def _read_only(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array


def declare_units(
    reward_range: Any,
    constraint_ranges: Any,
    senses: Any,
    thresholds: np.ndarray,
    horizon: int,
    *,
    known: Sequence[np.ndarray] | None = None,
    adapts: bool = False,
) -> Units:
    """The units as the user declares them: one entry for all constraints, or one for each.

    Args:
        reward_range: a pair, or None where it is not known.
        constraint_ranges: likewise, or one of them for each.
        senses: "at least" or "at most".
        thresholds: c, `[I]`, in the user's units.
        horizon: H.
        known: rewards and constraint rewards, where these are known: then so are their ranges.
        adapts: whether the learner can go on when a range turns out to be wider; for others, a
            range that is not declared is [0, 1].
    """
    num_constraints = len(thresholds)
    ranges = [_range("reward_range", reward_range)]
    ranges += _constraint_ranges(constraint_ranges, num_constraints)
    chosen = as_senses(senses, num_constraints)
    flags = [pair is not None or known is not None or not adapts for pair in ranges]
    if known is not None:
        ranges = [
            _known_range(signal) if pair is None else pair
            for pair, signal in zip(ranges, known, strict=True)
        ]
    guesses = [(0.0, 1.0), *(_guess(threshold, horizon) for threshold in thresholds.tolist())]
    pairs = [pair or guess for pair, guess in zip(ranges, guesses, strict=True)]
    if not adapts:
        pairs = [pair or (0.0, 1.0) for pair in ranges]
    low, high = np.array(pairs, dtype=float).T.copy()
    at_most = np.array([False] + [sense == "at most" for sense in chosen])
    return Units(*map(_read_only, (low, high, at_most, np.array(flags))))


def units_from(
    lows: Sequence[float],
    highs: Sequence[float],
    at_most: Sequence[bool],
    declared: Sequence[bool],
) -> Units:
    """The units that a file holds, checked; `at_most` is without the reward."""
    ranges = [_range("a range", pair) for pair in zip(lows, highs, strict=True)]
    low, high = np.array(ranges, dtype=float).T.copy()
    flags = [bool(one) for one in declared]
    most = [False, *(bool(one) for one in at_most)]
    if not len(low) == len(flags) == len(most):
        raise ParameterError("ranges, senses and flags are not of the same number.")
    return Units(*map(_read_only, (low, high, np.array(most), np.array(flags))))


def _guess(threshold: float, horizon: int) -> tuple[float, float]:
    """The range of a constraint's signal of which nothing is known but its threshold."""
    often = float(np.clip(_OFTEN * (threshold / horizon), -_LARGEST, _LARGEST))
    return (min(0.0, often), max(0.0, often)) if abs(often) > _SMALLEST else (0.0, 1.0)


def _known_range(signal: np.ndarray) -> tuple[float, float]:
    """[0, 1] where that is enough."""
    low, high = float(np.min(signal)), float(np.max(signal))
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    return (low, high) if high > low else (low - 0.5, low + 0.5)


def _constraint_ranges(given: Any, num_constraints: int) -> list[tuple[float, float] | None]:
    if given is None:
        return [None] * num_constraints
    listed = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str)
    if listed and len(given) == 2 and all(map(is_single, given)):
        return [_range("constraint_ranges", given)] * num_constraints
    if not listed or len(given) != num_constraints:
        raise ParameterError(
            f"constraint_ranges is {shown(given)}, there are {num_constraints} thresholds; give "
            "one pair (low, high) for all, or one for each."
        )
    return [_range(f"constraint_ranges[{i}]", pair) for i, pair in enumerate(given)]


def _range(name: str, given: Any) -> tuple[float, float] | None:
    if given is None:
        return None
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
