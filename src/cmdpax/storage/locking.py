"""The right to write a file or a folder, which one process has at a time.

The operating system frees the lock of a process that is killed. A lock is a file beside what it
protects, since what is protected is replaced at every write. Several owners in one process share a
lock if they say so; a process that is forked has none of its parent's.
"""

import atexit
import collections
import contextlib
import errno
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from cmdpax.errors import CmdpaxWarning, FileError
from cmdpax.storage.paths import reason, short_name

_UNSUPPORTED = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)
_TAKEN = (errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK)
_BEYOND = 2**30  # Windows locks bytes, and nobody may read locked ones: not those of the content


class _Held:
    """A lock file that this process has locked, and how many owners share it."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.owners = file, 1


_HELD: dict[Path, _Held] = {}
_GUARD = threading.Lock()
_GONE: "collections.deque[Lock]" = collections.deque()  # whose owners were collected


@contextlib.contextmanager
def _guarded() -> Iterator[None]:
    """Change what is held, one thread at a time; then let go of what nobody needs any more."""
    with _GUARD:
        yield
        _let_go_of_gone()


def _let_go_of_gone() -> None:
    while _GONE:
        _GONE.popleft()._let_go()


class Lock:
    """A lock that this process holds until `release`."""

    def __init__(
        self,
        path: Path,
        protected: Path,
        *,
        shared: bool = False,
        at_first: Callable[[], None] = lambda: None,
    ) -> None:
        """Take the lock, or refuse at once.

        Args:
            path: the lock file; it is created, and removed in the end.
            protected: what the sentence names.
            shared: other owners in this process may have it too.
            at_first: called by the first owner in this process, before there are others.

        Raises:
            FileError: another process has it, or another owner in this one.
        """
        self._path = Path(os.path.realpath(path))
        self._released = False
        with _guarded():
            held = _HELD.get(self._path)
            if held is not None and not _is_at(held.file, self._path):  # somebody removed it
                held.file.close()
                held = None
            if held is None:
                held = _HELD[self._path] = _Held(_locked(self._path, protected))
                at_first()
            elif shared:
                held.owners += 1
            else:
                raise _refused(protected)
            self._held = held

    def is_held(self) -> bool:
        """Whether it still protects: not in a forked process, nor if somebody removed its file."""
        return _HELD.get(self._path) is self._held and _is_at(self._held.file, self._path)

    def release(self) -> None:
        """Give it back; doing so twice is allowed."""
        with _guarded():
            self._let_go()

    def release_from_collector(self) -> None:
        """Give it back without waiting: this very thread may have the guard when it collects."""
        _GONE.append(self)
        if _GUARD.acquire(blocking=False):
            try:
                _let_go_of_gone()
            finally:
                _GUARD.release()

    def _let_go(self) -> None:
        held = self._held
        if self._released or _HELD.get(self._path) is not held:
            return
        self._released = True
        held.owners -= 1
        if held.owners:
            return
        del _HELD[self._path]
        # Removed while it is locked: whoever opened it meanwhile notices that it has gone.
        if _is_at(held.file, self._path):
            with contextlib.suppress(OSError):
                self._path.unlink()
        held.file.close()

    def __enter__(self) -> "Lock":
        """The lock is held already."""
        return self

    def __exit__(self, *_: object) -> None:
        """Release it."""
        self.release()


def lock_beside(
    path: Path, *, shared: bool = False, at_first: Callable[[], None] = lambda: None
) -> Lock:
    """The lock of a file, beside it, under a name that only cmdpax uses."""
    target = Path(os.path.realpath(path))
    lock = target.parent / f".cmdpax-lock-{short_name(target)}"
    return Lock(lock, path, shared=shared, at_first=at_first)


def _locked(path: Path, protected: Path) -> BinaryIO:
    """The open and locked file at a path."""
    while True:
        try:
            file = path.open("ab")
        except OSError as error:
            raise FileError(f"cannot write {protected}: {reason(error)}.") from None
        try:
            take(file, protected)
            if _is_at(file, path):
                return file
        except BaseException:
            file.close()
            raise
        file.close()  # its owner removed it between our two calls


def take(file: BinaryIO, protected: Path) -> None:
    """Lock an open file until it is closed, or refuse at once."""
    try:
        _lock(file)
    except OSError as error:
        if error.errno in _TAKEN:
            raise _refused(protected) from None
        if error.errno not in _UNSUPPORTED:
            raise FileError(f"{protected} cannot be locked: {reason(error)}.") from None
        warnings.warn(
            f"{protected} lies on a file system without locks; let no two processes write it.",
            CmdpaxWarning,
            stacklevel=2,
        )


def _refused(protected: Path) -> FileError:
    return FileError(
        f"{protected} is being written by another process; wait for it, or give another path."
    )


def _is_at(file: BinaryIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except (OSError, ValueError):  # it is gone, or was closed
        return False


def _lock(file: BinaryIO) -> None:
    """An exclusive lock that ends with the process; OSError where another one has it."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        os.lseek(file.fileno(), _BEYOND, os.SEEK_SET)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _forget() -> None:
    """A child has copies of its parent's open files, but not its locks."""
    global _GUARD
    _GONE.clear()
    _GUARD = threading.Lock()  # some thread of the parent may have had it
    for held in _HELD.values():
        held.file.close()
    _HELD.clear()


atexit.register(_let_go_of_gone)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
