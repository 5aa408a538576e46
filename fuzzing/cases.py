"""A case: what lies in its folder, and what is done with it. Failures are kept as JSON files."""

import base64
import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

INSIDE, OUTSIDE, TEMPORARY = "inside", "outside", "temporary"
"""The folders of a case: its own, one that nothing may touch, and one that must end empty."""
CANARY = "thesis.parquet"
"""A file outside, of the kind that a sweep might take for its own."""


class Entry(NamedTuple):
    """Something in the folder of a case.

    Attributes:
        path: relative to the folder.
        content: of a file.
        kind: "file", "folder", "link" or "pipe".
        leads_to: where a link leads.
        mode: permissions, where they are not the usual ones.
        foreign: nobody may change it.
    """

    path: str
    content: bytes = b""
    kind: str = "file"
    leads_to: str = ""
    mode: int | None = None
    foreign: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return self._asdict() | {"content": base64.b64encode(self.content).decode()}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Entry":
        """What `to_dict` took apart."""
        return cls(**(content | {"content": base64.b64decode(content["content"])}))


class Input(NamedTuple):
    """What a target is given.

    Attributes:
        entries: what lies in the folder.
        arguments: what is done with it, as JSON can hold it.
    """

    entries: tuple[Entry, ...]
    arguments: dict[str, Any]

    def find(self, path: str) -> Entry:
        """The entry of this path."""
        return next(entry for entry in self.entries if entry.path == path)

    def with_entry(self, changed: Entry) -> "Input":
        """The same with one entry replaced, or added."""
        others = tuple(entry for entry in self.entries if entry.path != changed.path)
        return self._replace(entries=(*others, changed))


class Case(NamedTuple):
    """Which input: the case of this number, of a target and a seed."""

    target: str
    seed: int
    number: int

    @property
    def name(self) -> str:
        """For files."""
        return f"{self.target}-{self.seed}-{self.number}"


# ----------------------------------------------------------------------------------------- folders


@contextlib.contextmanager
def laid_out(given: Input, folder: Path) -> Iterator[Path]:
    """The folder of a case with everything in it, and the working directory; then without."""
    remove(folder)
    inside = folder / INSIDE
    for name in (INSIDE, OUTSIDE, TEMPORARY):
        (folder / name).mkdir(parents=True)
    (folder / OUTSIDE / CANARY).write_bytes(b"years of work")
    for entry in given.entries:
        _lay(inside, entry)
    for entry in given.entries:
        if entry.mode is not None and entry.kind != "link":
            os.chmod(inside / entry.path, entry.mode)
    before = os.getcwd()
    os.chdir(inside)
    try:
        yield inside
    finally:
        os.chdir(before)
        remove(folder)


def _lay(inside: Path, entry: Entry) -> None:
    path = inside / entry.path
    path.parent.mkdir(parents=True, exist_ok=True)
    if entry.kind == "folder":
        path.mkdir(exist_ok=True)
    elif entry.kind == "link":
        path.symlink_to(entry.leads_to)
    elif entry.kind == "pipe":
        os.mkfifo(path)
    else:
        path.write_bytes(entry.content)


def remove(folder: Path) -> None:
    """A folder with all that is in it, whatever its permissions."""
    if folder.exists():
        for parent, folders, _ in os.walk(folder):
            for name in folders:
                path = os.path.join(parent, name)
                if not os.path.islink(path):
                    os.chmod(path, 0o700)
        shutil.rmtree(folder)


# ---------------------------------------------------------------------------------------- failures


class Failure(NamedTuple):
    """A case that is a finding.

    Attributes:
        case: which one.
        kind: what was broken, in a word or two.
        place: the file and line of cmdpax where it came from, as far as that is known.
        text: everything that is known, such as a traceback.
    """

    case: Case
    kind: str
    place: str
    text: str

    @property
    def defect(self) -> tuple[str, str, str]:
        """What failures of one cause most likely share."""
        return (self.case.target, self.kind, self.place)


def keep(failure: Failure, given: Input, folder: Path) -> Path:
    """Write a failure with its whole input; returns the file."""
    content = {
        **failure.case._asdict(),
        "kind": failure.kind,
        "place": failure.place,
        "text": failure.text.splitlines(),
        "arguments": given.arguments,
        "entries": [entry.to_dict() for entry in given.entries],
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{failure.case.name}.json"
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="ascii")
    return path


def kept(path: Path) -> tuple[Failure, Input]:
    """What `keep` wrote."""
    content = json.loads(path.read_text(encoding="ascii"))
    case = Case(content["target"], content["seed"], content["number"])
    failure = Failure(case, content["kind"], content["place"], "\n".join(content["text"]))
    entries = tuple(Entry.from_dict(entry) for entry in content["entries"])
    return failure, Input(entries, content["arguments"])
