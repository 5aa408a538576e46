"""What tests of files share: what a folder holds, and the names that only cmdpax uses."""

import hashlib
from pathlib import Path


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    """All files of a folder but locks: when they were written, and what is in them."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".cmdpax-lock-")
    }


def aside(name: str, ending: str) -> str:
    """The name under which a file is written before it is renamed."""
    return f".cmdpax-writing-{_digest(name)}-{ending}"


def lock_name(name: str) -> str:
    """The name of the lock beside a file."""
    return f".cmdpax-lock-{_digest(name)}"


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:12]
