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

_MOST_NAMES, _LONGEST_SHOWN = 30, 40  # of columns in a sentence


class Column(NamedTuple):
    """A column.

    Attributes:
        form: `CELLS` of a file of text, `TEXTS`, `NUMBERS`, or the type that cannot be read.
        values: N texts, an array of N numbers, or whatever else it holds; None if that is unknown.
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
        if self.empty[row] and not _is_nan(value):
            return "empty"
        return shown(value.item() if isinstance(value, np.generic) else value)


class Table(NamedTuple):
    """A table of steps whose columns are read when they are asked for.

    Attributes:
        title: the table, as the subject of a sentence.
        names: the names of its columns.
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

    def refuse_first(self, wrong: np.ndarray, why: Callable[[int], str]) -> None:
        """Refuse the table for the first row that is wrong, if there is any."""
        if wrong.any():
            row = int(np.argmax(wrong))
            self.refuse(row, why(row))

    def nearest(self, name: object) -> str:
        """A hint for a column that is not there."""
        listed = [cut(one, _LONGEST_SHOWN) for one in self.names[:_MOST_NAMES]]
        return nearest_name(name, listed)


# ----------------------------------------------------------------------------- where they come from


def of_cells(cells: list[str]) -> Column:
    """The cells of a file of text."""
    return Column(CELLS, cells, _blank(cells))


def of_polars(series: Any) -> Column:
    """A series of polars."""
    import polars

    dtype, empty = series.dtype, series.is_null().to_numpy()
    if dtype in (polars.String, polars.Categorical, polars.Enum):
        names = dtype.categories.to_list() if dtype == polars.Enum else None
        return _of_texts(series.cast(polars.String).to_list(), empty, names)
    if dtype.is_temporal():
        return _of_texts([str(one) for one in series.to_list()], empty)
    if dtype == polars.Null:
        return Column(NUMBERS, np.zeros(len(series)), empty)
    if dtype.is_integer() and "128" not in str(dtype):
        return Column(NUMBERS, series.fill_null(0).to_numpy(), empty)
    if dtype.is_numeric():
        return _of_numbers(series.cast(polars.Float64).to_numpy(), empty)
    return Column(str(dtype), None, empty)


def of_pandas(series: Any) -> Column:
    """A series of pandas; what it can do is all that is known of pandas here."""
    dtype = series.dtype
    if isinstance(dtype, np.dtype) and dtype.kind != "O":
        return of_array(series.to_numpy())
    column = _of_objects(list(series.astype(object)), series.isna().to_numpy())
    if column.form != TEXTS or getattr(dtype, "name", "") != "category":
        return column
    return column._replace(names=_as_names(list(series.cat.categories)))


def of_any(values: Any) -> Column:
    """A column of a mapping: a series, an array, or a list."""
    library = library_of(values)
    if library == "polars" and hasattr(values, "is_null"):
        return of_polars(values)
    if library == "pandas" and hasattr(values, "isna"):
        return of_pandas(values)
    if isinstance(values, Sequence):
        return _of_objects(list(values))
    return of_array(np.asarray(values))


def of_array(array: np.ndarray) -> Column:
    """An array of NumPy."""
    nothing = np.zeros(len(array), bool)
    if array.dtype.kind in "iuf":
        return _of_numbers(array, nothing)
    if array.dtype.kind in "mM":
        return _of_texts(array.astype(str).tolist(), np.isnat(array))
    if array.dtype.kind in "UO":
        return _of_objects(array.tolist())
    return Column(str(array.dtype), None, nothing)


def library_of(value: object) -> str:
    """The package that a type comes from: nobody needs to import it to find out."""
    return type(value).__module__.partition(".")[0]


# -------------------------------------------------------------------------------- what they hold


def _of_numbers(numbers: np.ndarray, empty: np.ndarray) -> Column:
    """Numbers; those that are NaN are empty, too."""
    if numbers.dtype.kind == "f":
        numbers = numbers.astype(np.float64, copy=False)
        empty = empty | np.isnan(numbers)
    return Column(NUMBERS, numbers, empty)


def _of_texts(texts: list[Any], empty: np.ndarray, names: list[str] | None = None) -> Column:
    """Texts, with anything in the empty cells."""
    if empty.any():
        texts = ["" if none else one for one, none in zip(texts, empty.tolist(), strict=True)]
    return Column(TEXTS, texts, _blank(texts), None if names is None else _as_names(names))


def _of_objects(cells: list[Any], empty: np.ndarray | None = None) -> Column:
    """Objects of Python: texts or numbers, and None or NaN where there is nothing."""
    nan = np.fromiter(map(_is_nan, cells), bool, len(cells))
    if empty is None:
        empty = nan | np.fromiter((one is None for one in cells), bool, len(cells))
    filled = [one for one, none in zip(cells, empty.tolist(), strict=True) if not none]
    kinds = {type(one) for one in filled}
    if kinds and all(issubclass(kind, str) for kind in kinds):
        return _of_texts(cells, empty)
    numbers = _as_numbers(filled, kinds)
    if numbers is not None:
        values = np.zeros(len(cells), numbers.dtype)
        values[~empty] = numbers
        return _of_numbers(np.where(nan, np.nan, values) if nan.any() else values, empty)
    return Column(" and ".join(sorted(kind.__name__ for kind in kinds)[:3]), cells, empty)


def _as_numbers(objects: list[Any], kinds: set[type]) -> np.ndarray | None:
    """Numbers of Python as an array; None if some are something else."""
    if any(issubclass(kind, bool | np.bool) or not hasattr(kind, "__float__") for kind in kinds):
        return None
    whole = all(issubclass(kind, int | np.integer) for kind in kinds)
    for dtype in (np.int64, np.float64) if whole else (np.float64,):
        try:
            return np.array(objects, dtype)
        except OverflowError:  # an integer that this type cannot hold
            continue
        except (TypeError, ValueError):
            return None
    return None


def _as_names(names: list[Any]) -> tuple[str, ...] | None:
    """What a type lists, if these are texts."""
    texts = all(isinstance(one, str) for one in names)
    return tuple(one for one in names if one.strip()) if texts else None


def _is_nan(one: Any) -> bool:
    return isinstance(one, float | np.floating) and bool(one != one)


def _blank(texts: list[str]) -> np.ndarray:
    """Which texts hold nothing but blanks."""
    blank = {one for one in set(texts) if not one or one.isspace()}
    if not blank:
        return np.zeros(len(texts), bool)
    return np.fromiter((one in blank for one in texts), bool, len(texts))
