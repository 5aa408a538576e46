"""`.npz` archives from outside: names and declared sizes are checked before anything is unpacked.

An archive of 2,500 bytes can declare, and hold, gigabytes. So its table of contents is read first,
then the headers of its arrays, and only what fits the limit and agrees with itself is unpacked.
Nothing is ever unpickled.
"""

import math
import re
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from cmdpax.errors import CmdpaxError, FileError
from cmdpax.storage.limits import require_file_room
from cmdpax.storage.paths import DamagedError, reason, require_file

_MAGIC = b"\x93NUMPY"
_LONGEST_HEADER = 10_000  # bytes, as in NumPy
_ENTRIES = {
    "descr": re.compile(
        r"""['"]descr['"]\s*:\s*['"]([<>|=]?[biufcSUOmMV?]\d{0,9}(?:\[\w{1,4}\])?)['"]"""
    ),
    "order": re.compile(r"""['"]fortran_order['"]\s*:\s*(True|False)"""),
    "shape": re.compile(r"""['"]shape['"]\s*:\s*\(([\d,\s]{0,2000})\)"""),
}
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # NumPy writes no other
_MOST_MEMBERS = 100_000


def read_npz(
    path: Path,
    require_names: Callable[[Iterable[str]], None] = lambda names: None,
    least_item: int = 1,
) -> dict[str, np.ndarray]:
    """All arrays of an archive.

    Args:
        path: the file.
        require_names: called with the arrays' names; raises where it expects others.
        least_item: the bytes that a number will take at least, such as 8 if all become doubles.

    Raises:
        DamagedError: it is not an archive of arrays, or it is damaged.
        FileError: it cannot be read, or is too large to be unpacked.
    """
    require_file(path)
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            members = _members(archive)
            require_names(members)
            require_file_room(path, sum(info.file_size for info in members.values()))
            sizes = [_unpacked(archive, info, least_item) for info in members.values()]
            require_file_room(path, sum(sizes))
            return {name: _read(archive, info) for name, info in members.items()}
    except CmdpaxError:
        raise
    except OSError as error:
        raise FileError(f"{path} cannot be read: {reason(error)}.") from None
    except Exception as error:
        # Whatever zipfile, zlib and NumPy raise over damaged content: there is no end to it.
        pickled = isinstance(error, ValueError) and "pickled" in str(error)
        why = str(error) if pickled else "it is damaged, truncated or something else"
        raise DamagedError(f"{path} is not a readable .npz file: {why}.") from None


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The members by the names of their arrays; each name once."""
    infos = archive.infolist()
    members = {info.filename.removesuffix(".npy"): info for info in infos}
    if not infos or len(members) < len(infos) or len(infos) > _MOST_MEMBERS:
        raise ValueError("no members, too many, or two of one name")
    if any(info.compress_type not in _METHODS for info in infos):
        raise ValueError("a method of compression that NumPy does not use")
    return members


def _unpacked(archive: zipfile.ZipFile, info: zipfile.ZipInfo, least_item: int) -> int:
    """The bytes that an array takes, if the member is exactly as long as its header says."""
    with archive.open(info) as file:
        shape, _, dtype = _header(file)
        start = file.tell()
    if dtype.hasobject:
        raise ValueError("it holds pickled objects, which are never loaded")
    if start + math.prod(shape) * dtype.itemsize != info.file_size:
        raise ValueError("another size than the header says")
    return math.prod(shape) * max(dtype.itemsize, least_item)


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    """The array; the archive's checksum is compared once all of it has been read."""
    with archive.open(info) as file:
        shape, in_columns, dtype = _header(file)
        content = file.read()
    order: Literal["F", "C"] = "F" if in_columns else "C"
    return np.ndarray(shape, dtype, content, order=order)


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and type, as NumPy's formats 1 and 2 write them.

    NumPy's own reader takes headers of any length into memory, and warns about odd ones.
    """
    start = file.read(len(_MAGIC) + 2)
    if start[:-2] != _MAGIC or start[-2:] not in (b"\x01\x00", b"\x02\x00"):
        raise ValueError("no array")
    length = int.from_bytes(file.read(2 * start[-2]), "little")
    if length > _LONGEST_HEADER:
        raise ValueError("a header that is too long")
    text, found = file.read(length).decode("latin1"), {}
    for name, pattern in _ENTRIES.items():
        found[name], *others = pattern.findall(text)
        text = pattern.sub("", text)
        if others:
            raise ValueError(f"more than one {name}")
    if not re.fullmatch(r"\s*\{[\s,]*\}\s*", text):
        raise ValueError("more in the header than an array has")
    shape = tuple(int(length) for length in found["shape"].split(",") if length.strip())
    return shape, found["order"] == "True", np.dtype(found["descr"])
