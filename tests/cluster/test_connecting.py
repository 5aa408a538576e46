"""Connecting: which cluster, on which addresses, and what is said if it does not work."""

import importlib.util
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cmdpax
from cluster_cases import (
    LOOPBACK,
    Driver,
    RayCluster,
    assert_like_local,
    listening,
    wait_until,
    write_specification,
)
from cmdpax.experiments.cluster import connecting
from sweep_cases import specification

Drive = Callable[..., Driver]


def a_cluster_runs() -> bool:
    """Whether anybody runs one on this machine: "auto" would take it."""
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if b"gcs_server" in entry.read_bytes():
                return True
        except OSError:
            continue
    return False


@pytest.mark.usefixtures("ray_works")
def test_auto_starts_a_cluster_on_loopback_alone(drive: Drive, tmp_path: Path) -> None:
    if a_cluster_runs():
        pytest.skip("a Ray cluster of somebody else runs here")
    home = tmp_path / "home"
    home.mkdir()
    toml = write_specification(tmp_path / "spec.toml")
    own = {"HOME": str(home), "RAY_AUTH_TOKEN": "", "RAY_AUTH_MODE": "token"}
    driver = drive(toml, tmp_path / "out", "auto", None, own)
    found: set[tuple[str, str]] = set()

    def ended() -> bool:
        found.update(listening(driver.session))
        return not driver.runs()

    wait_until(ended, "the sweep")
    assert driver.end() == 0, driver.said
    assert "warning" not in driver.said
    assert len(found) >= 4, "control, scheduler, objects, driver"
    assert {address for address, _ in found} <= LOOPBACK
    token = home / ".ray" / "auth_token"
    assert token.stat().st_mode & 0o077 == 0  # for its user's eyes
    assert_like_local(tmp_path / "out", toml, tmp_path / "local")


def test_auto_takes_the_cluster_that_runs(
    own_cluster: RayCluster, drive: Drive, tmp_path: Path
) -> None:
    own_cluster.only("a")
    own_cluster.faults.order()
    toml = write_specification(tmp_path / "spec.toml", [0.1])
    driver = drive(toml, tmp_path / "out", "auto")
    assert driver.end() == 0, driver.said
    assert own_cluster.faults.happened("began") == ["a", "a"]
    assert "1 CPU worker, 2 of 2 batches done" in driver.said
    other = drive(toml, tmp_path / "other", own_cluster.address, None, {"RAY_AUTH_TOKEN": "x" * 32})
    assert other.end() == 1
    assert other.said.count("\n") == 1
    assert f"at {own_cluster.address}: it asks for another token; set RAY_AUTH_MODE" in other.said
    wrong = {"RAY_AUTH_TOKEN": "x" * 32}
    begun = time.monotonic()
    found = drive(toml, tmp_path / "other", "auto", None, wrong)
    assert found.end() == 1
    assert f"at {own_cluster.address}: it asks for another token" in found.said
    assert time.monotonic() - begun < 20


def test_the_driver_ends_when_it_is_told_to(
    own_cluster: RayCluster, drive: Drive, tmp_path: Path
) -> None:
    own_cluster.only("a")
    toml = write_specification(tmp_path / "spec.toml", [0.1])
    for attempt in range(3):
        own_cluster.faults.order(seconds=100)
        driver = drive(toml, tmp_path / f"out{attempt}", own_cluster.address)
        wait_until(lambda: own_cluster.faults.happened("began"), "a batch")
        os.kill(driver.session, signal.SIGTERM)
        code = driver.end(30)
        # Seldom a thread of Ray's crashes when the process is about to end.
        if code != -signal.SIGSEGV:
            break
    assert code == 143
    assert driver.said == ""


IN_A_PROCESS_OF_ITS_OWN = """
import signal, sys, ray, cmdpax
address, specification, out = sys.argv[1:]
cmdpax.sweep({"num_episodes": 2, "seeds": 1, "cmdps": [{"environment": "bandit"}],
    "algorithms": [{"name": "vanilla-dual"}]}, out + "-first", cluster=address)
assert not ray.is_initialized()
assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
from ray._private import ray_constants
assert ray_constants.ENABLE_RAY_CLUSTER and ray_constants.NUM_REDIS_GET_RETRIES == 20
ray_constants.ENABLE_RAY_CLUSTER = False  # as the environment would have said
ray.init(address=address, log_to_driver=False, logging_level=50)
try:
    cmdpax.sweep(specification, out, cluster="203.0.113.1:1")
except cmdpax.ClusterError as error:
    print(error)
cmdpax.sweep(specification, out, cluster="auto")
assert ray.is_initialized()
"""


def test_a_connection_of_the_caller_stays_theirs(own_cluster: RayCluster, tmp_path: Path) -> None:
    own_cluster.only("a")
    own_cluster.faults.order()
    toml = write_specification(tmp_path / "spec.toml", [0.1])
    environment = os.environ | own_cluster.environment
    done = subprocess.run(
        [sys.executable, "-c", IN_A_PROCESS_OF_ITS_OWN, own_cluster.address, toml, tmp_path / "o"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert f"connected to the cluster at {own_cluster.address} already, not to 203" in done.stdout
    assert len(cmdpax.results(tmp_path / "o").final) == 4


@pytest.mark.usefixtures("ray_works")
def test_nobody_answers(tmp_path: Path) -> None:
    with pytest.raises(cmdpax.ClusterError, match=r"at 127\.0\.0\.1:9: nobody answers; start one"):
        cmdpax.sweep(specification(), tmp_path / "out", cluster="127.0.0.1:9")
    assert not (tmp_path / "out" / "manifest.json").exists()


@pytest.mark.parametrize(
    "address",
    [
        "",
        "head",
        "ray://10.0.0.1:10001",
        ":6379",
        "head:",
        "a:b",
        "a:0",
        5,
        "a:65536",
        f"a:{10**30}",
    ],
)
def test_what_is_no_address_is_refused_before_anything_is_written(
    address: Any, tmp_path: Path
) -> None:
    with pytest.raises(cmdpax.ParameterError, match='is neither "auto" nor an address such as'):
        cmdpax.sweep(specification(), tmp_path / "out", cluster=address)
    assert not (tmp_path / "out").exists()


def test_without_ray(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plain = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "ray" else plain(name)
    )
    with pytest.raises(cmdpax.MissingPackageError, match=r"run `pip install 'cmdpax\[ray\]'`"):
        cmdpax.sweep(specification(), tmp_path / "out", cluster="auto")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("error", "said", "reason"),
    [
        (ConnectionError("Failed"), "RPC error: InvalidAuthToken: missing", "another token; set"),
        (RuntimeError("Authentication failed."), "", "another token; set"),
        (RuntimeError("Version\n  mismatch."), "", "Version mismatch; is it the head of"),
        (ConnectionError("No node info found matching"), "", "this machine is not part of it; run"),
    ],
)
def test_reasons(error: Exception, said: str, reason: str) -> None:
    assert reason in connecting._why(error, said)


def test_names_that_cannot_be_one() -> None:
    assert not connecting.answers("a..b:6379")
    assert not connecting.answers(f"{'a' * 70}:6379")


def test_what_ray_says_is_kept_back(capfd: pytest.CaptureFixture[str]) -> None:
    said: list[str] = []
    with connecting._kept_back(said):
        os.write(2, b"gcs_client.cc:210: Failed")
    os.write(2, b"after")
    assert said == ["gcs_client.cc:210: Failed"]
    assert capfd.readouterr().err == "after"


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
