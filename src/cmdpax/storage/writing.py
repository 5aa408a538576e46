"""Files that are there whole or not at all.

A file is written aside, in the same folder, under a name that only cmdpax uses, and renamed when it
is complete. What a killed process left aside is known by that name; nothing else is ever removed.
"""

import os
import re
import secrets
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from cmdpax.errors import FileError
from cmdpax.storage.paths import is_folder, kind, reason, short_name, status

_ASIDE = ".cmdpax-writing-"
_ANY_ASIDE = re.compile(re.escape(_ASIDE) + "[0-9a-f]{12}-[0-9a-f]{8}")


def write_npz(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write named arrays to an `.npz` file, whole or not at all, and without pickling."""
    write_atomically(path, lambda file: np.savez_compressed(file, allow_pickle=False, **arrays))


def write_text(path: Path, text: str, *, follow_links: bool = True) -> None:
    """Write a text file in UTF-8, whole or not at all; what UTF-8 cannot hold becomes "?"."""
    write_bytes(path, text.encode(errors="replace"), follow_links=follow_links)


def write_bytes(path: Path, content: bytes, *, follow_links: bool = True) -> None:
    """Write a file, whole or not at all."""
    write_atomically(path, lambda file: file.write(content), follow_links=follow_links)


def write_atomically(
    path: Path, write: Callable[[BinaryIO], Any], *, follow_links: bool = True
) -> None:
    """Write a file aside, in the same folder, and rename it when it is complete.

    Args:
        path: the file.
        write: called with the open file.
        follow_links: where the path is a symbolic link, replace what it points to; otherwise the
            link itself is replaced.
    """
    target = require_target(path, follow_links=follow_links)
    aside = target.parent / f"{_prefix(target)}{secrets.token_hex(4)}"
    begun, before = False, status(target)
    try:
        with aside.open("xb") as file:
            begun = True
            if before is not None and hasattr(os, "fchmod"):  # who could not read it still cannot
                os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode))
            write(file)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(target)
        begun = False
    except OSError as error:
        raise FileError(f"cannot write {path}: {reason(error)}.") from error
    finally:
        if begun:
            aside.unlink(missing_ok=True)


def require_target(path: Path, *, follow_links: bool = True) -> Path:
    """Refuse a path that no file can be written to; returns the file that will be replaced."""
    link = status(path, follow_links=False)
    is_link = link is not None and stat.S_ISLNK(link.st_mode)
    target = Path(os.path.realpath(path)) if follow_links and is_link else path
    if not is_folder(target.parent):
        raise FileError(
            f"cannot write {path}: the folder {target.parent} does not exist; create it first."
        )
    found = status(target, follow_links=follow_links)
    if found is not None and stat.S_ISDIR(found.st_mode):
        raise FileError(f"cannot write {path}: it is a folder.")
    if found is not None and not (stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode)):
        raise FileError(f"cannot write {path}: it is {kind(found)}; give an ordinary file.")
    return target


def remove_left_behind(path: Path) -> None:
    """Remove what a process left behind when it was killed while writing; for the owner only."""
    target = Path(os.path.realpath(path))
    _remove(target.parent, re.compile(re.escape(_prefix(target)) + "[0-9a-f]{8}"))


def remove_all_left_behind(folder: Path) -> None:
    """The same for every file in a folder; for its owner only."""
    _remove(folder, _ANY_ASIDE)


def is_left_behind(name: str) -> bool:
    """Whether a file of this name was being written by cmdpax."""
    return _ANY_ASIDE.fullmatch(name) is not None


def _remove(folder: Path, pattern: re.Pattern[str]) -> None:
    try:
        names = os.listdir(folder)
        for name in names:
            left = folder / name
            if pattern.fullmatch(name) and stat.S_ISREG(left.lstat().st_mode):
                left.unlink(missing_ok=True)
    except FileNotFoundError:
        return
    except OSError as error:
        raise FileError(f"cannot write to {folder}: {reason(error)}.") from None


def _prefix(target: Path) -> str:
    return f"{_ASIDE}{short_name(target)}-"
