"""Several devices: groups of runs are spread over them, and the numbers are those of one."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

import cmdpax
from cmdpax.experiments import read_specification
from cmdpax.experiments import runs as experiment_runs
from cmdpax.experiments.runs import make_batches, make_models, make_runs
from cmdpax.learning import workers
from cmdpax.learning.loop import Task
from cmdpax.learning.manifest import device, devices
from configurations import configured, designed
from sweep_cases import specification

SCRIPT = """
import json, sys
import jax
import cmdpax
from cmdpax.learning import group, workers

used, advance = set(), group.advance

def spy(*arguments):
    states, block = advance(*arguments)
    used.update(device.id for leaf in jax.tree.leaves((states, block)) for device in leaf.devices())
    return states, block

group.advance = spy
workers.num_cores = lambda: 2
cmdp = cmdpax.environments.make("bandit")
history = cmdpax.learn(cmdp, "regularized-primal-dual", num_episodes=200, seeds=7)
history.save(sys.argv[1])
print(json.dumps({"here": len(jax.local_devices()), "used": sorted(used)}))
"""


@pytest.mark.kills
def test_runs_are_spread_over_the_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two groups in a process with three devices; in this one there is one."""
    path = tmp_path / "three.npz"
    finished = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path)],
        capture_output=True,
        text=True,
        env=os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=3"},
    )
    assert finished.returncode == 0, finished.stderr
    assert json.loads(finished.stdout) == {"here": 3, "used": [0, 1]}
    assert len(jax.local_devices()) == 1
    monkeypatch.setattr(workers, "num_cores", lambda: 2)
    cmdp = cmdpax.environments.make("bandit")
    cmdpax.learn(cmdp, "regularized-primal-dual", num_episodes=200, seeds=7).save(
        tmp_path / "one.npz"
    )
    with np.load(path) as found, np.load(tmp_path / "one.npz") as expected:
        assert found["value"].shape == (7, 200)
        assert set(found.files) == set(expected.files)
        for name in set(expected.files) - {"manifest", "words"}:
            np.testing.assert_allclose(
                found[name], expected[name], rtol=0, atol=1e-12, err_msg=name
            )


@pytest.fixture
def accelerators(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A machine with as many accelerators as are in this list."""
    found: list[Any] = [SimpleNamespace(device_kind="NVIDIA H200")]
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(jax, "local_devices", lambda: found)
    return found


class TestNames:
    def test_processors_are_named_with_their_cores(self, monkeypatch):
        monkeypatch.setattr("cmdpax.learning.manifest.num_cores", lambda: 12)
        assert devices() == "cpu, 12 cores"
        assert device() == "cpu"

    def test_accelerators_are_counted(self, accelerators):
        assert devices() == device() == "NVIDIA H200"
        accelerators *= 2
        assert devices() == "2 × NVIDIA H200"
        assert device() == "NVIDIA H200"  # numbers do not depend on how many there are

    def test_a_sweep_says_what_it_runs_on(self, run, tmp_path):
        (tmp_path / "spec.toml").write_text(
            'num_episodes = 3\n[[cmdps]]\nenvironment = "bandit"\n'
            '[[algorithms]]\nname = "vanilla-primal-dual"\n'
        )
        code, out, err = run("sweep", "spec.toml", "--out", "out", "--json")
        assert code == 0
        assert f"on {devices()}" in err.splitlines()
        assert json.loads(out)["runs"] == 1


class TestGroups:
    @pytest.mark.parametrize(
        ("num_devices", "num_runs", "expected"),
        [(1, 7, (7, 1)), (3, 7, (3, 3)), (3, 9, (3, 3)), (8, 3, (1, 3))],
    )
    def test_one_per_accelerator(
        self, accelerators, num_devices: int, num_runs: int, expected: tuple[int, int]
    ):
        accelerators *= num_devices
        cmdp = cmdpax.environments.make("bandit")
        design = designed(configured("vanilla-dual"))
        task = Task(design, (cmdpax.rescale(cmdp),), (0.6,), np.array([5]), 5, ())
        assert workers._group_size(task, num_runs) == expected

    @pytest.mark.parametrize(("num_devices", "sizes"), [(1, [2] * 6), (3, [6, 6]), (8, [12])])
    def test_batches_of_a_sweep_are_as_large_as_all_accelerators_hold(
        self, accelerators, monkeypatch, num_devices: int, sizes: list[int]
    ):
        accelerators *= num_devices
        monkeypatch.setattr(experiment_runs, "_ACCELERATOR_BATCH_RUNS", 2)
        wanted = read_specification(specification(seeds=3))
        models = make_models(wanted)
        batches = make_batches(make_runs(wanted, models), models, wanted)
        assert [len(batch.runs) for batch in batches] == sizes
