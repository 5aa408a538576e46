"""A folder of results: parts that are there whole or not at all, and one writer at a time.

    .lock                     says that the folder is a sweep's, and is locked by its only writer
    manifest.json             the specification, the CMDPs and their optima, versions, device
    cmdps/FINGERPRINT.npz     the CMDPs' arrays
    final/BATCH.parquet       a row per run
    curves/BATCH.parquet      a row per run and recorded episode
    parts/BATCH.json          written last: the batch's runs, and the checksums of its two files

A batch counts from the moment its entry in `parts` is there. A process may be killed before that:
the next one sweeps away what it left. Nothing else is ever removed or replaced, and links are not
followed out of the folder.
"""

import contextlib
import io
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import polars

from cmdpax.errors import FileError, ModelError, ParameterError, in_line
from cmdpax.experiments.ownership import OwnedFolder, listed
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

TABLES = ("final", "curves")
_MANIFEST = "manifest.json"
_TABLE = re.compile(r"([0-9a-f]{16})\.parquet")
_ENTRY = re.compile(r"([0-9a-f]{16})\.json")


class Folder(OwnedFolder):
    """The files of a sweep."""

    content = "sweep"
    folders = ("cmdps", *TABLES, "parts")
    files = (_MANIFEST,)

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Nothing is touched before `locked`."""
        super().__init__(path)
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
        """Where the entry is that makes a batch count."""
        return self.path / "parts" / f"{batch}.json"

    def cmdp_path(self, fingerprint: str) -> Path:
        """Where a CMDP's arrays are."""
        return self.path / "cmdps" / f"{fingerprint[:16]}.npz"

    def is_earlier(self) -> bool:
        """Whether it has what earlier versions wrote: a manifest, and then sealed batches."""
        entries = self.entries()
        try:
            manifest, _ = self._manifest(entries.values())
        except DamagedError:
            return bool(entries)
        return manifest is not None or bool(entries)

    # ------------------------------------------------------------------------------------ writing

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Be the only writer, and remove what a killed process left."""
        with super().locked():
            self._sweep_away()
            yield

    def _sweep_away(self) -> None:
        """Remove files that were being written, and tables of no part."""
        remove_left_behind(self.manifest_path)
        for name in self.folders:
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

    def read_cmdp(self, fingerprint: str) -> CMDP:
        """Read a CMDP; its fingerprint is checked."""
        path = self.cmdp_path(fingerprint)
        cmdp = load(path)
        if cmdp.fingerprint != fingerprint:
            raise FileError(f"{path} is damaged; run the sweep again to write it anew.")
        return cmdp

    def has_cmdp(self, fingerprint: str) -> bool:
        """Whether a CMDP's arrays are there whole."""
        try:
            self.read_cmdp(fingerprint)
        except (FileError, ModelError):
            return False
        return True

    def write_cmdp(self, cmdp: CMDP) -> bool:
        """Write a CMDP's arrays, unless they are there whole; returns whether it did."""
        if self.has_cmdp(cmdp.fingerprint):
            return False
        path = self.cmdp_path(cmdp.fingerprint)
        _remove(path)  # a link: its target is not ours to replace
        save(cmdp, path)
        return True

    def write_part(
        self, batch: str, tables: dict[str, polars.DataFrame], context: dict[str, Any]
    ) -> None:
        """Add a batch: its tables first, then the entry that makes it count.

        From the context a lost manifest can be written anew: it says what the runs share, what
        their CMDPs are and what they were computed with.
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
        manifest, _ = self._manifest(self.entries().values())
        if manifest is None:
            raise FileError(f"{self.path} holds no results: {self.manifest_path} does not exist.")
        return manifest

    def known(
        self, shared: Mapping[str, Any]
    ) -> tuple[dict[str, Any] | None, dict[str, Any], set[str]]:
        """What the folder says about its runs, even if the manifest is lost or damaged.

        Returns:
            The manifest, if it is whole; the CMDPs by fingerprint, as sealed files describe them,
            since nothing else is believed; and the runs of all batches, damaged tables or not.

        Raises:
            ParameterError: the runs share other settings than these.
        """
        entries = list(self.entries().values())
        try:
            manifest, is_sealed = self._manifest(entries)
        except DamagedError:
            manifest, is_sealed = None, False
        said = [entry["shared"] for entry in entries[:1]]
        for settings in said if manifest is None else [manifest["specification"]]:
            self._require_same(shared, all_settings(settings))
        sealed = [manifest] if manifest is not None and is_sealed else entries
        cmdps = {fp: described for one in sealed for fp, described in one["cmdps"].items()}
        return manifest, cmdps, {run for entry in entries for run in entry["runs"]}

    def _require_same(self, shared: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
        for name, new in shared.items():
            if settings.get(name) != new:
                raise ParameterError(
                    f"{self.path} holds runs with {name} = {settings.get(name)}, the specification "
                    f"has {new}; use another folder."
                )

    def _manifest(self, entries: Iterable[dict[str, Any]]) -> tuple[dict[str, Any] | None, bool]:
        """The manifest, if there is one, and whether it is sealed; batches must agree with it."""
        path = self.manifest_path
        if not exists(path):
            return None, False
        try:
            manifest, is_sealed = read_manifest(read_bytes(path))
            require_agreement(manifest, entries)
        except NewerFormatError as error:
            raise FileError(
                f"{self.path} was written by a newer cmdpax ({error}); upgrade."
            ) from None
        except ValueError as error:
            why = in_line(error)
            raise DamagedError(
                f"{path} is damaged ({why}); run the sweep again to write it anew."
            ) from None
        return manifest, is_sealed

    def entries(self) -> dict[str, dict[str, Any]]:
        """What `write_part` wrote about every batch whose entry is undamaged."""
        found = {}
        for batch in self._batches():
            with contextlib.suppress(ValueError):
                found[batch] = read_entry(read_bytes(self.entry_path(batch)), batch)
        return found

    def parts(self) -> dict[str, list[str]]:
        """The runs of every batch; raises a `FileError` at the first damaged file."""
        found = {}
        for batch, runs, damaged in self._checked_parts():
            if damaged is not None:
                raise FileError(f"{damaged} is damaged; run the sweep again to recompute it.")
            found[batch] = runs
        return found

    def is_whole(self, fingerprints: Iterable[str]) -> bool:
        """Whether no batch is damaged, and these CMDPs are there."""
        try:
            self.parts()
        except FileError:
            return False
        return all(self.has_cmdp(fingerprint) for fingerprint in fingerprints)

    def drop_damaged(self) -> tuple[list[Path], set[str]]:
        """Remove damaged batches; returns the files that were wrong, and the runs that stay."""
        dropped, whole = [], set()
        for batch, runs, damaged in self._checked_parts():
            if damaged is None:
                whole.update(runs)
                continue
            dropped.append(damaged)
            tables = [self.table_path(name, batch) for name in TABLES]
            for file in (self.entry_path(batch), *tables):
                _remove(file)
        return dropped, whole

    def _batches(self) -> list[str]:
        """The names of all batches; a file of another name is not ours."""
        matches = (_ENTRY.fullmatch(name) for name in listed(self.path / "parts"))
        return [match[1] for match in matches if match]

    def _checked_parts(self) -> Iterator[tuple[str, list[str], Path | None]]:
        """Every batch, its runs, and the first of its files that is not what was written."""
        for batch in self._batches():
            path = self.entry_path(batch)
            try:
                entry = read_entry(read_bytes(path), batch)
            except ValueError:
                yield batch, [], path
                continue
            checksums = {
                self.table_path(name, batch): entry["checksums"].get(name) for name in TABLES
            }
            wrong = (
                file
                for file, expected in checksums.items()
                if not exists(file) or file_checksum(file) != expected
            )
            yield batch, entry["runs"], next(wrong, None)


def as_parquet(frame: polars.DataFrame) -> bytes:
    """A table as the content of a Parquet file."""
    content = io.BytesIO()
    frame.write_parquet(content)
    return content.getvalue()


def _remove(path: Path) -> None:
    """Remove a file, or a link without its target."""
    found = status(path, follow_links=False)
    if found is None or stat.S_ISDIR(found.st_mode):
        return
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise FileError(f"cannot remove {path}: {reason(error)}.") from None
