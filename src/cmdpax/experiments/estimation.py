"""How large a sweep is, before it is run: runs, episodes, bytes, and about how long."""

import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from cmdpax.experiments.cluster.cutting import measure, trial_of
from cmdpax.experiments.executing import Work
from cmdpax.experiments.folder import Folder
from cmdpax.experiments.runs import Batch, Model, Run, kind_of, make_batches, make_models, make_runs
from cmdpax.experiments.specification import Specification, read_specification
from cmdpax.experiments.sweeping import stored_manifest

_NUMBERS_PER_ROW = 9  # of `curves`, besides four per constraint
_COMPRESSED = 0.65  # Parquet's share of the plain bytes, measured


class Estimate(NamedTuple):
    """What a sweep would take; what the folder has already is left out.

    Attributes:
        runs: still to do.
        runs_done: in the folder.
        batches: compiled batches.
        episodes: of all runs together.
        num_bytes: on disk, about.
        seconds: about, on this machine, compilation included.
        compile_seconds: of them, compilation.
    """

    runs: int
    runs_done: int
    batches: int
    episodes: int
    num_bytes: int
    seconds: float
    compile_seconds: float


def estimate(
    specification: Specification | dict[str, Any] | str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    cluster: str | None = None,
) -> Estimate:
    """Measure a few episodes of every kind of batch, and scale them up; nothing is written.

    On a cluster its workers measure, and it is cut as it would be.
    """
    wanted = read_specification(specification)
    models = make_models(wanted)
    runs = make_runs(wanted, models)
    done: set[str] = set()
    if out is not None and stored_manifest(Folder(out), wanted) is not None:
        done = {run for part in Folder(out).parts().values() for run in part}
    missing = [run for run in runs if run.identity not in done]
    num_bytes = sum(_run_bytes(models[run.fingerprint], wanted) for run in missing)
    if cluster is None:
        batches = make_batches(missing, models, wanted)
        num_batches = len(batches)
        seconds, compilation = _durations(batches, wanted, models)
    else:
        num_batches, seconds, compilation = _on_cluster(cluster, missing, wanted, models)
    return Estimate(
        len(missing),
        len(runs) - len(missing),
        num_batches,
        len(missing) * wanted.num_episodes,
        num_bytes,
        seconds + compilation,
        compilation,
    )


def _on_cluster(
    address: str, missing: Sequence[Run], wanted: Specification, models: dict[str, Model]
) -> tuple[int, float, float]:
    """Batches, seconds with all workers at work, and compilation, which trials have done."""
    from cmdpax.experiments.cluster import plan_on_cluster

    if not missing:
        return 0, 0.0, 0.0
    work = Work([], wanted, models, dict.fromkeys(models, 0.0))
    pieces, workers = plan_on_cluster(address, missing, work)
    longest = max(piece.seconds for piece in pieces)
    shared = sum(piece.seconds for piece in pieces) / max(workers, 1)
    return len(pieces), max(longest, shared), 0.0


def _run_bytes(model: Model, wanted: Specification) -> int:
    numbers = _NUMBERS_PER_ROW + 4 * model.cmdp.num_constraints
    return int(len(wanted.recorded()) * numbers * 8 * _COMPRESSED)


def _durations(
    batches: Iterable[Batch], wanted: Specification, models: dict[str, Model]
) -> tuple[float, float]:
    """Seconds of running, and of compiling, of all batches."""
    trial = Work([], trial_of(wanted), models, dict.fromkeys(models, 0.0))
    rates: dict[Any, float] = {}  # seconds per run and episode
    running = compiling = 0.0
    for batch in batches:
        kind = (kind_of(batch.runs[0], models), len(batch.runs))
        if kind not in rates:
            rates[kind], compile_seconds = measure(trial, batch)
            compiling += compile_seconds
        running += rates[kind] * len(batch.runs) * wanted.num_episodes
    return running, compiling
