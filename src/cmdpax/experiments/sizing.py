"""How large a sweep is, before it is run: runs, episodes, bytes and about how long it takes."""

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from cmdpax.experiments.cluster import plan_on_cluster, prepare
from cmdpax.experiments.cluster.cutting import measure, run_bytes, trial_of
from cmdpax.experiments.executing import Work
from cmdpax.experiments.folder import Folder
from cmdpax.experiments.runs import (
    Batch,
    Kind,
    Run,
    kind_of,
    make_batches,
    make_models,
    make_runs,
    require_fitting,
)
from cmdpax.experiments.specification import Specification, read_specification

_COMPRESSED = 0.65  # Parquet's share of the plain bytes, measured


class Estimate(NamedTuple):
    """What a sweep would take, without what the folder has already.

    Attributes:
        runs: those to do.
        runs_done: those in the folder.
        batches: how many batches there are; each is compiled.
        episodes: those of all runs together.
        num_bytes: about how much is written.
        seconds: about how long it takes on this machine, with compilation, or on the cluster.
        compile_seconds: the part of it that is compilation; not known for a cluster.
        workers: those of the cluster; None without one.
        cut: how the runs are cut for the cluster, a row of a table for those of one kind:
            `algorithm`, `sizes` (S, A, H and I), `runs`, `batches`, and of the largest batch
            `batch_runs` and `batch_seconds`.
    """

    runs: int
    runs_done: int
    batches: int
    episodes: int
    num_bytes: int
    seconds: float
    compile_seconds: float
    workers: int | None = None
    cut: tuple[dict[str, Any], ...] = ()


def estimate(
    specification: Specification | dict[str, Any] | str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    cluster: str | None = None,
) -> Estimate:
    """Measure a few episodes of every kind of batch, and scale them up; nothing is written.

    A cluster is measured by its workers, and the runs are cut as a sweep would cut them.
    """
    if cluster is not None:
        prepare(cluster)
    wanted = read_specification(specification)
    done = set() if out is None else _done(Folder(out), wanted)
    work = Work(wanted, make_models(wanted))
    runs = make_runs(wanted, work.models)
    missing = [run for run in runs if run.identity not in done]
    counts = [work.models[run.fingerprint].cmdp.num_constraints for run in missing]
    nothing = Estimate(
        runs=len(missing),
        runs_done=len(runs) - len(missing),
        batches=0,
        episodes=len(missing) * wanted.num_episodes,
        num_bytes=sum(int(run_bytes(count, wanted) * _COMPRESSED) for count in counts),
        seconds=0.0,
        compile_seconds=0.0,
    )
    if not missing:
        return nothing
    require_fitting(wanted.settings, missing, work.models)
    if cluster is not None:
        return _on_cluster(nothing, cluster, missing, work)
    batches = make_batches(missing, work.models, wanted)
    seconds, compilation = _durations(batches, work)
    return nothing._replace(
        batches=len(batches), seconds=seconds + compilation, compile_seconds=compilation
    )


def _done(folder: Folder, wanted: Specification) -> set[str]:
    """The runs that a folder has; one that `sweep` would refuse is refused here."""
    folder.require_ours()
    folder.known(wanted.shared)
    return {run for part in folder.parts().values() for run in part}


def _on_cluster(nothing: Estimate, address: str, missing: Sequence[Run], work: Work) -> Estimate:
    """With all workers busy; without compilation, which the trials have done."""
    batches, workers = plan_on_cluster(address, missing, work)
    longest = max(batch.seconds for batch in batches)
    shared = sum(batch.seconds for batch in batches) / max(workers, 1)
    grouped: dict[Kind, list[Batch]] = {}
    for batch in batches:
        grouped.setdefault(kind_of(batch.runs[0], work.models), []).append(batch)
    return nothing._replace(
        batches=len(batches),
        seconds=max(longest, shared),
        workers=workers,
        cut=tuple(_share(members, work) for members in grouped.values()),
    )


def _share(batches: Sequence[Batch], work: Work) -> dict[str, Any]:
    counts = [len(batch.runs) for batch in batches]
    sizes = work.models[batches[0].runs[0].fingerprint].cmdp.sizes
    return {
        "algorithm": batches[0].algorithm,
        "sizes": f"{sizes.num_states}, {sizes.num_actions}, {sizes.horizon}, "
        f"{sizes.num_constraints}",
        "runs": sum(counts),
        "batches": len(batches),
        "batch_runs": max(counts),
        "batch_seconds": max(batch.seconds for batch in batches),
    }


def _durations(batches: Sequence[Batch], work: Work) -> tuple[float, float]:
    """The seconds that all batches take to run and to compile."""
    trial = work._replace(wanted=trial_of(work.wanted))
    rates: dict[Any, float] = {}  # seconds per unit of effort
    running = compiling = 0.0
    for batch in batches:
        kind = (kind_of(batch.runs[0], work.models), len(batch.runs))
        if kind not in rates:
            rates[kind], compile_seconds = measure(trial, batch)
            compiling += compile_seconds
        efforts = (run.configuration.effort(work.wanted.num_episodes) for run in batch.runs)
        running += rates[kind] * sum(efforts)
    return running, compiling
