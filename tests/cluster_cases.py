"""What tests of sweeps on a Ray cluster share: real nodes on loopback, and real drivers."""

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cluster_learners
import cmdpax
from cmdpax.experiments.executing import Work
from cmdpax.experiments.runs import Run, make_models, make_runs
from cmdpax.experiments.specification import read_specification
from sweep_cases import SMALL, assert_same_results, specification

TESTS = Path(__file__).parent
HOST = "127.0.0.1"
TOKEN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(16)}
"""Of these clusters alone."""

PATIENCE = 120.0
"""Seconds after which a test stops waiting for what should happen much earlier."""


def wait_until(happened: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
    """The first true answer."""
    end = time.monotonic() + seconds
    while not (answer := happened()):
        assert time.monotonic() < end, f"{what}: not within {seconds:g} s"
        time.sleep(0.05)
    return answer


def make_work(**changes: Any) -> tuple[Work, list[Run]]:
    """What a sweep hands to a cluster."""
    wanted = read_specification(specification(**changes))
    models = make_models(wanted)
    runs = make_runs(wanted, models)
    solved = {
        fingerprint: model._replace(optimum=1.0 + place)
        for place, (fingerprint, model) in enumerate(models.items())
    }
    return Work(wanted, solved), runs


# --------------------------------------------------------------------------------------- processes

ENDING_WITH_THE_TESTS = """
import ctypes, signal
ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # when the process that started it dies
"""
RAY = f"""{ENDING_WITH_THE_TESTS}
from ray._private import services
from ray.scripts.scripts import main
services.resolve_ip_for_localhost = lambda host: host  # it would open the ports to the network
main()
"""


def members_of(session: int) -> list[int]:
    """The processes of a session that was started here: ray puts its own into several groups."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == session and fields[0] != "Z":
                    found.append(int(entry.name))
    return found


def listening(session: int) -> set[tuple[str, str]]:
    """Where processes of a session listen: address and port, as the kernel writes them."""
    inodes = set()
    for member in members_of(session):
        for link in Path(f"/proc/{member}/fd").glob("*"):
            with contextlib.suppress(OSError):
                inodes.add(os.readlink(link))
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
                address, _, port = fields[1].rpartition(":")
                found.add((address, port))
    return found


LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
"""127.0.0.1, the same for IPv6, and ::1, as the kernel writes them."""


def end_session(process: "subprocess.Popen[Any]") -> None:
    """Kill the process and all of its session, at once."""
    while members := members_of(process.pid):
        for member in members:
            with contextlib.suppress(ProcessLookupError):
                os.kill(member, signal.SIGKILL)
    process.wait()


class Node:
    """A head or a worker: `ray start --block` in a session of its own."""

    def __init__(self, name: str, log: Path, environment: dict[str, str], *options: str) -> None:
        """Start it; `ready` waits."""
        self.name, self._log = name, log
        fixed = ["--block", f"--node-ip-address={HOST}", "--disable-usage-stats"]
        fixed += [f"--object-store-memory={80 * 2**20}"]
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-c", RAY, "start", *fixed, *options],
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=os.environ | environment | {cluster_learners.NODE: name},
            )

    @property
    def session(self) -> int:
        """Of its processes."""
        return self._process.pid

    def ready(self) -> "Node":
        """Wait until it takes work."""

        def started() -> bool:
            text = self._log.read_text()
            assert self._process.poll() is None, text
            return "Ray runtime started" in text

        wait_until(started, f"ray start of {self.name}")
        return self

    def kill(self) -> None:
        """Kill it and its processes."""
        end_session(self._process)


class RayCluster:
    """A head without cores, and workers of one core each; all on this machine."""

    def __init__(self) -> None:
        """Start the head; the folder's name is short, since it becomes part of a socket's."""
        self.folder = Path(tempfile.mkdtemp(prefix="cx"))
        self.faults = cluster_learners.Faults(self.folder / "faults")
        with socket.socket() as free:
            free.bind((HOST, 0))
            port = free.getsockname()[1]
        self.address = f"{HOST}:{port}"
        self.environment = {
            **TOKEN,
            "PYTHONPATH": str(TESTS),
            "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
            "JAX_COMPILATION_CACHE_DIR": str(self.folder / "programs"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            cluster_learners.FOLDER: str(self.faults.folder),
        }
        self._nodes: dict[str, Node] = {}
        self._start("head", "--head", f"--port={port}", "--num-cpus=0", "--include-dashboard=false")
        self._nodes["head"].ready()

    def _start(self, name: str, *options: str) -> Node:
        own = f"--temp-dir={self.folder / name}"  # two that start at once do not share sockets
        node = Node(name, self.folder / f"{name}.log", self.environment, own, *options)
        self._nodes[name] = node
        return node

    def add(self, name: str, *options: str) -> Node:
        """Start a worker; it joins within seconds."""
        return self._start(name, f"--address={self.address}", "--num-cpus=1", *options)

    def only(self, *names: str) -> None:
        """Have these workers, and no others."""
        for other in [name for name in self._nodes if name not in ("head", *names)]:
            self.kill(other)
        added = [self.add(name) for name in names if name not in self._nodes]
        for node in added:
            node.ready()

    def kill(self, name: str) -> None:
        """Kill a node: it has no time to say so."""
        self._nodes.pop(name).kill()

    def close(self) -> None:
        """End whatever still runs."""
        for name in list(self._nodes):
            self.kill(name)
        shutil.rmtree(self.folder, ignore_errors=True)


# ----------------------------------------------------------------------------------------- drivers

MAIN = f"""{ENDING_WITH_THE_TESTS}
from cmdpax.experiments.cluster import cutting
cutting._most_runs = lambda *_: 2  # many batches, though each is short
from cmdpax.cli import main
main()
"""


class Driver:
    """A process `cmdpax sweep … --cluster …`, with batches of two runs."""

    def __init__(
        self,
        specification: Path,
        out: Path,
        cluster: str | None,
        log: Path | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        """Start it; what it says goes to a file."""
        self._log = log or out.parent / f"{out.name}.log"
        options = [] if cluster is None else ["--cluster", cluster]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", MAIN, "sweep", specification, "--out", out, *options],
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
                env=os.environ | TOKEN | {"PYTHONPATH": str(TESTS)} | (environment or {}),
            )

    @property
    def session(self) -> int:
        """Of its processes."""
        return self._process.pid

    @property
    def said(self) -> str:
        """Its standard error so far."""
        return self._log.read_text()

    @property
    def reported(self) -> int:
        """How many runs it reported done."""
        lines = [line for line in self.said.splitlines() if line.startswith("sweep: ")]
        return int(lines[-1].split()[1]) if lines else 0

    def runs(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def end(self, seconds: float = PATIENCE) -> int:
        """Wait for its end: the exit code; no process of its own is left."""
        try:
            return self._process.wait(seconds)
        finally:
            end_session(self._process)

    def kill(self) -> None:
        """Kill it: it has no time to say so."""
        end_session(self._process)


def write_specification(path: Path, step_sizes: Sequence[float] = (0.1, 0.2, 0.3)) -> Path:
    """A troubled learner on two CMDPs with two seeds: four runs per step size."""
    small = ", ".join(f"{name} = {value}" for name, value in SMALL.items())
    path.write_text(f"""
        num_episodes = 320
        seeds = 2
        record = 4
        [[cmdps]]
        environment = "random"
        parameters = {{ {small}, seed = [1, 2] }}
        [[algorithms]]
        name = "{cluster_learners.TROUBLED}"
        step_size = {list(step_sizes)}
    """)
    return path


def runs_in(folder: Path) -> list[str]:
    """The runs that a folder holds: each once."""
    found = cmdpax.results(folder).final["run"].to_list()
    assert len(found) == len(set(found))
    return found


def assert_like_local(folder: Path, specification: Path, local: Path) -> None:
    """The folder holds what a local sweep computes, once."""
    expected = cmdpax.sweep(specification, local)
    assert sorted(runs_in(folder)) == sorted(expected.final["run"])
    assert_same_results(cmdpax.results(folder), expected)
