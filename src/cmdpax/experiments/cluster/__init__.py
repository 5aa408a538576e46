"""Sweeps on a Ray cluster: the driver plans, collects and commits; workers compute."""

from collections.abc import Iterator, Sequence

from cmdpax.errors import ClusterError
from cmdpax.experiments.cluster.connecting import connected, prepare, require_answer
from cmdpax.experiments.cluster.cutting import Piece
from cmdpax.experiments.cluster.driving import Driver, Say, Status
from cmdpax.experiments.cluster.scheduling import WorkerPool
from cmdpax.experiments.executing import Failed, Finished, Work
from cmdpax.experiments.runs import Run

__all__ = ["Status", "plan_on_cluster", "prepare", "require_answer", "run_on_cluster"]


def run_on_cluster(
    address: str, runs: Sequence[Run], work: Work, say: Say
) -> Iterator[Finished | Failed]:
    """Run all runs in batches of about a minute; the batches as they are done."""
    with connected(address) as cluster:
        driver = Driver(cluster, work, runs)
        yield from driver.run(driver.cut(runs, say), say)


def plan_on_cluster(
    address: str, runs: Sequence[Run], work: Work
) -> tuple[list[Piece], WorkerPool]:
    """How all runs would be cut, and for which workers; nothing but trials is run."""
    with connected(address) as cluster:
        driver = Driver(cluster, work, runs)
        pieces = driver.cut(runs)
        for failed in driver.failed_trials:
            raise ClusterError(
                f"a trial of {failed.batch.algorithm} failed on the workers: {failed.error}"
            )
        return pieces, cluster.pool()
