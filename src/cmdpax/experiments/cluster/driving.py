"""The driver: hands out batches, collects answers, and passes on what was checked.

It computes nothing, and workers write nothing: whatever is killed, what was committed stays.
"""

import contextlib
import math
import re
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from cmdpax.errors import ClusterError, CmdpaxWarning
from cmdpax.experiments.cluster.connecting import Cluster
from cmdpax.experiments.cluster.cutting import cut, trial_of, trials
from cmdpax.experiments.cluster.messages import (
    AnswerError,
    read_answer,
    read_header,
    read_rate,
    write_model,
    write_order,
)
from cmdpax.experiments.cluster.scheduling import BatchQueue, WorkerPool
from cmdpax.experiments.cluster.working import answer
from cmdpax.experiments.executing import Outcome, Work, table_schemas
from cmdpax.experiments.runs import Batch, Kind, Run

_SECONDS_BETWEEN_LOOKS = 1.0
_SECONDS_ALONE = 10.0
_WORKER_ENVIRONMENT = {"env_vars": {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}}

Say = Callable[[str, float | None], None]
"""Called with the state of a sweep, for people, and about how many seconds are left."""
Read = Callable[[Batch, Sequence[bytes], dict[str, Any]], Any]
"""Checks the files of an answer to a batch, given what they were computed with."""


class Driver:
    """A sweep on a cluster: what workers are asked for, and what their answers mean."""

    def __init__(self, cluster: Cluster, work: Work, runs: Sequence[Run]) -> None:
        """Send the CMDPs of all runs to the cluster, once."""
        self._cluster, self._work = cluster, work
        used = dict.fromkeys(run.fingerprint for run in runs)
        files = {name: write_model(work.models[name].cmdp) for name in used}
        self._models = {name: cluster.call(cluster.ray.put, file) for name, file in files.items()}
        self._schemas: dict[str, Any] = {}
        self.failed_trials: list[Outcome] = []

    def cut(self, runs: Sequence[Run], say: Say = lambda text, left: None) -> list[Batch]:
        """Measure every kind of run on the workers, and cut all runs into batches."""
        wanted, models = self._work.wanted, self._work.models
        kinds = trials(runs, models, self._cluster.pool().together)
        trial = self._work._replace(wanted=trial_of(wanted))
        batches = list(kinds.values())
        dispatcher = Dispatcher(self._cluster, self._models, trial, batches, is_trial=True)
        rates: dict[Kind, float | None] = dict.fromkeys(kinds)
        for place, found in dispatcher.answers(lambda _, files, __: read_rate(files)[0], say):
            if isinstance(found, Outcome):  # its batches will say what is wrong, too
                self.failed_trials.append(found)
            else:
                rates[list(kinds)[place]] = found
        return cut(runs, models, wanted, rates, dispatcher.look())

    def run(self, batches: Sequence[Batch], say: Say) -> Iterator[Outcome]:
        """Run all batches; yields what came of them in the order in which they are done."""
        dispatcher = Dispatcher(self._cluster, self._models, self._work, batches)
        for _, found in dispatcher.answers(self._read, say):
            yield from [found] if isinstance(found, Outcome) else found
            del found  # tables are large

    def _read(self, batch: Batch, files: Sequence[bytes], made: dict[str, Any]) -> list[Outcome]:
        if batch.algorithm not in self._schemas:
            self._schemas[batch.algorithm] = table_schemas(self._work, batch)
        schemas = self._schemas[batch.algorithm]
        done, failed = read_answer(batch, self._work, files, schemas, made)
        return [*([done] if done.batch.runs else []), *failed]


class Dispatcher:
    """Sends batches to workers, each until it is answered or has failed too often."""

    def __init__(
        self,
        cluster: Cluster,
        models: Mapping[str, Any],
        work: Work,
        batches: Sequence[Batch],
        is_trial: bool = False,
    ) -> None:
        """Take the CMDPs as references of Ray; trials are measured, other batches are run."""
        self._cluster, self._ray, self._models, self._work = cluster, cluster.ray, models, work
        self._batches, self._is_trial = batches, is_trial
        # JAX stays with the accelerator that it saw first, and Ray may give the next task of a
        # process another one: where a machine has several, a process runs a single task.
        self._task, self._single = self._ray.remote(answer), self._ray.remote(max_calls=1)(answer)
        self._queue = BatchQueue([batch.seconds for batch in batches])
        self._flying: dict[Any, int] = {}  # places of batches, by the references of their answers
        self._sent_to: dict[int, str] = {}  # the kind of worker that a batch was last sent to
        self._pool, self._asked = cluster.pool(), time.monotonic()
        self._lonely_since: float | None = None

    def answers(self, read: Read, say: Say) -> Iterator[tuple[int, Any]]:
        """Yield the place of every batch, and what was read of its answer.

        A batch that is given up yields an `Outcome` with the error instead.
        """
        try:
            while self._queue.unfinished:
                self._fill()
                self._tell(say)
                arrived = self._arrived()
                while arrived:
                    place = self._flying.pop(arrived[-1], None)
                    if place is None:  # taken back
                        arrived.pop()
                        continue
                    found = self._collect(arrived.pop(), place, read)  # then freed
                    if found is not None:
                        yield place, found
                    del found
                    self._tell(say)
                    self._fill()  # who is free does not wait for others
        except (GeneratorExit, KeyboardInterrupt):
            with contextlib.suppress(ClusterError):
                for reference in self._flying:
                    self._cluster.call(self._ray.cancel, reference)
            raise

    def _tell(self, say: Say) -> None:
        """Say, for example: 3 CPU workers, 4 of 20 batches done, 6 running, 1 failed."""
        queue, size = self._queue, self._pool.size
        text = (
            f"{size} {self._pool.kind} worker{'s' if size != 1 else ''}, {queue.num_done} of "
            f"{len(self._batches)} {'trials' if self._is_trial else 'batches'} done, "
            f"{min(queue.num_running, size)} running"
        )
        failed = f", {queue.num_given_up} failed" if queue.num_given_up else ""
        is_known = size > 0 and not self._is_trial
        say(text + failed, queue.seconds_left / size if is_known else None)

    # -------------------------------------------------------------------------------------- workers

    def look(self) -> WorkerPool:
        """The workers, as they were a moment ago; warns, once, if there are none for a while."""
        if time.monotonic() - self._asked < _SECONDS_BETWEEN_LOOKS:
            return self._pool
        pool, self._asked = self._cluster.pool(), time.monotonic()
        self._pool = pool if pool.size else WorkerPool(0, self._pool.kind)
        if self._pool.size:
            self._lonely_since = None
        elif self._lonely_since is None:
            self._lonely_since = self._asked
        elif self._asked - self._lonely_since >= _SECONDS_ALONE:
            self._lonely_since = math.inf
            warnings.warn(
                f"the cluster at {self._cluster.address} has no workers; waiting until some join.",
                CmdpaxWarning,
                stacklevel=2,
            )
        return self._pool

    def _fill(self) -> None:
        """Send what the workers have room for."""
        before, pool = self._pool, self.look()
        if (before.kind, pool.kind) == ("GPU", "CPU"):
            self._recall()
        while (place := self._queue.start(pool.size)) is not None:
            self._submit(place)

    def _recall(self) -> None:
        """Take back what waits for GPUs when the last one is gone: Ray would wait for ever."""
        ready = self._ready(len(self._flying), 0.0)
        for reference, place in list(self._flying.items()):
            if self._sent_to[place] == "GPU" and reference not in ready:
                self._cluster.call(self._ray.cancel, reference)
                self._queue.withdraw(place)
                del self._flying[reference]

    def _submit(self, place: int) -> None:
        """Ask for a core or an accelerator, on a machine where the batch did not fail before."""
        kind, batch = self._pool.kind, self._batches[place]
        task = self._single if self._pool.several else self._task
        asks: dict[str, Any] = {"max_retries": 0, "num_cpus": 1}
        asks |= {"num_gpus": 1} if kind == "GPU" else {"runtime_env": _WORKER_ENVIRONMENT}
        if self._queue.attempts[place] > 1:
            asks["scheduling_strategy"] = self._elsewhere(place)
        used = dict.fromkeys(run.fingerprint for run in batch.runs)
        references = [self._models[fingerprint] for fingerprint in used]
        arguments = (write_order(self._work, batch), self._is_trial, kind == "CPU", *references)
        reference = self._cluster.call(task.options(**asks).remote, *arguments)
        self._flying[reference], self._sent_to[place] = place, kind

    def _elsewhere(self, place: int) -> Any:
        """A machine where the batch did not fail; any, if there is none or that is not known.

        It is named. Ray's own "not there" would not do: it may hand the task to a process that it
        keeps for tasks of the same kind, and that is where it just failed.
        """
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        avoided = self._queue.failed_on[place]
        others = sorted(self._cluster.machines(self._pool.kind) - {*avoided}) if avoided else []
        if not others:
            return "SPREAD"
        chosen = others[(place + self._queue.attempts[place]) % len(others)]
        return NodeAffinitySchedulingStrategy(chosen, soft=False)

    # -------------------------------------------------------------------------------------- answers

    def _arrived(self) -> list[Any]:
        """Wait for an answer, but not for long; returns the references of all that are there."""
        if not self._ready(1, _SECONDS_BETWEEN_LOOKS):
            self._cluster.require()
            return []
        return self._ready(len(self._flying), 0.0)

    def _ready(self, most: int, seconds: float) -> list[Any]:
        """The references whose answers are there: on a worker, until they are collected."""
        if not self._flying:
            return []
        options = {"num_returns": most, "timeout": seconds, "fetch_local": False}
        ready: list[Any] = self._cluster.call(self._ray.wait, list(self._flying), **options)[0]
        return ready

    def _collect(self, reference: Any, place: int, read: Read) -> Any:
        """What was read of an answer, or why it is given up; None if it is tried again."""
        batch = self._batches[place]
        try:
            found, seconds = self._checked(reference, batch, read)
        except AnswerError as error:
            if self._queue.fail(place, error.workers):
                return None
            return Outcome.failure(batch, str(error), self._queue.attempts[place])
        self._queue.finish(place, seconds)
        return found

    def _checked(self, reference: Any, batch: Batch, read: Read) -> tuple[Any, float]:
        """What was read of an answer, and the seconds that it took; or an `AnswerError`."""
        try:
            files = self._cluster.call(self._ray.get, reference)
        except self._ray.exceptions.RayError as error:
            self._cluster.require()
            raise AnswerError(_reason(error), *self._where(error)) from None
        worker, seconds, made = read_header(files)
        try:
            return read(batch, files[1:], made), seconds
        except AnswerError as error:
            raise AnswerError(str(error), worker) from None

    def _where(self, error: Any) -> list[str]:
        """The machines on which a task may have failed that could not say so itself."""
        addresses = self._cluster.addresses()
        failed_at = getattr(error, "ip", None)  # of tasks that raised, not of a process that died
        named = [name for name in addresses if name in str(error)]
        return named or [name for name, address in addresses.items() if address == failed_at]


def _reason(error: Any) -> str:
    """Why a task failed, in one line; Ray colours its own words, and hides the cause in them."""
    cause = getattr(error, "cause", None)
    told = cause if isinstance(cause, BaseException) else error
    lines = [line.strip() for line in str(told).splitlines() if line.strip()]
    text = re.sub(r"\x1b\[[0-9;]*m", "", lines[-1 if told is cause else 0] if lines else "")
    return f"{type(told).__name__}: {text}"
