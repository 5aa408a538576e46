"""Means with Student's intervals, and paired comparisons."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cmdpax.errors import ParameterError, nearest_name
from cmdpax.experiments.reading import Results

if TYPE_CHECKING:
    import polars


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

    def __str__(self) -> str:
        """For people: 12.3 ± 0.4."""
        if np.isnan(self.mean):
            return "not defined"
        if not np.isfinite(self.half):
            return f"{self.mean:.4g}"
        return f"{self.mean:.4g} ± {self.half:.2g}"


def half_width(values: np.ndarray, axis: int = 0) -> np.ndarray:
    """Half of Student's 95 % interval of the mean along an axis; infinite for one number."""
    from scipy.stats import t

    count = values.shape[axis]
    if count < 2:
        return np.full(np.delete(values.shape, axis), np.inf)
    spread = values.std(axis=axis, ddof=1) / np.sqrt(count)
    return np.asarray(t.ppf(0.975, count - 1) * spread)


def interval(values: Any) -> Interval:
    """The mean of some numbers, with Student's 95 % interval."""
    numbers = np.asarray(values, dtype=float)
    return Interval(float(numbers.mean()), float(half_width(numbers)), len(numbers))


class Comparison(NamedTuple):
    """Two algorithms, each with its best configuration, on the same CMDPs and seeds.

    Attributes:
        first: one algorithm.
        second: the other.
        measure: what is compared; less is better for regrets.
        first_mean: over the pairs, or over the CMDPs' means.
        second_mean: likewise.
        difference: first minus second, with its interval.
        ratio: of the means.
        pairs: how many.
        cmdps: how many CMDPs.
        first_smaller: on how many CMDPs the first has the smaller mean.
        unit: what the interval is over, "CMDPs" or "seeds".
    """

    first: str
    second: str
    measure: str
    first_mean: float
    second_mean: float
    difference: Interval
    ratio: float
    pairs: int
    cmdps: int
    first_smaller: int
    unit: str


def compare(results: Results, first: str, second: str, by: str = "strong") -> Comparison:
    """Compare two algorithms in pairs: the same CMDP, the same seed.

    Each plays its best configuration (smallest mean of the measure in hindsight). Runs on one CMDP
    say little about others: with several CMDPs the interval is that of the CMDPs' mean differences.

    Args:
        results: of a sweep.
        first: an algorithm of the sweep, or one of its configurations.
        second: likewise.
        by: "strong" or "weak" (sums of the two regrets), or a column of `final`.
    """
    best = results.best(by)
    sides = []
    for name in (first, second):
        rows = _rows(results, best, name, by)
        sides.append(rows.select("cmdp", "seed", "score"))
    pairs = sides[0].join(sides[1], on=["cmdp", "seed"], suffix="_second", how="inner")
    if pairs.is_empty():
        raise ParameterError(f"{first} and {second} share no CMDP with the same seed.")
    pairs = pairs.with_columns(difference=pairs["score"] - pairs["score_second"])
    means = pairs.group_by("cmdp", maintain_order=True).mean()
    several = len(means) > 1
    found = interval((means if several else pairs)["difference"].to_numpy())
    averaged = means if several else pairs
    first_mean, second_mean = (averaged[c].to_numpy().mean() for c in ("score", "score_second"))
    return Comparison(
        first,
        second,
        by,
        first_mean,
        second_mean,
        found,
        first_mean / second_mean if second_mean else float("nan"),
        len(pairs),
        len(means),
        int((means["difference"] < 0).sum()),
        "CMDPs" if several else "seeds",
    )


def _rows(results: Results, best: "polars.DataFrame", name: str, by: str) -> "polars.DataFrame":
    """The runs of a configuration, or of an algorithm's best one."""
    import polars

    chosen = best.filter(polars.col("algorithm") == name)["configuration"].to_list() or [name]
    rows = results.scored(by).filter(polars.col("configuration") == chosen[0])
    if rows.is_empty():
        known = sorted(set(results.final["algorithm"]))
        raise ParameterError(
            f"{results.path} has no algorithm or configuration {name!r}; "
            f"{nearest_name(name, known)}."
        )
    return rows
