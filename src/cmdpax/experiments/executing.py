"""Batches become tables: here, one after the other; a cluster does the same elsewhere."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from cmdpax.arguments import as_factory
from cmdpax.batch import Collected, Task
from cmdpax.engine import run_batch
from cmdpax.experiments.measures import accounts_of, curve_rows, final_rows
from cmdpax.experiments.runs import Batch, Model, episodes_in_memory
from cmdpax.experiments.specification import Specification
from cmdpax.simulation import Design, Entries


class Finished(NamedTuple):
    """A batch that was run."""

    batch: Batch
    tables: dict[str, Any]  # `final` and `curves`, as frames


class Failed(NamedTuple):
    """A batch that could not be run, after all attempts."""

    batch: Batch
    error: str
    attempts: int


class Work(NamedTuple):
    """What is to be done: batches, and what they share."""

    batches: Sequence[Batch]
    wanted: Specification
    models: Mapping[str, Model]
    optima: Mapping[str, float]


Tell = Callable[[Batch, int], None]
"""Called with a batch that is running and the episodes of each of its runs so far."""


def run_here(work: Work, tell: Tell) -> Iterator[Finished]:
    """Batch after batch, on all cores or accelerators of this machine."""
    for batch in work.batches:

        def report(episodes: int, _: int, batch: Batch = batch) -> None:
            tell(batch, episodes)

        yield Finished(batch, run_one(batch, work.wanted, work.models, work.optima, report))


def run_one(
    batch: Batch,
    wanted: Specification,
    models: Mapping[str, Model],
    optima: Mapping[str, float],
    report: Callable[[int, int], None],
) -> dict[str, Any]:
    """Run a batch: its tables. Pure, so that it may run anywhere."""
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
    return _tables(batch, wanted, models, optima, collected)


def _tables(
    batch: Batch,
    wanted: Specification,
    models: Mapping[str, Model],
    optima: Mapping[str, float],
    collected: Collected,
) -> dict[str, Any]:
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
    tables = _tables(one, work.wanted, work.models, work.optima, nothing)
    return {name: table.schema for name, table in tables.items()}
