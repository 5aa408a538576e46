"""Which batch next, and what becomes of one that fails: no cluster in here, so it can be simulated.

Longest first, so that no long batch is left for the end, when everybody waits for it. A batch that
fails is tried again elsewhere; after `MOST_ATTEMPTS` it is given up, and the rest goes on.
"""

import heapq
from collections.abc import Sequence
from typing import NamedTuple

MOST_ATTEMPTS = 3
BATCHES_IN_FLIGHT = 2  # per worker: running, and waiting there for the moment when that one is done


class WorkerPool(NamedTuple):
    """The workers of a cluster.

    Attributes:
        size: how many batches can run at once.
        kind: on what each of them: "CPU", a core, or "GPU".
        several: whether a machine has more than one GPU.
    """

    size: int
    kind: str
    several: bool = False

    @property
    def together(self) -> int:
        """Runs that take hardly longer than one: they share vector instructions, or kernels."""
        return 2048 if self.kind == "GPU" else 8


class Ticket(NamedTuple):
    """A batch that may be started now.

    Attributes:
        place: of the batch.
        attempt: 1 at first.
        avoid: workers on which it failed.
    """

    place: int
    attempt: int
    avoid: tuple[str, ...]


class BatchQueue:
    """The state of all batches; every change is a call."""

    def __init__(self, seconds: Sequence[float]) -> None:
        """With what each batch takes, about."""
        self._seconds = list(seconds)
        self._waiting = [(-cost, place) for place, cost in enumerate(seconds)]
        heapq.heapify(self._waiting)
        self._attempts = [0] * len(self._seconds)
        self._avoid: dict[int, tuple[str, ...]] = {}
        self._running: set[int] = set()
        self._left = float(sum(seconds))
        self._expected = self._took = 0.0
        self.num_done = self.num_given_up = 0

    @property
    def num_running(self) -> int:
        """How many are in flight."""
        return len(self._running)

    @property
    def unfinished(self) -> bool:
        """Whether anything is left."""
        return bool(self._waiting or self._running)

    @property
    def seconds_left(self) -> float:
        """What is waiting and running takes, one after the other, as batches have taken so far."""
        pace = self._took / self._expected if self._expected > 0 else 1.0
        return max(self._left, 0.0) * pace

    def start(self, num_workers: int) -> Ticket | None:
        """The next batch, if the workers have room for one more."""
        if not self._waiting or len(self._running) >= BATCHES_IN_FLIGHT * max(num_workers, 1):
            return None
        _, place = heapq.heappop(self._waiting)
        self._running.add(place)
        self._attempts[place] += 1
        return Ticket(place, self._attempts[place], self._avoid.get(place, ()))

    def withdraw(self, place: int) -> None:
        """It was never begun: as if it had not been started."""
        self._running.remove(place)
        self._attempts[place] -= 1
        heapq.heappush(self._waiting, (-self._seconds[place], place))

    def finish(self, place: int, seconds: float | None = None) -> None:
        """It is done, after so many seconds on its worker."""
        self._running.remove(place)
        self.num_done += 1
        self._left -= self._seconds[place]
        if seconds is not None:
            self._expected += self._seconds[place]
            self._took += seconds

    def fail(self, place: int, workers: Sequence[str] = ()) -> bool:
        """It failed, on one of these workers if that is known; whether it is tried again."""
        self._running.remove(place)
        if self._attempts[place] >= MOST_ATTEMPTS:
            self.num_given_up += 1
            self._left -= self._seconds[place]
            return False
        self._avoid[place] = tuple(dict.fromkeys((*self._avoid.get(place, ()), *workers)))
        heapq.heappush(self._waiting, (-self._seconds[place], place))
        return True

    def attempts(self, place: int) -> int:
        """How often it was tried."""
        return self._attempts[place]
