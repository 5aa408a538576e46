"""How much memory a file, a model or a batch of runs may ask for before it is refused.

A few bytes can ask for more than a machine has: a compressed file, a horizon, a number of seeds.
What they ask for is computed before anything is allocated, and compared with a limit: 4 GiB for
what a file holds, and for what a user asks for half of the machine's memory where that is more.
The environment variable CMDPAX_MAX_BYTES sets both.
"""

import os
from pathlib import Path

from cmdpax.errors import CmdpaxError, FileError, ParameterError

VARIABLE = "CMDPAX_MAX_BYTES"
_DEFAULT = 4 * 2**30


def max_bytes() -> int:
    """What a user may ask for: what the environment says, or 4 GiB, or half of the memory.

    Raises:
        ParameterError: the environment variable is not a whole number.
    """
    return _said(max(_DEFAULT, _physical_bytes() // 2))


def max_file_bytes() -> int:
    """What a file may ask for: what the environment says, or 4 GiB; raises as `max_bytes` does."""
    return _said(_DEFAULT)


def _said(otherwise: int) -> int:
    """What the environment variable says, if it is set."""
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return otherwise
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise ParameterError(
            f"the environment variable {VARIABLE} is {text[:40]!r}, it must be a number of bytes "
            f"such as {_DEFAULT}."
        )
    return int(text)


def require_room(
    what: str,
    num_bytes: int,
    fix: str = "",
    error: type[CmdpaxError] = ParameterError,
    limit: int | None = None,
) -> None:
    """Refuse what would take more memory than the limit.

    Args:
        what: the thing, as the subject of the sentence.
        num_bytes: what it would take.
        fix: what else the user could do, after "or".
        error: the class of the error.
        limit: in bytes; None takes what a user may ask for.
    """
    limit = max_bytes() if limit is None else limit
    if num_bytes > limit:
        other = f", or {fix}" if fix else ""
        raise error(
            f"{what} would take {size_text(num_bytes)} of memory, the limit is {size_text(limit)}; "
            f"set {VARIABLE}={_rounded_up(num_bytes)} to allow it{other}."
        )


def require_file_room(path: Path, num_bytes: int) -> None:
    """Refuse a file whose content would take more memory than the limit for files."""
    require_room(str(path), num_bytes, error=FileError, limit=max_file_bytes())


def _physical_bytes() -> int:
    """The memory of the machine; 0 where the operating system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 0


def size_text(num_bytes: int) -> str:
    """A number of bytes for people: 2.5 GiB."""
    unit, size = "bytes", 1
    for name in ("KiB", "MiB", "GiB", "TiB"):
        if num_bytes < 1024 * size:
            break
        unit, size = name, 1024 * size
    if num_bytes >= 10**6 * size:  # integers of any length, which floats may not hold
        return f"more than a million {unit}"
    return f"{num_bytes / size:.3g} {unit}"


def _rounded_up(num_bytes: int) -> int:
    """Rounded up to two digits: a number to type."""
    unit = 10 ** max(0, len(str(num_bytes)[:400]) - 2)
    return -(-num_bytes // unit) * unit
