"""What is at a path, or one sentence about why that is unknown."""

import hashlib
import os
import stat
from pathlib import Path

from cmdpax.errors import FileError, cut

_LONGEST = 300  # characters of a path in a sentence


class DamagedError(FileError):
    """A file is not what was written."""


def status(path: Path, *, follow_links: bool = True) -> os.stat_result | None:
    """What is at a path; None if nothing is there.

    Raises:
        FileError: it is unknown: the name is too long, or a folder may not be searched.
    """
    try:
        return path.stat(follow_symlinks=follow_links)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise FileError(
            f"{cut(str(path), _LONGEST)} cannot be looked at: {reason(error)}."
        ) from None
    except ValueError:  # a null character
        raise FileError(
            f"{cut(str(path), _LONGEST)} is no path: it holds a null character."
        ) from None


def is_folder(path: Path) -> bool:
    """Whether a folder is there; raises as `status` does."""
    found = status(path)
    return found is not None and stat.S_ISDIR(found.st_mode)


def exists(path: Path) -> bool:
    """Whether anything is there; raises as `status` does."""
    return status(path) is not None


def require_file(path: Path) -> os.stat_result:
    """Refuse what cannot be read as a file: a device or a pipe may never end."""
    found = status(path)
    if found is None:
        raise FileError(f"{cut(str(path), _LONGEST)} does not exist.")
    if stat.S_ISDIR(found.st_mode):
        raise FileError(f"{cut(str(path), _LONGEST)} is a folder, not a file.")
    if not stat.S_ISREG(found.st_mode):
        raise FileError(f"{cut(str(path), _LONGEST)} is {kind(found)}, not a file.")
    return found


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


def short_name(target: Path) -> str:
    """Twelve digits for a file's name: names that cmdpax derives must not grow with it."""
    return hashlib.sha256(os.fsencode(target.name)).hexdigest()[:12]
