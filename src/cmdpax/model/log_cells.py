"""Cells of a table of steps as numbers, indices and labels, or a sentence about a defect."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from cmdpax.errors import cut, nearest_name, shown
from cmdpax.model.log_columns import CELLS, LONGEST, NUMBERS, TEXTS, Column, Table

_WHOLE_OR_FRACTION = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)\s*", re.ASCII)
_LARGEST = 2**31 - 1
_MOST_NAMES = 30  # in a sentence


class Indices(NamedTuple):
    """Columns of states, or of actions.

    Attributes:
        columns: an index for each row, -1 where the cell is empty.
        names: what the indices stand for, in order; None where they were numbers.
    """

    columns: list[np.ndarray]
    names: tuple[str, ...] | None


class Named(NamedTuple):
    """A column, and what sentences call its cells."""

    what: str
    column: Column


# ---------------------------------------------------------------------------------------- numbers


def read_numbers(table: Table, what: str, column: Column, fix: str = "") -> np.ndarray:
    """The cells as doubles, NaN where they are empty.

    Args:
        table: the table.
        what: the cells, for sentences.
        column: the column.
        fix: what else may be done about a cell that is no number.
    """
    if column.form == NUMBERS:
        return np.where(column.empty, np.nan, column.values.astype(np.float64))
    if column.form == CELLS:
        numbers = _parsed(column.values, column.empty)
        if numbers is not None:
            return numbers
    row = _first_that_is_no_number(column)
    if column.values is None or column.form not in (CELLS, TEXTS):
        raise table.error(
            f"{table.title}: the {what} is of the type {column.form}, expected numbers{fix}."
        )
    table.refuse(row, f"the {what} is {column.cell(row)}, expected a number{fix}")


def looks_like_number(text: str) -> bool:
    """Whether a text in a file is an index rather than a name."""
    return _WHOLE_OR_FRACTION.fullmatch(text) is not None


def is_numeric(column: Column) -> bool:
    """Whether all cells are numbers, or empty."""
    if column.form == CELLS:
        return _parsed(column.values, column.empty) is not None
    return column.form == NUMBERS


def _parsed(cells: list[str], empty: np.ndarray) -> np.ndarray | None:
    """Texts as numbers; None if some are none."""
    if empty.any():
        cells = ["nan" if none else one for one, none in zip(cells, empty.tolist(), strict=True)]
    if not _is_plain("".join(cells)):
        return None
    try:
        return np.fromiter(map(float, cells), np.float64, len(cells))
    except ValueError:
        return None


def _is_plain(text: str) -> bool:
    """Python reads "1_000" and Arabic digits as numbers, which are names more often."""
    return "_" not in text and text.isascii()


def _first_that_is_no_number(column: Column) -> int:
    if column.form != CELLS:
        return column.first() or 0
    for row, cell in enumerate(column.values):
        if not column.empty[row] and _parsed([cell], np.zeros(1, bool)) is None:
            return row
    return 0


def read_whole(table: Table, what: str, column: Column) -> np.ndarray:
    """The cells as integers; none may be empty."""
    numbers = read_numbers(table, what, column)
    require_filled(table, what, column)
    wrong = np.flatnonzero(~(np.abs(numbers) <= _LARGEST) | (numbers % 1 != 0))
    if wrong.size:
        row = int(wrong[0])
        table.refuse(row, f"the {what} is {column.cell(row)}, expected a whole number")
    return numbers.astype(np.int64)


def require_filled(table: Table, what: str, column: Column) -> None:
    """Refuse a column with an empty cell."""
    if column.empty.any():
        row = int(np.argmax(column.empty))
        table.refuse(row, f"the {what} is {column.cell(row)}; every row needs one")


# ----------------------------------------------------------------------------------------- labels


def read_labels(table: Table, what: str, column: Column) -> np.ndarray:
    """A number for each cell, which is the same where the cells are the same."""
    if column.values is None:
        raise table.error(f"{table.title}: the {what} is of the type {column.form}; use numbers.")
    require_filled(table, what, column)
    if column.form == NUMBERS:
        return np.asarray(column.values)
    places: dict[Any, int] = {}
    return np.fromiter(
        (places.setdefault(one, len(places)) for one in column.values), np.int64, len(column.values)
    )


# ---------------------------------------------------------------------------------------- indices


def read_indices(
    table: Table, kind: str, columns: Sequence[Named], names: tuple[str, ...] | None
) -> Indices:
    """States or actions as indices: whole numbers are indices, texts are names.

    Args:
        table: the table.
        kind: "state" or "action".
        columns: one, or several that share their names.
        names: the names, if they are known; otherwise they are taken from the type of the columns,
            or all texts are sorted.
    """
    forms = [_form(table, kind, named, names) for named in columns]
    _require_one_form(table, kind, columns, forms)
    if TEXTS not in forms:
        size = _LARGEST if names is None else len(names)
        return Indices([_as_indices(table, kind, named, size) for named in columns], names)
    known = names or _names_of_types(columns) or _sorted(table, columns)
    return Indices([_looked_up(table, kind, named, known) for named in columns], known)


def _form(table: Table, kind: str, named: Named, names: tuple[str, ...] | None) -> str:
    """Whether the cells are texts or numbers, or "" where all are empty."""
    what, column = named
    if column.form == CELLS:
        return _form_of_cells(table, kind, named, names)
    if column.form not in (TEXTS, NUMBERS):
        raise table.error(
            f"{table.title}: the {what} is of the type {column.form}; expected whole numbers, "
            "or texts that are names."
        )
    return "" if column.empty.all() else column.form


def _form_of_cells(table: Table, kind: str, named: Named, names: tuple[str, ...] | None) -> str:
    """A text in a file may be a number; where names are known, all are names if one is."""
    what, column = named
    distinct = dict.fromkeys(column.values)
    filled = [one for one in distinct if one and not one.isspace()]
    if names is not None and not set(names).isdisjoint(filled):
        return TEXTS
    numeric = [looks_like_number(one) for one in filled]
    if len(set(numeric)) < 2:
        return ("" if not filled else NUMBERS) if all(numeric) else TEXTS
    other = filled[numeric.index(not numeric[0])]
    first, row = column.values.index(filled[0]), column.values.index(other)
    table.refuse(
        row,
        f"the {what} is {shown(other)}, {_described(not numeric[0])}, but {shown(filled[0])} at "
        f"{table.place(first)} is {_described(numeric[0])}; use one of the two, or list the names "
        f"with {kind}_names",
    )


def _described(is_number: bool) -> str:
    return "a number" if is_number else "a name"


def _require_one_form(
    table: Table, kind: str, columns: Sequence[Named], forms: Sequence[str]
) -> None:
    expected = next((form for form in forms if form), "")
    for named, form in zip(columns, forms, strict=True):
        if form and form != expected:
            row = named.column.first() or 0
            table.refuse(
                row,
                f"the {named.what} is {named.column.cell(row)}, {_described(form == NUMBERS)}, "
                f"but the {columns[0].what} is {_described(form != NUMBERS)}; use one of the two",
            )


def _as_indices(table: Table, kind: str, named: Named, size: int) -> np.ndarray:
    """Whole numbers below a size."""
    what, column = named
    numbers = read_numbers(table, what, column)
    fraction = ~column.empty & ~(numbers % 1 == 0)
    wrong = fraction | (~column.empty & ~((numbers >= 0) & (numbers < size)))
    if wrong.any():
        row = int(np.argmax(wrong))
        if fraction[row]:
            why = "neither a whole number nor a name"
        elif numbers[row] < 0:
            why = "indices are 0 or more; leave the cell empty where nothing is known"
        else:
            why = f"the {kind}s are 0 … {size - 1}"
        table.refuse(row, f"the {what} is {column.cell(row)}, {why}")
    return np.where(column.empty, -1, np.where(column.empty, 0, numbers).astype(np.int64))


def _looked_up(table: Table, kind: str, named: Named, names: tuple[str, ...]) -> np.ndarray:
    """The places of texts among the names."""
    column = named.column
    if column.form == NUMBERS:  # all are empty
        return np.full(len(column.empty), -1)
    places = {name: place for place, name in enumerate(names)}
    get = places.get
    found = np.fromiter((get(one, -1) for one in column.values), np.int64, len(column.values))
    found[column.empty] = -1
    wrong = ~column.empty & (found < 0)
    if wrong.any():
        row = int(np.argmax(wrong))
        text = column.values[row]
        listed = [cut(one, LONGEST) for one in names[:_MOST_NAMES]]
        hint = nearest_name(cut(text, LONGEST), listed)
        table.refuse(row, f"there is no {kind} {shown(text)}; {hint}")
    return found


def _names_of_types(columns: Iterable[Named]) -> tuple[str, ...] | None:
    """The names that the types of the columns list; None if one lists none."""
    found: dict[str, None] = {}
    for _, column in columns:
        if column.names is None and not column.empty.all():
            return None
        found |= dict.fromkeys(column.names or ())
    return tuple(found)


def _sorted(table: Table, columns: Iterable[Named]) -> tuple[str, ...]:
    """All texts in order; they must be short enough for names."""
    found: set[str] = set()
    for what, column in columns:
        if column.form == NUMBERS:
            continue
        distinct = {one for one in dict.fromkeys(column.values) if one and not one.isspace()}
        too_long = next((one for one in distinct if len(one) > LONGEST), None)
        if too_long is not None:
            table.refuse(
                column.values.index(too_long),
                f"the {what} is {shown(too_long)}, a name has at most {LONGEST} characters",
            )
        found |= distinct
    return tuple(sorted(found))
