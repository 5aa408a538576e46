"""What tests of files share: what a folder holds, and the names that only cmdpax uses."""

import hashlib
import os
from pathlib import Path
from typing import Any


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    """All files of a folder but locks: when they were written, and what is in them."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".cmdpax-lock-")
    }


def copied(folder: Path, copy: Path) -> Path:
    """The files of a folder once more, without its locks."""
    for name, (_, content) in contents(folder).items():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_bytes(content)
    return copy


def tree(folder: Path) -> dict[str, Any]:
    """Everything below a folder: files with their content, links with their targets."""
    return {
        str(path.relative_to(folder)): os.readlink(path)
        if path.is_symlink()
        else path.read_bytes()
        if path.is_file()
        else None
        for path in sorted(folder.rglob("*"))
    }


def aside(name: str, ending: str) -> str:
    """The name under which a file is written before it is renamed."""
    return f".cmdpax-writing-{_digest(name)}-{ending}"


def lock_name(name: str) -> str:
    """The name of the lock beside a file."""
    return f".cmdpax-lock-{_digest(name)}"


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:12]
