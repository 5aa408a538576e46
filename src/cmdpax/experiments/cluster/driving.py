"""The driver: hands out batches, collects answers, and hands on what was checked.

It computes nothing and workers write nothing: whatever is killed, what was committed stays.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

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
from cmdpax.experiments.cluster.scheduling import Schedule, Ticket
from cmdpax.experiments.cluster.working import measure_order, run_order
from cmdpax.experiments.executing import Failed, Finished, Work, table_schemas
from cmdpax.experiments.runs import Batch, Kind, Run

_SECONDS_BETWEEN_LOOKS = 1.0
_WORKER_ENVIRONMENT = {"env_vars": {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}}


class Status(NamedTuple):
    """Where a sweep on a cluster stands, for people."""

    workers: int
    kind: str
    done: int
    running: int
    failed: int
    batches: int
    seconds_left: float

    def __str__(self) -> str:
        """3 workers, 4 of 20 batches done, 6 running, 1 failed."""
        several = "s" if self.workers != 1 else ""
        failed = f", {self.failed} failed" if self.failed else ""
        return (
            f"{self.workers} {self.kind} worker{several}, {self.done} of {self.batches} batches "
            f"done, {self.running} running{failed}"
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

    # -------------------------------------------------------------------------------------- cutting

    def cut(self, runs: Sequence[Run]) -> list[Piece]:
        """Measure every kind of run on the workers, and cut all runs into batches."""
        trial = self._work._replace(wanted=trial_of(self._work.wanted))
        kinds = trials(runs, self._work.models)
        rates: dict[Kind, Rate] = {}
        batches = list(kinds.values())
        for place, found in self._answers(Schedule([1.0] * len(batches)), batches, trial, True):
            failed = isinstance(found, Failed)  # its batches will say what is wrong
            rates[list(kinds)[place]] = Rate(0.0, 0.0) if failed else found
        return cut(runs, self._work.models, self._work.wanted, rates)

    # -------------------------------------------------------------------------------------- running

    def run(self, pieces: Sequence[Piece], say: Say) -> Iterator[Finished | Failed]:
        """All batches, in the order in which they are done."""
        schedule = Schedule([piece.seconds for piece in pieces])
        batches = [piece.batch for piece in pieces]
        answers = self._answers(schedule, batches, self._work, False, say)
        for place, found in answers:
            if isinstance(found, Failed):
                yield found
            else:
                yield Finished(batches[place], found)

    def _answers(
        self,
        schedule: Schedule,
        batches: Sequence[Batch],
        work: Work,
        trial: bool,
        say: Say = lambda status: None,
    ) -> Iterator[tuple[int, Any]]:
        """What came back for every batch: tables, the rate of a trial, or why it failed."""
        flying: dict[Any, int] = {}
        while schedule.unfinished:
            num_workers, kind = self._cluster.workers()
            while (ticket := schedule.start(num_workers)) is not None:
                flying[self._submit(ticket, batches[ticket.place], work, kind, trial)] = (
                    ticket.place
                )
            say(self._status(schedule, num_workers, kind, len(batches)))
            arrived, _ = self._cluster.call(
                self._ray.wait, list(flying), timeout=_SECONDS_BETWEEN_LOOKS
            )
            if not arrived:
                self._cluster.require()
            for reference in arrived:
                place = flying.pop(reference)
                found = self._collect(reference, batches[place], work, trial)
                if not isinstance(found, _Failure):
                    schedule.finish(place)
                    yield place, found
                elif not schedule.fail(place, found.worker):
                    yield place, Failed(batches[place], found.text, schedule.attempts(place))
        say(self._status(schedule, *self._cluster.workers(), len(batches)))

    def _status(self, schedule: Schedule, workers: int, kind: str, total: int) -> Status:
        done, failed = len(schedule.done), len(schedule.given_up)
        left = schedule.seconds_left / max(workers, 1)
        return Status(workers, kind, done, schedule.num_running, failed, total, left)

    def _submit(self, ticket: Ticket, batch: Batch, work: Work, kind: str, trial: bool) -> Any:
        """One task; it asks for a core or an accelerator, and avoids where it failed."""
        from ray.util.scheduling_strategies import NodeLabelSchedulingStrategy, NotIn

        asks: dict[str, Any] = {"num_cpus": 1} if kind == "CPU" else {"num_gpus": 1}
        if kind == "CPU":
            asks["runtime_env"] = _WORKER_ENVIRONMENT
        if ticket.avoid:
            elsewhere: dict[str, Any] = {"ray.io/node-id": NotIn(*ticket.avoid)}
            asks["scheduling_strategy"] = NodeLabelSchedulingStrategy(hard={}, soft=elsewhere)
        task = self._ray.remote(measure_order if trial else run_order)
        used = dict.fromkeys(run.fingerprint for run in batch.runs)
        references = [self._models[fingerprint] for fingerprint in used]
        order = write_order(work, batch)
        start = task.options(max_retries=0, **asks).remote
        return self._cluster.call(start, order, kind == "CPU", *references)

    def _collect(self, reference: Any, batch: Batch, work: Work, trial: bool) -> Any:
        """The checked answer, or a failure."""
        try:
            files = self._cluster.call(self._ray.get, reference)
        except self._ray.exceptions.RayError as error:
            self._cluster.require()
            text = str(error).strip().splitlines()
            return _Failure(f"{type(error).__name__}: {text[0] if text else ''}", None)
        worker = None
        try:
            worker, failure = read_header(files)
            if failure is not None:
                return _Failure(failure, worker)
            if trial:
                return Rate(*read_rate(files[1:]))
            if batch.algorithm not in self._schemas:
                self._schemas[batch.algorithm] = table_schemas(work, batch)
            return read_answer(batch, work, files[1:], self._schemas[batch.algorithm])
        except AnswerError as error:
            return _Failure(str(error), worker)


class _Failure(NamedTuple):
    """Why an attempt failed, and on which worker, if that is known."""

    text: str
    worker: str | None
