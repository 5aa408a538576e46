"""What the driver and its workers send each other: JSON and Parquet, never a pickled object.

A worker is another machine: its answer is checked, run by run and column by column, before it is
written to a folder.
"""

import io
import json
import math
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars

from cmdpax.errors import CmdpaxError, FileError, in_line
from cmdpax.experiments.executing import Outcome, Work
from cmdpax.experiments.folder import TABLES, as_parquet
from cmdpax.experiments.measures import MAY_BE_NAN, chosen_columns, identity_columns
from cmdpax.experiments.records import checksum
from cmdpax.experiments.runs import Batch, Model, Run
from cmdpax.experiments.specification import read_specification
from cmdpax.learners import Algorithm, as_algorithm
from cmdpax.learning.manifest import read_configuration
from cmdpax.model.cmdp import CMDP
from cmdpax.model.files import load, save
from cmdpax.storage.texts import parse_json
from cmdpax.version import __version__

_MODEL = "cmdp.npz"
_SHORT = 200
_LONG = 1000
_PER_CONSTRAINT = ("constraint_values", "multipliers", "strong_by_constraint", "weak_by_constraint")


class AnswerError(CmdpaxError):
    """A batch was not answered, or not as it was asked for.

    Attributes:
        workers: those that may be to blame, if that is known.
    """

    def __init__(self, message: str, *workers: str) -> None:
        """Say what is wrong, and with which workers."""
        super().__init__(message)
        self.workers = workers


# ------------------------------------------------------------------------------------------- orders


def write_order(work: Work, batch: Batch) -> bytes:
    """Write a batch as JSON; its CMDPs travel separately, once for all batches."""
    runs = [
        {
            "identity": run.identity,
            "fingerprint": run.fingerprint,
            "configuration_name": run.configuration_name,
            "configuration": run.configuration.describe(),
        }
        for run in batch.runs
    ]
    used = dict.fromkeys(run.fingerprint for run in batch.runs)
    content = {
        "algorithm": batch.algorithm,
        "runs": runs,
        "specification": _specification(work, batch.runs[0].configuration.algorithm),
        "optima": {fingerprint: work.models[fingerprint].optimum for fingerprint in used},
        "names": {fingerprint: work.models[fingerprint].name for fingerprint in used},
    }
    return json.dumps(content, allow_nan=False).encode()


def _specification(work: Work, algorithm: Algorithm) -> dict[str, Any]:
    """Leave out other algorithms, whose modules a worker need not have, and their baseline."""
    content = work.wanted.model_dump(mode="json")
    own = [entry for entry in content["algorithms"] if entry["name"] == algorithm.name]
    needed = {} if algorithm.needs_baseline else {"baseline": None}
    return content | {"algorithms": own} | needed


def write_model(cmdp: CMDP) -> bytes:
    """Write a CMDP as an `.npz` file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / _MODEL
        save(cmdp, path)
        return path.read_bytes()


def read_order(order: bytes, models: Sequence[bytes]) -> tuple[Work, Batch]:
    """Read a batch and all that it needs; the CMDPs are `.npz` files."""
    content = parse_json(order)
    wanted = read_specification(content["specification"])
    names, optima = content["names"], content["optima"]
    cmdps = [cmdp for cmdp in map(_read_model, models) if cmdp.fingerprint in names]
    found = {
        cmdp.fingerprint: Model(names[cmdp.fingerprint], {}, cmdp, optima[cmdp.fingerprint])
        for cmdp in cmdps
    }
    algorithm = as_algorithm(content["algorithm"])
    runs = [
        Run(
            entry["identity"],
            entry["fingerprint"],
            read_configuration(entry["configuration"], algorithm, wanted.num_episodes),
            entry["configuration_name"],
        )
        for entry in content["runs"]
    ]
    return Work(wanted, found), Batch(runs)


def _read_model(data: bytes) -> CMDP:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / _MODEL
        path.write_bytes(data)
        return load(path)


# ------------------------------------------------------------------------------------------ answers


def write_answer(done: Outcome, failed: Sequence[Outcome]) -> list[bytes]:
    """Write the tables as Parquet files, and the runs that cannot be accounted for as JSON."""
    flawed = [
        {"runs": [run.identity for run in one.batch.runs], "error": one.error} for one in failed
    ]
    tables = [as_parquet(done.tables[name]) for name in TABLES]
    return [*tables, json.dumps(flawed).encode()]


def write_header(
    files: Sequence[bytes],
    worker: str,
    seconds: float,
    made: dict[str, Any],
    error: str | None = None,
) -> bytes:
    """Write the file that precedes the others, as JSON.

    Args:
        files: the others.
        worker: where they were made.
        seconds: how long that took.
        made: what they were computed with: `versions` and `device`.
        error: why there are none, else None.
    """
    content = {"worker": worker, "seconds": seconds, "made": made, "error": error}
    return json.dumps(content | {"checksums": _checksums(files)}).encode()


def read_header(files: Any) -> tuple[str, float, dict[str, Any]]:
    """Read the worker, its seconds and what it computed with; all files must be as they were sent.

    Damaged files must not be read: they may make Polars end the whole process.

    Raises:
        AnswerError: there is no header, it reports an error, a file is damaged, or the worker has
            another version of cmdpax.
    """
    if not isinstance(files, list) or not files or not all(isinstance(f, bytes) for f in files):
        raise AnswerError("an answer is not a list of files.")
    try:
        content = parse_json(files[0])
        checksums = content["checksums"]
        error = None if content["error"] is None else _text(content["error"])
        worker, seconds = str(content["worker"]), _seconds(content["seconds"])
        made = _made(content["made"])
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        raise AnswerError("an answer has no header.") from None
    if checksums != _checksums(files[1:]):
        raise AnswerError("an answer was damaged on its way.", worker)
    theirs = made["versions"].get("cmdpax")
    if theirs != __version__:
        raise AnswerError(
            f"a worker has cmdpax {theirs}, the driver {__version__}; install the same version on "
            "all machines.",
            worker,
        )
    if error is not None:
        raise AnswerError(error, worker)
    return worker, seconds, made


def _made(content: Any) -> dict[str, Any]:
    """Cut texts that are written to a folder; raises what a damaged header raises."""
    versions = {
        str(name)[:_SHORT]: str(value)[:_SHORT] for name, value in content["versions"].items()
    }
    return {"versions": versions, "device": str(content["device"])[:_SHORT]}


def _text(content: Any) -> str:
    """What a worker says, fit for a terminal and ended by a period."""
    text = "".join(filter(str.isprintable, str(content)))[:_LONG]
    return text if text.endswith(".") else f"{text or 'A worker did not say why'}."


def _seconds(number: Any) -> float:
    seconds = float(number)
    if not 0 <= seconds < math.inf:
        raise ValueError(f"{seconds} is no number of seconds")
    return seconds


def _checksums(files: Sequence[bytes]) -> list[str]:
    return [checksum(file) for file in files]


def read_rate(files: Sequence[bytes]) -> tuple[float, float]:
    """Read what a trial measured: seconds per run and episode, and those of compilation.

    Raises:
        AnswerError: these are not two numbers of seconds.
    """
    try:
        (file,) = files
        seconds, compile_seconds = (_seconds(number) for number in parse_json(file))
    except (ValueError, TypeError, OverflowError):
        raise AnswerError("a trial's answer is not two numbers of seconds.") from None
    return seconds, compile_seconds


def read_answer(
    batch: Batch,
    work: Work,
    files: Sequence[bytes],
    schemas: Mapping[str, Any],
    made: dict[str, Any],
) -> tuple[Outcome, list[Outcome]]:
    """Read what came of a batch, as `run_one` returns it.

    Args:
        batch: what was asked for.
        work: what it belongs to.
        files: the answer.
        schemas: the columns that the tables of this version have.
        made: what the answer was computed with.

    Raises:
        AnswerError: something is missing, superfluous, of another type or of other runs.
    """
    tables, rest = _read_tables(files)
    failed = _read_failed(batch, rest)
    names = {run.identity for one in failed for run in one.batch.runs}
    done = Batch([run for run in batch.runs if run.identity not in names])
    for name, table in tables.items():
        if dict(table.schema) != dict(schemas[name]):
            raise AnswerError(
                f"an answer's table {name} has other columns than this version of cmdpax; install "
                "the same version on all machines."
            )
    _check_final(done, work, tables["final"])
    _check_curves(done, work, tables["curves"])
    return Outcome(done, tables, made), failed


def _read_tables(files: Sequence[bytes]) -> tuple[dict[str, polars.DataFrame], bytes]:
    """The tables, and the file that follows them."""
    raised = (polars.exceptions.PolarsError, polars.exceptions.PanicException)
    try:
        *first, rest = files
        named = zip(TABLES, first, strict=True)
        return {name: polars.read_parquet(io.BytesIO(file)) for name, file in named}, rest
    except (*raised, FileError, ValueError, OSError) as error:
        why = in_line(error)[:_SHORT].rstrip(".")
        raise AnswerError(f"an answer is not two Parquet tables ({why}).") from None


def _read_failed(batch: Batch, file: bytes) -> list[Outcome]:
    """The runs that the worker could not account for, and why, in its own words."""
    runs = {run.identity: run for run in batch.runs}
    try:
        failed = [
            Outcome.failure(
                Batch([runs.pop(name) for name in entry["runs"]]), _text(entry["error"])
            )
            for entry in parse_json(file)
        ]
        if not all(one.batch.runs for one in failed):
            raise ValueError("nothing failed")
        return failed
    except (ValueError, TypeError, KeyError):
        raise AnswerError("an answer's failed runs are not those of the batch.") from None


def _check_numbers(name: str, table: polars.DataFrame) -> None:
    """Refuse gaps, and accounts that are not numbers: these would never count as unsafe."""
    if any(column.null_count() for column in table):
        raise AnswerError(f"an answer's table {name} has gaps.")
    accounts = table.drop(MAY_BE_NAN, strict=False)
    plain = accounts.select(polars.selectors.float())
    lists = accounts.select(polars.selectors.by_dtype(polars.List(polars.Float64)))
    if not all(column.is_finite().all() for column in [*plain, *(c.explode() for c in lists)]):
        raise AnswerError(f"an answer's table {name} has accounts that are not numbers.")


def _check_final(batch: Batch, work: Work, final: polars.DataFrame) -> None:
    names = [work.models[run.fingerprint].name for run in batch.runs]
    expected = identity_columns(batch.runs, names)
    expected["num_episodes"] = [work.wanted.num_episodes] * len(batch.runs)
    if final.select(list(expected)).to_dict(as_series=False) != expected:
        raise AnswerError("an answer is of other runs than those that were asked for.")
    if not batch.runs:
        return
    chosen = polars.DataFrame(chosen_columns(batch.runs))
    if not final.select(chosen.columns).equals(chosen):
        raise AnswerError("an answer is of other parameters than those that were asked for.")
    _check_numbers("final", final.drop(chosen.columns))


def _check_curves(batch: Batch, work: Work, curves: polars.DataFrame) -> None:
    _check_numbers("curves", curves)
    recorded = work.wanted.settings.recorded
    identities = np.repeat(np.array([run.identity for run in batch.runs], str), len(recorded))
    episodes = np.tile(recorded, len(batch.runs))
    if len(curves) != len(identities) or not (
        curves["run"].equals(polars.Series("run", identities))
        and curves["episode"].equals(polars.Series("episode", episodes))
    ):
        raise AnswerError("an answer's curves are of other runs or episodes than were asked for.")
    counts = [work.models[run.fingerprint].cmdp.num_constraints for run in batch.runs]
    expected = np.repeat(counts, len(recorded))
    for name in _PER_CONSTRAINT:
        if not np.array_equal(curves[name].list.len().to_numpy(), expected):
            raise AnswerError(f"an answer's {name} are not those of all constraints.")
