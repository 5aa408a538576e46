"""A folder of results: parts that are there whole or not at all, and one writer at a time.

    manifest.json             the specification, the CMDPs and their optima, versions, device
    cmdps/FINGERPRINT.npz     the CMDPs' arrays
    final/BATCH.parquet       a row per run
    curves/BATCH.parquet      a row per run and recorded episode
    parts/BATCH.json          written last: the batch's runs, and the checksums of its two files

A batch counts from the moment its entry in `parts` is there. A process may be killed at any other
moment: what it left is swept away by the next one.
"""

import contextlib
import hashlib
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from cmdpax.errors import FileError
from cmdpax.experiments.runs import batch_name
from cmdpax.files import load, save
from cmdpax.model import CMDP
from cmdpax.storage.writing import write_bytes, write_text

if TYPE_CHECKING:
    import polars

TABLES = ("final", "curves")
_FOLDERS = ("cmdps", *TABLES, "parts")
_LOCK = ".lock"


_MANIFEST = {"specification": dict, "cmdps": dict, "format": int}


class DamagedError(FileError):
    """A file is not what was written."""


class Folder:
    """The files of a sweep."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Nothing is touched before `locked`."""
        self.path = Path(path)

    @property
    def manifest_path(self) -> Path:
        """Where the manifest is."""
        return self.path / "manifest.json"

    def table_path(self, table: str, batch: str) -> Path:
        """Where a batch's rows of `final` or `curves` are."""
        return self.path / table / f"{batch}.parquet"

    def cmdp_path(self, fingerprint: str) -> Path:
        """Where a CMDP's arrays are."""
        return self.path / "cmdps" / f"{fingerprint[:16]}.npz"

    # ------------------------------------------------------------------------------------ writing

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Be the only writer. The operating system frees the lock of a process that is killed."""
        self._create()
        try:
            file = (self.path / _LOCK).open("ab")
        except OSError as error:
            raise FileError(f"cannot write to {self.path}: {error.strerror or error}.") from None
        with file:
            try:
                _lock(file)
            except OSError:
                raise FileError(
                    f"{self.path} is being written by another process; wait for it, or use "
                    "another folder."
                ) from None
            self._sweep_away()
            yield

    def _create(self) -> None:
        if self.path.is_dir() and not self.manifest_path.exists():
            known = {*_FOLDERS, _LOCK}
            others = [entry.name for entry in self.path.iterdir() if not _ours(entry.name, known)]
            if others:
                raise FileError(
                    f"{self.path} holds other files such as {sorted(others)[0]}; use a new folder."
                )
        try:
            for name in _FOLDERS:
                (self.path / name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"cannot write to {self.path}: {error.strerror or error}.") from None

    def _sweep_away(self) -> None:
        """Remove what a killed process left: files that were being written, tables of no part."""
        for folder in (self.path, *(self.path / name for name in _FOLDERS)):
            for ending in ("json", "npz", "parquet"):
                for leftover in folder.glob(f".*.{ending}.*"):
                    leftover.unlink(missing_ok=True)
        for table in TABLES:
            for file in (self.path / table).glob("*.parquet"):
                if not (self.path / "parts" / f"{file.stem}.json").exists():
                    file.unlink(missing_ok=True)

    def write_manifest(self, content: dict[str, Any]) -> None:
        """Replace the manifest."""
        text = json.dumps(content, indent=1, allow_nan=False) + "\n"
        write_text(self.manifest_path, text)

    def write_cmdp(self, cmdp: CMDP) -> bool:
        """Keep a CMDP's arrays, if they are not there whole; whether they were written."""
        try:
            if load(self.cmdp_path(cmdp.fingerprint)).fingerprint == cmdp.fingerprint:
                return False
        except (FileError, ValueError):
            pass
        save(cmdp, self.cmdp_path(cmdp.fingerprint))
        return True

    def write_part(
        self, batch: str, tables: dict[str, "polars.DataFrame"], context: dict[str, Any]
    ) -> None:
        """Add a batch: its tables first, then the entry that makes it count.

        The context says what the runs share, what their CMDPs are, and with what they were
        computed: with it a lost manifest can be written anew.
        """
        files = {name: as_parquet(frame) for name, frame in tables.items()}
        for name, content in files.items():
            write_bytes(self.table_path(name, batch), content)
        entry = {
            "runs": tables["final"]["run"].to_list(),
            "checksums": {name: checksum(content) for name, content in files.items()},
            **context,
        }
        text = json.dumps(entry | {"seal": _seal(entry)}) + "\n"
        write_text(self.path / "parts" / f"{batch}.json", text)

    # ------------------------------------------------------------------------------------ reading

    def read_manifest(self) -> dict[str, Any]:
        """The manifest, or an error that says what is wrong."""
        if not self.manifest_path.exists():
            raise FileError(f"{self.path} holds no results: {self.manifest_path} does not exist.")
        try:
            content = json.loads(_read(self.manifest_path))
            if not isinstance(content, dict) or not all(
                isinstance(content.get(name), kind) for name, kind in _MANIFEST.items()
            ):
                raise ValueError("not a manifest of a sweep")
            return content
        except ValueError as error:
            raise DamagedError(
                f"{self.manifest_path} is damaged ({error}); run the sweep again to write it anew."
            ) from None

    def contexts(self) -> list[dict[str, Any]]:
        """What `write_part` was told of every whole batch."""
        paths = sorted((self.path / "parts").glob("*.json"))
        whole = [path for path in paths if self._check_part(path)[1] is None]
        return [json.loads(_read(path)) for path in whole]

    def parts(self) -> dict[str, list[str]]:
        """The runs of every whole batch; raises at the first damaged file."""
        found = {}
        for path in sorted((self.path / "parts").glob("*.json")):
            runs, damaged = self._check_part(path)
            if damaged is not None:
                raise FileError(f"{damaged} is damaged; run the sweep again to recompute it.")
            found[path.stem] = runs
        return found

    def drop_damaged(self) -> list[Path]:
        """Forget batches with a damaged or missing file; returns those files."""
        dropped = []
        for path in sorted((self.path / "parts").glob("*.json")):
            _, damaged = self._check_part(path)
            if damaged is not None:
                dropped.append(damaged)
                for file in (path, *(self.table_path(name, path.stem) for name in TABLES)):
                    file.unlink(missing_ok=True)
        return dropped

    def _check_part(self, path: Path) -> tuple[list[str], Path | None]:
        """The runs of a batch, and the first of its files that is not what was written."""
        try:
            entry = json.loads(_read(path))
            runs, checksums = list(entry["runs"]), dict(entry["checksums"])
        except (ValueError, TypeError, KeyError):
            return [], path
        if entry.pop("seal", None) != _seal(entry) or batch_name(runs) != path.stem:
            return [], path
        for name in TABLES:
            file = self.table_path(name, path.stem)
            if not file.exists() or checksum(_read(file)) != checksums.get(name):
                return runs, file
        return runs, None


def as_parquet(frame: "polars.DataFrame") -> bytes:
    """A table as the content of a Parquet file."""
    content = io.BytesIO()
    frame.write_parquet(content)
    return content.getvalue()


def _ours(name: str, known: set[str]) -> bool:
    return name in known or name.startswith(".manifest.json.")


def checksum(content: bytes) -> str:
    """Of a file's content."""
    return hashlib.sha256(content).hexdigest()


def _seal(entry: dict[str, Any]) -> str:
    """The checksum of an entry's own content."""
    return checksum(json.dumps(entry, sort_keys=True).encode())


def _read(path: Path) -> bytes:
    """A file that cannot be read is not a damaged one."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}.") from None


def _lock(file: BinaryIO) -> None:
    """An exclusive lock that ends with the process; OSError where another one has it."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
