"""One caller at a time: an agent that several threads use takes their calls one after the other."""

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from cmdpax.errors import OrderError

Method = TypeVar("Method", bound=Callable[..., Any])


class Turn:
    """A lock that one thread holds at a time; a copy is a lock of its own.

    Attributes:
        barred: the thread that plans: whoever has the turn may be waiting for it.
    """

    def __init__(self) -> None:
        """Nobody holds it yet."""
        self._lock = threading.RLock()
        self.barred: int | None = None

    def __enter__(self) -> None:
        """Wait for it."""
        if self.barred == threading.get_ident():
            raise OrderError(
                "the agent was called in the thread that plans; in approve, look at the change and "
                "return True or False."
            )
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        """Give it back."""
        self._lock.release()

    def __reduce__(self) -> tuple[type["Turn"], tuple[()]]:
        """A lock cannot be copied, but the objects that have one are."""
        return Turn, ()


def in_turn(method: Method) -> Method:
    """A method that waits while another thread is in such a method of the same object."""

    @functools.wraps(method)
    def wrapped(owner: Any, *args: Any, **kwargs: Any) -> Any:
        with owner._turn:
            return method(owner, *args, **kwargs)

    return wrapped  # type: ignore[return-value]
