"""The right to write a file or a folder, which one process has at a time.

The operating system frees the lock of a process that is killed. A lock is a file beside what it
protects, since what is protected is replaced at every write. Several owners in one process share a
lock if they say so; a process that is forked has none of its parent's.
"""

import contextlib
import errno
import hashlib
import os
import threading
import warnings
from pathlib import Path
from typing import BinaryIO

from cmdpax.errors import CmdpaxWarning, FileError
from cmdpax.storage.paths import reason

_UNSUPPORTED = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)


class _Held:
    """A lock file that this process has locked, and how many owners share it."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.owners = file, 1


_HELD: dict[Path, _Held] = {}
_GUARD = threading.Lock()


class Lock:
    """A lock that this process holds until `release`."""

    def __init__(self, path: Path, protected: Path, *, shared: bool = False) -> None:
        """Take the lock, or refuse at once.

        Args:
            path: the lock file; it is created, and removed in the end.
            protected: what the sentence names.
            shared: other owners in this process may have it too.

        Raises:
            FileError: another process has it, or another owner in this one.
        """
        self._path = Path(os.path.realpath(path))
        with _GUARD:
            held = _HELD.get(self._path)
            if held is None:
                _HELD[self._path] = _Held(_locked(self._path, protected))
            elif shared:
                held.owners += 1
            else:
                raise _refused(protected)
        self._released = False

    def release(self) -> None:
        """Give it back; doing so twice is allowed."""
        with _GUARD:
            held = _HELD.get(self._path)
            if self._released or held is None:
                return
            self._released = True
            held.owners -= 1
            if held.owners:
                return
            del _HELD[self._path]
            # Removed while it is locked: who opened it meanwhile notices that it has gone.
            with contextlib.suppress(OSError):
                self._path.unlink()
            held.file.close()

    def __enter__(self) -> "Lock":
        """The lock is held already."""
        return self

    def __exit__(self, *_: object) -> None:
        """Release it."""
        self.release()


def lock_beside(path: Path, *, shared: bool = False) -> Lock:
    """The lock of a file, beside it, under a name that only cmdpax uses."""
    target = Path(os.path.realpath(path))
    digest = hashlib.sha256(os.fsencode(target.name)).hexdigest()
    return Lock(target.parent / f".cmdpax-lock-{digest[:12]}", path, shared=shared)


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
        if error.errno not in _UNSUPPORTED:
            raise _refused(protected) from None
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
    except FileNotFoundError:
        return False


def _lock(file: BinaryIO) -> None:
    """An exclusive lock that ends with the process; OSError where another one has it."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _forget() -> None:
    """A child has copies of its parent's open files, but not its locks."""
    global _GUARD
    _GUARD = threading.Lock()  # some thread of the parent may have had it
    for held in _HELD.values():
        held.file.close()
    _HELD.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
