"""What a page is made of: the sweeps in a folder, and the verdict of a reproduction."""

import os
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from cmdpax.errors import FileError, ParameterError, in_line
from cmdpax.experiments.ownership import listed
from cmdpax.experiments.reading import Results
from cmdpax.storage.paths import exists, is_folder
from cmdpax.storage.texts import parse_json, read_bytes

_MANIFEST, _VERDICT, _REPLAY = "manifest.json", "verdict.json", "replay.json"
_PAPER = "paper"
_LABELS = {
    _PAPER: "The paper's experiment",
    "caps": "Caps on the multipliers",
    "safety": "A margin for strict safety",
    "larger": "Larger CMDPs",
    "long": "Long runs",
}


class Source(NamedTuple):
    """A sweep."""

    name: str
    label: str
    results: Results


class Sources(NamedTuple):
    """All that a folder holds.

    Attributes:
        name: of the folder, without the folders that it is in.
        kind: "sweep" or "reproduction".
        sweeps: each with finished runs; that of the paper first.
        claims: the records of a reproduction's verdict, if it is there.
        command: what made a reproduction, if it says so.
    """

    name: str
    kind: Literal["sweep", "reproduction"]
    sweeps: list[Source]
    claims: list[dict[str, Any]] | None
    command: str | None


def find_sources(folder: str | os.PathLike[str]) -> Sources:
    """The sweep in a folder, or those of a reproduction.

    Raises:
        FileError: there is neither, or a file is damaged.
        ParameterError: no run is finished.
    """
    path = Path(folder)
    inside = is_folder(path)
    name = path.resolve().name or str(path)
    if exists(path / _MANIFEST):
        return Sources(name, "sweep", [_open(path, name, name)], None, None)
    if not exists(path / _PAPER / _MANIFEST):
        wrong = "holds no results" if inside else "is not a folder"
        raise FileError(f"{path} {wrong}; give one that `sweep` or `reproduce` wrote.")
    found = [one for one in listed(path) if exists(path / one / _MANIFEST)]
    known = list(_LABELS)
    found.sort(key=lambda one: (known.index(one) if one in known else len(known), one))
    sweeps = [_open(path / one, one, _LABELS.get(one, one)) for one in found if one == _PAPER]
    for one in found:
        if one != _PAPER:
            # A reproduction that was interrupted has folders without a finished run.
            sweeps += _if_begun(path / one, one, _LABELS.get(one, one))
    return Sources(name, "reproduction", sweeps, _claims(path / _VERDICT), _command(path / _REPLAY))


def _open(path: Path, name: str, label: str) -> Source:
    found = _if_begun(path, name, label)
    if not found:
        raise ParameterError(f"{path} holds no finished runs; run the sweep again.")
    return found[0]


def _if_begun(path: Path, name: str, label: str) -> list[Source]:
    results = Results(path)
    return [] if results.final.is_empty() else [Source(name, label, results)]


# ------------------------------------------------------------------------------- the verdict's form


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class _Interval(_Entry):
    mean: float | None
    half: float | None
    size: int


class _Quantity(_Entry):
    text: str
    side: Literal["below", "above"]
    bound: float
    first_cmdp: _Interval
    family: _Interval
    cmdps_held: int


_Decision = Literal["holds", "fails", "undecided"]


class _Record(_Entry):
    number: int
    sentence: str
    first_cmdp: _Decision
    family: _Decision
    cmdps: int
    cmdps_held: int
    remark: str
    quantities: list[_Quantity]


def _claims(path: Path) -> list[dict[str, Any]] | None:
    content = _read(path)
    if content is None:
        return None
    try:
        records = TypeAdapter(list[_Record]).validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise _damaged(path, f"{place}: {first['msg']}" if place else first["msg"]) from None
    return [record.model_dump() for record in records]


def _command(path: Path) -> str | None:
    content = _read(path)
    if content is None:
        return None
    try:
        command = parse_json(content)["command"]
        if not isinstance(command, str):
            raise ValueError("its command is no text")
    except (ValueError, TypeError, KeyError) as error:
        raise _damaged(path, str(error)) from None
    return command


def _read(path: Path) -> bytes | None:
    """A file's content, or None if there is no such file."""
    return read_bytes(path) if exists(path) else None


def _damaged(path: Path, reason: str) -> FileError:
    reason = in_line(reason)
    return FileError(
        f"{path} is damaged ({reason}); run `cmdpax reproduce` again to write it anew."
    )
