"""CMDPs in files: `.npz`, and `.json` for small ones.

Both hold the arrays under their names: `transitions` (or `successors` and `probabilities`),
`rewards`, `constraint_rewards`, `thresholds`, `initial`, and the number `horizon`; where there are
any, also the flags `available`, and `words` with names, units and senses (an object, as text in a
`.npz`). The arrays are constraint rewards with thresholds, whatever the senses are. Nothing is ever
unpickled, and what would take too much memory (`cmdpax.storage.limits`) is refused before it is
unpacked. Files are written aside and renamed, so that a file is there whole or not at all.
"""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from cmdpax.errors import FileError, ModelError, ParameterError, in_line, nearest_name, shown
from cmdpax.model.arrays import as_floats
from cmdpax.model.cmdp import CMDP
from cmdpax.model.transitions import Successors
from cmdpax.model.validation import validate
from cmdpax.model.words import Words, make_words
from cmdpax.storage.archives import read_npz
from cmdpax.storage.paths import require_file
from cmdpax.storage.texts import parse_json, read_bytes
from cmdpax.storage.writing import write_atomically, write_npz

_COMMON = ("rewards", "constraint_rewards", "thresholds", "initial")
_LISTS = Successors._fields
_OPTIONAL = ("horizon", "available", "words")


def load(path: str | os.PathLike[str]) -> CMDP:
    """Read a CMDP from a `.npz` or `.json` file, and validate it.

    Raises:
        FileError: the file cannot be read as one, is too large, or lacks arrays.
        ModelError: its arrays do not describe a CMDP.
    """
    path = Path(path)
    read = {".npz": _read_npz, ".json": _read_json}[_suffix(path)]
    require_file(path)
    try:
        return validate(_from_entries(read(path)))
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None


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
    words = cmdp.words.to_dict()

    def write_json(file: BinaryIO) -> None:
        lists = {name: np.asarray(entry).tolist() for name, entry in entries.items()}
        content = lists | ({"words": words} if words else {})
        file.write(json.dumps(content).encode() + b"\n")

    if suffix == ".npz":
        if words:
            entries["words"] = np.array(json.dumps(words))
        write_npz(path, entries)
    else:
        write_atomically(path, write_json)


def _suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in (".npz", ".json"):
        raise FileError(f"{path} has the ending {path.suffix!r}; models are .npz or .json files.")
    return suffix


def _read_npz(path: Path) -> dict[str, Any]:
    entries = dict(read_npz(path, lambda names: _require_names(path, names), least_item=8))
    if "words" in entries:
        try:
            entries["words"] = parse_json(str(entries["words"]))
        except ValueError as error:
            raise FileError(f"{path}: its words are not readable: {in_line(error)}.") from None
    return entries


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = parse_json(read_bytes(path))
    except ValueError as error:
        reason = in_line(error)
        raise FileError(f"{path} is not a readable .json file: {reason}.") from None
    if not isinstance(content, dict):
        raise FileError(
            f"{path} holds a {type(content).__name__}, expected an object with the arrays."
        )
    if content.get("horizon", 0) is None:
        del content["horizon"]
    _require_names(path, content)
    return content


def _require_names(path: Path, names: Iterable[str]) -> None:
    """Exactly the arrays of one storage, with or without the horizon."""
    found = set(names)
    needed = _needed(found)
    missing = [name for name in needed if name not in found]
    if missing:
        raise FileError(f"{path} lacks the array {missing[0]!r}; it needs {', '.join(needed)}.")
    known = {*needed, *_OPTIONAL}
    extra = sorted(found - known)
    if extra:
        raise FileError(
            f"{path} has the unknown array {extra[0][:100]!r}; {nearest_name(extra[0], known)}."
        )


def _needed(names: Iterable[str]) -> tuple[str, ...]:
    listed = any(name in _LISTS for name in names)
    return ((*_LISTS,) if listed else ("transitions",)) + _COMMON


def _from_entries(entries: Mapping[str, Any]) -> CMDP:
    arrays = {name: entries[name] for name in _needed(entries)}
    if "transitions" not in arrays:
        arrays["transitions"] = Successors(*(arrays.pop(name) for name in _LISTS))
    cmdp = CMDP(**arrays, horizon=entries.get("horizon"), available=entries.get("available"))
    words = entries.get("words")
    return cmdp if words is None else cmdp.with_words(_read_words(cmdp, words))


def _read_words(cmdp: CMDP, words: Any) -> Words:
    """Names, units, senses and ceilings as `save` wrote them."""
    if not isinstance(words, dict):
        raise ModelError(f"words is {shown(words)}, it must be an object such as {{}}.")
    for name in words:
        if name not in Words._fields:
            raise ModelError(f"words has {shown(name)}; {nearest_name(name, Words._fields)}.")
    if cmdp.initial.ndim != 1 or cmdp.rewards.ndim != 3 or cmdp.thresholds.ndim != 1:
        validate(cmdp)  # names the array
    sizes = (cmdp.num_states, cmdp.num_actions, cmdp.num_constraints)
    if "ceilings" in words:
        words = words | {"ceilings": as_floats("the ceilings of words", words["ceilings"])}
    try:
        found = make_words(sizes, **words)
    except ParameterError as error:
        raise ModelError(f"in words, {error}") from None
    if found.senses is not None and "ceilings" not in words:
        raise ModelError(
            'words has the sense "at most" without ceilings: files hold constraint rewards '
            "m - cost and thresholds H m - limit; add ceilings, a list with m for each constraint, "
            "or write the file with cmdpax.save."
        )
    return found
