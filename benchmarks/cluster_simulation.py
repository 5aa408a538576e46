"""A sweep on a thousand workers, simulated; `python benchmarks/cluster.py --simulate` runs it.

The real `BatchQueue` decides; the driver is one server, whose work per batch is measured with the
real functions; workers are events on a heap.
"""

import argparse
import heapq
import tempfile
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import cmdpax
from cmdpax.experiments.cluster.messages import read_answer, write_answer, write_order
from cmdpax.experiments.cluster.scheduling import BatchQueue
from cmdpax.experiments.executing import Work, made_here, run_one, table_schemas
from cmdpax.experiments.folder import Folder
from cmdpax.experiments.records import checksum
from cmdpax.experiments.runs import Batch, make_models, make_runs
from cmdpax.experiments.specification import read_specification

BATCH_RUNS = 64  # the most that a batch has on a processor


def specification(cmdps: list[int], episodes: int, seeds: int, record: int) -> dict[str, Any]:
    """One batch per CMDP, if there are 64 seeds."""
    return {
        "num_episodes": episodes,
        "seeds": seeds,
        "record": record,
        "cmdps": [{"environment": "random", "parameters": {"seed": cmdps}}],
        "algorithms": [{"name": "regularized-primal-dual"}],
    }


class Costs(NamedTuple):
    """Seconds of the driver, and bytes.

    Attributes:
        submit: per batch that is sent, with Ray's part.
        collect: per answer that is fetched and checked, with Ray's part.
        commit: per answer that is written.
        turn: per turn of the loop, to wait for answers.
        order: bytes of a batch on its way.
        answer: bytes of its tables.
    """

    submit: float
    collect: float
    commit: float
    turn: float
    order: int
    answer: int


def measured(runs: int, options: argparse.Namespace) -> Costs:
    """Of a real batch, with the functions that the driver calls."""
    episodes = max(2000, options.record)
    wanted = read_specification(specification([0], episodes, runs, options.record))
    models = make_models(wanted)
    batch = Batch(make_runs(wanted, models))
    solved = {
        name: model._replace(optimum=cmdpax.solve(model.cmdp).value)
        for name, model in models.items()
    }
    work = Work(wanted, solved)
    done, failed = run_one(work, batch)
    order, files = write_order(work, batch), write_answer(done, failed)
    schemas = table_schemas(work, batch)
    with tempfile.TemporaryDirectory(dir=".") as path:
        folder = Folder(path)
        with folder.locked():
            commit = shortest(lambda: folder.write_part(batch.name, done.tables, {}))
    return Costs(
        shortest(lambda: write_order(work, batch)) + options.submit_ms / 1e3,
        shortest(lambda: check(batch, work, files, schemas)) + options.get_ms / 1e3,
        commit,
        options.turn_ms / 1e3,
        len(order),
        sum(len(file) for file in files),
    )


def check(batch: Batch, work: Work, files: list[bytes], schemas: Any) -> None:
    """As the driver does: checksums, columns, runs."""
    for file in files:
        checksum(file)
    read_answer(batch, work, files, schemas, made_here())


def shortest(function: Callable[[], Any], repeats: int = 25) -> float:
    """The time of a call, the shortest of many: other load only adds to it."""
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        function()
        times.append(time.perf_counter() - begun)
    return min(times)


def durations(num_batches: int, seed: int) -> np.ndarray:
    """A minute on average, and half of it more or less."""
    spread = 0.5
    random = np.random.default_rng(seed)
    return random.lognormal(np.log(60.0) - spread**2 / 2, spread, num_batches)


class Crowd:
    """Workers that take what was sent in order, and die now and then."""

    def __init__(self, num_workers: int, mean_life: float, away: float, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.mean_life, self.away = mean_life, away
        self.alive = num_workers
        self.idle = num_workers
        self.queue: deque[tuple[int, float]] = deque()
        self.events: list[tuple[float, int, bool]] = []  # end of a batch, or -1: somebody is back
        self.arrived: deque[tuple[float, int, bool]] = deque()
        self.busy = self.lost = 0.0
        self.most_arrived = 0

    def send(self, now: float, place: int, seconds: float) -> None:
        self.queue.append((place, seconds))
        self._take(now)

    def until(self, now: float) -> None:
        """Everything that happens up to a moment."""
        while self.events and self.events[0][0] <= now:
            self._next()

    def wait(self) -> float:
        """The moment when there is an answer."""
        while not self.arrived:
            self._next()
        return self.arrived[0][0]

    def _next(self) -> None:
        now, place, well = heapq.heappop(self.events)
        if place < 0:
            self.alive += 1
        else:
            self.arrived.append((now, place, well))
            self.most_arrived = max(self.most_arrived, len(self.arrived))
            if not well:
                self.alive -= 1
                heapq.heappush(self.events, (now + self.away, -1, True))
                return
        self.idle += 1
        self._take(now)

    def _take(self, now: float) -> None:
        while self.idle and self.queue:
            place, seconds = self.queue.popleft()
            life = self.random.exponential(self.mean_life)
            took, well = min(seconds, life), seconds <= life
            self.busy += took if well else 0.0
            self.lost += 0.0 if well else took
            self.idle -= 1
            heapq.heappush(self.events, (now + took, place, well))


class Outcome(NamedTuple):
    """Of a simulated sweep."""

    hours: float
    utilisation: float  # of all workers until the last batch was written
    driver: float  # share of the time that it was busy
    usually_arrived: float  # answers that wait for the driver
    most_arrived: int
    retried: int
    given_up: int
    held: float  # bytes


def simulate(num_workers: int, num_batches: int, costs: Costs, seed: int, life: float) -> Outcome:
    """The loop of the driver, with simulated time."""
    real = durations(num_batches, seed)
    wrong = np.random.default_rng(seed + 2).lognormal(0.0, 0.1, num_batches)  # by 10 %
    schedule, crowd = BatchQueue((real * wrong).tolist()), Crowd(num_workers, life, 300.0, seed + 1)
    now = worked = 0.0
    retried = flying = 0
    waiting: list[int] = []

    def fill(now: float) -> float:
        """Send what there is room for; the time afterwards."""
        while (place := schedule.start(crowd.alive)) is not None:
            now += costs.submit
            crowd.until(now)
            crowd.send(now, place, real[place])
        return now

    while schedule.unfinished:
        filled = fill(now)
        flying = max(flying, schedule.num_running)
        worked += filled - now + costs.turn
        now = max(filled, crowd.wait()) + costs.turn
        crowd.until(now)
        for _ in range(len(crowd.arrived)):
            waiting.append(len(crowd.arrived))
            (_, place, well), before = crowd.arrived.popleft(), now
            if well:
                now += costs.collect + costs.commit
                schedule.finish(place, real[place])
            else:
                retried += schedule.fail(place)
            crowd.until(now)
            now = fill(now)
            worked += now - before
    held = flying * costs.order + crowd.most_arrived * costs.answer
    shares = (crowd.busy / now / num_workers, worked / now)
    numbers = (float(np.median(waiting)), crowd.most_arrived, retried, schedule.num_given_up, held)
    return Outcome(now / 3600, *shares, *numbers)


def simulated(options: argparse.Namespace) -> None:
    for runs in (8, BATCH_RUNS):
        costs = measured(runs, options)
        each = costs.submit + costs.collect + costs.commit
        print(f"{runs} runs per batch, {options.record} recorded episodes each; the driver:")
        print(
            f"send {1e3 * costs.submit:.1f} ms ({costs.order / 1024:.0f} KiB), "
            f"fetch and check {1e3 * costs.collect:.1f} ms ({costs.answer / 2**20:.2f} MiB), "
            f"commit {1e3 * costs.commit:.1f} ms, together {1e3 * each:.0f} ms"
        )
        print(f"saturated by about {60 / each:,.0f} workers\n")
        print_outcomes(costs, options)


def print_outcomes(costs: Costs, options: argparse.Namespace) -> None:
    columns = ("workers", "batches", "hours", "busy", "driver busy")
    columns += ("answers waiting, usually", "most", "retried", "given up", "held [MiB]")
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
    for num_workers in sorted({100, 300, options.workers, 3000}):
        num_batches = min(options.batches, 100 * num_workers)
        found = simulate(num_workers, num_batches, costs, options.seed, options.life * 3600)
        row = (f"{num_workers:,}", f"{num_batches:,}", f"{found.hours:.2f}")
        row += tuple(f"{100 * share:.1f} %" for share in found[1:3])
        row += (f"{found.usually_arrived:,.0f}", f"{found.most_arrived:,}", f"{found.retried:,}")
        row += (str(found.given_up), f"{found.held / 2**20:,.0f}")
        print("| " + " | ".join(row) + " |", flush=True)
    print()
