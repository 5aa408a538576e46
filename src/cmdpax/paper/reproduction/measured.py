"""Numbers from the sweeps, CMDP by CMDP and seed by seed."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cmdpax.experiments.reading import Results
from cmdpax.experiments.tables import SUMS

if TYPE_CHECKING:
    import polars

STRONG = SUMS["strong"]


class Measured:
    """A sweep over CMDPs of one size; CMDPs are known by their seeds."""

    def __init__(self, results: Results, seeds: Sequence[int], **sizes: int) -> None:
        """Take a sweep's CMDPs with these seeds and sizes; a folder may hold more."""
        self.results = results
        self.num_episodes = int(results.manifest["specification"]["num_episodes"])
        self.cmdps = {
            str(entry["source"]["parameters"]["seed"]): fingerprint
            for fingerprint, entry in results.manifest["cmdps"].items()
            if sizes.items() <= entry["source"]["parameters"].items()
            and entry["source"]["parameters"]["seed"] in seeds
        }

    def rows(self, cmdp: str, algorithm: str, **chosen: float) -> "polars.DataFrame":
        """Find the runs of one algorithm on one CMDP, by seed; `chosen` narrows them down."""
        import polars

        wanted = (polars.col("cmdp") == self.cmdps[cmdp]) & (polars.col("algorithm") == algorithm)
        for name, value in chosen.items():
            wanted &= polars.col(name) == value
        return self.results.final.filter(wanted).sort("seed")

    def best(self, cmdp: str, algorithm: str) -> "polars.DataFrame":
        """Find the runs of the configuration with the smallest strong regrets on this CMDP."""
        import polars

        best = self.results.best(cmdps=[self.cmdps[cmdp]])
        name = best.filter(polars.col("algorithm") == algorithm)["configuration"][0]
        return self.rows(cmdp, algorithm).filter(polars.col("configuration") == name)

    def difference(
        self, first: str, second: str, columns: tuple[str, ...]
    ) -> dict[str, np.ndarray]:
        """Subtract the second's best configuration from the first's by seed, columns summed."""
        return self.each(
            lambda cmdp: (
                total(self.best(cmdp, first), columns) - total(self.best(cmdp, second), columns)
            )
        )

    def each(self, measure: Callable[..., np.ndarray], *arguments: Any) -> dict[str, np.ndarray]:
        """Take a measure on every CMDP; it gets the CMDP and the other arguments."""
        return {cmdp: measure(cmdp, *arguments) for cmdp in self.cmdps}

    def curve(self, cmdp: str, algorithm: str, column: str, episodes: list[int]) -> np.ndarray:
        """Read a column of the best configuration's curves at some episodes, `[R, T]`."""
        import polars

        runs = self.best(cmdp, algorithm)["run"].to_list()
        picked = (
            self.results.curves.filter(
                polars.col("run").is_in(runs) & polars.col("episode").is_in(episodes)
            )
            .sort("seed", "episode")
            .select(column)
            .collect()
        )
        return picked[column].to_numpy().reshape(len(runs), len(episodes))


def total(rows: "polars.DataFrame", columns: tuple[str, ...]) -> np.ndarray:
    """Add up some columns: a number per run."""
    return np.asarray(rows.select(columns).to_numpy().sum(axis=1))


def means(rows: "polars.DataFrame", columns: tuple[str, ...]) -> str:
    """Write the means of some columns for a sentence."""
    return " and ".join(f"{rows[column].to_numpy().mean():.4g}" for column in columns)


def first_of(values: Mapping[str, Any]) -> str:
    """Give the first CMDP, which is the paper's."""
    return next(iter(values))
