"""Workers, the driver, the disk and the head fail: nothing that was reported done is lost."""

import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cluster_cases import (
    Driver,
    RayCluster,
    assert_like_local,
    runs_in,
    wait_until,
    write_specification,
)
from sweep_cases import contents

Drive = Callable[..., Driver]
RUNS = 12


@pytest.fixture
def specification(tmp_path: Path) -> Path:
    return write_specification(tmp_path / "spec.toml")


def test_workers_come_late_and_are_killed_in_the_middle_of_a_batch(
    cluster: RayCluster, drive: Drive, specification: Path, tmp_path: Path
) -> None:
    cluster.only()
    cluster.faults.order(seconds=0.5)
    driver = drive(specification, tmp_path / "out", cluster.address)
    wait_until(lambda: (tmp_path / "out" / "manifest.json").exists(), "the driver's start")
    cluster.only("a")
    wait_until(lambda: driver.reported >= 2, "the first worker's first batch")
    cluster.faults.change(seconds=100)
    cluster.only("a", "b")
    wait_until(lambda: "b" in cluster.faults.happened("began"), "the second worker's first batch")
    reported = set(runs_in(tmp_path / "out"))
    assert 2 <= len(reported) < RUNS - 2
    assert driver.reported == len(reported)
    cluster.kill("a")  # both are in the middle of a batch
    cluster.faults.change()
    assert driver.end() == 0, driver.said
    assert cluster.faults.happened("began")[-1] == "b"
    assert len(cluster.faults.happened("began")) == RUNS // 2 + 1  # one was begun twice
    assert reported < set(runs_in(tmp_path / "out"))
    assert_like_local(tmp_path / "out", specification, tmp_path / "local")


def test_the_driver_is_killed_and_started_again(
    cluster: RayCluster, drive: Drive, specification: Path, tmp_path: Path
) -> None:
    cluster.only("a", "b")
    cluster.faults.order(seconds=1.0)
    out = tmp_path / "out"
    driver = drive(specification, out, cluster.address)
    wait_until(lambda: driver.reported >= 4, "two batches")
    driver.kill()
    reported, before = driver.reported, contents(out)
    assert reported <= len(runs_in(out)) < RUNS
    cluster.faults.order()
    again = drive(specification, out, cluster.address)
    assert again.end() == 0, again.said
    after = contents(out)
    parts = [name for name in before if name.startswith("parts/") and name.endswith(".json")]
    assert len(parts) >= reported // 2
    assert all(after[name] == before[name] for name in parts)  # not done twice
    assert_like_local(out, specification, tmp_path / "local")


def test_a_batch_that_raises_is_reported_and_the_rest_goes_on(
    cluster: RayCluster, drive: Drive, specification: Path, tmp_path: Path
) -> None:
    cluster.only("a", "b")
    cluster.faults.order(step_size=0.2, failures=99)
    out = tmp_path / "out"
    driver = drive(specification, out, cluster.address)
    assert driver.end() == 1
    failing = 2  # the four runs with this step size
    said = driver.said
    failures = Counter(cluster.faults.happened("failed"))
    assert failures.total() == 3 * failing
    assert min(failures["a"], failures["b"]) >= failing  # the second attempt is made elsewhere
    assert f"{2 * failing} runs failed; everything else is in {out}" in said
    at_once = [line for line in said.splitlines() if line.startswith("warning: 2 runs failed, ")]
    lines = [line for line in said.splitlines() if line.startswith("  ") and "times:" in line]
    assert len(lines) == failing
    assert {line.partition("go on: ")[2] for line in at_once} == {line.strip() for line in lines}
    assert said.index(at_once[-1]) < said.index("error: ")
    assert all("(step_size 0.2, " in line and "), 2 runs, 3 times: " in line for line in lines)
    assert all("3 times: " in line and "no luck with 0.2" in line for line in lines)
    assert "Traceback" not in said
    before = contents(out)
    assert len(runs_in(out)) == RUNS - 2 * failing
    cluster.faults.order(step_size=0.2, failures=2)  # two attempts in all
    again = drive(specification, out, cluster.address)
    assert again.end() == 0, again.said
    assert len(cluster.faults.happened("failed")) == 2
    assert {name: contents(out)[name] for name in before if "parts/" in name} == {
        name: before[name] for name in before if "parts/" in name
    }
    assert_like_local(out, specification, tmp_path / "local")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 96 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=96k", "cmdpax-test", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount")
    if done.returncode != 0:
        pytest.skip(f"a file system cannot be mounted: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_the_disk_is_full(
    cluster: RayCluster, drive: Drive, specification: Path, small_disk: Path, tmp_path: Path
) -> None:
    cluster.only("a", "b")
    cluster.faults.order()
    out = small_disk / "out"
    driver = drive(specification, out, cluster.address, tmp_path / "log")
    assert driver.end() == 1
    errors = [line for line in driver.said.splitlines() if not line.startswith("sweep: ")]
    assert len(errors) == 1, driver.said
    assert errors[0].startswith(f"error: cannot write {out}")
    assert errors[0].endswith("No space left on device.")
    assert driver.reported == len(runs_in(out)) < RUNS
    enlarge = ["mount", "-o", "remount,size=16m", str(small_disk)]
    subprocess.run(enlarge, check=True)
    again = drive(specification, out, cluster.address, tmp_path / "log")
    assert again.end() == 0, again.said
    assert_like_local(out, specification, tmp_path / "local")


def test_the_cluster_is_gone(
    own_cluster: RayCluster, drive: Drive, specification: Path, tmp_path: Path
) -> None:
    own_cluster.only("a")
    own_cluster.faults.order(seconds=1.0)
    out = tmp_path / "out"
    driver = drive(specification, out, own_cluster.address)
    wait_until(lambda: driver.reported >= 2, "the first batch")
    own_cluster.kill("head")
    gone = time.monotonic()
    assert driver.end(30) == 1, driver.said
    assert time.monotonic() - gone < 20
    assert f"error: the cluster at {own_cluster.address} is gone; what was" in driver.said
    assert "Traceback" not in driver.said
    assert driver.reported == len(runs_in(out)) < RUNS
    absent = drive(specification, out, own_cluster.address)
    assert absent.end(30) == 1
    assert f"error: cannot connect to a Ray cluster at {own_cluster.address}" in absent.said
    here = drive(specification, out, None)
    assert here.end() == 0, here.said
    assert_like_local(out, specification, tmp_path / "local")
