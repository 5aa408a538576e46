"""Planning beside playing: a thread learns from finished episodes while the agent plays on.

A finished episode is counted in the account at once, and waits in the agent's position until the
learner has seen it. The thread is told such positions. It makes of the episodes that wait what
`course` makes of them anywhere, in their order, and shows how far it is; the agent takes that up
when the next episode ends. So nothing is learned from twice or lost, wherever an interruption
comes, the learner sees the same episodes in the same order as without a thread, and only which
policy an episode is played with depends on how long a plan takes.
"""

import atexit
import os
import threading
import weakref
from typing import Any

from cmdpax.jax_context import in_double_precision
from cmdpax.live import course
from cmdpax.live.playing import Approve, PolicyChange
from cmdpax.live.saving import Position
from cmdpax.live.turns import Turn

_ALL: "weakref.WeakSet[Background]" = weakref.WeakSet()
_MOMENT = 0.01  # seconds


class Background:
    """The thread of an agent, which lives while there is something to learn from.

    Args:
        approve: called in the thread, before a new plan is played.
        turn: of the agent, whose calls the thread must not wait for.
    """

    def __init__(self, approve: Approve | None, turn: Turn) -> None:
        """Start no thread yet."""
        self._approve, self._turn = approve, turn
        self._told: Position | None = None
        self._reached: Position | None = None
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._asks = self._closes = False
        self._lock = threading.Lock()
        _ALL.add(self)

    def __reduce__(self) -> tuple[type["Background"], tuple[object, ...]]:
        """A copy of the agent learns from the episodes that wait in it by itself."""
        return Background, (self._approve, self._turn)

    def of_copy(self, turn: Turn) -> "Background":
        """For a copy of the agent that has another turn."""
        return Background(self._approve, turn)

    def advanced(self, now: Position) -> Position:
        """The agent's position with what the thread has learned.

        Raises:
            BaseException: what went wrong in the thread, once; then it tries again when it is told
                of the next episode.
        """
        with self._lock:
            (error, self._error), reached = (self._error, None), self._reached
        if error is not None:
            raise error
        return now if reached is None else course.with_learner(now, reached)

    def learn_from(self, now: Position) -> threading.Thread | None:
        """Let the thread learn from what waits in a position; the thread, if there is work."""
        with self._lock:
            self._told = now
            if self._next() is None:
                return None
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._work, name="cmdpax-planning", daemon=True
                )
                self._thread.start()
            return self._thread

    def settled(self, now: Position) -> Position:
        """The agent's position once nothing waits in it; what went wrong before is tried again."""
        with self._lock:
            self._error = None
        thread = self.learn_from(now)
        if thread is not None:
            thread.join()
        return self.advanced(now)

    def _next(self) -> Position | None:
        """The position to learn from; None if nothing waits."""
        now, reached = self._told, self._reached
        if now is not None and reached is not None:
            now = course.with_learner(now, reached)
        return None if now is None or not now.waiting else now

    @in_double_precision
    def _work(self) -> None:
        """Learn until nothing waits, or something goes wrong."""
        self._turn.barred = threading.get_ident()
        try:
            while (now := self._next_of_thread()) is not None:
                course.prepare_chances(now)
                reached = course.caught_up(now, None if self._approve is None else self._ask)
                with self._lock:
                    self._reached = reached
        except BaseException as error:  # told to the thread that plays
            with self._lock:
                self._error, self._thread = error, None
        finally:
            if self._turn.barred == threading.get_ident():
                self._turn.barred = None

    def _next_of_thread(self) -> Position | None:
        """As `_next`; where there is nothing, the next episode has a thread of its own."""
        with self._lock:
            if self._thread is not threading.current_thread():  # an interrupted start
                return None
            now = None if self._closes else self._next()
            if now is None:
                self._thread = None
            return now

    def _ask(self, change: PolicyChange) -> Any:
        """Ask whoever approves plans; the interpreter may end meanwhile."""
        assert self._approve is not None
        self._asks = True
        try:
            return self._approve(change)
        finally:
            with self._lock:
                self._asks = False
                if self._closes:
                    raise SystemExit

    def close(self) -> None:
        """Wait until the thread computes nothing; it is left alone where it waits for a person."""
        with self._lock:
            self._closes, thread = True, self._thread
        while thread is not None and thread.is_alive() and not self._asks:
            thread.join(_MOMENT)

    def forget_thread(self) -> None:
        """A forked process has no threads, and perhaps a lock that one of them had."""
        self._lock, self._thread, self._asks = threading.Lock(), None, False


def _close_all() -> None:
    """Before the interpreter ends: a thread that computes when JAX is gone would crash it."""
    for one in list(_ALL):
        one.close()


def _forget_threads() -> None:
    for one in list(_ALL):
        one.forget_thread()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)
