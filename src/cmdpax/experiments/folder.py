"""A folder of results: parts that are there whole or not at all, and one writer at a time.

    .lock                     says that the folder is a sweep's, and is locked by its only writer
    manifest.json             the specification, the CMDPs and their optima, versions, device
    cmdps/FINGERPRINT.npz     the CMDPs' arrays
    final/BATCH.parquet       a row per run
    curves/BATCH.parquet      a row per run and recorded episode
    parts/BATCH.json          written last: the batch's runs, and the checksums of its two files

A batch counts from the moment its entry in `parts` is there. A process may be killed at any other
moment: what it left is swept away by the next one. Nothing else is ever removed or replaced, and
links are not followed out of the folder.
"""

import contextlib
import io
import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cmdpax.errors import FileError, ModelError, in_line
from cmdpax.experiments.ownership import Claim, listed
from cmdpax.experiments.records import (
    NewerFormatError,
    all_settings,
    checksum,
    file_checksum,
    read_entry,
    read_manifest,
    require_agreement,
    sealed_text,
)
from cmdpax.model.cmdp import CMDP
from cmdpax.model.files import load, save
from cmdpax.storage.paths import DamagedError, exists, reason, status
from cmdpax.storage.texts import read_bytes
from cmdpax.storage.writing import (
    remove_all_left_behind,
    remove_left_behind,
    write_bytes,
    write_text,
)

if TYPE_CHECKING:
    import polars

TABLES = ("final", "curves")
_FOLDERS = ("cmdps", *TABLES, "parts")
_MANIFEST = "manifest.json"
_TABLE = re.compile(r"([0-9a-f]{16})\.parquet")
_ENTRY = re.compile(r"([0-9a-f]{16})\.json")


class Known(NamedTuple):
    """What a folder says about all of its runs.

    Attributes:
        manifest: if it is there whole.
        is_damaged: whether it is there, and not what was written.
        settings: what all runs share; None if the folder says nothing about it.
        cmdps: the CMDPs by fingerprint, as sealed files describe them: nothing else is believed.
        runs: those of all batches, damaged tables or not.
    """

    manifest: dict[str, Any] | None
    is_damaged: bool
    settings: dict[str, Any] | None
    cmdps: dict[str, Any]
    runs: set[str]


class Folder:
    """The files of a sweep."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Nothing is touched before `locked`."""
        self.path = Path(path)
        try:
            str(self.path).encode()
        except UnicodeEncodeError:
            raise FileError(f"the path {str(path)!r} is not Unicode; rename the folder.") from None

    @property
    def manifest_path(self) -> Path:
        """Where the manifest is."""
        return self.path / _MANIFEST

    def table_path(self, table: str, batch: str) -> Path:
        """Where a batch's rows of `final` or `curves` are."""
        return self.path / table / f"{batch}.parquet"

    def entry_path(self, batch: str) -> Path:
        """Where it is said that a batch is there."""
        return self.path / "parts" / f"{batch}.json"

    def cmdp_path(self, fingerprint: str) -> Path:
        """Where a CMDP's arrays are."""
        return self.path / "cmdps" / f"{fingerprint[:16]}.npz"

    @property
    def claim(self) -> Claim:
        """What tells the folder from that of somebody else."""
        return Claim(self.path, "sweep", _FOLDERS, (_MANIFEST,), self._is_earlier)

    def _is_earlier(self) -> bool:
        """Earlier versions did not sign; they wrote sealed batches, and a manifest first."""
        known = self.known()
        return known.manifest is not None or bool(known.runs)

    # ------------------------------------------------------------------------------------ writing

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Be the only writer. The operating system frees the lock of a process that is killed."""
        with self.claim.held():
            self._sweep_away()
            yield

    def _sweep_away(self) -> None:
        """Remove what a killed process left: files that were being written, tables of no part."""
        remove_left_behind(self.manifest_path)
        for name in _FOLDERS:
            remove_all_left_behind(self.path / name)
        batches = self._batches()
        for table in TABLES:
            for name in listed(self.path / table):
                match = _TABLE.fullmatch(name)
                if match and match[1] not in batches:
                    _remove(self.path / table / name)

    def write_manifest(self, content: dict[str, Any]) -> None:
        """Replace the manifest."""
        write_text(self.manifest_path, sealed_text(content, indent=1), follow_links=False)

    def has_cmdp(self, fingerprint: str) -> bool:
        """Whether a CMDP's arrays are there whole."""
        try:
            return load(self.cmdp_path(fingerprint)).fingerprint == fingerprint
        except (FileError, ModelError):
            return False

    def write_cmdp(self, cmdp: CMDP) -> bool:
        """Keep a CMDP's arrays, if they are not there whole; whether they were written."""
        if self.has_cmdp(cmdp.fingerprint):
            return False
        path = self.cmdp_path(cmdp.fingerprint)
        _remove(path)  # a link: its target is not ours to replace
        save(cmdp, path)
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
            write_bytes(self.table_path(name, batch), content, follow_links=False)
        entry = {
            "runs": tables["final"]["run"].to_list(),
            "checksums": {name: checksum(content) for name, content in files.items()},
            **context,
        }
        write_text(self.entry_path(batch), sealed_text(entry), follow_links=False)

    # ------------------------------------------------------------------------------------ reading

    def read_manifest(self) -> dict[str, Any]:
        """The manifest, or an error that says what is wrong."""
        found = self._manifest(self.entries().values())
        if found is None:
            raise FileError(f"{self.path} holds no results: {self.manifest_path} does not exist.")
        return found[0]

    def known(self) -> Known:
        """What the folder says about all of its runs, even if its manifest is lost or damaged."""
        entries = list(self.entries().values())
        runs = {run for entry in entries for run in entry["runs"]}
        cmdps = {fp: described for entry in entries for fp, described in entry["cmdps"].items()}
        is_damaged = False
        try:
            found = self._manifest(entries)
        except DamagedError:
            found, is_damaged = None, True
        if found is None:
            settings = all_settings(entries[0]["shared"]) if entries else None
            return Known(None, is_damaged, settings, cmdps, runs)
        manifest, is_sealed = found
        settings = all_settings(manifest["specification"])
        return Known(manifest, False, settings, manifest["cmdps"] if is_sealed else cmdps, runs)

    def _manifest(self, entries: Iterable[dict[str, Any]]) -> tuple[dict[str, Any], bool] | None:
        """The manifest and whether it is sealed, if it is there; it must agree with the batches."""
        path = self.manifest_path
        if not exists(path):
            return None
        try:
            found = read_manifest(read_bytes(path))
            require_agreement(found[0], entries)
        except NewerFormatError as error:
            raise FileError(
                f"{self.path} was written by a newer cmdpax ({error}); upgrade."
            ) from None
        except ValueError as error:
            why = in_line(error)
            raise DamagedError(
                f"{path} is damaged ({why}); run the sweep again to write it anew."
            ) from None
        return found

    def entries(self) -> dict[str, dict[str, Any]]:
        """What `write_part` wrote about every batch whose entry is undamaged."""
        found = {}
        for batch in self._batches():
            with contextlib.suppress(ValueError):
                found[batch] = read_entry(read_bytes(self.entry_path(batch)), batch)
        return found

    def parts(self) -> dict[str, list[str]]:
        """The runs of every whole batch; raises at the first damaged file."""
        found = {}
        for batch in self._batches():
            runs, damaged = self._check_part(batch)
            if damaged is not None:
                raise FileError(f"{damaged} is damaged; run the sweep again to recompute it.")
            found[batch] = runs
        return found

    def drop_damaged(self) -> tuple[list[Path], set[str]]:
        """Forget batches with a damaged or missing file: those files, and the runs that stay."""
        dropped, whole = [], set()
        for batch in self._batches():
            runs, damaged = self._check_part(batch)
            if damaged is None:
                whole.update(runs)
                continue
            dropped.append(damaged)
            tables = [self.table_path(name, batch) for name in TABLES]
            for file in (self.entry_path(batch), *tables):
                _remove(file)
        return dropped, whole

    def _batches(self) -> list[str]:
        """The names of all entries; a file of another name is not ours."""
        matches = (_ENTRY.fullmatch(name) for name in listed(self.path / "parts"))
        return [match[1] for match in matches if match]

    def _check_part(self, batch: str) -> tuple[list[str], Path | None]:
        """The runs of a batch, and the first of its files that is not what was written."""
        path = self.entry_path(batch)
        try:
            entry = read_entry(read_bytes(path), batch)
        except ValueError:
            return [], path
        for name in TABLES:
            file = self.table_path(name, batch)
            if not exists(file) or file_checksum(file) != entry["checksums"].get(name):
                return entry["runs"], file
        return entry["runs"], None


def as_parquet(frame: "polars.DataFrame") -> bytes:
    """A table as the content of a Parquet file."""
    content = io.BytesIO()
    frame.write_parquet(content)
    return content.getvalue()


def _remove(path: Path) -> None:
    """Remove a file; of a link, the link alone."""
    found = status(path, follow_links=False)
    if found is None or stat.S_ISDIR(found.st_mode):
        return
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise FileError(f"cannot remove {path}: {reason(error)}.") from None
