"""Planning beside playing: a thread learns from finished episodes while the agent plays on.

The agent counts an episode in its account at once, and goes on with the policy that it has. The
thread takes the episodes that were finished, in their order, and makes of them what `course` makes
of them anywhere; whole positions are handed back. So the learner sees the same episodes in the same
order as without a thread, and only which policy an episode is played with depends on how long a
plan takes.
"""

import threading
import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from cmdpax.jax_context import in_double_precision
from cmdpax.live import course
from cmdpax.live.episode import Episode
from cmdpax.live.playing import Approve
from cmdpax.live.saving import Position


class Background:
    """What was handed to the thread, and what it made of that.

    Args:
        approve: called in the thread, before a new plan is played.
        waiting: episodes that it has not learned from.
        reached: the learner's position before these; None: that of the agent.
        found: the last position that the agent has not taken up.
    """

    def __init__(
        self,
        approve: Approve | None,
        waiting: Iterable[Episode] = (),
        reached: Position | None = None,
        found: Position | None = None,
    ) -> None:
        """Start no thread yet."""
        self._approve, self._waiting = approve, list(waiting)
        self._reached, self._found = reached, found
        self._error: BaseException | None = None
        self._lock = threading.Lock()
        self._threads: ThreadPoolExecutor | None = None
        self._task: Future[None] | None = None
        self._works = False

    def __reduce__(self) -> tuple[type["Background"], tuple[object, ...]]:
        """A copy has learned as much, and has a thread of its own."""
        self._wait()
        return Background, (self._approve, tuple(self._waiting), self._reached, self._found)

    def require_sound(self) -> None:
        """Raise what went wrong in the thread, once; the next episode makes it try again."""
        with self._lock:
            error, self._error = self._error, None
        if error is not None:
            raise error

    def follow(self, before: Position, episode: Episode) -> Position | None:
        """Hand over an episode.

        Args:
            before: the agent's position before it.
            episode: what happened.

        Returns:
            The newest position that the thread has reached since the last call, if there is one.
        """
        with self._lock:
            self._reached = before if self._reached is None else self._reached
            self._waiting.append(episode)
            found, self._found = self._found, None
        self._work_on()
        return found

    def settle(self) -> Position | None:
        """Wait until all episodes are learned from; the position then, if there was anything."""
        with self._lock:
            self._error = None  # tried again below
        self._work_on()
        self._wait()
        self.require_sound()
        with self._lock:
            found, self._found, self._reached = self._found, None, None
        return found

    def _work_on(self) -> None:
        """Start the thread, if there is something to do and it does nothing."""
        with self._lock:
            if self._works or not self._waiting:
                return
            self._threads = self._threads or ThreadPoolExecutor(1, "cmdpax-planning")
            self._works = True
            self._task = self._threads.submit(self._work)

    def _wait(self) -> None:
        if self._task is not None:
            self._task.result()

    def _work(self) -> None:
        """Learn until nothing waits, or something goes wrong."""
        while True:
            with self._lock:
                batch, self._waiting = self._waiting, []
                if not batch:
                    self._works = False
                    return
                before = self._reached
            assert before is not None
            try:
                found = _learned(before, batch, self._approve)
            except BaseException as error:  # told to the thread that plays
                with self._lock:
                    self._waiting = batch + self._waiting
                    self._error, self._works = error, False
                return
            with self._lock:
                self._reached = self._found = found


@in_double_precision
def _learned(before: Position, batch: list[Episode], approve: Approve | None) -> Position:
    """The position after some episodes, with what is played from then on."""
    begun, now = time.perf_counter(), before
    for episode in batch:
        now = course.learned(now, episode, played=True)
    now = course.decided(now, approve)
    return course.timed(now, before.episode.plans, begun)
