"""`results` opens the folder of a sweep."""

import dataclasses
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import polars

from cmdpax.errors import ParameterError, nearest_name
from cmdpax.experiments.folder import Folder
from cmdpax.experiments.tables import SUMS, parameter_columns, read_final, scan_curves
from cmdpax.learners import Hyperparameters, Named
from cmdpax.learning.history import History
from cmdpax.learning.learn import repeat
from cmdpax.learning.manifest import algorithm_of_runs
from cmdpax.learning.settings import RunSettings
from cmdpax.model.cmdp import CMDP


class StoredModels(Mapping[str, CMDP]):
    """The CMDPs of a sweep by fingerprint, read when they are asked for."""

    def __init__(self, folder: Folder, fingerprints: list[str]) -> None:
        """Take the fingerprints of a folder's manifest."""
        self._folder, self._fingerprints = folder, fingerprints

    def __len__(self) -> int:
        """How many there are."""
        return len(self._fingerprints)

    def __iter__(self) -> Iterator[str]:
        """Their fingerprints, in the order of the specification."""
        return iter(self._fingerprints)

    def __getitem__(self, fingerprint: str) -> CMDP:
        """Read one; its fingerprint is checked."""
        if fingerprint not in self._fingerprints:
            raise KeyError(fingerprint)
        return self._folder.read_cmdp(fingerprint)


class Results:
    """What a sweep left on disk.

    Attributes:
        path: the folder.
        manifest: the specification, the CMDPs with their optima, versions and device.
        final: a polars frame with a row per run: what it was, and its measures.
        curves: a lazy polars frame with a row per run and recorded episode.
        cmdps: the CMDPs by fingerprint.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open a folder; every file is checked against its checksum."""
        self.path = Path(path)
        self._folder = Folder(path)
        self.manifest: dict[str, Any] = self._folder.read_manifest()
        self._batches = list(self._folder.parts())
        paths = [self._folder.table_path("final", batch) for batch in self._batches]
        self.final: polars.DataFrame = (
            _sorted(read_final(paths)) if paths else polars.DataFrame({"run": []})
        )

    def __repr__(self) -> str:
        """The folder, and what is in it."""
        several = "s" if len(self.cmdps) != 1 else ""
        count = f"{len(self.final)} runs, {len(self.cmdps)} CMDP{several}"
        return f"Results({str(self.path)!r}: {count})"

    @property
    def curves(self) -> polars.LazyFrame:
        """A row per run and recorded episode, with the run's CMDP, algorithm and seed.

        In batches of an earlier version, columns that it did not write are null.
        """
        if not self._batches:
            return polars.LazyFrame({"run": []})
        curves = scan_curves([self._folder.table_path("curves", one) for one in self._batches])
        who = self.final.lazy().select("run", "cmdp", "algorithm", "configuration", "seed")
        return curves.join(who, on="run", how="left", maintain_order="left")

    @cached_property
    def cmdps(self) -> Mapping[str, CMDP]:
        """The CMDPs by fingerprint, read when they are asked for."""
        return StoredModels(self._folder, list(self.manifest["cmdps"]))

    def best(self, by: str = "strong", cmdps: Sequence[str] | None = None) -> polars.DataFrame:
        """The configuration of each algorithm with the smallest mean of a measure, in hindsight.

        Args:
            by: "strong" or "weak" (the sum of the two regrets), or a measure in `final`.
            cmdps: fingerprints of the CMDPs that count; None takes all.

        Returns:
            A row per algorithm: its configuration and parameters, and `score`, the mean over
            runs and CMDPs. A configuration with a run whose accounts are not numbers scores
            infinity: it is chosen only if all others do so too.
        """
        scored = self.scored(by)
        if cmdps is not None:
            scored = scored.filter(polars.col("cmdp").is_in(list(cmdps)))
        means = scored.group_by("algorithm", "configuration").agg(
            polars.col(*parameter_columns(scored.columns), "optimism_scale").first(),
            polars.col("score").mean(),
            polars.len().alias("runs"),
        )
        worst = polars.col("score").is_infinite()
        ordered = means.sort(worst, "score", "configuration")
        return ordered.unique("algorithm", keep="first").sort("algorithm")

    def scored(self, by: str = "strong") -> polars.DataFrame:
        """`final` with a measure, or the sum of two regrets, as the column `score`.

        Earlier versions kept runs whose accounts are not numbers: these score infinity in every
        measure.
        """
        if self.final.is_empty():
            raise ParameterError(f"{self.path} holds no finished runs; run the sweep again.")
        measures = self.final.columns[self.final.columns.index(SUMS["strong"][0]) :]
        if by not in (*SUMS, *measures):
            raise ParameterError(
                f"there is no measure {by!r}; {nearest_name(by, [*SUMS, *measures])}."
            )
        score = polars.sum_horizontal(*SUMS.get(by, (by,)))
        accounts = polars.col(*SUMS["strong"], *SUMS["weak"])
        sound = polars.all_horizontal(accounts.is_finite())
        return self.final.with_columns(score=polars.when(sound).then(score).otherwise(math.inf))

    def repeat(self, run: str, algorithm: Named | None = None) -> History:
        """Make one run again, with its policy and the accounts of every recorded episode.

        Args:
            run: its identity, from the column `run`.
            algorithm: the factory or its address, if it is your own: a folder is never a reason
                to import anything.
        """
        row = self.final.filter(polars.col("run") == run)
        if row.is_empty():
            raise ParameterError(f"there is no run {run!r} in {self.path}.")
        manifest = self._manifest_of(row.row(0, named=True), algorithm)
        return repeat(self.cmdps[manifest["cmdp"]], manifest, algorithm=algorithm)

    def _manifest_of(self, row: dict[str, Any], given: Named | None) -> dict[str, Any]:
        """A run's row as a manifest of `learn`, with the default episodes recorded."""
        parameters = algorithm_of_runs(row["algorithm"], given).parameters
        settings = RunSettings.from_dict(self.manifest["specification"])
        optimism = {
            name.removeprefix("optimism_"): value
            for name, value in row.items()
            if name.startswith("optimism_")
        }
        chosen = {p.name: p.from_row(row) for p in parameters if row.get(p.name) is not None}
        return {
            "cmdp": row["cmdp"],
            "algorithm": row["algorithm"],
            **dataclasses.replace(settings, record=None).to_dict(),
            "runs": [{"seed": row["seed"], "optimism": optimism, **chosen}],
        }


def _sorted(final: polars.DataFrame) -> polars.DataFrame:
    """Sort by algorithm, parameters, CMDP and seed."""
    columns = parameter_columns(final.columns)
    first = [name for name in Hyperparameters._fields if name in columns]
    own = [name for name in columns if not name.startswith(tuple(Hyperparameters._fields))]
    return final.sort("algorithm", *first, *own, "configuration", "cmdp_name", "seed")


def results(path: str | os.PathLike[str]) -> Results:
    """Open the folder of a sweep.

    Raises:
        FileError: there are no results, or a file is damaged.
    """
    return Results(path)
