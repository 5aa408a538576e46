"""How large a sweep is, before it is run: runs, episodes, bytes, and about how long."""

import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from cmdpax.experiments.cluster import plan_on_cluster, prepare
from cmdpax.experiments.cluster.cutting import measure, run_bytes, trial_of
from cmdpax.experiments.executing import Work
from cmdpax.experiments.folder import Folder
from cmdpax.experiments.runs import (
    Batch,
    Kind,
    Model,
    Run,
    kind_of,
    make_batches,
    make_models,
    make_runs,
)
from cmdpax.experiments.specification import Specification, read_specification

_COMPRESSED = 0.65  # Parquet's share of the plain bytes, measured


class Share(NamedTuple):
    """How the runs of one kind are cut for a cluster.

    Attributes:
        algorithm: of all of them.
        sizes: of their CMDPs: S, A, H and I.
        runs: altogether.
        batches: of them.
        batch_runs: in the largest batch.
        batch_seconds: that it takes on a worker, about.
    """

    algorithm: str
    sizes: str
    runs: int
    batches: int
    batch_runs: int
    batch_seconds: float


class Estimate(NamedTuple):
    """What a sweep would take; what the folder has already is left out.

    Attributes:
        runs: still to do.
        runs_done: in the folder.
        batches: compiled batches.
        episodes: of all runs together.
        num_bytes: on disk, about.
        seconds: about, on this machine or cluster; here with compilation.
        compile_seconds: of them, compilation; of a cluster it is not known.
        workers: of a cluster, else None.
        cut: how a cluster's batches are cut.
    """

    runs: int
    runs_done: int
    batches: int
    episodes: int
    num_bytes: int
    seconds: float
    compile_seconds: float
    workers: int | None = None
    cut: tuple[Share, ...] = ()


def estimate(
    specification: Specification | dict[str, Any] | str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    cluster: str | None = None,
) -> Estimate:
    """Measure a few episodes of every kind of batch, and scale them up; nothing is written.

    On a cluster its workers measure, and it is cut as it would be.
    """
    if cluster is not None:
        prepare(cluster)
    wanted = read_specification(specification)
    done = set() if out is None else _done(Folder(out), wanted)
    models = make_models(wanted)
    runs = make_runs(wanted, models)
    missing = [run for run in runs if run.identity not in done]
    here = Estimate(
        runs=len(missing),
        runs_done=len(runs) - len(missing),
        batches=0,
        episodes=len(missing) * wanted.num_episodes,
        num_bytes=sum(_run_bytes(models[run.fingerprint], wanted) for run in missing),
        seconds=0.0,
        compile_seconds=0.0,
    )
    if cluster is not None:
        return _on_cluster(here, cluster, missing, wanted, models)
    batches = make_batches(missing, models, wanted)
    seconds, compilation = _durations(batches, wanted, models)
    return here._replace(
        batches=len(batches), seconds=seconds + compilation, compile_seconds=compilation
    )


def _done(folder: Folder, wanted: Specification) -> set[str]:
    """The runs that a folder has; one that `sweep` would refuse is refused here."""
    folder.require_ours()
    folder.known(wanted.shared)
    return {run for part in folder.parts().values() for run in part}


def _on_cluster(
    found: Estimate,
    address: str,
    missing: Sequence[Run],
    wanted: Specification,
    models: dict[str, Model],
) -> Estimate:
    """With all workers at work; compilation is not among it, since the trials did it."""
    if not missing:
        return found
    batches, workers = plan_on_cluster(address, missing, Work(wanted, models))
    longest = max(batch.seconds for batch in batches)
    shared = sum(batch.seconds for batch in batches) / max(workers, 1)
    return found._replace(
        batches=len(batches),
        seconds=max(longest, shared),
        workers=workers,
        cut=_shares(batches, models),
    )


def _shares(batches: Iterable[Batch], models: dict[str, Model]) -> tuple[Share, ...]:
    grouped: dict[Kind, list[Batch]] = {}
    for batch in batches:
        grouped.setdefault(kind_of(batch.runs[0], models), []).append(batch)
    shares = []
    for members in grouped.values():
        counts = [len(batch.runs) for batch in members]
        first = members[0].runs[0]
        sizes = models[first.fingerprint].cmdp.sizes
        steps = (sizes.num_states, sizes.num_actions, sizes.horizon, sizes.num_constraints)
        shares.append(
            Share(
                first.algorithm,
                ", ".join(str(size) for size in steps),
                sum(counts),
                len(members),
                max(counts),
                max(batch.seconds for batch in members),
            )
        )
    return tuple(shares)


def _run_bytes(model: Model, wanted: Specification) -> int:
    return int(run_bytes(model.cmdp.num_constraints, wanted) * _COMPRESSED)


def _durations(
    batches: Iterable[Batch], wanted: Specification, models: dict[str, Model]
) -> tuple[float, float]:
    """Seconds of running, and of compiling, of all batches."""
    trial = Work(trial_of(wanted), models)
    rates: dict[Any, float] = {}  # seconds per run and episode
    running = compiling = 0.0
    for batch in batches:
        kind = (kind_of(batch.runs[0], models), len(batch.runs))
        if kind not in rates:
            rates[kind], compile_seconds = measure(trial, batch)
            compiling += compile_seconds
        running += rates[kind] * len(batch.runs) * wanted.num_episodes
    return running, compiling
