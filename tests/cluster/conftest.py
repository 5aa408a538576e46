"""A real Ray cluster on this machine, one per module of tests."""

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cluster_cases import TOKEN, Driver, RayCluster, make_work
from cluster_fakes import Case, FakeRay
from cmdpax.experiments.cluster import cutting, driving


@pytest.fixture(scope="session")
def ray_works() -> Iterator[None]:
    """Skip where Ray is not installed; fail where that must not happen."""
    reason = ""
    if importlib.util.find_spec("ray") is None:
        reason = "ray is not installed: pip install 'cmdpax[ray]'"
    elif not sys.platform.startswith("linux"):
        reason = "the processes of a cluster are found in /proc"
    if reason and os.environ.get("CMDPAX_REQUIRE_RAY"):
        pytest.fail(f"CMDPAX_REQUIRE_RAY is set, but {reason}")
    if reason:
        pytest.skip(reason)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in TOKEN.items():  # ray reads them once in a process
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="module")
def cluster(ray_works: None) -> Iterator[RayCluster]:
    """A head without workers; tests start those they need."""
    cluster = RayCluster()
    yield cluster
    cluster.close()


@pytest.fixture
def own_cluster(ray_works: None) -> Iterator[RayCluster]:
    """One that a test may destroy."""
    cluster = RayCluster()
    yield cluster
    cluster.close()


@pytest.fixture
def drive() -> Iterator[Callable[..., Driver]]:
    """Start `cmdpax sweep`; none is left after the test."""
    started: list[Driver] = []

    def start(*arguments: Any) -> Driver:
        started.append(Driver(*arguments))
        return started[-1]

    yield start
    for driver in started:
        driver.kill()


@pytest.fixture
def make_case(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Case]:
    """A driver of eight runs in batches of two, with workers that do not exist."""

    def make(size: int = 2, ray: FakeRay | None = None, **changes: Any) -> Case:
        monkeypatch.setattr(cutting, "_most_runs", lambda *_: size)
        ray = ray or FakeRay()
        cluster = ray.cluster(monkeypatch)
        work, runs = make_work(**changes)
        return Case(ray, work, runs, driving.Driver(cluster, work, runs))

    return make
