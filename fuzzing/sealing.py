"""Checksums of changed files, made anew: whoever changes a file may do that too."""

import json
from pathlib import PurePosixPath

from cmdpax.experiments.records import checksum, seal
from fuzzing.cases import Entry, Input

_SEAL, _CHECKSUMS = "seal", "checksums"


def reseal(given: Input, path: str) -> Input:
    """The input with the seals that depend on a file."""
    place = PurePosixPath(path)
    if place.suffix == ".json":
        return given.with_entry(_sealed(given.find(path)))
    part = str(place.parent.parent / "parts" / f"{place.stem}.json")
    if place.suffix != ".parquet" or part not in {entry.path for entry in given.entries}:
        return given
    entry = given.find(part)
    try:
        content = json.loads(entry.content)
        content[_CHECKSUMS][place.parent.name] = checksum(given.find(path).content)
    except (ValueError, KeyError, TypeError, RecursionError):
        return given
    return given.with_entry(_sealed(entry._replace(content=json.dumps(content).encode())))


def _sealed(entry: Entry) -> Entry:
    """An entry with the seal of its own content, if it can have one."""
    try:
        content = json.loads(entry.content)
    except (ValueError, RecursionError):
        return entry
    if not isinstance(content, dict) or _SEAL not in content:
        return entry
    del content[_SEAL]
    text = json.dumps(content | {_SEAL: seal(content)})
    return entry._replace(content=text.encode("utf-8", "surrogatepass"))
