"""`.npz` archives and `.npy` arrays that lie: about names, sizes, shapes, types and compression."""

import base64
import bz2
import functools
import io
import json
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import numpy as np

from fuzzing import arrays, hostile, trees

_BLOCK = bytes(2**20)
BOMB_BLOCKS = 400
"""MiB of zeros in a bomb."""
_STORED, _DEFLATED, _BZIP2, _LZMA = 0, 8, 12, 14


class Member(NamedTuple):
    """A member of an archive, with what the archive says of it."""

    name: str
    data: bytes  # as it is stored
    method: int
    crc: int
    size: int  # that is declared
    flags: int = 0


def members_of(content: bytes) -> list[Member]:
    """The members of an archive that is whole, not compressed."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return [_stored(name, archive.read(name)) for name in archive.namelist()]


def _stored(name: str, data: bytes) -> Member:
    return Member(name, data, _STORED, zlib.crc32(data), len(data))


def archive(members: list[Member]) -> bytes:
    """The bytes of an archive; nothing that its members say is checked."""
    body, directory = bytearray(), bytearray()
    for member in members:
        name = member.name.encode("utf-8", "surrogatepass")
        flags = member.flags | 0x800  # the name is UTF-8
        shared = struct.pack(
            "<HHHHHLLLHH",
            *(63, flags, member.method, 0, 33),
            *(member.crc, len(member.data), member.size % 2**32),
            *(len(name), 0),
        )
        directory += b"PK\x01\x02\x3f\x00" + shared
        directory += struct.pack("<HHHLL", 0, 0, 0, 0, len(body)) + name
        body += b"PK\x03\x04" + shared + name + member.data
    count = len(members)
    end = struct.pack("<HHHHLLH", 0, 0, count, count, len(directory), len(body), 0)
    return bytes(body + directory + b"PK\x05\x06" + end)


def mutate(rng: Random, content: bytes) -> bytes:
    """An archive with some of its members changed."""
    members = members_of(content)
    for _ in range(1 if rng.random() < 0.8 else 2):
        members = rng.choice(_WAYS)(rng, members)
    if rng.random() < 0.3:
        members = [_compressed(rng, member) for member in members]
    return archive(members)


def replaced(content: bytes, name: str, change: Callable[[np.ndarray], Any]) -> bytes:
    """An archive with one array replaced."""
    return archive(
        [
            _stored(member.name, arrays.write(change(arrays.read(member.data))))
            if member.name == f"{name}.npy"
            else member
            for member in members_of(content)
        ]
    )


# ----------------------------------------------------------------------------------------- members


def _one(rng: Random, members: list[Member], change: Callable[[Member], list[Member]]) -> Any:
    """One member changed into none, one or several."""
    if not members:
        return members
    at = rng.randrange(len(members))
    return [*members[:at], *change(members[at]), *members[at + 1 :]]


def _array(rng: Random, members: list[Member]) -> list[Member]:
    """Another array, or another text of JSON."""
    texts = [at for at, member in enumerate(members) if _text(member) is not None]
    at = rng.choice(texts) if texts and rng.random() < 0.5 else rng.randrange(len(members) or 1)
    if not members:
        return members
    text = _text(members[at])
    if text is not None and rng.random() < 0.9:
        data = arrays.write(np.array(trees.as_json(trees.mutate(rng, json.loads(text)))))
    else:
        data = arrays.mutate(rng, members[at].data)
    return [*members[:at], _stored(members[at].name, data), *members[at + 1 :]]


def _text(member: Member) -> str | None:
    """The JSON text that a member holds, as agents and checkpoints have it."""
    try:
        array = arrays.read(member.data)
        if array.shape == () and array.dtype.kind == "U":
            json.loads(str(array))
            return str(array)
    except (ValueError, SyntaxError, EOFError, RecursionError, TypeError):
        pass
    return None


def _gone(rng: Random, members: list[Member]) -> list[Member]:
    return _one(rng, members, lambda member: [])


def _twice(rng: Random, members: list[Member]) -> list[Member]:
    return _one(
        rng, members, lambda member: [member, _stored(member.name, arrays.mutate(rng, member.data))]
    )


def _renamed(rng: Random, members: list[Member]) -> list[Member]:
    def rename(member: Member) -> list[Member]:
        plain = member.name.removesuffix(".npy")
        names = (plain, plain.upper() + ".npy", "horizon.npy", f"{rng.choice(hostile.TEXTS)}.npy")
        return [member._replace(name=rng.choice(names))]

    return _one(rng, members, rename)


def _added(rng: Random, members: list[Member]) -> list[Member]:
    name = rng.choice(("unknown", "horizon", "../x", "a/b", *hostile.TEXTS)) + ".npy"
    return [*members, _stored(name, arrays.write(arrays.any_array(rng)))]


def _many(rng: Random, members: list[Member]) -> list[Member]:
    return members + [_stored(f"more_{index}.npy", b"") for index in range(3000)]


def _lying(rng: Random, members: list[Member]) -> list[Member]:
    """Declared sizes, checksums and flags that are not true."""

    def lie(member: Member) -> list[Member]:
        sizes = (0, 1, member.size + 1, 2**31, 2**32 - 1)
        return [
            rng.choice(
                (
                    member._replace(size=rng.choice(sizes)),
                    member._replace(crc=0),
                    member._replace(flags=rng.choice((1, 8, 0x41))),
                    member._replace(method=rng.choice((1, 9, 93, 99, *_METHODS))),
                )
            )
        ]

    return _one(rng, members, lie)


def _bomb(rng: Random, members: list[Member]) -> list[Member]:
    """Few bytes that are hundreds of MiB; the declared size tells it, or does not."""

    def explode(member: Member) -> list[Member]:
        bomb = rng.choice((deflated_bomb, bzip2_bomb))(member.name)
        return [bomb if rng.random() < 0.5 else bomb._replace(size=rng.choice((128, 4096)))]

    return _one(rng, members, explode)


_WAYS = (
    _array,
    _array,
    _array,
    _array,
    _gone,
    _twice,
    _renamed,
    _added,
    _lying,
    _lying,
    _bomb,
    _many,
)


# ------------------------------------------------------------------------------------- compression


def _deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def _lzma(data: bytes) -> bytes:
    """As ZIP stores it: a version and the properties come first."""
    filters = [{"id": lzma.FILTER_LZMA1}]
    properties = lzma._encode_filter_properties(filters[0])  # type: ignore[attr-defined]
    head = struct.pack("<BBH", 9, 4, len(properties)) + properties
    return head + lzma.compress(data, lzma.FORMAT_RAW, filters=filters)


_METHODS: dict[int, Callable[[bytes], bytes]] = {
    _STORED: bytes,
    _DEFLATED: _deflate,
    _BZIP2: bz2.compress,
    _LZMA: _lzma,
}


def _compressed(rng: Random, member: Member) -> Member:
    """In another way, and now and then damaged."""
    if member.method != _STORED or member.flags:
        return member
    method = rng.choice(list(_METHODS))
    data = _METHODS[method](member.data)
    if rng.random() < 0.2 and data:
        at = rng.randrange(len(data))
        data = data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
    return member._replace(data=data, method=method)


@functools.cache
def _zeros() -> tuple[bytes, int, int]:
    """The header of an array of zeros, and the checksum and size of all of it."""
    file = io.BytesIO()
    shape = (BOMB_BLOCKS * 2**17,)
    np.lib.format.write_array_header_1_0(
        file, {"descr": "<f8", "fortran_order": False, "shape": shape}
    )
    crc = zlib.crc32(file.getvalue())
    for _ in range(BOMB_BLOCKS):
        crc = zlib.crc32(_BLOCK, crc)
    return file.getvalue(), crc, len(file.getvalue()) + BOMB_BLOCKS * len(_BLOCK)


@functools.cache
def deflated_bomb(name: str) -> Member:
    """One block of zeros, as often as it takes: after a full flush blocks stand alone."""
    header, crc, size = _zeros()
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    head = packer.compress(header) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(_BLOCK) + packer.flush(zlib.Z_FULL_FLUSH)
    return Member(name, head + block * BOMB_BLOCKS + packer.flush(), _DEFLATED, crc, size)


_BZIP2_BOMB = (  # bz2.compress of the header and the zeros, which takes seconds
    "QlpoOTFBWSZTWVf84qoFfkHfoOAQQOR2VAEDQiCvRd0KCAAACCAAlIZTSnpMJobUepoMEz1J+lBFVPUyYIMIwCAN"
    "CH4FAFVRICKAKqibfkEUASSSCL+TUiNocjkiuToM4w6QuiKaJSlLSh9YHHCfzDFcu+zJYz9xrweoXsm/ucwk6rVF"
    "7IQSAASSSE/mKCskymshwTxb4CvxyAAYAAABBAAGEAmoyFQEtSFQEuYoKyTKayHBPFvgK/HIABgAAAEEAAYQCajI"
    "VAS1IVAS5igrJMprIcE8W+Ar8cgAGAAAAQQABhAJqMhUBLUhUBLmKCskymshwTxb4CvxyAAYAAABBAAGEAmoyFQE"
    "tSFQEuYoKyTKayHBPFvgK/HIABgAAAEEAAYQCajIVAS1IVAS5igrJMprIcE8W+Ar8cgAGAAAAQQABhAJqMhUBLUh"
    "UBLmKCskymshwTxb4CvxyAAYAAABBAAGEAmoyFQEtSFQEuYoKyTKayHBPFvgK/HIABgAAAEEAAYQCajIVAS1IVAS"
    "5igrJMprPP9LYMAGEkwAGAAAQAABBAAGGYClNMREFsSIgvF3JFOFCQ5I0myA"
)


def bzip2_bomb(name: str) -> Member:
    """A few hundred bytes."""
    _, crc, size = _zeros()
    return Member(name, base64.b64decode(_BZIP2_BOMB), _BZIP2, crc, size)
