"""Bytes of a file, damaged without regard to what they mean."""

from collections.abc import Sequence
from random import Random


def mutate(rng: Random, content: bytes, donors: Sequence[bytes]) -> bytes:
    """The content with some bytes changed; donors are other files to take parts from."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        content = rng.choice(_WAYS)(rng, content, donors)
    return content


def _place(rng: Random, content: bytes) -> int:
    """Anywhere, but more often near an end, where headers and directories are."""
    size = len(content)
    near = rng.randrange(min(size, 128) + 1)
    return rng.choice((near, size - near, rng.randrange(size + 1)))


def _flip(rng: Random, content: bytes, donors: Sequence[bytes]) -> bytes:
    if not content:
        return content
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 8))):
        changed[min(_place(rng, content), len(content) - 1)] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _overwrite(rng: Random, content: bytes, donors: Sequence[bytes]) -> bytes:
    at = _place(rng, content)
    new = rng.choice((b"\x00", b"\xff", b"\xff\xff\xff\xff", b"\xff" * 8, b"\x80", b"\x7f" * 4))
    return content[:at] + new + content[at + len(new) :]


def _cut(rng: Random, content: bytes, donors: Sequence[bytes]) -> bytes:
    return content[: _place(rng, content)]


def _remove(rng: Random, content: bytes, donors: Sequence[bytes]) -> bytes:
    at = _place(rng, content)
    return content[:at] + content[at + rng.choice((1, 2, 16, 256)) :]


def _insert(rng: Random, content: bytes, donors: Sequence[bytes]) -> bytes:
    at = _place(rng, content)
    return content[:at] + rng.randbytes(rng.choice((1, 2, 8, 64))) + content[at:]


def _repeat(rng: Random, content: bytes, donors: Sequence[bytes]) -> bytes:
    at = _place(rng, content)
    block = content[at : at + rng.choice((1, 16, 256))]
    return content[:at] + block * rng.choice((2, 16)) + content[at:]


def _splice(rng: Random, content: bytes, donors: Sequence[bytes]) -> bytes:
    other = rng.choice(donors) if donors else content[::-1]
    return content[: _place(rng, content)] + other[_place(rng, other) :]


def _digits(rng: Random, content: bytes, donors: Sequence[bytes]) -> bytes:
    """Other digits where there are some: sizes and shapes in headers are text."""
    places = [at for at, byte in enumerate(content[:4096]) if 48 <= byte < 58]
    if not places:
        return _flip(rng, content, donors)
    at = rng.choice(places)
    return content[:at] + rng.choice((b"9", b"0", b"-1", b"99999999999")) + content[at + 1 :]


_WAYS = (_flip, _flip, _overwrite, _cut, _remove, _insert, _repeat, _splice, _digits)
