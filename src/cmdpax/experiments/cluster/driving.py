"""The driver: hands out batches, collects answers, and hands on what was checked.

It computes nothing and workers write nothing: whatever is killed, what was committed stays.
"""

import contextlib
import math
import re
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from cmdpax.errors import ClusterError, CmdpaxWarning
from cmdpax.experiments.cluster.connecting import Cluster
from cmdpax.experiments.cluster.cutting import Piece, Rate, cut, trial_of, trials
from cmdpax.experiments.cluster.messages import (
    AnswerError,
    read_answer,
    read_header,
    read_rate,
    write_model,
    write_order,
)
from cmdpax.experiments.cluster.scheduling import BatchQueue, Ticket, WorkerPool
from cmdpax.experiments.cluster.working import measure_order, run_order
from cmdpax.experiments.executing import Failed, Finished, Ran, Work, table_schemas
from cmdpax.experiments.runs import Batch, Kind, Run

_SECONDS_BETWEEN_LOOKS = 1.0
_SECONDS_ALONE = 10.0
_WORKER_ENVIRONMENT = {"env_vars": {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}}


class Status(NamedTuple):
    """Where a sweep on a cluster stands, for people."""

    pool: WorkerPool
    done: int
    running: int
    failed: int
    batches: int
    seconds_left: float | None
    what: str = "batches"

    def __str__(self) -> str:
        """3 CPU workers, 4 of 20 batches done, 6 running, 1 failed."""
        several = "s" if self.pool.size != 1 else ""
        failed = f", {self.failed} failed" if self.failed else ""
        running = min(self.running, self.pool.size)  # the others wait
        return (
            f"{self.pool.size} {self.pool.kind} worker{several}, {self.done} of {self.batches} "
            f"{self.what} done, {running} running{failed}"
        )


Say = Callable[[Status], None]


class Driver:
    """A sweep on a cluster."""

    def __init__(self, cluster: Cluster, work: Work, runs: Sequence[Run]) -> None:
        """The CMDPs of all runs go to the cluster once."""
        self._cluster, self._ray, self._work = cluster, cluster.ray, work
        used = dict.fromkeys(run.fingerprint for run in runs)
        files = {name: write_model(work.models[name].cmdp) for name in used}
        self._models = {name: cluster.call(self._ray.put, file) for name, file in files.items()}
        self._schemas: dict[str, Any] = {}
        self._pool, self._asked = cluster.pool(), time.monotonic()
        self._lonely_since: float | None = None
        self.failed_trials: list[Failed] = []

    def cut(self, runs: Sequence[Run], say: Say = lambda status: None) -> list[Piece]:
        """Measure every kind of run on the workers, and cut all runs into batches."""
        wanted, models = self._work.wanted, self._work.models
        kinds = trials(runs, models, self._pool.together)
        trial = _Assignment(
            [Piece(batch, 1.0) for batch in kinds.values()],
            self._work._replace(wanted=trial_of(wanted)),
            self._tasks(measure_order),
            lambda batch, files: Rate(*read_rate(files)),
            "trials",
        )
        rates: dict[Kind, Rate | None] = dict.fromkeys(kinds)
        for place, found in self._answers(trial, say):
            if isinstance(found, Failed):  # its batches will say what is wrong, too
                self.failed_trials.append(found)
            else:
                rates[list(kinds)[place]] = found.content
        return cut(runs, models, wanted, rates, self._look())

    def run(self, pieces: Sequence[Piece], say: Say) -> Iterator[Finished | Failed]:
        """All batches, in the order in which they are done."""
        assignment = _Assignment(pieces, self._work, self._tasks(run_order), self._ran)
        for _, found in self._answers(assignment, say):
            if isinstance(found, Failed):
                yield found
            else:
                yield from found.content.outcomes(found.made)
            del found  # tables are large

    def _ran(self, batch: Batch, files: Sequence[bytes]) -> Ran:
        if batch.algorithm not in self._schemas:
            self._schemas[batch.algorithm] = table_schemas(self._work, batch)
        return read_answer(batch, self._work, files, self._schemas[batch.algorithm])

    def _tasks(self, function: Any) -> "_Tasks":
        return _Tasks(self._ray.remote(function), self._ray.remote(max_calls=1)(function))

    # -------------------------------------------------------------------------------------- errands

    def _answers(self, assignment: "_Assignment", say: Say) -> Iterator[tuple[int, Any]]:
        """What came back for every batch, or why it failed."""
        pieces = assignment.pieces
        schedule = BatchQueue([piece.seconds for piece in pieces])
        flying: _Flying = {}
        try:
            while schedule.unfinished:
                self._fill(assignment, schedule, flying)
                say(self._status(schedule, assignment))
                arrived = self._arrived(list(flying))
                while arrived:
                    flight = flying.pop(arrived[-1], None)
                    if flight is None:  # taken back
                        arrived.pop()
                        continue
                    place = flight.place
                    batch = pieces[place].batch
                    found = self._collect(arrived.pop(), batch, assignment)  # then freed
                    if not isinstance(found, _Failure):
                        schedule.finish(place, found.seconds)
                        yield place, found
                    elif not schedule.fail(place, found.workers):
                        attempts = schedule.attempts(place)
                        yield place, Failed(pieces[place].batch, found.text, attempts)
                    del found
                    say(self._status(schedule, assignment))
                    self._fill(assignment, schedule, flying)  # who is free does not wait for others
        except (GeneratorExit, KeyboardInterrupt):
            with contextlib.suppress(ClusterError):
                for reference in flying:
                    self._cluster.call(self._ray.cancel, reference)
            raise

    def _look(self) -> WorkerPool:
        """The workers, as they were a moment ago."""
        if time.monotonic() - self._asked >= _SECONDS_BETWEEN_LOOKS:
            pool, self._asked = self._cluster.pool(), time.monotonic()
            self._pool = pool if pool.size else WorkerPool(0, self._pool.kind)
            self._wait_for_workers()
        return self._pool

    def _wait_for_workers(self) -> None:
        """Say so, once, if there are none for a while."""
        if self._pool.size:
            self._lonely_since = None
            return
        if self._lonely_since is None:
            self._lonely_since = self._asked
        elif self._asked - self._lonely_since >= _SECONDS_ALONE:
            self._lonely_since = math.inf
            warnings.warn(
                f"the cluster at {self._cluster.address} has no workers; waiting until some join.",
                CmdpaxWarning,
                stacklevel=2,
            )

    def _fill(self, assignment: "_Assignment", schedule: BatchQueue, flying: "_Flying") -> None:
        before, pool = self._pool, self._look()
        if (before.kind, pool.kind) == ("GPU", "CPU"):
            self._recall(schedule, flying)
        while (ticket := schedule.start(pool.size)) is not None:
            reference, flight = self._submit(ticket, assignment, pool)
            flying[reference] = flight

    def _recall(self, schedule: BatchQueue, flying: "_Flying") -> None:
        """Take back what waits for GPUs when the last one is gone: Ray would wait for ever."""
        ready = self._ready(list(flying), len(flying), 0.0)
        for reference, flight in list(flying.items()):
            if flight.kind == "GPU" and reference not in ready:
                self._cluster.call(self._ray.cancel, reference)
                schedule.withdraw(flight.place)
                del flying[reference]

    def _machines(self, pool: WorkerPool) -> set[str]:
        return {machine.name for machine in self._cluster.machines() if machine.has(pool.kind)}

    def _arrived(self, flying: list[Any]) -> list[Any]:
        """The answers that are there; waits for one, but not for long."""
        if not self._ready(flying, 1, _SECONDS_BETWEEN_LOOKS):
            self._cluster.require()
            return []
        return self._ready(flying, len(flying), 0.0)

    def _ready(self, flying: list[Any], most: int, seconds: float) -> list[Any]:
        """Those of which the answer is there: on its worker, where it stays until it is taken."""
        if not flying:
            return []
        options = {"num_returns": most, "timeout": seconds, "fetch_local": False}
        ready: list[Any] = self._cluster.call(self._ray.wait, flying, **options)[0]
        return ready

    def _status(self, schedule: BatchQueue, assignment: "_Assignment") -> Status:
        left = schedule.seconds_left / max(self._pool.size, 1)
        return Status(
            self._pool,
            schedule.num_done,
            schedule.num_running,
            schedule.num_given_up,
            len(assignment.pieces),
            left if assignment.what == "batches" and self._pool.size else None,
            assignment.what,
        )

    def _submit(
        self, ticket: Ticket, assignment: "_Assignment", pool: WorkerPool
    ) -> "tuple[Any, _Flight]":
        """One task; it asks for a core or an accelerator, where it did not fail before."""
        asks: dict[str, Any] = {"max_retries": 0, "num_cpus": 1}
        asks |= {"num_gpus": 1} if pool.kind == "GPU" else {"runtime_env": _WORKER_ENVIRONMENT}
        if ticket.attempt > 1:
            asks["scheduling_strategy"] = self._elsewhere(ticket, pool)
        batch = assignment.pieces[ticket.place].batch
        used = dict.fromkeys(run.fingerprint for run in batch.runs)
        references = [self._models[fingerprint] for fingerprint in used]
        task = assignment.tasks.single if pool.several else assignment.tasks.plain
        start = task.options(**asks).remote
        order = write_order(assignment.work, batch)
        reference = self._cluster.call(start, order, pool.kind == "CPU", *references)
        return reference, _Flight(ticket.place, pool.kind)

    def _elsewhere(self, ticket: Ticket, pool: WorkerPool) -> Any:
        """On a machine where it did not fail; anywhere, if there is none or that is not known.

        One is named. Ray's own "not there" would not do: it may hand the task to a process that it
        keeps for tasks of the same kind, and that is where it just failed.
        """
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        others = sorted(self._machines(pool) - set(ticket.avoid)) if ticket.avoid else []
        if not others:
            return "SPREAD"
        chosen = others[(ticket.place + ticket.attempt) % len(others)]
        return NodeAffinitySchedulingStrategy(chosen, soft=False)

    def _collect(
        self, reference: Any, batch: Batch, assignment: "_Assignment"
    ) -> "_Answer | _Failure":
        """The checked answer, or a failure."""
        try:
            files = self._cluster.call(self._ray.get, reference)
        except self._ray.exceptions.RayError as error:
            self._cluster.require()
            return _Failure(_reason(error), self._where(error))
        worker: tuple[str, ...] = ()
        try:
            header = read_header(files)
            worker = (header.worker,)
            if header.error is not None:
                return _Failure(header.error, worker)
            return _Answer(assignment.read(batch, files[1:]), header.seconds, header.made)
        except AnswerError as error:
            return _Failure(str(error), worker or error.workers)

    def _where(self, error: Any) -> tuple[str, ...]:
        """The machines at which a task may have failed that could not say so itself."""
        machines = self._cluster.machines()
        named = [machine.name for machine in machines if machine.name in str(error)]
        address = getattr(error, "ip", None)  # of tasks that raised, not of a process that died
        near = [machine.name for machine in machines if machine.address == address]
        return tuple(named or near)


def _reason(error: Any) -> str:
    """In one line; Ray colours its own, and hides the cause in it."""
    cause = getattr(error, "cause", None)
    told = cause if isinstance(cause, BaseException) else error
    lines = [line.strip() for line in str(told).splitlines() if line.strip()]
    text = re.sub(r"\x1b\[[0-9;]*m", "", lines[-1 if told is cause else 0] if lines else "")
    return f"{type(told).__name__}: {text}"


class _Flight(NamedTuple):
    """A batch that was handed out, and on what it runs."""

    place: int
    kind: str


_Flying = dict[Any, _Flight]


class _Tasks(NamedTuple):
    """A function on workers.

    JAX stays with the accelerator that it saw first, and Ray may give the next task of a process
    another one. So where a machine has several, a process runs a single task.
    """

    plain: Any
    single: Any


class _Assignment(NamedTuple):
    """What workers are sent for, and how their answers are read."""

    pieces: Sequence[Piece]
    work: Work
    tasks: _Tasks
    read: Callable[[Batch, Sequence[bytes]], Any]
    what: str = "batches"


class _Answer(NamedTuple):
    """What was asked for, how long it took, and with what it was made."""

    content: Any
    seconds: float
    made: dict[str, Any]


class _Failure(NamedTuple):
    """Why an attempt failed, and on which of some workers, if that is known."""

    text: str
    workers: tuple[str, ...]
