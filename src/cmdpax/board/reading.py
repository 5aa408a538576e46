"""`read` opens the folder of a board, or results that were stored as one file."""

import functools
import math
import os
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import polars

from cmdpax.board.cells import CURVES, Block, Board, Cell
from cmdpax.board.folder import BoardFolder, Entry, require_same_suite
from cmdpax.board.suites import SUITES, UNSAFE_AT, Part, Suite, as_suite
from cmdpax.errors import FileError
from cmdpax.experiments.folder import Folder
from cmdpax.experiments.reading import Results
from cmdpax.experiments.tables import readable
from cmdpax.intervals import half_width
from cmdpax.storage.paths import exists, is_folder
from cmdpax.storage.texts import read_bytes

_PUBLISHED, _DEFAULT = 0, 1  # places of configurations
_LEAST = 1e-3  # of a strong regret, per episode, where configurations are chosen


def read(source: str | os.PathLike[str], *, suite: Suite | None = None) -> Board:
    """Open a board.

    Args:
        source: a folder that `run` wrote, or a file with stored results.
        suite: that of a folder, if it is your own.

    Raises:
        FileError: there are no results, or something is damaged.
        ParameterError: they are those of another version of the suite.
    """
    path = Path(source)
    if exists(path) and not is_folder(path):
        return Board.from_json(read_bytes(path), str(path))
    folder = BoardFolder(path)
    record = folder.read()
    if record is None:
        raise FileError(f"{path} holds no board: {folder.record_path} does not exist.")
    chosen = as_suite(record.suite) if suite is None else suite
    require_same_suite(path, record.suite, record.digest, chosen)
    blocks: list[Block] = []
    cells: list[Cell] = []
    episodes: dict[str, tuple[int, ...]] = {}
    made: dict[str, Any] = {}
    for part in chosen.parts:
        sweep = folder.sweep_path(part.name)
        if not exists(sweep / "manifest.json"):
            continue
        with readable(sweep):
            found = _PartReader(chosen, part, sweep)
            blocks += found.blocks
            episodes[part.name] = found.episodes
            made = {name: found.results.manifest[name] for name in ("versions", "device")}
            for name, entry in record.entries.items():
                cells += found.cells(name, entry)
    traits = {name: entry.traits for name, entry in record.entries.items()}
    return Board(chosen.name, chosen.digest, tuple(blocks), episodes, traits, tuple(cells), made)


def stored(suite: str) -> Board | None:
    """The results of a suite that come with cmdpax, if there are any that still fit it."""
    chosen = as_suite(suite)
    resource = files("cmdpax.board") / "stored" / f"{suite}.json"
    if not resource.is_file():
        return None
    board = Board.from_json(resource.read_bytes(), f"stored/{suite}.json")
    require_same_suite(f"stored/{suite}.json", board.suite, board.digest, chosen)
    return board


def with_stored(board: Board) -> Board:
    """A board beside the results that come with cmdpax, if there are any of its suite."""
    known = stored(board.suite) if board.suite in SUITES else None
    return board if known is None else board.beside(known)


class _PartReader:
    """A part's sweep, run by run."""

    def __init__(self, suite: Suite, part: Part, path: Path) -> None:
        """Open the sweep."""
        self.suite, self.part, self.results = suite, part, Results(path)
        self.families = [suite.family(name) for name in part.families]
        self._sizes = {
            about["name"]: about["sizes"] for about in self.results.manifest["cmdps"].values()
        }
        self._entries = Folder(path).entries()

    @property
    def blocks(self) -> list[Block]:
        """The families that were begun."""
        found = []
        for family in self.families:
            names = family.names(training=False)
            if names and all(name in self._sizes for name in names):
                sizes = self._sizes[names[0]]
                states, actions, horizon = (
                    int(sizes[key]) for key in ("num_states", "num_actions", "horizon")
                )
                found.append(
                    Block(
                        self.part.name,
                        family.name,
                        self.part.num_episodes,
                        int(sizes["num_constraints"]),
                        (states, actions, horizon),
                        family.about,
                    )
                )
        return found

    @property
    def episodes(self) -> tuple[int, ...]:
        """Those of the curves."""
        return tuple(self.results.manifest["specification"]["record"])

    @functools.cached_property
    def _runs(self) -> dict[tuple[str, str], polars.DataFrame]:
        """The rows of `final`, with the accounts of the board, by configuration and model."""
        final = self.results.final
        if final.is_empty():
            return {}
        positive = [polars.col(f"last_{one}").clip(0.0) for one in ("suboptimality", "violation")]
        frame = final.with_columns(
            strong=polars.sum_horizontal("strong_objective", "strong_constraints"),
            weak=polars.sum_horizontal("weak_objective", "weak_constraints"),
            unsafe=polars.col(f"unsafe_at_{UNSAFE_AT:g}"),
            last=polars.sum_horizontal(*positive),
        )
        parts = frame.partition_by("configuration", "cmdp_name", as_dict=True)
        return {(str(key[0]), str(key[1])): rows for key, rows in parts.items()}

    @functools.cached_property
    def _curves(self) -> dict[tuple[str, str], polars.DataFrame]:
        """Mean curves of the runs of every configuration on every model."""
        if self.results.final.is_empty():
            return {}
        names = self.results.final.lazy().select("run", "cmdp_name")
        curves = (
            self.results.curves.join(names, on="run")
            .group_by("configuration", "cmdp_name", "episode")
            .agg(polars.col(*CURVES).mean())
            .sort("episode")
            .collect()
        )
        parts = curves.partition_by("configuration", "cmdp_name", as_dict=True)
        return {(str(key[0]), str(key[1])): rows for key, rows in parts.items()}

    @functools.cached_property
    def _seconds(self) -> dict[tuple[str, str], float]:
        """Seconds per episode by algorithm and model: of several batches the fastest.

        The first one is compiled, so that a single one says nothing.
        """
        if self.results.final.is_empty():
            return {}
        rows = self.results.final.select("run", "algorithm", "cmdp_name").iter_rows()
        where = {run: (algorithm, model) for run, algorithm, model in rows}
        rates: dict[tuple[str, str], list[float]] = {}
        places: dict[tuple[str, str], tuple[str, str]] = {}
        for entry in self._entries.values():
            seconds, runs = entry.get("seconds"), [run for run in entry["runs"] if run in where]
            if not isinstance(seconds, float) or not runs:
                continue
            algorithm, first = where[runs[0]]
            kind = (algorithm, str(self._sizes[first]))
            rates.setdefault(kind, []).append(seconds / len(runs) / self.part.num_episodes)
            places |= {where[run]: kind for run in runs}
        return {one: min(rates[kind]) for one, kind in places.items() if len(rates[kind]) > 1}

    # --------------------------------------------------------------------------------------- cells

    def cells(self, name: str, entry: Entry) -> list[Cell]:
        """The cells of an algorithm in this part."""
        chosen = entry.chosen.get(self.part.name)
        if chosen is None:
            return []
        digests = [one.digest for one in chosen]
        places = {"tuned": self._tuned(digests), "published": _PUBLISHED}
        found = []
        for block in self.blocks:
            reason = entry.skipped.get(self.part.name, {}).get(block.family, "")
            for setting, place in places.items():
                about = chosen[place]
                cell = Cell(*block[:2], name, setting, "skipped", about.words, reason)
                if not reason:
                    cell = self._measured(cell, about.digest, entry)
                found.append(cell)
        return found

    def _tuned(self, digests: Sequence[str]) -> int:
        """The configuration with the least strong regret on the models for training.

        It is a geometric mean over their families. One that failed there is not chosen; where all
        did, or nothing is there for training, it is our default.
        """
        scores = []
        for digest in digests:
            logs = []
            for family in self.families:
                if not family.training or not self._is_begun(digests, family.names(True)):
                    continue
                runs = self._rows(digest, family.names(True), family.runs)
                least = _LEAST * self.part.num_episodes
                mean = math.inf if runs is None else float(runs["strong"].to_numpy().mean())
                logs.append(math.log(mean + least))
            scores.append(sum(logs) / len(logs) if logs else math.inf)
        if not np.isfinite(scores).any():
            return min(_DEFAULT, len(digests) - 1)
        return int(np.argmin(scores))

    def _is_begun(self, digests: Sequence[str], models: Sequence[str]) -> bool:
        """Whether any configuration has runs on these models: if none has, it cannot do them."""
        return any((digest, model) in self._runs for digest in digests for model in models)

    def _rows(self, digest: str, models: Sequence[str], runs: int) -> polars.DataFrame | None:
        """A configuration's runs on some models, if all of them are there."""
        found = [self._runs.get((digest, model)) for model in models]
        whole = [rows for rows in found if rows is not None and len(rows) >= runs]
        return polars.concat(whole) if len(whole) == len(models) else None

    def _measured(self, cell: Cell, digest: str, entry: Entry) -> Cell:
        family = self.suite.family(cell.family)
        models = family.names(training=False)
        rows = self._rows(digest, models, family.runs)
        if rows is None:
            if family.name not in entry.finished.get(self.part.name, []):
                return cell._replace(state="missing")
            failures = entry.failures.get(self.part.name) or ["some of its runs are not there"]
            return cell._replace(state="failed", reason=" ".join(failures))
        means, halves = _means(rows, len(models))
        seconds = self._seconds.get((cell.algorithm, models[0]))
        if seconds is not None:
            means["seconds"] = seconds
        curves = polars.concat([self._curves[digest, model] for model in models])
        averaged = curves.group_by("episode").agg(polars.col(*CURVES).mean()).sort("episode")
        return cell._replace(
            state="done",
            runs=len(rows),
            means=means,
            halves=halves,
            curves={name: tuple(averaged[name].to_list()) for name in CURVES},
        )


_MEASURED = ("strong", *CURVES[:2], "weak", *CURVES[2:], "unsafe", "last")


def _means(rows: polars.DataFrame, num_models: int) -> tuple[dict[str, float], dict[str, float]]:
    """Means over the runs, and halves of their intervals: over models, if there are several."""
    averaged = rows.group_by("cmdp_name").agg(polars.col(*_MEASURED).mean())
    units = averaged if num_models > 1 else rows
    means = {name: float(averaged[name].to_numpy().mean()) for name in _MEASURED}
    halves = {name: float(half_width(units[name].to_numpy())) for name in _MEASURED}
    return means, {name: half for name, half in halves.items() if math.isfinite(half)}
