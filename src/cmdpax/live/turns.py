"""One caller at a time: an agent that several threads use takes their calls one after the other."""

import functools
import threading
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

Owner = TypeVar("Owner")
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class Turn:
    """A lock that one thread has at a time; a copy is a lock of its own."""

    def __init__(self) -> None:
        """Nobody has it."""
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        """Wait for it."""
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        """Give it back."""
        self._lock.release()

    def __reduce__(self) -> tuple[type["Turn"], tuple[()]]:
        """Copies are made of objects that have one."""
        return Turn, ()


def in_turn(
    method: Callable[Concatenate[Owner, Parameters], Result],
) -> Callable[Concatenate[Owner, Parameters], Result]:
    """A method that waits until no other thread is in one of its object's such methods."""

    @functools.wraps(method)
    def wrapped(owner: Owner, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        with owner._turn:  # type: ignore[attr-defined]
            return method(owner, *args, **kwargs)

    return wrapped
