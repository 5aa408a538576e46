"""Logs in files, and tables of any kind as tables of steps.

A `.csv` and a `.parquet` hold the table of `log_table`; a `.npz` holds the arrays under the names
of their attributes, and `words` (an object with names and units, as text). Numbers are written so
that they are read back exactly. Files are written aside and renamed, and nothing is ever unpickled.
"""

import csv
import functools
import io
import itertools
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cmdpax.errors import FileError, ModelError, ParameterError, cut, in_line, nearest_name, shown
from cmdpax.model.arrays import as_floats
from cmdpax.model.log_cells import looks_like_index
from cmdpax.model.log_columns import (
    Column,
    Table,
    library_of,
    of_any,
    of_cells,
    of_pandas,
    of_polars,
)
from cmdpax.model.log_table import COMMAS, NEXT, Content, lacks_commas, to_columns
from cmdpax.model.words import PLAIN, Words, make_words
from cmdpax.storage.archives import read_npz
from cmdpax.storage.limits import require_file_room
from cmdpax.storage.paths import require_file
from cmdpax.storage.texts import parse_json, read_bytes
from cmdpax.storage.writing import write_atomically, write_npz, write_text

if TYPE_CHECKING:
    import polars

ENDINGS = (".csv", ".parquet", ".npz")
_ARRAYS = ("states", "actions", "rewards", "constraint_rewards")
_MEMORY_PER_CELL = 64  # of a table, once its cells are objects of Python
_LONGEST_TEXT = 10_000  # characters of a cell


def ending_of(path: Path) -> str:
    """The ending, if logs have it.

    Raises:
        FileError: they do not.
    """
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise FileError(
            f"{path} has the ending {path.suffix!r}; logs are .csv, .parquet or .npz files."
        )
    return ending


# ----------------------------------------------------------------------------------------- tables


def open_table(source: Any) -> Table:
    """A table from a file, a frame, or a mapping of columns.

    Raises:
        FileError, ModelError: it cannot be read as a table.
        ParameterError: it is something else.
    """
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        return _open_csv(path) if ending_of(path) == ".csv" else _open_parquet(path)
    library = library_of(source)
    if library == "polars" and hasattr(source, "get_columns"):
        return _open_polars("the table", source)
    if library == "pandas" and hasattr(source, "iloc") and hasattr(source, "columns"):
        return _open_pandas(source)
    if isinstance(source, Mapping):
        return _open_mapping(source)
    hint = "; collect it first" if hasattr(source, "collect") else ""
    raise ParameterError(
        f"the log is {shown(source)}, it must be a path, a frame of polars or pandas, or a mapping "
        f"of columns{hint}."
    )


def _open_csv(path: Path) -> Table:
    try:
        text = read_bytes(path).decode("utf-8-sig")
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        head: list[str] = next(reader, [])
        cells: list[str] = []
        lines, widths = [], []
        for row in filter(None, reader):
            cells += row
            lines.append(reader.line_num)
            widths.append(len(row))
    except UnicodeDecodeError as error:
        raise FileError(
            f"{path} is not text in UTF-8: its byte {error.start} is "
            f"{error.object[error.start]:#04x}; save it as UTF-8."
        ) from None
    except (csv.Error, ValueError) as error:  # such as a quote that never ends
        raise FileError(f"{path} is not a readable .csv file: {in_line(error)}.") from None
    if not head:
        raise FileError(f"{path} has no header; its first line must name the columns.")
    table = Table(
        str(path),
        head,
        len(lines),
        lambda at: of_cells(cells[at :: len(head)]),
        lambda row: f"line {lines[row]}",
        FileError,
    )
    if widths and set(widths) != {len(head)}:
        wrong = next(at for at, width in enumerate(widths) if width != len(head))
        fix = f"; {COMMAS}" if lacks_commas(head) else ""
        table.refuse(wrong, f"it has {widths[wrong]} cells, the header has {len(head)}{fix}")
    return table


def _open_parquet(path: Path) -> Table:
    import polars

    require_file(path)
    count = itertools.count(1)
    wrong = (polars.exceptions.PolarsError, polars.exceptions.PanicException, OSError)

    def read(at: int) -> Column:
        require_file_room(path, num_rows * next(count) * _MEMORY_PER_CELL)
        try:
            series = polars.read_parquet(path, columns=[names[at]], glob=False).to_series()
            _require_short_texts(path, series)
            if len(series) != num_rows:
                raise FileError(f"{path} has columns of different lengths; write it again.")
            return of_polars(series)
        except wrong as error:
            raise _unreadable(path, error) from None

    try:
        lazy = polars.scan_parquet(path, glob=False)
        names = lazy.collect_schema().names()
        num_rows = lazy.select(polars.len()).collect().item()
    except wrong as error:
        raise _unreadable(path, error) from None
    return Table(str(path), names, num_rows, read, error=FileError)


def _unreadable(path: Path, error: BaseException) -> FileError:
    if isinstance(error, FileError):
        return error
    return FileError(f"{path} is not a readable .parquet file: {cut(in_line(error), 200)}.")


def _require_short_texts(path: Path, series: "polars.Series") -> None:
    """A few bytes of a file may be a long text in millions of rows."""
    import polars

    if series.dtype in (polars.String, polars.Categorical, polars.Enum):
        lengths = series.cast(polars.String).str.len_bytes()
        if (lengths > _LONGEST_TEXT).any():
            raise FileError(
                f"{path} has texts of more than {_LONGEST_TEXT} bytes in the column "
                f"{shown(series.name)}; shorten them."
            )


def _open_polars(title: str, frame: "polars.DataFrame") -> Table:
    return Table(title, frame.columns, frame.height, lambda at: of_polars(frame.to_series(at)))


def _open_pandas(frame: Any) -> Table:
    names = [str(name) for name in frame.columns]
    return Table("the table", names, len(frame), lambda at: of_pandas(frame.iloc[:, at]))


def _open_mapping(columns: Mapping[Any, Any]) -> Table:
    names = [str(name) for name in columns]
    found = list(columns.values())
    lengths = []
    for name, values in zip(names, found, strict=True):
        shape = (len(values),) if isinstance(values, list | tuple) else np.shape(values)
        if len(shape) != 1:
            raise ModelError(
                f"the column {shown(name)} is {shown(values)}, it must be a list or an array with "
                "one cell for each row."
            )
        lengths.append(shape[0])
        if lengths[-1] != lengths[0]:
            raise ModelError(
                f"the column {shown(name)} has {lengths[-1]} cells, {shown(names[0])} has "
                f"{lengths[0]}; every column needs one for each row."
            )
    return Table("the table", names, (lengths or [0])[0], lambda at: of_any(found[at]))


# ---------------------------------------------------------------------------------------- archives


def read_archive(path: Path) -> Content:
    """The arrays and words of a `.npz`; they are not yet known to be a log.

    Raises:
        FileError: the file cannot be read as one, or has words that no log has.
    """
    entries: dict[str, Any] = dict(read_npz(path, functools.partial(_require_names, path), 8))
    if "words" not in entries:
        return Content(**entries, words=PLAIN)
    try:
        said = parse_json(str(entries.pop("words")))
    except ValueError as error:
        raise FileError(f"{path}: its words are not readable: {in_line(error)}.") from None
    return Content(**entries, words=_read_words(path, said, entries["constraint_rewards"]))


def _require_names(path: Path, names: Iterable[str]) -> None:
    found, known = set(names), (*_ARRAYS, "words")
    missing = next((name for name in _ARRAYS if name not in found), None)
    if missing is not None:
        raise FileError(f"{path} lacks the array {missing!r}; it needs {', '.join(_ARRAYS)}.")
    extra = sorted(found.difference(known))
    if extra:
        raise FileError(
            f"{path} has the unknown array {extra[0][:100]!r}; {nearest_name(extra[0], known)}."
        )


def _read_words(path: Path, said: Any, constraint_rewards: np.ndarray) -> Words:
    if not isinstance(said, dict) or not set(said) <= set(Words._fields):
        raise FileError(f"{path}: words is {shown(said)}, expected an object with names and units.")
    sizes = [
        len(said[kind]) if isinstance(said.get(kind), list) else 0
        for kind in ("state_names", "action_names")
    ]
    num_constraints = (0, 0, *constraint_rewards.shape)[-2]
    try:
        if "ceilings" in said:
            said["ceilings"] = as_floats("the ceilings", said["ceilings"])
        return make_words((sizes[0], sizes[1], num_constraints), **said)
    except (ParameterError, ModelError) as error:
        raise FileError(f"{path}: in words, {error}") from None


# ----------------------------------------------------------------------------------------- writing


def write(path: Path, content: Content) -> None:
    """Write a file of the kind that its ending says; an existing one is replaced whole."""
    ending = ending_of(path)
    if ending == ".npz":
        entries: dict[str, Any] = {name: getattr(content, name) for name in _ARRAYS}
        if said := content.words.to_dict():
            entries["words"] = np.array(json.dumps(said))
        write_npz(path, entries)
    elif ending == ".parquet":
        write_atomically(path, to_frame(content).write_parquet)
    else:
        write_text(path, _csv_text(path, content))


def to_frame(content: Content) -> "polars.DataFrame":
    """The table as a frame of polars, whose types know all names."""
    import polars

    columns = to_columns(content)
    named = _named(content, columns)
    made = []
    for name, values in columns.items():
        if name in named:
            known = _names_of(content.words, name)
            dtype = polars.Int64 if known is None else polars.Enum(known)
            made.append(polars.Series(name, named[name], dtype=dtype))
        else:
            made.append(polars.Series(name, values))
    return polars.DataFrame(made)


def _named(content: Content, columns: Mapping[str, np.ndarray]) -> dict[str, list[Any]]:
    """The columns of states and actions in words, None where nothing was observed."""
    found = {}
    for role in ("state", "action", NEXT):
        known, indices = _names_of(content.words, role), columns[role].tolist()
        listed: Any = known if known is not None else range(max(indices, default=0) + 1)
        found[role] = [None if index < 0 else listed[index] for index in indices]
    return found


def _names_of(words: Words, role: str) -> tuple[str, ...] | None:
    return words.action_names if role == "action" else words.state_names


def _csv_text(path: Path, content: Content) -> str:
    columns = to_columns(content)
    named = _named(content, columns)
    _require_no_index(path, content.words, named)
    words = [*columns, *(content.words.state_names or ()), *(content.words.action_names or ())]
    text = io.StringIO()
    writer = csv.writer(
        text,
        lineterminator="\n",
        # The writer of Python 3.11 and 3.12 does not see that a carriage return needs quotes.
        quoting=csv.QUOTE_NONNUMERIC if "\r" in "".join(words) else csv.QUOTE_MINIMAL,
    )
    writer.writerow(columns)
    # Numbers of Python: the writer uses their `repr`, which is exact, and writes None as nothing.
    lists = [named.get(name) or values.tolist() for name, values in columns.items()]
    writer.writerows(zip(*lists, strict=True))
    return text.getvalue()


def _require_no_index(path: Path, words: Words, named: Mapping[str, list[Any]]) -> None:
    """Refuse names that would be read as indices."""
    for role, cells in named.items():
        names = () if _names_of(words, role) is None else dict.fromkeys(filter(None, cells))
        taken = next(filter(looks_like_index, names), None)
        if taken is not None:
            raise ModelError(
                f"cannot write {path}: the name {taken!r} could not be told from an index; write a "
                ".parquet or .npz file."
            )
