"""Folders that cmdpax fills: nothing is written into one that holds the files of somebody else.

Such a folder is signed: its `.lock`, which is made before anything else, holds a line that is in no
file by accident. Folders of earlier versions have no such line and are recognised by their content.
An empty folder may be taken, and so may one in which a process was killed before it wrote a file.
"""

import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from cmdpax.errors import FileError
from cmdpax.storage.locking import take
from cmdpax.storage.paths import is_folder, kind, reason, status
from cmdpax.storage.writing import is_left_behind

LOCK = ".lock"
_BY_NO_ACCIDENT = "9e2351114aadb1442646f01c0a9ee4f7"


class OwnedFolder(ABC):
    """A folder that cmdpax fills; each kind of content has its own class.

    Attributes:
        path: the folder, or a link to it.
        content: what it is signed for: "sweep" or "reproduction".
        folders: the folders in it, which are made first.
        files: the files in it that may be replaced.
    """

    content: str
    folders: tuple[str, ...]
    files: tuple[str, ...]

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Nothing is touched before `locked`."""
        self.path = Path(path)

    @abstractmethod
    def is_earlier(self) -> bool:
        """Whether an earlier version, which did not sign, has written it."""

    @property
    def _signature(self) -> bytes:
        return f"cmdpax {self.content} folder, format 1, {_BY_NO_ACCIDENT}\n".encode()

    def _is_signed(self) -> bool:
        lock = self.path / LOCK  # a link is none
        found = status(lock, follow_links=False)
        if found is None or not stat.S_ISREG(found.st_mode):
            return False
        try:
            with lock.open("rb") as file:
                return file.read(len(self._signature)) == self._signature
        except OSError as error:
            raise FileError(f"{lock} cannot be read: {reason(error)}.") from None

    def is_ours(self) -> bool:
        """Whether cmdpax has written it, in this version or an earlier one."""
        return self._is_signed() or self.is_earlier()

    def require_ours(self) -> None:
        """Refuse a folder that holds the files of somebody else; nothing is written."""
        found = status(self.path, follow_links=False)
        if found is None:
            return
        if not is_folder(self.path):
            what = "a link to nothing" if status(self.path) is None else "not a folder"
            raise FileError(f"cannot write to {self.path}: it is {what}.")
        if self._is_signed():
            return
        foreign = next(self._others(), None)
        if foreign is not None and not self.is_earlier():
            raise FileError(f"{self.path} holds other files such as {foreign}; use a new folder.")

    def _others(self) -> Iterator[str]:
        """Files that no process of ours can have left when it was killed during its start."""
        for name in sorted(listed(self.path), key=lambda name: (name == LOCK, name)):
            path = self.path / name
            found = status(path, follow_links=False)
            if name in self.folders and found is not None and stat.S_ISDIR(found.st_mode):
                yield from (f"{name}/{one}" for one in listed(path) if not is_left_behind(one))
            elif not is_left_behind(name) and not (name == LOCK and _is_empty(found)):
                yield name

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Be the only writer of the folder, which is made if it is not there.

        The operating system frees the lock of a process that is killed.
        """
        self.require_ours()
        require_no_links(self.path / name for name in (LOCK, *self.folders, *self.files))
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            signed = self._is_signed()
            file = _opened(self.path / LOCK)
        except OSError as error:
            raise FileError(f"cannot write to {self.path}: {reason(error)}.") from None
        with file:
            take(file, self.path)
            try:
                if not signed:
                    file.truncate(0)
                    file.write(self._signature)
                    file.flush()
                    os.fsync(file.fileno())
                for name in self.folders:
                    (self.path / name).mkdir(exist_ok=True)
            except OSError as error:
                raise FileError(f"cannot write to {self.path}: {reason(error)}.") from None
            yield


def require_no_links(paths: Iterable[Path]) -> None:
    """Refuse to write where a link leads out of the folder."""
    for path in paths:
        found = status(path, follow_links=False)
        if found is not None and stat.S_ISLNK(found.st_mode):
            raise FileError(
                f"{path} is a symbolic link, and links are not followed out of the folder; put "
                "what it points to in its place, or use a new folder."
            )


def listed(folder: Path) -> list[str]:
    """The names in a folder, sorted; none where there is no folder."""
    try:
        return sorted(os.listdir(folder)) if is_folder(folder) else []
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"{folder} cannot be read: {reason(error)}.") from None


def _is_empty(found: os.stat_result | None) -> bool:
    return found is not None and stat.S_ISREG(found.st_mode) and found.st_size == 0


def _opened(lock: Path) -> BinaryIO:
    """The lock file, which must be an ordinary one: a pipe would wait for ever."""
    found = status(lock, follow_links=False)
    if found is not None and not stat.S_ISREG(found.st_mode):
        raise FileError(f"cannot write {lock}: it is {kind(found)}; remove it.")
    return lock.open("ab")
