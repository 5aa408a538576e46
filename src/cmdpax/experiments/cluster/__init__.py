"""Sweeps on a Ray cluster: the driver plans, collects and commits; workers compute."""

from collections.abc import Iterator, Sequence

from cmdpax.errors import ClusterError
from cmdpax.experiments.cluster.connecting import connected, prepare, require_answer
from cmdpax.experiments.cluster.driving import Driver, Say
from cmdpax.experiments.executing import Outcome, Work
from cmdpax.experiments.runs import Batch, Run

__all__ = ["plan_on_cluster", "prepare", "require_answer", "run_on_cluster"]


def run_on_cluster(address: str, runs: Sequence[Run], work: Work, say: Say) -> Iterator[Outcome]:
    """Run all runs in batches of about a minute; yields what came of them as they are done."""
    with connected(address) as cluster:
        driver = Driver(cluster, work, runs)
        yield from driver.run(driver.cut(runs, say), say)


def plan_on_cluster(address: str, runs: Sequence[Run], work: Work) -> tuple[list[Batch], int]:
    """How all runs would be cut, and the number of workers; nothing but trials is run."""
    with connected(address) as cluster:
        driver = Driver(cluster, work, runs)
        batches = driver.cut(runs)
        for failed in driver.failed_trials:
            raise ClusterError(
                f"a trial of {failed.batch.algorithm} failed on the workers: {failed.error}"
            )
        return batches, cluster.pool().size
