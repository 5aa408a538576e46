"""Policies in files: `.npz`, `.json`, and `.csv` for spreadsheets.

A `.npz` and a `.json` hold the same under the same names: the array `policy` (`[H, S, A]`), and
where it is known `reached` (`[H, S]`, the chance of being in a state at a step), `words` (an object
with `state_names` and `action_names`, as text in a `.npz`) and the `fingerprint` of the model. What
`cmdpax solve --out` writes to a `.npz` beside it (`occupancy` and numbers) is read, too.

A `.csv` has the columns step, state, action, probability and reached, and a row for every
probability that is not 0, so that there is one at least for every step and state. It does not say
which actions there are besides those that are ever taken, nor the order of names: names are looked
up in the model. Numbers are indices, and without a model A is one more than the largest of them.

Numbers are written so that they are read back exactly. Nothing is ever unpickled.
"""

import csv
import io
import json
import re
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from cmdpax.errors import FileError, ModelError, in_line, nearest_name, shown
from cmdpax.model.arrays import as_floats
from cmdpax.model.validation import check_finite
from cmdpax.model.words import KINDS, PLAIN, Words, make_words
from cmdpax.storage.archives import read_npz
from cmdpax.storage.limits import require_file_room
from cmdpax.storage.paths import require_file
from cmdpax.storage.texts import parse_json, read_bytes
from cmdpax.storage.writing import write_npz, write_text

ENDINGS = (".npz", ".json", ".csv")
COLUMNS = ("step", "state", "action", "probability", "reached")
_ENTRIES = ("policy", "reached", "words", "fingerprint")
_OF_SOLUTIONS = ("occupancy", "multipliers", "value", "constraint_values", "gap")
_FINGERPRINT = re.compile("[0-9a-f]{64}")


class Content(NamedTuple):
    """What a file says about a policy; the array is not yet known to be one."""

    policy: np.ndarray
    words: Words = PLAIN
    reached: np.ndarray | None = None
    fingerprint: str | None = None


def ending_of(path: Path) -> str:
    """The ending, if policies have it.

    Raises:
        FileError: they do not.
    """
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise FileError(
            f"{path} has the ending {path.suffix!r}; policies are .npz, .json or .csv files."
        )
    return ending


# ----------------------------------------------------------------------------------------- writing


def write(path: Path, content: Content) -> None:
    """Write a file of the kind that its ending says; an existing one is replaced whole."""
    ending = ending_of(path)
    if ending == ".npz":
        entries: dict[str, Any] = {**_entries(content)}
        if "words" in entries:
            entries["words"] = np.array(json.dumps(entries["words"]))
        write_npz(path, entries)
    else:
        write_text(path, json_text(content) if ending == ".json" else csv_text(content))


def json_text(content: Content) -> str:
    """What a `.json` holds."""
    lists = (
        (name, entry.tolist() if isinstance(entry, np.ndarray) else entry)
        for name, entry in _entries(content).items()
    )
    return json.dumps(dict(lists)) + "\n"


def csv_text(content: Content) -> str:
    """What a `.csv` holds."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    columns = columns_of(content)
    chances = columns["reached"] or [""] * len(columns["step"])
    # Numbers of Python: the writer uses their `repr`, which is exact.
    writer.writerows(zip(*(columns[name] for name in COLUMNS[:-1]), chances, strict=True))
    return text.getvalue()


def columns_of(content: Content) -> dict[str, list[Any]]:
    """A row per positive probability, as lists by the names of columns; `reached` may be empty."""
    policy, words, reached, _ = content
    steps, states, actions = np.nonzero(policy)
    named = {
        kind: indices.tolist() if names is None else [names[index] for index in indices.tolist()]
        for kind, indices, names in (
            ("state", states, words.state_names),
            ("action", actions, words.action_names),
        )
    }
    chances = [] if reached is None else reached[steps, states].tolist()
    probabilities = policy[steps, states, actions].tolist()
    return {"step": steps.tolist(), **named, "probability": probabilities, "reached": chances}


def _entries(content: Content) -> dict[str, Any]:
    """What a file holds, as arrays, texts and objects."""
    found = content._asdict() | {"words": content.words.to_dict() or None}
    return {name: found[name] for name in _ENTRIES if found[name] is not None}


# ----------------------------------------------------------------------------------------- reading


def read(path: Path, words: Words = PLAIN, sizes: tuple[int, int] | None = None) -> Content:
    """Read a file.

    Args:
        path: the file.
        words: names of the model, if it is known.
        sizes: its S and A, if it is known.

    Raises:
        FileError: it cannot be read, is too large, or does not hold a policy.
        ModelError: what it holds beside the policy does not fit it.
        ParameterError: it names states or actions twice, or not all of them.
    """
    ending = ending_of(path)
    require_file(path)
    if ending == ".csv":
        return _read_csv(path, words, sizes)
    content = _from_entries(path, (_read_archive if ending == ".npz" else _read_object)(path))
    return content if words == PLAIN else content._replace(words=words)


def is_policy_file(path: Path) -> bool:
    """Whether the names in a file, or its head, are those of a policy."""
    try:
        if path.suffix.lower() == ".csv":
            with path.open("rb") as file:
                return file.read(200).split(b"\n")[0].strip() == ",".join(COLUMNS).encode()
        if path.suffix.lower() == ".npz":
            with path.open("rb") as file, zipfile.ZipFile(file) as archive:
                names = [name.removesuffix(".npy") for name in archive.namelist()]
        else:
            content = parse_json(read_bytes(path))
            names = list(content) if isinstance(content, dict) else []
    except Exception:  # whatever zipfile raises over damaged content: it is no policy
        return False
    return "policy" in names and set(names) <= {*_ENTRIES, *_OF_SOLUTIONS}


def _read_archive(path: Path) -> dict[str, Any]:
    entries: dict[str, Any] = dict(read_npz(path, lambda names: _require_names(path, names), 8))
    if "words" in entries:
        try:
            entries["words"] = parse_json(str(entries["words"]))
        except ValueError as error:
            raise FileError(f"{path}: its words are not readable: {in_line(error)}.") from None
    if "fingerprint" in entries:
        entries["fingerprint"] = str(entries["fingerprint"])
    return entries


def _read_object(path: Path) -> dict[str, Any]:
    try:
        content = parse_json(read_bytes(path))
    except ValueError as error:
        raise FileError(f"{path} is not a readable .json file: {in_line(error)}.") from None
    if not isinstance(content, dict):
        raise FileError(
            f"{path} holds a {type(content).__name__}, expected an object with the array 'policy'."
        )
    _require_names(path, content)
    return content


def _require_names(path: Path, names: Iterable[str]) -> None:
    found, known = set(names), (*_ENTRIES, *_OF_SOLUTIONS)
    if "policy" not in found:
        raise FileError(f"{path} lacks the array 'policy'; it does not hold a policy.")
    extra = sorted(found.difference(known))
    if extra:
        raise FileError(
            f"{path} has the unknown entry {extra[0][:100]!r}; {nearest_name(extra[0], known)}."
        )


def _from_entries(path: Path, entries: Mapping[str, Any]) -> Content:
    policy = as_floats("policy", entries["policy"])
    if policy.ndim != 3:
        raise ModelError(f"policy has shape {policy.shape}, expected (H, S, A).")
    words = _as_words(entries.get("words"), policy.shape[1:])
    reached = entries.get("reached")
    if reached is None and entries.get("occupancy") is not None:
        occupancy = as_floats("occupancy", entries["occupancy"])
        if occupancy.shape != policy.shape:
            raise ModelError(f"occupancy has shape {occupancy.shape}, policy {policy.shape}.")
        reached = occupancy.sum(axis=-1)
    reached = None if reached is None else _as_chances(reached, policy.shape[:2])
    fingerprint = entries.get("fingerprint")
    if fingerprint is not None and not _is_fingerprint(fingerprint):
        raise FileError(
            f"{path} has the fingerprint {shown(fingerprint)}, expected 64 hexadecimal digits."
        )
    return Content(policy, words, reached, fingerprint)


def _is_fingerprint(given: Any) -> bool:
    return isinstance(given, str) and _FINGERPRINT.fullmatch(given) is not None


def _as_words(words: Any, pairs: tuple[int, ...]) -> Words:
    if words is None:
        return PLAIN
    names = ("state_names", "action_names")
    if not isinstance(words, dict) or not set(words) <= set(names):
        raise ModelError(f"words is {shown(words)}, expected an object with {' and '.join(names)}.")
    num_states, num_actions = pairs
    return make_words((num_states, num_actions, 0), **words)


def _as_chances(reached: Any, shape: tuple[int, ...]) -> np.ndarray:
    """How often the states are reached, checked."""
    chances = as_floats("reached", reached)
    if chances.shape != shape:
        raise ModelError(f"reached has shape {chances.shape}, expected (H, S) = {shape}.")
    check_finite("reached", chances)
    if chances.size and not (chances.min() >= 0 and chances.max() <= 1 + 1e-6):
        raise ModelError("reached has entries outside of [0, 1]; they are probabilities.")
    return chances


# --------------------------------------------------------------------------------------------- csv


class _Rows(NamedTuple):
    """The columns of a file, once they are numbers; `reached` has NaN where it is empty."""

    steps: np.ndarray
    states: np.ndarray
    actions: np.ndarray
    probabilities: np.ndarray
    reached: np.ndarray


def _read_csv(path: Path, words: Words, sizes: tuple[int, int] | None) -> Content:
    try:
        reader = csv.reader(io.StringIO(read_bytes(path).decode("utf-8-sig"), newline=""))
        head = next(reader, [])
        rows = [(reader.line_num, row) for row in reader if row]
    except (csv.Error, ValueError) as error:  # not UTF-8, or a quote that never ends
        raise FileError(f"{path} is not a readable .csv file: {in_line(error)}.") from None
    if tuple(head) not in (COLUMNS, COLUMNS[:-1]):
        raise FileError(f"{path} has the columns {shown(head)}, expected {', '.join(COLUMNS)}.")
    if not rows:
        raise FileError(f"{path} has no rows; a policy has one for every step and state.")
    found = _as_rows(path, rows, words)
    num_states, num_actions = sizes or (found.states.max() + 1, found.actions.max() + 1)
    shape = (int(found.steps.max()) + 1, int(num_states), int(num_actions))
    for kind, indices, size in (
        ("state", found.states, shape[1]),
        ("action", found.actions, shape[2]),
    ):
        if indices.max() >= size:
            _refuse(path, rows[int(indices.argmax())][0], f"the {kind}s are 0 … {size - 1}")
    return _placed(path, found, shape)._replace(words=words)


def _as_rows(path: Path, rows: list[tuple[int, list[str]]], words: Words) -> _Rows:
    """The cells as numbers; names are looked up."""
    lookups = [None, words.state_names, words.action_names]
    places = [None if names is None else {n: i for i, n in enumerate(names)} for names in lookups]
    indices, numbers = np.empty((3, len(rows)), np.int64), np.empty((2, len(rows)))
    for at, (line, row) in enumerate(rows):
        if not len(COLUMNS) - 1 <= len(row) <= len(COLUMNS):
            _refuse(path, line, f"it has {len(row)} cells, expected 5")
        for column, (kind, text, known) in enumerate(
            zip(("step", *KINDS), row, places, strict=False)
        ):
            indices[column, at] = _index(path, line, kind, text, known)
        for column, text in enumerate((row[3], row[4] if len(row) > 4 else "")):
            try:
                numbers[column, at] = float(text) if text or column == 0 else np.nan
            except ValueError:
                _refuse(path, line, f"{shown(text)} is no number; expected a probability")
    return _Rows(*indices, *numbers)


def _index(path: Path, line: int, kind: str, text: str, known: dict[str, int] | None) -> int:
    if known is not None and text in known:
        return known[text]
    if known is None and text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    if known is not None:
        _refuse(path, line, f"the model has no {kind} {shown(text)}; use its names")
    if kind == "step":
        _refuse(path, line, f"the step is {shown(text)}, expected a whole number")
    _refuse(
        path, line, f"the {kind} is {shown(text)}; give the model, which says what its names mean"
    )


def _refuse(path: Path, line: int, why: str) -> NoReturn:
    raise FileError(f"{path}, line {line}: {why}.")


def _placed(path: Path, rows: _Rows, shape: tuple[int, int, int]) -> Content:
    """The arrays; every step and state needs a row, and no row may be there twice."""
    horizon, num_states, num_actions = shape
    if horizon * num_states > len(rows.steps):  # before anything of that size is allocated
        raise FileError(
            f"{path} has {len(rows.steps)} rows for {horizon} steps and {num_states} states; every "
            "step and state needs one."
        )
    require_file_room(path, 8 * horizon * num_states * num_actions)
    policy, reached = np.zeros(shape), np.full(shape[:2], np.nan)
    taken, there = np.zeros(shape, bool), np.zeros(shape[:2], bool)
    pairs = (rows.steps, rows.states)
    taken[*pairs, rows.actions], there[pairs] = True, True
    if np.count_nonzero(taken) < len(rows.steps):
        raise FileError(f"{path} has two rows for one step, state and action.")
    if not there.all():
        step, state = (int(index) for index in np.argwhere(~there)[0])
        raise FileError(f"{path} has no row for state {state} at step {step}; every one needs one.")
    policy[*pairs, rows.actions], reached[pairs] = rows.probabilities, rows.reached
    unknown = np.isnan(reached).all()
    return Content(policy, PLAIN, None if unknown else _as_chances(reached, shape[:2]))
