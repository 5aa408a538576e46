"""What the machines of a cluster send: answers of workers, and orders to them."""

import functools
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import polars

import cmdpax
from cmdpax.errors import CmdpaxError
from cmdpax.experiments.cluster.messages import (
    read_answer,
    read_header,
    read_order,
    read_rate,
    write_answer,
    write_header,
    write_model,
    write_order,
)
from cmdpax.experiments.executing import Outcome, Work, made_here, run_one, table_schemas
from cmdpax.experiments.runs import Batch, make_batches, make_models, make_runs
from cmdpax.experiments.specification import read_specification
from fuzzing.cases import Entry, Input
from fuzzing.files import changed, mutate_one
from fuzzing.targets.base import Target, require
from fuzzing.targets.folders import SPECIFICATION

_HEADER, _FILES = "header.json", ("final.parquet", "curves.parquet", "failed.json")
_RATE, _ORDER, _MODEL = "rate.json", "order.json", "model.npz"


class _Asked(NamedTuple):
    """A batch, and what its answer is checked with."""

    work: Work
    batch: Batch
    schemas: dict[str, Any]


@functools.cache
def _asked() -> _Asked:
    wanted = read_specification(SPECIFICATION)
    models = make_models(wanted)
    work = Work(wanted, models)
    batch = make_batches(make_runs(wanted, models), models, wanted, 0)[0]
    return _Asked(work, batch, table_schemas(work, batch))


def _header(files: list[bytes]) -> bytes:
    return write_header(files, "a worker", 1.0, made_here())


def _samples() -> list[Input]:
    done, _ = run_one(_asked().work, _asked().batch)
    *others, last = done.batch.runs
    rest = done._replace(
        tables={
            name: table.filter(polars.col("run") != last.identity)
            for name, table in done.tables.items()
        },
        batch=Batch(others),
    )
    failed = [Outcome.failure(Batch([last]), "its policy is no number.")]
    rate = [b"[0.001, 2.5]"]
    found = [Input((Entry(_HEADER, _header(rate)), Entry(_RATE, rate[0])), {})]
    for files in (write_answer(done, []), write_answer(rest, failed)):
        entries = zip((_HEADER, *_FILES), [_header(files), *files], strict=True)
        found.append(Input(tuple(Entry(*entry) for entry in entries), {}))
    return found


def _mutate(rng: Random, given: Input, donors: Any) -> Input:
    """A file is sealed again most of the time: else it is not even read."""
    entry = rng.choice(given.entries)
    others = given.with_entry(changed(rng, entry, donors))
    if entry.path == _HEADER or rng.random() < 0.2:
        return others
    files = [others.find(one.path).content for one in given.entries[1:]]
    return others.with_entry(Entry(_HEADER, _header(files)))


def _run(folder: Path, arguments: dict[str, Any]) -> None:
    names = (_HEADER, *_FILES, _RATE)
    files = [(folder / name).read_bytes() for name in names if (folder / name).exists()]
    _, _, made = read_header(files)
    if (folder / _RATE).exists():
        seconds = read_rate(files[1:])
        require(all(0 <= number < float("inf") for number in seconds), f"a rate is {seconds}")
        return
    work, batch, schemas = _asked()
    done, failed = read_answer(batch, work, files[1:], schemas, made)
    told = len(done.tables["final"]) + sum(len(one.batch.runs) for one in failed)
    require(told == len(batch.runs), "an answer has other runs than were asked for")
    for column in done.tables["final"].select(cmdpax.experiments.reading.SUMS["strong"]):
        require(bool(column.is_finite().all()), f"{column.name} is not finite")


ANSWERS = Target("answers", _samples, _run, _mutate)


# ------------------------------------------------------------------------------------------ orders


def _order_samples() -> list[Input]:
    work, batch, _ = _asked()
    models = [write_model(model.cmdp) for model in work.models.values()]
    entries = [Entry(_ORDER, write_order(work, batch)), Entry(_MODEL, models[0])]
    return [Input(tuple(entries), {})]


def _read_order(folder: Path, arguments: dict[str, Any]) -> None:
    """A worker answers any exception as text, so that only the limits are asserted."""
    try:
        read_order((folder / _ORDER).read_bytes(), [(folder / _MODEL).read_bytes()])
    except Exception as error:
        raise CmdpaxError("the worker answers why.") from error


ORDERS = Target("orders", _order_samples, _read_order, mutate_one, weight=0.3, imports=True)
