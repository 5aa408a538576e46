"""Batches of about a minute: long enough for what a batch costs, short enough to lose one."""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from cmdpax.experiments.executing import Work, run_one
from cmdpax.experiments.runs import Batch, Kind, Model, Run, kind_of, make_batches
from cmdpax.experiments.specification import Specification

BATCH_SECONDS = 60.0
TRIAL_EPISODES = 300
TRIAL_RUNS = 8  # as many as share vector instructions


class Rate(NamedTuple):
    """What a kind of run takes on a worker.

    Attributes:
        seconds: per episode and run, in a batch.
        compile_seconds: once per worker.
    """

    seconds: float
    compile_seconds: float


class Piece(NamedTuple):
    """A batch, and how long it takes, about."""

    batch: Batch
    seconds: float


def trials(runs: Iterable[Run], models: Mapping[str, Model]) -> dict[Kind, Batch]:
    """A few runs of every kind."""
    found: dict[Kind, list[Run]] = {}
    for run in runs:
        members = found.setdefault(kind_of(run, models), [])
        if len(members) < TRIAL_RUNS:
            members.append(run)
    return {kind: Batch(members[0].algorithm, members) for kind, members in found.items()}


def trial_of(wanted: Specification) -> Specification:
    """A few episodes, of which hardly anything is kept."""
    episodes = min(TRIAL_EPISODES, wanted.num_episodes)
    return wanted.model_copy(update={"num_episodes": episodes, "record": 1})


def measure(work: Work, batch: Batch) -> Rate:
    """Run a trial twice: the first time with compilation."""
    took = []
    for _ in range(2):
        start = time.perf_counter()
        run_one(batch, work.wanted, work.models, work.optima, lambda done, total: None)
        took.append(time.perf_counter() - start)
    return Rate(took[1] / (len(batch.runs) * work.wanted.num_episodes), max(took[0] - took[1], 0.0))


def cut(
    runs: Sequence[Run],
    models: Mapping[str, Model],
    wanted: Specification,
    rates: Mapping[Kind, Rate],
    seconds: float = BATCH_SECONDS,
) -> list[Piece]:
    """All runs in batches of about so many seconds; one that takes longer is a batch of its own."""

    def most(run: Run) -> int:
        each = rates[kind_of(run, models)].seconds * wanted.num_episodes
        return len(runs) if each * len(runs) <= seconds else max(1, int(seconds / each))

    batches = make_batches(runs, models, wanted, most)
    return [Piece(batch, _seconds(batch, models, wanted, rates)) for batch in batches]


def _seconds(batch: Batch, models: Any, wanted: Specification, rates: Mapping[Kind, Rate]) -> float:
    return sum(rates[kind_of(run, models)].seconds * wanted.num_episodes for run in batch.runs)
