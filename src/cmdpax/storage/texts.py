"""JSON and TOML from outside: whatever the text says, a value or one sentence.

Python's parsers take what no consumer expects: an integer of 400 digits, the same key twice (the
last one wins), nesting up to the end of the stack, halves of characters that no file can hold. Here
these are refused, as a `ValueError` that says why.
"""

import json
import math
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cmdpax.errors import FileError, in_line
from cmdpax.storage.limits import max_file_bytes, require_file_room
from cmdpax.storage.paths import reason, require_file, status

_MEMORY_PER_BYTE = 16  # of a text, once it has become Python objects
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_DEEPEST = 200
_LONG_KEY = re.compile(rb"(?:[\w'\"-]+\.){100}")  # the time that tomllib takes is quadratic in them


def read_bytes(path: Path) -> bytes:
    """The content of a file of text.

    Raises:
        FileError: it is not there, not a file, too large, or may not be read.
    """
    require_file_room(path, require_file(path).st_size * _MEMORY_PER_BYTE)
    try:
        return path.read_bytes()
    except OSError as error:
        raise FileError(f"{path} cannot be read: {reason(error)}.") from None


def parse_json(content: bytes | str, *, finite: bool = False) -> Any:
    """A JSON value; an integer beyond 64 bits is a float.

    Args:
        content: the text.
        finite: refuse NaN and infinities, wherever they are.

    Raises:
        ValueError: it is not one; the message says why.
    """
    # Strictly: bytes may hold halves of characters, too.
    text = content.encode() if isinstance(content, str) else content.decode("utf-8-sig").encode()
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_int=_integer)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if _SURROGATE.search(text):
        for one in _scalars(value):
            if isinstance(one, str):
                _require_characters(one)
    if finite and not all(math.isfinite(one) for one in _scalars(value) if isinstance(one, float)):
        raise ValueError("it has numbers that are not finite")
    return value


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file.

    Raises:
        FileError: it cannot be read, or is not a TOML file.
    """
    try:
        if status(path) is None:
            raise FileError(f"{path} does not exist.")
        with path.open("rb") as file:  # pipes and devices have no known size, and some never end
            text = file.read(max_file_bytes() // _MEMORY_PER_BYTE + 1)
        require_file_room(path, len(text) * _MEMORY_PER_BYTE)
        if _LONG_KEY.search(text):
            raise ValueError("a key has more than a hundred parts")
        content = tomllib.loads(text.decode())
        for one in _scalars(content):
            if type(one) is int:
                _integer(str(one))
        return content
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"{path} cannot be read: {reason(error)}.") from None
    except RecursionError:
        raise FileError(f"{path} is not a TOML file: it is nested too deeply.") from None
    except ValueError as error:
        raise FileError(f"{path} is not a TOML file: {in_line(error)}.") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise ValueError(f"the key {name[:100]!r} is there twice")
            seen.add(name)
    return found


def _integer(text: str) -> int | float:
    """Other languages write long integers; one of more than 308 digits overflows a double."""
    if len(text) < 19:
        return int(text)
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"the integer {text[:8]}… of {len(text.lstrip('-'))} digits is too large")
    return int(text) if -(2**63) <= int(text) < 2**63 else number


def _scalars(value: Any) -> Iterator[Any]:
    """All keys and scalars in a value, without recursion."""
    waiting = [(value, 0)]
    while waiting:
        one, depth = waiting.pop()
        if depth > _DEEPEST:
            raise ValueError("it is nested too deeply")
        if isinstance(one, dict):
            yield from one
            waiting += [(entry, depth + 1) for entry in one.values()]
        elif isinstance(one, list):
            waiting += [(entry, depth + 1) for entry in one]
        else:
            yield one


def _require_characters(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"the text {text[:40]!r} holds half of a character") from None
