"""Cells of a table of steps as numbers, indices and labels, or a sentence on the first defect."""

import itertools
import re
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from cmdpax.errors import cut, nearest_name, shown
from cmdpax.model.log_columns import CELLS, NUMBERS, TEXTS, Column, Table

_INDEX = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)\s*", re.ASCII)
_LARGEST = 2**31 - 1
_LONGEST, _MOST_NAMES = 200, 30  # characters of a name, and names in a sentence


class Named(NamedTuple):
    """A column, and what sentences call its cells."""

    what: str
    column: Column


class Indices(NamedTuple):
    """Columns of states, or of actions.

    Attributes:
        columns: an index for each row, -1 where the cell is empty.
        names: what the indices stand for, in order; None where they are numbers.
    """

    columns: list[np.ndarray]
    names: tuple[str, ...] | None


# ---------------------------------------------------------------------------------------- numbers


def read_numbers(table: Table, named: Named, fix: str = "") -> np.ndarray:
    """The cells as doubles, NaN where they are empty.

    Args:
        table: the table.
        named: the column.
        fix: what else may be done about a column that does not hold numbers.
    """
    what, column = named
    if column.form == NUMBERS:
        return np.where(column.empty, np.nan, column.values.astype(np.float64))
    if column.form not in (CELLS, TEXTS):
        _refuse_type(table, named, f"expected numbers{fix}")
    numbers = _parsed(column.values, column.empty) if column.form == CELLS else None
    if numbers is not None:
        return numbers
    filled = np.flatnonzero(~column.empty).tolist()
    one = np.zeros(1, bool)
    row = next(
        (at for at in filled if column.form == TEXTS or _parsed([column.values[at]], one) is None),
        0,
    )
    text = ", a text" if column.form == TEXTS else ""
    if column.form == CELLS and re.fullmatch(r"[-+]?\d+,\d+", column.values[row].strip()):
        fix = "; write decimals with a point"
    table.refuse(row, f"the {what} is {column.cell(row)}{text}, expected a number{fix}")


def _parsed(cells: list[str], empty: np.ndarray) -> np.ndarray | None:
    """Texts as numbers; None if some are none."""
    if empty.any():
        cells = ["nan" if none else one for one, none in zip(cells, empty.tolist(), strict=True)]
    together = "".join(cells)
    if "_" in together or not together.isascii():  # Python reads "1_000" and Arabic digits
        return None
    try:
        return np.fromiter(map(float, cells), np.float64, len(cells))
    except ValueError:
        return None


def read_whole(table: Table, named: Named) -> np.ndarray:
    """The cells as integers; none may be empty."""
    what, column = named
    numbers = read_numbers(table, named)
    _require_filled(table, named)
    table.refuse_first(
        ~_is_whole(numbers) | (np.abs(numbers) > _LARGEST),
        lambda row: f"the {what} is {column.cell(row)}, expected a whole number",
    )
    return numbers.astype(np.int64)


def _is_whole(numbers: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # infinities
        return np.asarray(numbers % 1 == 0)


def _require_filled(table: Table, named: Named) -> None:
    what, column = named
    table.refuse_first(
        column.empty, lambda row: f"the {what} is {column.cell(row)}; every row needs one"
    )


def _refuse_type(table: Table, named: Named, expected: str) -> NoReturn:
    """Refuse a column that holds neither numbers nor texts, or both."""
    what, column = named
    if column.values is not None:
        rows = np.flatnonzero(~column.empty).tolist()
        kind = type(column.values[rows[0]])
        other = next((row for row in rows if type(column.values[row]) is not kind), None)
        if other is not None:
            table.refuse(
                other,
                f"the {what} is {column.cell(other)}, but {column.cell(rows[0])} at "
                f"{table.place(rows[0])} is of another type; {expected}",
            )
    raise table.error(f"{table.title}: the {what} is of the type {column.form}; {expected}.")


# ----------------------------------------------------------------------------------------- labels


def read_labels(table: Table, named: Named) -> np.ndarray:
    """A number for each cell, which is the same where the cells are the same."""
    column = named.column
    if column.form not in (CELLS, TEXTS, NUMBERS):
        _refuse_type(table, named, "expected whole numbers or texts")
    _require_filled(table, named)
    if column.form == NUMBERS:
        return np.asarray(column.values)
    places: dict[Any, int] = {one: at for at, one in enumerate(dict.fromkeys(column.values))}
    return np.fromiter(map(places.__getitem__, column.values), np.int64, len(column.values))


# ---------------------------------------------------------------------------------------- indices


def looks_like_index(text: str) -> bool:
    """Whether a text in a file is a number rather than a name."""
    return _INDEX.fullmatch(text) is not None


def read_indices(
    table: Table, kind: str, columns: Sequence[Named], names: tuple[str, ...] | None
) -> Indices:
    """States or actions as indices: whole numbers are indices, texts are names.

    Args:
        table: the table.
        kind: "state" or "action".
        columns: one, or several that share their names.
        names: the names, if they are known; otherwise the types of the columns list them, or they
            are all texts, sorted.
    """
    forms = [_form(table, kind, named, names) for named in columns]
    expected = next((form for form in forms if form), NUMBERS)
    for named, form in zip(columns, forms, strict=True):
        if form and form != expected:
            row = int(np.argmin(named.column.empty))
            table.refuse(
                row,
                f"the {named.what} is {named.column.cell(row)}, {_described(form)}, but the "
                f"{columns[0].what} is {_described(expected)}; use one of the two",
            )
    if expected == NUMBERS:
        size = _LARGEST if names is None else len(names)
        return Indices([_as_indices(table, kind, named, size) for named in columns], names)
    known = names or _listed(columns) or _sorted(table, columns)
    return Indices([_looked_up(table, kind, named, known) for named in columns], known)


def _form(table: Table, kind: str, named: Named, names: tuple[str, ...] | None) -> str:
    """Whether the cells are texts or numbers, or "" where all are empty."""
    column = named.column
    if column.form not in (CELLS, TEXTS, NUMBERS):
        _refuse_type(table, named, "expected whole numbers, or texts that are names")
    if column.empty.all():
        return ""
    return column.form if column.form != CELLS else _form_of_cells(table, kind, named, names)


def _form_of_cells(table: Table, kind: str, named: Named, names: tuple[str, ...] | None) -> str:
    """A text in a file may be a number; where names are known, all are names if one is."""
    what, column = named
    filled = [one for one in dict.fromkeys(column.values) if one and not one.isspace()]
    if names is not None and not set(names).isdisjoint(filled):
        return TEXTS
    forms = [NUMBERS if looks_like_index(one) else TEXTS for one in filled]
    other = next((at for at, form in enumerate(forms) if form != forms[0]), None)
    if other is None:
        return forms[0]
    first, row = (column.values.index(filled[at]) for at in (0, other))
    table.refuse(
        row,
        f"the {what} is {column.cell(row)}, {_described(forms[other])}, but {column.cell(first)} "
        f"at {table.place(first)} is {_described(forms[0])}; use one of the two, or list the names "
        f"with {kind}_names",
    )


def _described(form: str) -> str:
    return "a number" if form == NUMBERS else "a name"


def _as_indices(table: Table, kind: str, named: Named, size: int) -> np.ndarray:
    """Whole numbers below a size."""
    what, column = named
    numbers = np.where(column.empty, 0, read_numbers(table, named))
    whole = _is_whole(numbers)

    def why(row: int) -> str:
        if not whole[row]:
            reason = "neither a whole number nor a name"
        elif numbers[row] < 0:
            reason = "indices are 0 or more; leave the cell empty where nothing is known"
        else:
            reason = f"the {kind}s are 0 … {size - 1}"
        return f"the {what} is {column.cell(row)}, {reason}"

    table.refuse_first(~whole | (numbers < 0) | (numbers >= size), why)
    return np.where(column.empty, -1, numbers.astype(np.int64))


def _looked_up(table: Table, kind: str, named: Named, names: tuple[str, ...]) -> np.ndarray:
    """The places of texts among the names."""
    column = named.column
    if column.form == NUMBERS:  # all are empty
        return np.full(len(column.empty), -1)
    places = {name: place for place, name in enumerate(names)}
    known = {one: places.get(one, -1) for one in set(column.values)}
    found = np.fromiter(map(known.__getitem__, column.values), np.int64, len(column.values))

    def why(row: int) -> str:
        hint = nearest_name(cut(column.values[row], _LONGEST), names[:_MOST_NAMES])
        return f"there is no {kind} {column.cell(row)}; {hint}"

    table.refuse_first(~column.empty & (found < 0), why)
    return np.where(column.empty, -1, found)


def _listed(columns: Sequence[Named]) -> tuple[str, ...] | None:
    """The names that the types of the columns list; None if another column has other texts."""
    found: dict[str, None] = {}
    for _, column in columns:
        found |= dict.fromkeys(column.names or ())
    for _, column in columns:
        if column.names is None and not column.empty.all():
            texts = itertools.compress(column.values, ~column.empty)
            if not found.keys() >= set(texts):
                return None
    return tuple(found)


def _sorted(table: Table, columns: Sequence[Named]) -> tuple[str, ...]:
    """All texts in order; they must be short enough for names."""
    found: set[str] = set()
    for what, column in columns:
        if column.form == NUMBERS:
            continue
        distinct = {one for one in set(column.values) if one and not one.isspace()}
        too_long = next((one for one in distinct if len(one) > _LONGEST), None)
        if too_long is not None:
            table.refuse(
                column.values.index(too_long),
                f"the {what} is {shown(too_long)}; names have at most {_LONGEST} characters",
            )
        found |= distinct
    return tuple(sorted(found))
