"""Ray without processes, for what a real cluster does too rarely, too slowly or never."""

import dataclasses
import itertools
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from cmdpax.experiments.cluster import working
from cmdpax.experiments.cluster.connecting import Cluster
from cmdpax.experiments.cluster.driving import Driver
from cmdpax.experiments.executing import Outcome, Work
from cmdpax.experiments.runs import Run

Act = Callable[[str, list[bytes]], list[bytes]]
"""What a worker does to an answer before it sends it; may raise."""


class FakeError(Exception):
    """As `ray.exceptions.RayError`; of a task that raised, with an address and a cause."""

    def __init__(self, text: str, ip: str | None = None, cause: Exception | None = None) -> None:
        """With what it says."""
        super().__init__(text)
        self.ip, self.cause = ip, cause


class Reference:
    """An object of the cluster."""

    def __init__(self, value: Any = None) -> None:
        """There already, or to come."""
        self.value, self.error, self.ready = value, None, value is not None


class Task:
    """A function that was made remote, with what it asks for."""

    def __init__(self, ray: "FakeRay", function: Any, options: dict[str, Any]) -> None:
        """Nothing runs before `remote`."""
        self._ray, self._function, self._options = ray, function, options

    def options(self, **options: Any) -> "Task":
        """The same function, asking for something else."""
        return Task(self._ray, self._function, self._options | options)

    def remote(self, *arguments: Any) -> Reference:
        """Put it into the queue."""
        return self._ray.submit(self._function, self._options, arguments)


class FakeCluster(Cluster):
    """A connection that cannot break."""

    def call(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """At once."""
        return function(*arguments, **options)

    def require(self) -> None:
        """It is there."""


class FakeRay:
    """A module `ray`: tasks run, one after the other, while somebody waits for them."""

    class exceptions:  # noqa: N801
        """As in the module."""

        RayError = FakeError

    def __init__(self, workers: Sequence[str] = ("a", "b"), kind: str = "CPU") -> None:
        """Workers by name, of one core or accelerator each."""
        self.workers, self.kind, self.each = list(workers), kind, 1.0
        self.asked: list[dict[str, Any]] = []  # the options of all tasks
        self.ran_on: list[str] = []
        self.act: Act = lambda worker, files: files
        self.most_pending = self.most_alive = 0
        self._pending: list[tuple[Reference, Any, dict[str, Any], tuple[Any, ...]]] = []
        self._alive: weakref.WeakSet[Reference] = weakref.WeakSet()
        self._turn = itertools.count()

    def cluster(self, monkeypatch: pytest.MonkeyPatch) -> Cluster:
        """A connection to it."""
        monkeypatch.setattr(working, "_worker", lambda: self.ran_on[-1])
        monkeypatch.setattr(working, "cache_compilation", lambda: None)
        monkeypatch.setattr(  # the real one wants the names that ray gives
            "ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy",
            lambda node_id, soft: types.SimpleNamespace(node_id=node_id, soft=soft),
        )
        return FakeCluster(self, "127.0.0.1:1")

    def nodes(self) -> list[dict[str, Any]]:
        """As in the module: machines with `each` workers, and one that is gone."""
        found = [
            {
                "NodeID": name,
                "NodeManagerAddress": f"address of {name}",
                "Alive": True,
                "Resources": {"CPU": self.each, self.kind: self.each},
            }
            for name in self.workers
        ]
        lonely = {"NodeID": "no core", "Alive": True, "Resources": {"GPU": 1.0}}
        return [*found, lonely, {"NodeID": "gone", "Alive": False, "Resources": {"GPU": 8.0}}]

    def put(self, value: Any) -> Reference:
        """As in the module."""
        return Reference(value)

    def remote(self, function: Any = None, **options: Any) -> Any:
        """As in the module: around a function, or with options, to be put around one."""
        if function is None:
            return lambda function: Task(self, function, options)
        return Task(self, function, {})

    def submit(self, function: Any, options: dict[str, Any], arguments: Any) -> Reference:
        """What a task calls."""
        reference = Reference()
        self._alive.add(reference)
        self.asked.append(options)
        self._pending.append((reference, function, options, arguments))
        self.most_pending = max(self.most_pending, len(self._pending))
        self.most_alive = max(self.most_alive, len(self._alive))
        return reference

    def wait(
        self, references: list[Reference], num_returns: int, timeout: float, fetch_local: bool
    ) -> tuple[list[Reference], list[Reference]]:
        """Every worker runs one task; those that are done, and the others."""
        assert not fetch_local, "answers would pile up where the driver is"
        if timeout > 0:
            for _ in self.workers:
                self._run_next()
        done = [reference for reference in references if reference.ready][:num_returns]
        return done, [reference for reference in references if reference not in done]

    def get(self, reference: Reference) -> Any:
        """As in the module."""
        if reference.error is not None:
            raise reference.error
        return reference.value

    @property
    def pending(self) -> int:
        """How many tasks wait."""
        return len(self._pending)

    def cancel(self, reference: Reference) -> None:
        """As in the module."""
        self._pending = [entry for entry in self._pending if entry[0] is not reference]

    def _run_next(self) -> None:
        if not self._pending:
            return
        reference, function, options, arguments = self._pending.pop(0)
        place = self._place(options)
        reference.ready = True
        if place not in self.workers:
            reference.error = FakeError("The node is gone.")
            return
        self.ran_on.append(place)
        plain = [one.value if isinstance(one, Reference) else one for one in arguments]
        try:
            reference.value = self.act(self.ran_on[-1], function(*plain))
        except FakeError as error:
            reference.error = error

    def _place(self, options: dict[str, Any]) -> str:
        """The one that a task names, or whose turn it is."""
        strategy = options.get("scheduling_strategy")
        if hasattr(strategy, "node_id"):
            return str(strategy.node_id)
        first = next(self._turn)
        return self.workers[first % len(self.workers)]


@dataclasses.dataclass
class Case:
    """Eight runs in four batches, and a driver whose cluster does as it is told."""

    ray: FakeRay
    work: Work
    runs: list[Run]
    driver: Driver
    said: list[str] = dataclasses.field(default_factory=list)
    seconds_left: float | None = None

    def say(self, text: str, seconds_left: float | None) -> None:
        """Keep what the driver says."""
        self.said.append(text)
        self.seconds_left = seconds_left

    def run(self) -> list[Outcome]:
        """Everything."""
        return list(self.driver.run(self.driver.cut(self.runs), self.say))
