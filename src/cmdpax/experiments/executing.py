"""Batches become tables: here, one after the other; a cluster does the same elsewhere."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from cmdpax.arguments import as_factory
from cmdpax.batch import Collected, Task
from cmdpax.engine import run_batch
from cmdpax.experiments.measures import accounts_of, curve_rows, final_rows
from cmdpax.experiments.runs import Batch, Model, episodes_in_memory, make_batches
from cmdpax.experiments.specification import Specification
from cmdpax.manifest import device, versions
from cmdpax.simulation import Design, Entries


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
    """A batch that could not be run, after all attempts."""

    batch: Batch
    error: str
    attempts: int


class Work(NamedTuple):
    """What all batches of a sweep share."""

    wanted: Specification
    models: Mapping[str, Model]
    optima: Mapping[str, float]


Tell = Callable[[Batch, int], None]
"""Called with a batch that is running and the episodes of each of its runs so far."""


def run_here(work: Work, batches: Sequence[Batch], tell: Tell) -> Iterator[Finished]:
    """Batch after batch, on all cores or accelerators of this machine."""
    for batch in batches:

        def report(episodes: int, _: int, batch: Batch = batch) -> None:
            tell(batch, episodes)

        yield Finished(batch, run_one(work, batch, report), made_here())


def run_in_parts(work: Work, batch: Batch) -> dict[str, Any]:
    """Run a batch of any size, as much of it at once as this machine takes: its tables."""
    import polars

    parts = make_batches(batch.runs, work.models, work.wanted)
    found = [run_one(work, part) for part in parts]
    tables = {name: polars.concat([part[name] for part in found]) for name in found[0]}
    places = {run.identity: place for place, run in enumerate(batch.runs)}
    came = np.array([places[run.identity] for part in parts for run in part.runs])
    if (np.diff(came) > 0).all():
        return tables
    for name, table in tables.items():  # in the order of the batch
        rows = np.repeat(came, len(table) // len(came))
        tables[name] = table[np.argsort(rows, kind="stable")]
    return tables


def run_one(
    work: Work, batch: Batch, report: Callable[[int, int], None] = lambda done, total: None
) -> dict[str, Any]:
    """Run a batch at once: its tables. Pure, so that it may run anywhere."""
    wanted, models, optima = work.wanted, work.models, work.optima
    fingerprints = [run.fingerprint for run in batch.runs]
    stacked = len(set(fingerprints)) > 1
    chosen = fingerprints if stacked else fingerprints[:1]
    design = Design(
        factory=as_factory(batch.algorithm),
        rewards_known=batch.runs[0].configuration.optimism.rewards == "known",
        bernoulli=wanted.observations == "bernoulli",
        stacked=stacked,
        keep_log=False,
        stationary=wanted.stationary,
    )
    task = Task(
        design,
        [models[fingerprint].cmdp for fingerprint in chosen],
        [optima[fingerprint] for fingerprint in chosen],
        episodes_in_memory(wanted),
        wanted.num_episodes,
        wanted.unsafe_at,
    )
    with jax.enable_x64(wanted.precision == "double"):
        collected = run_batch(task, [run.configuration for run in batch.runs], None, report)
    return _tables(work, batch, collected)


def _tables(work: Work, batch: Batch, collected: Collected) -> dict[str, Any]:
    wanted, models, optima = work.wanted, work.models, work.optima
    fingerprints = [run.fingerprint for run in batch.runs]
    accounts = accounts_of(
        collected,
        episodes_in_memory(wanted),
        np.array([optima[fingerprint] for fingerprint in fingerprints]),
        np.array([models[fingerprint].cmdp.thresholds for fingerprint in fingerprints]),
    )
    names = [models[fingerprint].name for fingerprint in fingerprints]
    return {
        "final": final_rows(batch.runs, names, accounts, collected, wanted.unsafe_at),
        "curves": curve_rows(batch.runs, accounts, wanted.recorded()),
    }


def table_schemas(work: Work, batch: Batch) -> dict[str, Any]:
    """The columns that the tables of a batch have, without running it."""
    one = Batch(batch.algorithm, batch.runs[:1])
    model = work.models[one.runs[0].fingerprint].cmdp
    num_episodes, count = len(episodes_in_memory(work.wanted)), model.num_constraints
    signals: Any = np.zeros((1, num_episodes, 1 + count))
    nothing = Collected(
        Entries(signals, signals, signals),
        np.zeros((1, num_episodes, count)),
        None,
        None,
        np.zeros((1, len(work.wanted.unsafe_at))),
        np.zeros((1, count)),
        np.zeros(0),
    )
    tables = _tables(work, one, nothing)
    return {name: table.schema for name, table in tables.items()}
