"""Batches become tables: here, one after the other; a cluster does the same elsewhere."""

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from cmdpax.errors import CmdpaxError
from cmdpax.experiments.measures import curve_rows, final_rows
from cmdpax.experiments.runs import Batch, Model, episodes_in_memory, make_batches
from cmdpax.experiments.specification import Specification
from cmdpax.learners.contract import FLAWS, flawed_runs
from cmdpax.learning.group import Collected
from cmdpax.learning.history import Account
from cmdpax.learning.loop import Task, make_task
from cmdpax.learning.manifest import device, versions
from cmdpax.learning.workers import run_batch


class Finished(NamedTuple):
    """A batch that was run.

    Attributes:
        batch: the runs.
        tables: `final` and `curves`, as frames.
        made: what it was computed with: `versions` and `device`.
    """

    batch: Batch
    tables: dict[str, Any]
    made: dict[str, Any]


def made_here() -> dict[str, Any]:
    """With what this machine computes."""
    return {"versions": versions(), "device": device()}


class Failed(NamedTuple):
    """Runs that cannot be accounted for, or a batch that could not be run after all attempts."""

    batch: Batch
    error: str
    attempts: int


class Ran(NamedTuple):
    """What came of a batch.

    Attributes:
        batch: the runs that can be accounted for; there may be none.
        tables: their `final` and `curves`, as frames.
        failed: the other runs, those with the same flaw together.
    """

    batch: Batch
    tables: dict[str, Any]
    failed: Sequence[Failed]

    def outcomes(self, made: dict[str, Any]) -> Iterator[Finished | Failed]:
        """What is finished, if anything, and what failed."""
        if self.batch.runs:
            yield Finished(self.batch, self.tables, made)
        yield from self.failed


class Work(NamedTuple):
    """What all batches of a sweep share."""

    wanted: Specification
    models: Mapping[str, Model]
    optima: Mapping[str, float]


Tell = Callable[[Batch, int], None]
"""Called with a batch that is running and the episodes of each of its runs so far."""


def run_here(work: Work, batches: Sequence[Batch], tell: Tell) -> Iterator[Finished | Failed]:
    """Batch after batch, on all cores or accelerators of this machine.

    A batch that raises does not end the others; what `tell` raises does.
    """
    for batch in batches:
        not_ours: list[Exception] = []

        def report(
            episodes: int, _: int, batch: Batch = batch, not_ours: list[Exception] = not_ours
        ) -> None:
            try:
                tell(batch, episodes)
            except Exception as error:
                not_ours.append(error)
                raise

        try:
            ran = run_one(work, batch, report)
        except Exception as error:
            if error in not_ours:
                raise
            yield Failed(batch, in_one_line(error), 1)
        else:
            yield from ran.outcomes(made_here())


def in_one_line(error: Exception) -> str:
    """What was raised, without a traceback; errors of cmdpax are sentences already.

    JAX puts whole tracebacks into a message: its first line, and what was raised at last.
    """
    text = str(error).replace("Traceback (most recent call last):", "")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    message = " … ".join([*lines[:1], *lines[1:][-1:]])
    if isinstance(error, CmdpaxError):
        return message
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {message} ({Path(last.filename).name}:{last.lineno})"


def run_in_parts(work: Work, batch: Batch) -> Ran:
    """Run a batch of any size, as much of it at once as this machine takes."""
    import polars

    parts = make_batches(batch.runs, work.models, work.wanted)
    found = [run_one(work, part) for part in parts]
    tables = {
        name: polars.concat([part.tables[name] for part in found]) for name in found[0].tables
    }
    failed = [one for part in found for one in part.failed]
    done = [run for part in found for run in part.batch.runs]
    places = {run.identity: place for place, run in enumerate(batch.runs)}
    came = np.array([places[run.identity] for run in done], int)
    if (np.diff(came) > 0).all():
        return Ran(Batch(batch.algorithm, done), tables, failed)
    for name, table in tables.items():  # in the order of the batch
        rows = np.repeat(came, len(table) // len(came))
        tables[name] = table[np.argsort(rows, kind="stable")]
    ordered = [batch.runs[place] for place in np.sort(came)]
    return Ran(Batch(batch.algorithm, ordered), tables, failed)


def run_one(
    work: Work, batch: Batch, report: Callable[[int, int], None] = lambda done, total: None
) -> Ran:
    """Run a batch at once. Pure, so that it may run anywhere."""
    task = _task(work, batch)
    with jax.enable_x64(work.wanted.settings.precision == "double"):
        collected = run_batch(task, [run.configuration for run in batch.runs], None, report)
    return _ran(batch, _tables(work, batch, task, collected), collected.flaws)


def _task(work: Work, batch: Batch) -> Task:
    fingerprints = [run.fingerprint for run in batch.runs]
    chosen = fingerprints if len(set(fingerprints)) > 1 else fingerprints[:1]
    return make_task(
        work.wanted.settings,
        [run.configuration for run in batch.runs],
        [work.models[fingerprint].cmdp for fingerprint in chosen],
        [work.optima[fingerprint] for fingerprint in chosen],
        episodes_in_memory(work.wanted),
    )


def _ran(batch: Batch, tables: dict[str, Any], flaws: np.ndarray) -> Ran:
    """Without the runs whose learner returned what cannot be accounted for."""
    import polars

    found = flawed_runs(flaws)
    if not found:
        return Ran(batch, tables, [])
    failed = []
    for flaw, (what, fix) in enumerate(FLAWS):
        if some := [one for one in found if one.flaw == flaw]:
            first = min(some, key=lambda one: one.episode)
            seed = batch.runs[first.place].configuration.seed
            error = f"{what}, first in episode {first.episode} (seed {seed}); {fix}."
            runs = [batch.runs[one.place] for one in some]
            failed.append(Failed(Batch(batch.algorithm, runs), error, 1))
    unsound = {batch.runs[one.place].identity for one in found}
    done = [run for run in batch.runs if run.identity not in unsound]
    others = ~polars.col("run").is_in(list(unsound))
    kept = {name: table.filter(others) for name, table in tables.items()}
    return Ran(Batch(batch.algorithm, done), kept, failed)


def _tables(work: Work, batch: Batch, task: Task, collected: Collected) -> dict[str, Any]:
    found = collected.accounts(task)
    multipliers = found.pop("multipliers")
    accounts = Account(**found)
    names = [work.models[run.fingerprint].name for run in batch.runs]
    return {
        "final": final_rows(batch.runs, names, accounts, collected.capped),
        "curves": curve_rows(batch.runs, accounts, multipliers, work.wanted.settings.recorded),
    }


def table_schemas(work: Work, batch: Batch) -> dict[str, Any]:
    """The columns that the tables of a batch have, without running it."""
    one = Batch(batch.algorithm, batch.runs[:1])
    task = _task(work, one)
    tables = _tables(work, one, task, Collected.nothing(task))
    return {name: table.schema for name, table in tables.items()}
