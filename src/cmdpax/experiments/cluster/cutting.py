"""Batches of about a minute: long enough for what a batch costs, short enough to lose one."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax

from cmdpax.experiments.executing import Work, run_one
from cmdpax.experiments.runs import Batch, Model, Run, make_batches
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


def kind_of(run: Run, models: Mapping[str, Model]) -> str:
    """Runs of one kind share a compiled program, and take the same time."""
    cmdp = models[run.fingerprint].cmdp
    shapes = [list(array.shape) for array in jax.tree.leaves(cmdp)]
    optimism = run.configuration.optimism
    return json.dumps([run.algorithm, optimism.rewards, cmdp.horizon, shapes])


def trials(runs: Iterable[Run], models: Mapping[str, Model]) -> dict[str, Batch]:
    """A few runs of every kind."""
    found: dict[str, list[Run]] = {}
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
    rates: Mapping[str, Rate],
    seconds: float = BATCH_SECONDS,
) -> list[Piece]:
    """All runs in batches of about so many seconds; one that takes longer is a batch of its own."""

    def most(run: Run) -> int:
        each = rates[kind_of(run, models)].seconds * wanted.num_episodes
        return len(runs) if each * len(runs) <= seconds else max(1, int(seconds / each))

    batches = make_batches(runs, dict(models), wanted, most)
    return [Piece(batch, _seconds(batch, models, wanted, rates)) for batch in batches]


def _seconds(batch: Batch, models: Any, wanted: Specification, rates: Mapping[str, Rate]) -> float:
    return sum(rates[kind_of(run, models)].seconds * wanted.num_episodes for run in batch.runs)
