"""Batches of about a minute: long enough to be worth sending, short enough to be lost.

A batch is not what runs at once: its worker decides how much of it fits into memory.
"""

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

from cmdpax.experiments.cluster.scheduling import WorkerPool
from cmdpax.experiments.executing import Work, run_in_parts
from cmdpax.experiments.runs import Batch, Kind, Model, Run, by_kind, evenly, make_batches
from cmdpax.experiments.specification import Specification

BATCH_SECONDS = 60.0
BATCHES_PER_WORKER = 4  # at least, if there are enough runs: nobody waits long at the end
ANSWER_BYTES = 2**26
TRIAL_EPISODES = 300


def trials(runs: Iterable[Run], models: Mapping[str, Model], most: int) -> dict[Kind, Batch]:
    """A few runs of every kind."""
    return {kind: Batch(members[:most]) for kind, members in by_kind(runs, models).items()}


def trial_of(wanted: Specification) -> Specification:
    """The same specification with a few episodes, of which only one is recorded."""
    episodes = min(TRIAL_EPISODES, wanted.num_episodes)
    return wanted.model_copy(update={"num_episodes": episodes, "record": 1})


def measure(work: Work, batch: Batch) -> tuple[float, float]:
    """Run a trial twice; returns seconds per unit of effort, and those of compilation."""
    took = []
    for _ in range(2):
        start = time.perf_counter()
        run_in_parts(work, batch)
        took.append(time.perf_counter() - start)
    effort = sum(run.configuration.effort(work.wanted.num_episodes) for run in batch.runs)
    return took[1] / effort, max(took[0] - took[1], 0.0)


def cut(
    runs: Sequence[Run],
    models: Mapping[str, Model],
    wanted: Specification,
    rates: Mapping[Kind, float | None],
    pool: WorkerPool,
) -> list[Batch]:
    """Cut all runs into batches for these workers; a run that takes longer is a batch of its own.

    Rates are seconds per unit of effort; where none is known, batches are small. Runs that a
    worker runs at once stay together, if they are not too many.
    """
    batches = []
    for kind, members in by_kind(runs, models).items():
        rate = rates[kind]
        effort = max(run.configuration.effort(wanted.num_episodes) for run in members)
        each = 0.0 if rate is None else rate * effort
        num_constraints = models[members[0].fingerprint].cmdp.num_constraints
        most = _most_runs(len(members), each, run_bytes(num_constraints, wanted), pool)
        most = most if rate is not None else min(most, pool.together)
        at_once = make_batches(members, models, wanted, int(pool.kind == "GPU"))
        for part in _packed([batch.runs for batch in at_once], most):
            batches.append(Batch(part, each * len(part)))
    return batches


def _most_runs(count: int, seconds: float, num_bytes: int, pool: WorkerPool) -> int:
    """How many of `count` runs may be a batch, given the seconds and bytes of each."""
    least = pool.together if pool.kind == "GPU" else 1  # fewer would take as long there
    in_time = count if seconds * count <= BATCH_SECONDS else int(BATCH_SECONDS / seconds)
    share = math.ceil(count / (BATCHES_PER_WORKER * max(pool.size, 1)))
    return max(1, min(max(in_time, least), max(share, pool.together), ANSWER_BYTES // num_bytes))


def _packed(groups: Iterable[Sequence[Run]], most: int) -> Iterator[Sequence[Run]]:
    """Join as many groups as fit; one that does not is cut into even parts."""
    packed: list[Run] = []
    for group in groups:
        if packed and len(packed) + len(group) > most:
            yield packed
            packed = []
        if len(group) > most:
            yield from evenly(group, most)
        else:
            packed += group
    if packed:
        yield packed


_NUMBERS_PER_ROW = 9  # of `curves`, besides four per constraint


def run_bytes(num_constraints: int, wanted: Specification) -> int:
    """The size of a run's rows, before they are compressed."""
    return len(wanted.settings.recorded) * (_NUMBERS_PER_ROW + 4 * num_constraints) * 8
