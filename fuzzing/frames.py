"""Parquet tables of other columns, types and rows than were written."""

import io
from random import Random
from typing import Any

import numpy as np
import polars

_NUMBERS = (None, float("nan"), float("inf"), -1.0, 1e308)


def mutate(rng: Random, content: bytes) -> bytes:
    """A table with something changed."""
    frame = polars.read_parquet(io.BytesIO(content))
    file = io.BytesIO()
    rng.choice(_WAYS)(rng, frame).write_parquet(file)
    return file.getvalue()


def _column(rng: Random, frame: polars.DataFrame) -> str:
    return rng.choice(frame.columns or [""])


def _without(rng: Random, frame: polars.DataFrame) -> Any:
    return frame.drop(_column(rng, frame), strict=False)


def _added(rng: Random, frame: polars.DataFrame) -> Any:
    return frame.with_columns(polars.lit(1).alias(rng.choice(("more", "\x1b[31m", "score"))))


def _renamed(rng: Random, frame: polars.DataFrame) -> Any:
    return frame.rename({_column(rng, frame): "renamed"}, strict=False)


def _typed(rng: Random, frame: polars.DataFrame) -> Any:
    kinds = (polars.String, polars.Int8, polars.Boolean, polars.Date, polars.Float32)
    return frame.with_columns(
        polars.col(_column(rng, frame)).is_null().cast(polars.Int32).cast(rng.choice(kinds))
    )


def _valued(rng: Random, frame: polars.DataFrame) -> Any:
    """Numbers that are none, in one row or in all of them."""
    floats = [name for name, kind in frame.schema.items() if kind == polars.Float64]
    if not floats or not len(frame):
        return frame
    value = polars.lit(rng.choice(_NUMBERS), polars.Float64)
    name, row = rng.choice(floats), rng.randrange(len(frame))
    chosen = polars.lit(rng.random() < 0.5) | (polars.int_range(polars.len()) == row)
    return frame.with_columns(
        polars.when(chosen).then(value).otherwise(polars.col(name)).alias(name)
    )


def _texts(rng: Random, frame: polars.DataFrame) -> Any:
    names = [name for name, kind in frame.schema.items() if kind == polars.String]
    texts = ("", "planted_module:fly", "\x1b[31mred", "..:x", "x" * 300, "</script><b>")
    if not names:
        return frame
    return frame.with_columns(polars.lit(rng.choice(texts)).alias(rng.choice(names)))


def _rows(rng: Random, frame: polars.DataFrame) -> Any:
    return rng.choice((frame[:0], frame[:-1], polars.concat([frame, frame]), frame[::-1]))


def _integers(rng: Random, frame: polars.DataFrame) -> Any:
    names = [name for name, kind in frame.schema.items() if kind.is_integer()]
    if not names:
        return frame
    name = rng.choice(names)
    number = np.int64(rng.choice((-1, 0, 2**31, 2**62)))
    return frame.with_columns(polars.lit(number).cast(frame.schema[name], strict=False).alias(name))


_WAYS = (_without, _added, _renamed, _typed, _valued, _valued, _texts, _rows, _integers)
