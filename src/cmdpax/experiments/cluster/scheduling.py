"""Which batch comes next, and what becomes of one that fails; no cluster is needed to simulate it.

The longest come first, so that nobody waits for a long one at the end. A batch that fails is tried
again elsewhere; after `MOST_ATTEMPTS` it is given up, and the rest goes on.
"""

import heapq
from collections.abc import Sequence
from typing import NamedTuple

MOST_ATTEMPTS = 3
BATCHES_IN_FLIGHT = 2  # per worker: one that runs, and one that waits for it to end


class WorkerPool(NamedTuple):
    """The workers of a cluster.

    Attributes:
        size: how many batches can run at once.
        kind: what each of them runs on: "CPU", which is a core, or "GPU".
        several: whether a machine has more than one GPU.
    """

    size: int
    kind: str
    several: bool = False

    @property
    def together(self) -> int:
        """How many runs take hardly longer than one: they share vector instructions or kernels."""
        return 2048 if self.kind == "GPU" else 8


class BatchQueue:
    """The state of all batches, which are known by their places; every change is a call.

    Attributes:
        attempts: how often each batch was tried.
        failed_on: the workers on which each batch failed, where they are known.
        num_done: how many batches are done.
        num_given_up: how many batches failed too often.
    """

    def __init__(self, seconds: Sequence[float]) -> None:
        """Take about how long each batch lasts."""
        self._seconds = list(seconds)
        self._waiting = [(-cost, place) for place, cost in enumerate(seconds)]
        heapq.heapify(self._waiting)
        self.attempts = [0] * len(self._seconds)
        self.failed_on: list[tuple[str, ...]] = [()] * len(self._seconds)
        self._running: set[int] = set()
        self._left = float(sum(seconds))
        self._expected = self._took = 0.0
        self.num_done = self.num_given_up = 0

    @property
    def num_running(self) -> int:
        """How many batches are started, but not yet done."""
        return len(self._running)

    @property
    def unfinished(self) -> bool:
        """Whether anything is left."""
        return bool(self._waiting or self._running)

    @property
    def seconds_left(self) -> float:
        """How long the rest would take one worker, at the pace of the batches that are done."""
        pace = self._took / self._expected if self._expected > 0 else 1.0
        return max(self._left, 0.0) * pace

    def start(self, num_workers: int) -> int | None:
        """Start the next batch, if the workers have room for one more."""
        if not self._waiting or len(self._running) >= BATCHES_IN_FLIGHT * max(num_workers, 1):
            return None
        _, place = heapq.heappop(self._waiting)
        self._running.add(place)
        self.attempts[place] += 1
        return place

    def withdraw(self, place: int) -> None:
        """Undo the start of a batch that no worker has begun."""
        self._running.remove(place)
        self.attempts[place] -= 1
        heapq.heappush(self._waiting, (-self._seconds[place], place))

    def finish(self, place: int, seconds: float | None = None) -> None:
        """Note that a batch is done, after so many seconds on its worker."""
        self._running.remove(place)
        self.num_done += 1
        self._left -= self._seconds[place]
        if seconds is not None:
            self._expected += self._seconds[place]
            self._took += seconds

    def fail(self, place: int, workers: Sequence[str] = ()) -> bool:
        """Note that a batch failed, on one of these workers; returns whether it is tried again."""
        self._running.remove(place)
        if self.attempts[place] >= MOST_ATTEMPTS:
            self.num_given_up += 1
            self._left -= self._seconds[place]
            return False
        self.failed_on[place] = tuple(dict.fromkeys((*self.failed_on[place], *workers)))
        heapq.heappush(self._waiting, (-self._seconds[place], place))
        return True
