"""Batches become tables: on this machine, and on the workers of a cluster."""

import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import polars

from cmdpax.errors import CmdpaxError
from cmdpax.experiments.measures import curve_rows, final_rows
from cmdpax.experiments.runs import Batch, Model, episodes_in_memory, make_batches
from cmdpax.experiments.specification import Specification
from cmdpax.learners.contract import FLAWS, earliest_flaws, flaw_in_words
from cmdpax.learning.baseline import find_baselines
from cmdpax.learning.group import Collected
from cmdpax.learning.history import Account
from cmdpax.learning.loop import Task, make_task
from cmdpax.learning.manifest import device, versions
from cmdpax.learning.workers import run_batch

Tell = Callable[[Batch, int], None]
"""Called with a batch that is running and the episodes of each of its runs so far."""


class Work(NamedTuple):
    """What all batches of a sweep share: the specification, and its CMDPs by fingerprint."""

    wanted: Specification
    models: Mapping[str, Model]


class Outcome(NamedTuple):
    """What came of some runs: their tables, or the error by which they failed.

    Attributes:
        batch: the runs.
        tables: their `final` and `curves`, as frames; nothing if they failed.
        made: what they were computed with: `versions` and `device`; here also how many `seconds` it
            took, with compilation.
        error: why they failed; None if they did not.
        attempts: how often they were tried.
    """

    batch: Batch
    tables: dict[str, Any]
    made: dict[str, Any]
    error: str | None = None
    attempts: int = 1

    @classmethod
    def failure(cls, batch: Batch, error: str, attempts: int = 1) -> "Outcome":
        """Runs without tables."""
        return cls(batch, {}, {}, error, attempts)


def made_here() -> dict[str, Any]:
    """What this machine computes with."""
    return {"versions": versions(), "device": device()}


def run_here(work: Work, batches: Sequence[Batch], tell: Tell) -> Iterator[Outcome]:
    """Run batch after batch, each on all cores or accelerators of this machine.

    A batch that raises does not end the others; what `tell` raises does.
    """
    not_ours: list[Exception] = []
    for batch in batches:

        def report(episodes: int, _: int, batch: Batch = batch) -> None:
            try:
                tell(batch, episodes)
            except Exception as error:
                not_ours.append(error)
                raise

        began = time.perf_counter()
        try:
            done, failed = run_one(work, batch, report)
        except Exception as error:
            if error in not_ours:
                raise
            yield Outcome.failure(batch, in_one_line(error))
        else:
            done = done._replace(made=done.made | {"seconds": time.perf_counter() - began})
            yield from (one for one in (done, *failed) if one.batch.runs)


def in_one_line(error: Exception) -> str:
    """What was raised, without a traceback; errors of cmdpax are sentences already.

    JAX puts whole tracebacks into a message: the first line stays, and what was raised at last.
    """
    text = str(error).replace("Traceback (most recent call last):", "")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    message = " … ".join([*lines[:1], *lines[1:][-1:]])
    if isinstance(error, CmdpaxError):
        return message
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {message} ({Path(last.filename).name}:{last.lineno})"


def run_in_parts(work: Work, batch: Batch) -> tuple[Outcome, list[Outcome]]:
    """Run a batch of any size, as much of it at once as fits; returns what `run_one` does."""
    parts = [run_one(work, part) for part in make_batches(batch.runs, work.models, work.wanted)]
    failed = [one for _, flawed in parts for one in flawed]
    unsound = {run.identity for one in failed for run in one.batch.runs}
    places = {run.identity: place for place, run in enumerate(batch.runs)}
    place = polars.col("run").replace_strict(places, return_dtype=polars.Int64)
    tables = {  # in the order of the batch, which may not be that of its parts
        name: polars.concat([done.tables[name] for done, _ in parts]).sort(
            place, maintain_order=True
        )
        for name in parts[0][0].tables
    }
    sound = [run for run in batch.runs if run.identity not in unsound]
    return Outcome(Batch(sound), tables, made_here()), failed


def run_one(
    work: Work, batch: Batch, report: Callable[[int, int], None] = lambda done, total: None
) -> tuple[Outcome, list[Outcome]]:
    """Run a batch at once. Pure, so that it may run anywhere.

    Returns:
        The runs that can be accounted for, of which there may be none, and the others: those with
        the same flaw together.
    """
    task = _task(work, batch)
    with jax.enable_x64(work.wanted.settings.precision == "double"):
        collected = run_batch(task, [run.configuration for run in batch.runs], None, report)
    tables = _tables(work, batch, task, collected)
    restricted = any(cmdp.available is not None for cmdp in task.cmdps)
    failed = _flawed(batch, collected.flaws, restricted)
    if not failed:
        return Outcome(batch, tables, made_here()), []
    unsound = {run.identity for one in failed for run in one.batch.runs}
    sound = [run for run in batch.runs if run.identity not in unsound]
    others = ~polars.col("run").is_in(list(unsound))
    kept = {name: table.filter(others) for name, table in tables.items()}
    return Outcome(Batch(sound), kept, made_here()), failed


def _flawed(batch: Batch, flaws: np.ndarray, restricted: bool) -> list[Outcome]:
    """The runs whose learner returned what cannot be accounted for, by flaw."""
    earliest, episodes = earliest_flaws(flaws)
    failed = []
    for flaw in range(len(FLAWS)):
        if places := np.flatnonzero((earliest == flaw) & (episodes > 0)).tolist():
            first = min(places, key=lambda place: int(episodes[place]))
            what, fix = flaw_in_words(flaw, restricted)
            seed = batch.runs[first].configuration.seed
            error = f"{what}, first in episode {episodes[first]} (seed {seed}); {fix}."
            failed.append(Outcome.failure(Batch([batch.runs[place] for place in places]), error))
    return failed


def _task(work: Work, batch: Batch) -> Task:
    models = [work.models[run.fingerprint] for run in batch.runs]
    if len({run.fingerprint for run in batch.runs}) == 1:
        models = models[:1]
    settings, algorithm = work.wanted.settings, batch.runs[0].configuration.algorithm
    cmdps = [model.cmdp for model in models]
    return make_task(
        settings,
        [run.configuration for run in batch.runs],
        cmdps,
        [model.optimum for model in models],
        episodes_in_memory(work.wanted),
        baselines=find_baselines(algorithm, settings.baseline, cmdps),
    )


def _tables(work: Work, batch: Batch, task: Task, collected: Collected) -> dict[str, Any]:
    found = collected.accounts(task)
    multipliers = found.pop("multipliers")
    accounts = Account(**found)
    names = [work.models[run.fingerprint].name for run in batch.runs]
    return {
        "final": final_rows(
            batch.runs, names, accounts.in_ranges(), collected.capped, collected.plans
        ),
        "curves": curve_rows(batch.runs, accounts, multipliers, work.wanted.settings.recorded),
    }


def table_schemas(work: Work, batch: Batch) -> dict[str, Any]:
    """The columns that the tables of a batch have, without running it."""
    one = Batch(batch.runs[:1])
    task = _task(work, one)
    tables = _tables(work, one, task, Collected.nothing(task))
    return {name: table.schema for name, table in tables.items()}
