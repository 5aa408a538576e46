"""Which batch next, and what becomes of one that fails: no cluster in here, so it can be simulated.

Longest first, so that no long batch is left for the end, when everybody waits for it. A batch that
fails is tried again elsewhere; after `MOST_ATTEMPTS` it is given up, and the rest goes on.
"""

import heapq
from collections.abc import Sequence
from typing import NamedTuple

MOST_ATTEMPTS = 3
BATCHES_PER_WORKER = 2  # running, and waiting there for the moment when that one is done


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


class Schedule:
    """The state of all batches; every change is a call."""

    def __init__(self, seconds: Sequence[float]) -> None:
        """With what each batch takes, about."""
        self._seconds = list(seconds)
        self._waiting = [(-cost, place) for place, cost in enumerate(seconds)]
        heapq.heapify(self._waiting)
        self._attempts = [0] * len(self._seconds)
        self._avoid: dict[int, tuple[str, ...]] = {}
        self._running: set[int] = set()
        self.done: list[int] = []
        self.given_up: list[int] = []

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
        """What is waiting and running takes, one after the other, about."""
        waiting = -sum(cost for cost, _ in self._waiting)
        return waiting + sum(self._seconds[place] for place in self._running)

    def start(self, num_workers: int) -> Ticket | None:
        """The next batch, if the workers have room for one more."""
        if not self._waiting or len(self._running) >= BATCHES_PER_WORKER * max(num_workers, 1):
            return None
        _, place = heapq.heappop(self._waiting)
        self._running.add(place)
        self._attempts[place] += 1
        return Ticket(place, self._attempts[place], self._avoid.get(place, ()))

    def finish(self, place: int) -> None:
        """It is done."""
        self._running.remove(place)
        self.done.append(place)

    def fail(self, place: int, worker: str | None) -> bool:
        """It failed, on a worker if that is known; whether it is tried again."""
        self._running.remove(place)
        if self._attempts[place] >= MOST_ATTEMPTS:
            self.given_up.append(place)
            return False
        if worker is not None:
            self._avoid[place] = (*self._avoid.get(place, ()), worker)
        heapq.heappush(self._waiting, (-self._seconds[place], place))
        return True

    def attempts(self, place: int) -> int:
        """How often it was tried."""
        return self._attempts[place]
