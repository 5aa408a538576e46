"""Columns of a table of steps from files, from frames of polars and pandas, and from lists.

A cell of a `.csv` is a text that may stand for a number; elsewhere the type of a column says what
it holds. Cells are empty where they are null, None or NaN, or a text of nothing but blanks.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from cmdpax.errors import CmdpaxError, ModelError, cut, nearest_name, shown

CELLS, TEXTS, NUMBERS = "cells", "texts", "numbers"
"""The forms of a column that can be read; others have a word of their own, such as "Boolean"."""
LONGEST = 200
"""Characters of a name."""

_MOST_NAMES, _LONGEST_SHOWN = 30, 40  # of columns in a sentence


class Column(NamedTuple):
    """A column.

    Attributes:
        form: `CELLS` of a file of text, `TEXTS`, `NUMBERS`, or the type that cannot be read.
        values: N texts, or an array of N numbers.
        empty: which cells are empty, `[N]`; their values mean nothing.
        names: all texts that there may be, in order, where the column's type says so.
    """

    form: str
    values: Any
    empty: np.ndarray
    names: tuple[str, ...] | None = None

    def cell(self, row: int) -> str:
        """A cell for a sentence."""
        value = self.values[row]
        is_nan = self.form == NUMBERS and np.isnan(value)
        if self.empty[row] and not is_nan:
            return "empty"
        return shown(value.item() if isinstance(value, np.generic) else value)

    def first(self) -> int | None:
        """The first row whose cell is not empty."""
        found = np.flatnonzero(~self.empty)
        return int(found[0]) if found.size else None


class Table(NamedTuple):
    """A table of steps whose columns are read when they are asked for.

    Attributes:
        title: the table, as the subject of a sentence.
        names: of its columns.
        num_rows: N.
        read: the column at a position.
        place: a row for people, such as "line 7".
        error: the class of errors about it.
    """

    title: str
    names: Sequence[str]
    num_rows: int
    read: Callable[[int], Column]
    place: Callable[[int], str] = "row {}".format
    error: type[CmdpaxError] = ModelError

    def column(self, name: str) -> Column:
        """The column of this name."""
        return self.read(self.names.index(name))

    def refuse(self, row: int, why: str) -> NoReturn:
        """Refuse the table for what is in a row."""
        raise self.error(f"{self.title}, {self.place(row)}: {why}.")

    def nearest(self, name: object) -> str:
        """A hint for a column that is not there."""
        listed = [cut(one, _LONGEST_SHOWN) for one in self.names[:_MOST_NAMES]]
        return nearest_name(name, listed)


# ------------------------------------------------------------------------------------- their cells


def of_cells(cells: list[str]) -> Column:
    """The cells of a file of text."""
    return Column(CELLS, cells, _blank(cells))


def of_polars(series: Any) -> Column:
    """A series of polars."""
    dtype, empty = series.dtype, series.is_null().to_numpy()
    kind = type(dtype).__name__
    if kind in ("String", "Categorical", "Enum"):
        given = dtype.categories.to_list() if kind == "Enum" else None
        return _of_texts(_filled(series.cast(_like(series, "String")).to_list(), empty), given)
    if kind == "Null":
        return Column(NUMBERS, np.zeros(len(series)), empty)
    if dtype.is_integer() or dtype.is_float() or kind == "Decimal":
        exact = dtype.is_integer() and "128" not in kind
        numbers = series.fill_null(0) if exact else series.cast(_like(series, "Float64"))
        return of_numbers(numbers.to_numpy(), empty)
    if kind in ("Date", "Datetime", "Time", "Duration", "UInt128"):
        return Column(kind, series.to_list(), empty)
    return Column(kind, None, empty)


def _like(series: Any, name: str) -> Any:
    """A type of polars, which is imported already if there is a series."""
    import polars

    return getattr(polars, name)


def of_pandas(series: Any) -> Column:
    """A series of pandas, which need not be there."""
    dtype = series.dtype
    if isinstance(dtype, np.dtype) and dtype.kind != "O":
        return of_array(series.to_numpy())
    given = list(series.cat.categories) if getattr(dtype, "name", "") == "category" else None
    objects, empty = series.astype(object).to_numpy(), series.isna().to_numpy()
    column = _of_objects(list(objects), empty)
    return column if column.form != TEXTS else _of_texts(column.values, given)


def of_any(values: Any) -> Column:
    """A column of a mapping: a series, an array, or a list."""
    library = type(values).__module__.partition(".")[0]
    if library == "polars" and hasattr(values, "is_null"):
        return of_polars(values)
    if library == "pandas" and hasattr(values, "isna"):
        return of_pandas(values)
    if isinstance(values, Sequence) and not isinstance(values, str | bytes):
        return _of_objects(list(values), None)
    return of_array(np.asarray(values))


def of_array(array: np.ndarray) -> Column:
    """An array of NumPy."""
    kind, nothing = array.dtype.kind, np.zeros(len(array), bool)
    if kind in "iuf":
        return of_numbers(array, nothing)
    if kind in "UO":
        return _of_objects(array.tolist(), None)
    if kind in "mM":
        return Column(str(array.dtype), array.tolist(), np.isnat(array))
    return Column(str(array.dtype), None, nothing)


def of_numbers(numbers: np.ndarray, empty: np.ndarray) -> Column:
    """Numbers; those that are NaN are empty, too."""
    if numbers.dtype.kind == "f":
        numbers = numbers.astype(np.float64, copy=False)
        empty = empty | np.isnan(numbers)
    return Column(NUMBERS, numbers, empty)


def _of_objects(cells: list[Any], empty: np.ndarray | None) -> Column:
    """Objects of Python: texts or numbers, and None or NaN where there is nothing."""
    if empty is None:
        empty = np.fromiter((one is None or _is_nan(one) for one in cells), bool, len(cells))
    kinds = {type(one) for one, none in zip(cells, empty.tolist(), strict=True) if not none}
    if all(issubclass(kind, str) for kind in kinds) and (kinds or not cells):
        return _of_texts(_filled(cells, empty), None)
    if not any(issubclass(kind, bool | np.bool) for kind in kinds):
        numbers = _as_numbers(cells, empty, all(issubclass(k, int | np.integer) for k in kinds))
        if numbers is not None:
            return of_numbers(numbers, empty)
    words = sorted(kind.__name__ for kind in kinds)
    return Column(" and ".join(words[:3]), cells, empty)


def _as_numbers(cells: list[Any], empty: np.ndarray, whole: bool) -> np.ndarray | None:
    """Numbers of Python as an array; None if they are something else."""
    filled = [0 if none else one for one, none in zip(cells, empty.tolist(), strict=True)]
    try:
        if not all(
            hasattr(one, "__float__") for one in {type(one): one for one in filled}.values()
        ):
            return None
        return np.array(filled, np.int64) if whole else np.array(filled, np.float64)
    except (TypeError, ValueError):
        return None
    except OverflowError:  # an integer that 64 bits cannot hold
        return _as_numbers(cells, empty, False) if whole else None


def _is_nan(one: Any) -> bool:
    return isinstance(one, float | np.floating) and bool(one != one)


def _of_texts(texts: list[str], names: list[Any] | None) -> Column:
    known = tuple(names) if names and all(isinstance(one, str) for one in names) else None
    return Column(TEXTS, texts, _blank(texts), known)


def _filled(texts: list[Any], empty: np.ndarray) -> list[str]:
    if not empty.any():
        return texts
    return ["" if none else one for one, none in zip(texts, empty.tolist(), strict=True)]


def _blank(texts: list[str]) -> np.ndarray:
    return np.fromiter((not one or one.isspace() for one in texts), bool, len(texts))
