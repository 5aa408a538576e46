"""The JSON files of a sweep's folder: what they must hold, and whether it is what was written.

A manifest and the entry of a batch are sealed: they hold a checksum of their own content. Earlier
versions wrote manifests without a seal, which are compared with the sealed batches.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AliasPath,
    BaseModel,
    Field,
    FiniteFloat,
    StringConstraints,
    ValidationError,
)

from cmdpax.errors import CmdpaxError, FileError
from cmdpax.experiments.runs import batch_name
from cmdpax.experiments.specification import read_specification
from cmdpax.storage.paths import reason, require_file
from cmdpax.storage.texts import parse_json

FORMAT = 1
_Fingerprint = Annotated[str, StringConstraints(pattern=r"\A[0-9a-f]{64}\z")]
_Digest = Annotated[str, StringConstraints(pattern=r"\A[0-9a-f]{16}\z")]


class NewerFormatError(ValueError):
    """A later version wrote it."""


class _Described(BaseModel):
    """A CMDP; its source has a file, or an environment and parameters."""

    name: str
    source: dict[str, Any]
    file: str | None = Field(None, validation_alias=AliasPath("source", "file"))
    environment: str | None = Field(None, validation_alias=AliasPath("source", "environment"))
    parameters: dict[str, Any] | None = Field(
        None, validation_alias=AliasPath("source", "parameters")
    )
    sizes: dict[str, int]
    optimum: FiniteFloat
    multipliers: list[FiniteFloat]
    slater_gap: FiniteFloat | None


class _Manifest(BaseModel):
    format: int
    specification: dict[str, Any]
    cmdps: dict[_Fingerprint, _Described]
    versions: dict[str, str]
    device: str


class _Entry(BaseModel):
    """A batch."""

    runs: list[_Digest]
    checksums: dict[str, str]
    shared: dict[str, Any]
    cmdps: dict[_Fingerprint, _Described]


def sealed_text(content: dict[str, Any], indent: int | None = None) -> str:
    """The text of a file, with its seal."""
    sealed = content | {"seal": seal(content)}
    return json.dumps(sealed, indent=indent, allow_nan=False) + "\n"


def read_manifest(text: bytes) -> tuple[dict[str, Any], bool]:
    """A manifest without its seal, and whether it had one.

    Raises:
        NewerFormatError: it has a format that this version does not know.
        ValueError: it is not what was written; the message says why.
    """
    content = parse_json(text)
    if isinstance(content, dict) and _Manifest.model_fields.keys() <= content.keys():
        number = content["format"]
        if isinstance(number, int) and number > FORMAT:
            raise NewerFormatError(f"format {number}")
    sealed = "seal" in _checked(content, _Manifest)
    if sealed and content.pop("seal") != seal(content):
        raise ValueError("its checksum is wrong")
    if "cmdpax" not in content["versions"]:
        raise ValueError("its versions lack that of cmdpax")
    try:
        # Only types are checked: no file is a reason to import the algorithms that it names.
        read_specification(content["specification"], importing=False)
    except CmdpaxError as error:
        raise ValueError(str(error).rstrip(".")) from None
    return content, sealed


def read_entry(text: bytes, batch: str) -> dict[str, Any]:
    """The entry of a batch without its seal.

    Raises:
        ValueError: it is not what was written; the message says why.
    """
    content = _checked(parse_json(text), _Entry)
    if content.pop("seal", None) != seal(content):
        raise ValueError("its checksum is wrong")
    if batch_name(content["runs"]) != batch:
        raise ValueError("it has the name of another batch")
    return content


def require_agreement(manifest: Mapping[str, Any], entries: Iterable[Mapping[str, Any]]) -> None:
    """Refuse a manifest that contradicts the batches, with a `ValueError`."""
    described: dict[str, list[Any]] = {}
    settings = all_settings(manifest["specification"])
    for entry in entries:
        for name, value in all_settings(entry["shared"]).items():
            if settings.get(name) != value:
                raise ValueError(f"it says that {name} is {settings.get(name)}, a batch {value}")
        for fingerprint, description in entry["cmdps"].items():
            described.setdefault(fingerprint, []).append(description)
    for fingerprint, descriptions in described.items():
        if manifest["cmdps"].get(fingerprint) not in descriptions:
            raise ValueError(f"it describes the CMDP {fingerprint[:16]} as no batch does")


def all_settings(said: Mapping[str, Any]) -> dict[str, Any]:
    """The settings in a specification or an entry; those that came later have their defaults."""
    return {"stationary": False} | dict(said)


def _checked(content: Any, kind: type[BaseModel]) -> dict[str, Any]:
    """Refuse content that lacks something, or has it with another type; it may hold more."""
    try:
        kind.model_validate(content, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        message = first["msg"][:1].lower() + first["msg"][1:]
        raise ValueError(f"{place}: {message}" if place else message) from None
    return content


def seal(content: dict[str, Any]) -> str:
    """The checksum of a file's other content."""
    try:
        return checksum(json.dumps(content, sort_keys=True).encode())
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def checksum(content: bytes) -> str:
    """The checksum of a file's content."""
    return hashlib.sha256(content).hexdigest()


def file_checksum(path: Path) -> str:
    """The checksum of a file of any size."""
    require_file(path)
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise FileError(f"{path} cannot be read: {reason(error)}.") from None
