"""The folder of a board: what was asked for, the models, and a sweep for every part.

.lock                 says that the folder is a board's, and is locked by its only writer
board.json            the suite, who takes part, and what cannot be done or failed
models/NAME.npz       the suite's models
sweeps/PART/          a sweep's folder, as `cmdpax.sweep` writes it
"""

import copy
import os
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, StringConstraints, ValidationError

from cmdpax.board.suites import Suite
from cmdpax.errors import FileError, ModelError, ParameterError, in_line
from cmdpax.experiments.ownership import OwnedFolder
from cmdpax.experiments.records import seal, sealed_text
from cmdpax.model.cmdp import CMDP
from cmdpax.model.files import load, save
from cmdpax.storage.paths import exists
from cmdpax.storage.texts import parse_json, read_bytes
from cmdpax.storage.writing import remove_all_left_behind, remove_left_behind, write_text

FORMAT = 1
_FILE = "board.json"
_Digest = Annotated[str, StringConstraints(pattern=r"\A[0-9a-f]{8,16}\z")]


class Chosen(BaseModel):
    """A configuration: its digest in a sweep, and its parameters in words."""

    digest: _Digest
    words: str


class Entry(BaseModel):
    """An algorithm on the board.

    Attributes:
        tables: its configurations as keys of a specification.
        traits: what is known about it, so that no reader has to import it.
        chosen: its configurations by part, in the same order.
        skipped: by part and family, why it cannot do them.
        finished: by part, the families that were run to the end, whether or not all runs succeeded.
        failures: by part, what failed.
    """

    tables: list[dict[str, Any]]
    traits: dict[str, bool | str]
    chosen: dict[str, list[Chosen]] = {}
    skipped: dict[str, dict[str, str]] = {}
    finished: dict[str, list[str]] = {}
    failures: dict[str, list[str]] = {}


class Record(BaseModel):
    """The content of `board.json`."""

    format: int
    suite: str
    digest: _Digest
    entries: dict[str, Entry] = {}


class BoardFolder(OwnedFolder):
    """The files of a board."""

    content = "board"
    folders = ("models", "sweeps")
    files = (_FILE,)

    def is_earlier(self) -> bool:
        """No version wrote boards without signing them."""
        return False

    @property
    def record_path(self) -> Path:
        """Where the record is."""
        return self.path / _FILE

    def sweep_path(self, part: str) -> Path:
        """The folder of a part's sweep."""
        return self.path / "sweeps" / part

    def model_path(self, name: str) -> Path:
        """Where a model is."""
        return self.path / "models" / f"{name}.npz"

    def sweep_away(self) -> None:
        """Remove what a killed process left; for the owner only."""
        remove_left_behind(self.record_path)
        remove_all_left_behind(self.path / "models")

    def write_model(self, name: str, cmdp: CMDP) -> None:
        """Write a model, unless it is there whole."""
        path = self.model_path(name)
        try:
            whole = exists(path) and load(path).fingerprint == cmdp.fingerprint
        except (FileError, ModelError):
            whole = False
        if not whole:
            save(cmdp, path)

    def read(self) -> Record | None:
        """The record; None where there is none yet.

        Raises:
            FileError: it is damaged, or a later version wrote it.
        """
        path = self.record_path
        if not exists(path):
            return None
        try:
            content = parse_json(read_bytes(path))
            if not isinstance(content, dict) or content.pop("seal", None) != seal(content):
                raise ValueError("its checksum is wrong")
            record = Record.model_validate(content)
        except (ValidationError, ValueError) as error:
            why = in_line(error)[:200]
            raise FileError(f"{path} is damaged ({why}); use a new folder.") from None
        if record.format > FORMAT:
            raise FileError(f"{path} was written by a newer cmdpax; upgrade.")
        return record

    def write(self, record: Record) -> None:
        """Replace the record, if it has changed."""
        if self.read() != record:
            text = sealed_text(record.model_dump(mode="json"), indent=1)
            write_text(self.record_path, text, follow_links=False)

    def record_of(self, suite: Suite) -> Record:
        """The record of a suite's board, which may be new.

        Raises:
            ParameterError: the folder has the board of another suite, or of another version of it.
        """
        record = self.read()
        if record is None:
            return Record(format=FORMAT, suite=suite.name, digest=suite.digest)
        require_same_suite(self.path, record.suite, record.digest, suite)
        return copy.deepcopy(record)


def require_same_suite(
    source: str | os.PathLike[str], name: str, digest: str, suite: Suite
) -> None:
    """Refuse results of another suite, or of another version of this one.

    Raises:
        ParameterError: it says which.
    """
    if name != suite.name:
        raise ParameterError(
            f"{source} has results of the suite {name!r}, not {suite.name!r}; use another folder."
        )
    if digest != suite.digest:
        raise ParameterError(
            f"{source} has results of another version of the suite {name!r} (digest {digest}, "
            f"this cmdpax has {suite.digest}); use the cmdpax that made them, or another folder."
        )
