"""Reading the tables of a sweep, with the columns and types that were written.

Checksums protect them against accidents. Whoever changes a table and its checksum can write any
numbers, but no table leads to a traceback.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars

from cmdpax.errors import in_line
from cmdpax.experiments.measures import PLANNED
from cmdpax.learners import registered
from cmdpax.schemes.parameters import SCHEDULE_PARTS, in_words
from cmdpax.schemes.schedules import Schedule
from cmdpax.storage.paths import DamagedError

LATER = ("strong_by_constraint", "weak_by_constraint")
"""The columns of `curves` that the first versions did not write."""
SUMS = {
    "strong": ("strong_objective", "strong_constraints"),
    "weak": ("weak_objective", "weak_constraints"),
}
"""The two regrets of each kind, in both tables."""
_REGRETS = (*SUMS["strong"], *SUMS["weak"])
_FINAL = {
    "text": ("run", "cmdp", "cmdp_name", "algorithm", "configuration"),
    "integer": ("seed", "num_episodes"),
    "number": _REGRETS,
}
_CURVES = {
    "text": ("run",),
    "integer": ("episode",),
    "number": ("value", "suboptimality", "violation", *_REGRETS),
    "list": ("constraint_values", "multipliers"),
}


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn what Polars raises about the tables in a folder into an error of ours."""
    try:
        yield
    except (polars.exceptions.PolarsError, polars.exceptions.PanicException) as error:
        raise _damaged(path, in_line(error)[:200]) from None


def read_final(paths: Sequence[Path]) -> polars.DataFrame:
    """A row per run, from the files of all batches; there is at least one."""
    with readable(paths[0].parent):
        frames = [polars.read_parquet(path, glob=False) for path in paths]
        for path, frame in zip(paths, frames, strict=True):
            _require_columns(path, frame.schema, _FINAL)
            required = [name for names in _FINAL.values() for name in names]
            required += _known_parameters(path, frame)
            gaps = frame.select(required).null_count().sum_horizontal().item()
            if gaps or any(kind.is_nested() for kind in frame.schema.values()):
                raise _damaged(path, "it has gaps or lists")
        # Parameters that an algorithm does not have are null in its rows, and plans are undefined.
        whole = polars.concat(frames, how="diagonal_relaxed")
        planned = [name for name in PLANNED if name in whole.columns]
        whole = whole.with_columns(polars.col(planned).fill_null(math.nan))
        first = frames[0].columns
        chosen = dict.fromkeys(name for one in frames for name in parameter_columns(one.columns))
        before = first[: first.index("seed") + 1]
        return whole.select(*before, *chosen, polars.exclude(*before, *chosen))


def parameter_columns(columns: Sequence[str]) -> list[str]:
    """The columns of `final`, or of `best`, that hold parameters: those before the optimism."""
    names = list(columns)
    last = next((i for i, name in enumerate(names) if name.startswith("optimism_")), len(names))
    return names[names.index("seed" if "seed" in names else "configuration") + 1 : last]


def parameters_of_row(row: Mapping[str, Any]) -> dict[str, str]:
    """The parameters of a run in words, by name; a schedule is a formula."""
    found = {}
    for name in parameter_columns(list(row)):
        of_schedule = name.removesuffix("_exponent").removesuffix("_offset")
        if row[name] is None or (of_schedule != name and of_schedule in found):
            continue
        value, exponent, offset = (row.get(name + part) for part in SCHEDULE_PARTS)
        if exponent is not None and offset is not None:
            value = Schedule(float(row[name]), exponent, offset)  # words of others make it one
        found[name] = in_words(value)
    return found


def _known_parameters(path: Path, frame: polars.DataFrame) -> list[str]:
    """The columns that the registered algorithms of a table must have; they are numbers."""
    found = dict.fromkeys(
        column
        for name in frame["algorithm"].unique()
        if name is not None and (algorithm := registered(name)) is not None
        for parameter in algorithm.parameters
        for column in parameter.columns
        if parameter.kind in ("number", "schedule")
    )
    for column in found:
        if frame.schema.get(column) != polars.Float64:
            raise _damaged(path, f"its column {column} is missing or of another type")
    return list(found)


def scan_curves(paths: Sequence[Path]) -> polars.LazyFrame:
    """A row per run and recorded episode; what an earlier version did not write is null."""
    kinds: dict[bool, list[Path]] = {}
    with readable(paths[0].parent):
        for path in paths:
            schema = polars.scan_parquet(path, glob=False).collect_schema()
            is_whole = set(LATER) <= set(schema)
            lists = (*_CURVES["list"], *(LATER if is_whole else ()))
            _require_columns(path, schema, _CURVES | {"list": lists})
            kinds.setdefault(is_whole, []).append(path)
        scans = {whole: polars.scan_parquet(some, glob=False) for whole, some in kinds.items()}
        if False in scans:
            absent = polars.lit(None, dtype=polars.List(polars.Float64))
            scans[False] = scans[False].with_columns(**dict.fromkeys(LATER, absent))
        return polars.concat(scans.values())


def _require_columns(path: Path, schema: Any, columns: dict[str, tuple[str, ...]]) -> None:
    kinds: dict[str, Any] = {
        "text": polars.String,
        "integer": polars.Int64,
        "number": polars.Float64,
        "list": polars.List(polars.Float64),
    }
    for kind, names in columns.items():
        for name in names:
            if schema.get(name) != kinds[kind]:
                raise _damaged(path, f"its column {name} is missing or of another type")


def _damaged(path: Path, why: str) -> DamagedError:
    return DamagedError(
        f"{path} is not a table of a sweep ({why}); run the sweep again, in a new folder."
    )
