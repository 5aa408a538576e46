"""Sweeps on a real cluster from Python: the numbers of a local one, in the same folders."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cmdpax
from cluster_cases import RayCluster, runs_in, write_specification
from cmdpax.experiments import SweepProgress, estimate
from cmdpax.experiments.cluster import cutting
from sweep_cases import OWN_GRID, assert_same_results, contents, specification

DUAL = {"name": "vanilla-dual", "step_size": [0.2, "0.4*k^-0.1"]}
WANTED = specification(algorithms=[DUAL | {"optimism": ["empirical", {"scale": 0.3}]}])
HALF = WANTED | {"seeds": [1]}
RUNS = 16


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> cmdpax.Results:
    return cmdpax.sweep(WANTED, tmp_path_factory.mktemp("local") / "out")


def test_begun_here_and_finished_there(
    cluster: RayCluster, local: cmdpax.Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cutting, "_most_runs", lambda *_: 4)
    cluster.only("a", "b")
    cmdpax.sweep(HALF, tmp_path)
    before = contents(tmp_path)
    stands: list[SweepProgress] = []
    found = cmdpax.sweep(WANTED, tmp_path, cluster=cluster.address, progress=stands.append)
    assert len(runs_in(tmp_path)) == RUNS
    assert_same_results(found, local)
    after = contents(tmp_path)
    kept = [name for name in before if name.startswith(("parts/", "final/", "curves/"))]
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    assert [stand.runs for stand in stands] == sorted(stand.runs for stand in stands)
    assert stands[-1].runs == RUNS
    assert any("2 CPU workers" in stand.cluster for stand in stands)
    cmdpax.sweep(WANTED, tmp_path, cluster="203.0.113.1:1")  # nothing to do: nobody is asked
    assert contents(tmp_path) == after


def test_begun_there_and_finished_here(
    cluster: RayCluster, local: cmdpax.Results, tmp_path: Path
) -> None:
    cluster.only("a", "b")
    cmdpax.sweep(HALF, tmp_path, cluster=cluster.address)
    before = contents(tmp_path)
    found = cmdpax.sweep(WANTED, tmp_path)
    assert len(runs_in(tmp_path)) == RUNS
    assert_same_results(found, local)
    after = contents(tmp_path)
    parts = [name for name in before if name.startswith("parts/")]
    assert {name: after[name] for name in parts} == {name: before[name] for name in parts}
    assert all(json.loads(after[name][1])["runs"] for name in parts)


def test_parameters_of_ones_own(cluster: RayCluster, tmp_path: Path) -> None:
    """Workers import the algorithm by its address; words and numbers arrive there."""
    cluster.only("a", "b")
    wanted = specification(algorithms=[OWN_GRID, DUAL], cmdps=[{"environment": "bandit"}], seeds=1)
    found = cmdpax.sweep(wanted, tmp_path / "there", cluster=cluster.address)
    assert_same_results(found, cmdpax.sweep(wanted, tmp_path / "here"))
    assert found.final["mode"].to_list().count("dual") == 2


def test_a_learner_that_plans_gives_the_same_bits(cluster: RayCluster, tmp_path: Path) -> None:
    """Its stretches are drawn and planned in a worker as they are here."""
    cluster.only("a", "b")
    wanted = specification(
        algorithms=[{"name": "replanning", "growth": [0.05, 0.5]}],
        cmdps=[{"environment": "bandit"}],
        num_episodes=1000,
    )
    there = cmdpax.sweep(wanted, tmp_path / "there", cluster=cluster.address)
    here = cmdpax.sweep(wanted, tmp_path / "here")
    assert len(runs_in(tmp_path / "there")) == 4
    assert_same_results(there, here, tolerance=0.0)


def test_parts_say_where_they_were_computed(cluster: RayCluster, tmp_path: Path) -> None:
    cluster.only("a", "b")
    cmdpax.sweep(HALF, tmp_path, cluster=cluster.address)
    for part in (tmp_path / "parts").glob("*.json"):
        entry = json.loads(part.read_text())
        assert entry["device"] == "cpu"
        assert entry["versions"]["cmdpax"] == cmdpax.__version__


def test_a_dry_run_shows_the_cut(
    cluster: RayCluster, tmp_path: Path, run: Callable[..., Any]
) -> None:
    cluster.only("a", "b")
    cmdpax.sweep(HALF, tmp_path / "out")
    before = contents(tmp_path / "out")
    found = estimate(WANTED, tmp_path / "out", cluster.address)
    assert (found.runs, found.runs_done, found.workers, found.batches) == (8, 8, 2, 1)
    assert found.seconds > 0
    (share,) = found.cut
    assert share.pop("batch_seconds") == pytest.approx(found.seconds)
    assert tuple(share.values()) == ("vanilla-dual", "3, 2, 3, 1", 8, 1, 8)
    assert contents(tmp_path / "out") == before
    path = write_specification(tmp_path / "spec.toml")
    options = ("--out", "new", "--dry-run", "--cluster", cluster.address)
    code, out, err = run("sweep", str(path), *options)
    assert code == 0, err
    assert re.search(r"workers +│ +2 ", out)
    assert re.search(r"cluster_learners:troubled │ +3, 2, 3, 1 │ +12 │ +2 │ +6 │", out), out
    assert not (tmp_path / "new").exists()
    nothing = estimate(HALF, tmp_path / "out", "203.0.113.1:1")  # nobody is asked
    assert (nothing.runs, nothing.cut) == (0, ())


def test_accelerators(cluster: RayCluster, local: cmdpax.Results, tmp_path: Path) -> None:
    """A worker that says it has one; JAX falls back to the processor."""
    cluster.only()
    cluster.add("gpu", "--num-gpus=1").ready()
    stands: list[SweepProgress] = []
    found = cmdpax.sweep(WANTED, tmp_path, cluster=cluster.address, progress=stands.append)
    assert_same_results(found, local)
    assert stands[-1].cluster.startswith("1 GPU worker, ")
    cluster.kill("gpu")
