"""Means with Student's 95 % intervals."""

from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

Decision: TypeAlias = Literal["holds", "fails", "undecided"]


class Interval(NamedTuple):
    """A mean and the half of its 95 % interval: infinite for one number."""

    mean: float
    half: float
    size: int

    @property
    def low(self) -> float:
        """The lower end."""
        return self.mean - self.half

    @property
    def high(self) -> float:
        """The upper end."""
        return self.mean + self.half

    def decide(self, side: Literal["below", "above"], bound: float) -> Decision:
        """Whether all of it is on one side of a bound: it is, it is on the other, or neither."""
        low, high = self.low - bound, self.high - bound
        if side == "above":
            low, high = -high, -low
        if high < 0:
            return "holds"
        return "fails" if low > 0 else "undecided"

    def __str__(self) -> str:
        """For people: 12.3 ± 0.4."""
        if np.isnan(self.mean):
            return "not defined"
        if not np.isfinite(self.half):
            return f"{self.mean:.4g}"
        return f"{self.mean:.4g} ± {self.half:.2g}"


def half_width(values: np.ndarray, axis: int = 0) -> np.ndarray:
    """Half of Student's 95 % interval of the mean along an axis; infinite for one number."""
    count = values.shape[axis]
    if count < 2:
        return np.full(np.delete(values.shape, axis), np.inf)
    with np.errstate(invalid="ignore"):  # infinite numbers have no spread
        spread = values.std(axis=axis, ddof=1) / np.sqrt(count)
    return np.asarray(student(count) * spread)


def student(count: int) -> float:
    """Student's 97.5 % quantile for the mean of `count` numbers."""
    from scipy.special import stdtrit  # scipy.stats has the same and takes long to import

    return float(stdtrit(count - 1, 0.975))


def interval(values: Any) -> Interval:
    """The mean of some numbers, with Student's 95 % interval."""
    numbers = np.asarray(values, dtype=float)
    return Interval(float(numbers.mean()), float(half_width(numbers)), len(numbers))
