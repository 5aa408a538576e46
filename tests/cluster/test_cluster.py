"""Sweeps on a real cluster from Python: the numbers of a local one, in the same folders."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

import cmdpax
from cluster_cases import RayCluster, runs_in
from cmdpax.experiments import Stand, runs
from cmdpax.experiments.cluster import connecting
from sweep_cases import assert_same_results, contents, specification

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
    monkeypatch.setattr(runs, "_BATCH_RUNS", 4)
    cluster.only("a", "b")
    cmdpax.sweep(HALF, tmp_path)
    before = contents(tmp_path)
    stands: list[Stand] = []
    found = cmdpax.sweep(WANTED, tmp_path, cluster=cluster.address, progress=stands.append)
    assert len(runs_in(tmp_path)) == RUNS
    assert_same_results(found, local)
    after = contents(tmp_path)
    kept = [name for name in before if name.startswith(("parts/", "final/", "curves/"))]
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    assert [stand.runs for stand in stands] == sorted(stand.runs for stand in stands)
    assert stands[-1].runs == RUNS
    assert any("2 CPU workers" in stand.batch for stand in stands)
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


@pytest.mark.usefixtures("ray_works")
def test_nobody_answers(tmp_path: Path) -> None:
    with pytest.raises(cmdpax.ClusterError, match=r"at 127\.0\.0\.1:9: nobody answers; start one"):
        cmdpax.sweep(WANTED, tmp_path, cluster="127.0.0.1:9")


class Slow:
    """A head that is gone while a call waits for it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, answers: list[bool]) -> None:
        monkeypatch.setattr(connecting, "_SECONDS_BETWEEN_LOOKS", 0.01)
        monkeypatch.setattr(connecting, "answers", lambda address: self.look())
        self._answers, self.looks = answers, 0

    def look(self) -> bool:
        self.looks += 1
        return self._answers.pop(0) if self._answers else False


def test_a_call_ends_when_the_head_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    never = threading.Event()
    head = Slow(monkeypatch, [True, False, True])
    cluster = connecting.Cluster(None, "127.0.0.1:1")
    with pytest.raises(cmdpax.ClusterError, match=r"127\.0\.0\.1:1 is gone; what was reported"):
        cluster.call(never.wait)
    assert head.looks == 5  # one silence is not its end
    never.set()


def test_a_call_returns_and_raises_what_it_does() -> None:
    cluster = connecting.Cluster(None, "127.0.0.1:1")
    assert cluster.call(divmod, 7, 2) == (3, 1)
    assert cluster.call(int, "11", base=2) == 3

    def fail(*_: Any) -> None:
        raise KeyError("x")

    with pytest.raises(KeyError, match="x"):
        cluster.call(fail, 1)
