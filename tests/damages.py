"""Ways to damage a file."""

from pathlib import Path


def truncate(path: Path) -> None:
    """Half of it is there."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    """Nothing is there."""
    path.write_bytes(b"")


def flip(path: Path) -> None:
    """One bit in the middle is another."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
