"""CMDPs in files: `.npz`, and `.json` for small ones.

Both hold the arrays under their names: `transitions` (or `successors` and `probabilities`),
`rewards`, `constraint_rewards`, `thresholds`, `initial`, and the number `horizon`. Nothing is ever
unpickled. Files are written aside and renamed, so that a file is there whole or not at all.
"""

import glob
import io
import json
import os
import tempfile
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from cmdpax.errors import FileError, ModelError, nearest_name
from cmdpax.model import CMDP
from cmdpax.transitions import Successors
from cmdpax.validation import validate

_ASIDE = "writing-"  # in the names of files that are not complete
_COMMON = ("rewards", "constraint_rewards", "thresholds", "initial")
_LISTS = Successors._fields
# What NumPy and zipfile raise on damaged archives: headers are parsed as Python literals, sizes
# may be absurd, flags may ask for passwords (RuntimeError) or unknown methods.
_UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    tokenize.TokenError,
    EOFError,
    KeyError,
    MemoryError,
    OverflowError,
    RuntimeError,
    SyntaxError,
    ValueError,
)


def load(path: str | os.PathLike[str]) -> CMDP:
    """Read a CMDP from a `.npz` or `.json` file, and validate it.

    Raises:
        FileError: the file cannot be read as one, or arrays are missing or unknown.
        ModelError: its arrays do not describe a CMDP.
    """
    path = Path(path)
    read = {".npz": read_npz, ".json": _read_json}[_suffix(path)]
    if not path.exists():
        raise FileError(f"{path} does not exist.")
    if path.is_dir():
        raise FileError(f"{path} is a folder, not a file.")
    try:
        return validate(_from_entries(path, read(path)))
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{path} cannot be read: {error.strerror or error}.") from None


def save(cmdp: CMDP, path: str | os.PathLike[str]) -> None:
    """Write a CMDP to a `.npz` or `.json` file; an existing file is replaced whole.

    Examples:
        >>> import cmdpax, os, tempfile
        >>> cmdp = cmdpax.environments.make("ring")
        >>> path = os.path.join(tempfile.mkdtemp(), "ring.json")
        >>> cmdpax.save(cmdp, path)
        >>> cmdpax.load(path).fingerprint == cmdp.fingerprint
        True
    """
    path = Path(path)
    suffix = _suffix(path)
    validate(cmdp)
    entries: dict[str, Any] = {**cmdp.named_arrays(), "horizon": cmdp.horizon}

    def write_json(file: BinaryIO) -> None:
        lists = {name: np.asarray(entry).tolist() for name, entry in entries.items()}
        file.write(json.dumps(lists).encode() + b"\n")

    if suffix == ".npz":
        write_npz(path, entries)
    else:
        write_atomically(path, write_json)


def write_npz(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write named arrays to an `.npz` file, whole or not at all, and without pickling."""

    def write(file: BinaryIO) -> None:
        np.savez_compressed(file, allow_pickle=False, **arrays)

    write_atomically(path, write)


def write_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8, whole or not at all."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all."""

    def write(file: BinaryIO) -> None:
        file.write(content)

    write_atomically(path, write)


def write_atomically(path: Path, write: Callable[[BinaryIO], None]) -> None:
    """Write a file aside, in the same folder, and rename it when it is complete."""
    require_folder(path)
    aside = None
    try:
        handle, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.{_ASIDE}")
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(aside, 0o666 & ~_umask())
        os.replace(aside, path)
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror or error}.") from error
    finally:
        if aside is not None and os.path.exists(aside):
            os.unlink(aside)


def remove_left_behind(path: Path) -> None:
    """Remove what a process left that was killed while it wrote the file; for its owner only."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.{_ASIDE}????????"):
        left.unlink(missing_ok=True)


def require_folder(path: Path) -> None:
    """Refuse a path that no file can be written to, before any work is done for it."""
    if not path.parent.is_dir():
        raise FileError(
            f"cannot write {path}: the folder {path.parent} does not exist; create it first."
        )
    if path.is_dir():
        raise FileError(f"cannot write {path}: it is a folder.")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in (".npz", ".json"):
        raise FileError(f"{path} has the ending {path.suffix!r}; models are .npz or .json files.")
    return suffix


def read_npz(path: Path) -> dict[str, Any]:
    """All arrays of a file; nothing is unpickled."""
    try:
        with path.open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ValueError("it is a single array")
            archive.close()
            file.seek(0)
            with zipfile.ZipFile(file) as members:
                names = members.namelist()
                return {name.removesuffix(".npy"): _whole(members.read(name)) for name in names}
    except _UNREADABLE as error:
        if "pickle" in str(error).lower():
            reason = "it holds pickled objects, which are never loaded"
        else:
            reason = "it is damaged, truncated or something else"
        raise FileError(f"{path} is not a readable .npz file: {reason}.") from None


def _whole(content: bytes) -> np.ndarray:
    """The array of a member, of which nothing may be left over.

    NumPy stops reading where the header says, and what is not read is not checked.
    """
    file = io.BytesIO(content)
    array = np.lib.format.read_array(file, allow_pickle=False)
    if file.read(1):
        raise ValueError("more content than the header says")
    return array


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise FileError(f"{path} is not a readable .json file: {reason}.") from None
    if not isinstance(content, dict):
        raise FileError(
            f"{path} holds a {type(content).__name__}, expected an object with the arrays."
        )
    if content.get("horizon", 0) is None:
        del content["horizon"]
    return content


def _from_entries(path: Path, entries: Mapping[str, Any]) -> CMDP:
    """Check the names, and make the CMDP."""
    listed = any(name in entries for name in _LISTS)
    needed = ((*_LISTS,) if listed else ("transitions",)) + _COMMON
    missing = [name for name in needed if name not in entries]
    if missing:
        raise FileError(f"{path} lacks the array {missing[0]!r}; it needs {', '.join(needed)}.")
    extra = sorted(set(entries) - {*needed, "horizon"})
    if extra:
        raise FileError(
            f"{path} has the unknown array {extra[0]!r}; "
            f"{nearest_name(extra[0], {*needed, 'horizon'})}."
        )
    arrays = {name: entries[name] for name in needed}
    if listed:
        lists = Successors(*(arrays.pop(name) for name in _LISTS))
        arrays["transitions"] = lists
    return CMDP(**arrays, horizon=entries.get("horizon"))
