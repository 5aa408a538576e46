"""What is at a path, with a sentence where that cannot be said."""

import os
import stat
from pathlib import Path

from cmdpax.errors import FileError


class DamagedError(FileError):
    """A file is not what was written."""


def status(path: Path, *, follow_links: bool = True) -> os.stat_result | None:
    """What is at a path; None if nothing is there.

    Raises:
        FileError: it cannot be said: the name is too long, a folder may not be searched.
    """
    try:
        return path.stat(follow_symlinks=follow_links)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise FileError(f"{_shown(path)} cannot be looked at: {reason(error)}.") from None
    except ValueError:  # a null character
        raise FileError(f"{_shown(path)} is no path: it holds a null character.") from None


def is_folder(path: Path) -> bool:
    """Whether a folder is there; raises as `status` does."""
    found = status(path)
    return found is not None and stat.S_ISDIR(found.st_mode)


def exists(path: Path) -> bool:
    """Whether anything is there; raises as `status` does."""
    return status(path) is not None


def require_file(path: Path) -> None:
    """Refuse what cannot be read as a file: a device or a pipe may never end."""
    found = status(path)
    if found is None:
        raise FileError(f"{_shown(path)} does not exist.")
    if stat.S_ISDIR(found.st_mode):
        raise FileError(f"{_shown(path)} is a folder, not a file.")
    if not stat.S_ISREG(found.st_mode):
        raise FileError(f"{_shown(path)} is {kind(found)}, not a file.")


def kind(found: os.stat_result) -> str:
    """What is there, if it is not an ordinary file."""
    names = {
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFLNK: "a symbolic link",
    }
    return names.get(stat.S_IFMT(found.st_mode), "a device")


def reason(error: OSError) -> str:
    """Why the operating system refused."""
    return str(error.strerror or error)


def _shown(path: Path) -> str:
    """A path for a sentence, which a name of thousands of characters would not be."""
    text = str(path)
    return text if len(text) <= 300 else f"{text[:100]}…{text[-50:]}"
