"""Paired comparisons of two algorithms."""

from typing import NamedTuple

import polars

from cmdpax.errors import ParameterError, nearest_name
from cmdpax.experiments.reading import Results
from cmdpax.intervals import Interval, interval


class Comparison(NamedTuple):
    """Two algorithms, each with its best configuration, on the same CMDPs and seeds.

    Attributes:
        first: one algorithm.
        second: the other.
        measure: what is compared; less is better for regrets.
        first_mean: its mean over the pairs, or over the CMDPs' means.
        second_mean: likewise.
        difference: first minus second, with its interval.
        ratio: the first mean divided by the second.
        pairs: the number of pairs.
        cmdps: the number of CMDPs.
        first_smaller: the number of CMDPs on which the first has the smaller mean.
        unit: what the interval averages over, "CMDPs" or "seeds".
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
        results: those of a sweep.
        first: an algorithm of the sweep, or one of its configurations.
        second: likewise.
        by: "strong" or "weak" (sums of the two regrets), or a column of `final`.
    """
    best = results.best(by)
    one, other = (
        _rows(results, best, name, by).select("cmdp", "seed", "score") for name in (first, second)
    )
    pairs = one.join(other, on=["cmdp", "seed"], suffix="_second", how="inner")
    if pairs.is_empty():
        raise ParameterError(f"{first} and {second} share no CMDP with the same seed.")
    pairs = pairs.with_columns(difference=pairs["score"] - pairs["score_second"])
    means = pairs.group_by("cmdp", maintain_order=True).mean()
    several = len(means) > 1
    averaged = means if several else pairs
    first_mean, second_mean = (averaged[c].to_numpy().mean() for c in ("score", "score_second"))
    return Comparison(
        first,
        second,
        by,
        first_mean,
        second_mean,
        interval(averaged["difference"].to_numpy()),
        first_mean / second_mean if second_mean else float("nan"),
        len(pairs),
        len(means),
        int((means["difference"] < 0).sum()),
        "CMDPs" if several else "seeds",
    )


def _rows(results: Results, best: polars.DataFrame, name: str, by: str) -> polars.DataFrame:
    """The runs of a configuration, or of an algorithm's best one."""
    chosen = best.filter(polars.col("algorithm") == name)["configuration"].to_list() or [name]
    rows = results.scored(by).filter(polars.col("configuration") == chosen[0])
    if rows.is_empty():
        known = sorted(set(results.final["algorithm"]))
        raise ParameterError(
            f"{results.path} has no algorithm or configuration {name!r}; "
            f"{nearest_name(name, known)}."
        )
    return rows
