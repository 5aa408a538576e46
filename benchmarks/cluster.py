"""Sweeps on a Ray cluster: what the cluster costs, and when its driver is the bottleneck.

    python benchmarks/cluster.py [--cmdps 12] [--episodes 40000]
    python benchmarks/cluster.py --simulate [--workers 1000] [--batches 100000] [--record 1000]

The first (a minute or more each) runs one sweep in this process on two cores, and the same on two
Ray workers with one core each, which are started here and ended afterwards. Half of the local sweep
runs before the cluster, half after it, so that a load that grows or fades hurts both. Compilation
is told apart: what the first batch of a worker took longer than the median of its others. Overhead
is what a worker's core did not spend on batches, from the first batch sent to the last one written.
The third table is what Ray takes of the driver per batch, with 2,000 of them in flight.

The second drives the real `BatchQueue` with simulated workers. The driver is one server; what it
does per batch is measured here with the real functions, on a real batch, and Ray's part is added
(`--submit-ms`, `--get-ms` and `--turn-ms`, as the first measures it). Durations are log-normal
around a minute; a worker dies during a batch now and then, and is back after five minutes.
"""

import argparse
import contextlib
import json
import os
import platform
import secrets
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import cmdpax
from cluster_simulation import BATCH_RUNS, simulated, specification

LOOPBACK = "127.0.0.1"
ANSWER_BYTES = 4_700_000  # of 64 runs with 1,000 recorded episodes
RAY = """
from ray._private import services
from ray.scripts.scripts import main
services.resolve_ip_for_localhost = lambda host: host  # it would open the ports to the network
main()
"""


# -------------------------------------------------------------------------------------- two workers


@contextlib.contextmanager
def cluster() -> Iterator[str]:
    """The address of a head without cores and of two workers with one each, on this machine."""
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    folder = tempfile.mkdtemp(prefix="ray-")
    with socket.socket() as free:
        free.bind((LOOPBACK, 0))
        port = free.getsockname()[1]
    head = ["--head", f"--port={port}", "--num-cpus=0", "--include-dashboard=false"]
    worker = [f"--address={LOOPBACK}:{port}", "--num-cpus=1"]
    started: list[subprocess.Popen[bytes]] = []
    try:
        for options in (head, worker, worker):
            started.append(start(options, folder))
            time.sleep(8 if options is head else 4)
        yield f"{LOOPBACK}:{port}"
    finally:
        for process in reversed(started):
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def start(options: list[str], folder: str) -> "subprocess.Popen[bytes]":
    """A `ray start` that ends, with all it started, when it is told to."""
    shared = [f"--node-ip-address={LOOPBACK}", "--block", "--disable-usage-stats"]
    shared += [f"--temp-dir={folder}", "--object-store-memory=200000000"]
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen([sys.executable, "-c", RAY, "start", *options, *shared], **silent)


class Watch:
    """When batches were done, how long workers computed, how long the driver's steps took."""

    def __init__(self) -> None:
        self.marks: list[float] = []
        self.begun = 0.0
        self.busy: dict[str, list[float]] = defaultdict(list)
        self.steps: dict[str, list[float]] = defaultdict(list)

    def __call__(self, stand: Any) -> None:
        now = time.perf_counter()
        self.begun = self.begun or now
        if stand.batch == "done":
            self.marks.append(now)

    def into(self, dispatcher: Any) -> None:
        """Listen where the answers arrive: the only place that sees what workers report."""
        collect, submit = dispatcher._collect, dispatcher._submit

        def watched(this: Any, reference: Any, *rest: Any) -> Any:
            header, *files = this._ray.get(reference)
            if len(files) == 3:  # no trial
                content = json.loads(header)
                self.busy[content["worker"]].append(content["seconds"])
            return self.timed("collect and check", collect, this, reference, *rest)

        dispatcher._collect = watched
        dispatcher._submit = lambda *a: self.timed("submit", submit, *a)

    def timed(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        begun = time.perf_counter()
        result = function(*arguments)
        self.steps[name].append(time.perf_counter() - begun)
        return result


class Pace(NamedTuple):
    """Of one sweep: seconds with and without compilation, and what was not computing."""

    batches: int
    seconds: float
    compile_seconds: float
    whole: float  # with connecting and trials


def run_local(wanted: dict[str, Any]) -> Pace:
    watch = Watch()
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as out:
        cmdpax.sweep(wanted, out, progress=watch)
    each = np.diff([watch.begun, *watch.marks])
    compiling = max(0.0, each[0] - float(np.median(each[1:])))
    whole = time.perf_counter() - begun
    return Pace(len(each), float(each.sum()), compiling, whole)


def run_cluster(wanted: dict[str, Any], address: str) -> tuple[Pace, Watch]:
    from cmdpax.experiments.cluster.driving import Dispatcher

    watch = Watch()
    watch.into(Dispatcher)
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as out:
        cmdpax.sweep(wanted, out, cluster=address, progress=watch)
    later = [seconds for times in watch.busy.values() for seconds in times[1:]]
    usual = statistics.median(later)
    compiling = [max(0.0, times[0] - usual) for times in watch.busy.values()]
    whole, wall = time.perf_counter() - begun, watch.marks[-1] - watch.begun
    return Pace(len(watch.marks), wall, statistics.mean(compiling), whole), watch


def efficiency(options: argparse.Namespace) -> None:
    seeds = list(range(options.cmdps))
    halves = [
        specification(part, options.episodes, BATCH_RUNS, 100) for part in (seeds[::2], seeds[1::2])
    ]
    everything = specification(seeds, options.episodes, BATCH_RUNS, 100)
    episodes = options.cmdps * BATCH_RUNS * options.episodes
    with cluster() as address:
        first = run_local(halves[0])
        spread, watch = run_cluster(everything, address)
        second = run_local(halves[1])
        ray_costs = of_ray(address)
    local = Pace(*(a + b for a, b in zip(first, second, strict=True)))
    print("| | batches | seconds | of it compilation | episodes/s without it | all with start |")
    print("|---|---|---|---|---|---|")
    rates = []
    for name, pace in (("two cores, this process", local), ("two workers of one core", spread)):
        rates.append(episodes / (pace.seconds - pace.compile_seconds))
        row = (name, pace.batches, f"{pace.seconds:.1f}", f"{pace.compile_seconds:.1f}")
        row = (*row, f"{rates[-1]:,.0f}", f"{pace.whole:.1f} s")
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    halves_took = [pace.seconds - pace.compile_seconds for pace in (first, second)]
    print(f"\nlocal half before the cluster {halves_took[0]:.1f} s, after {halves_took[1]:.1f} s")
    print(f"efficiency, cluster against local: {rates[1] / rates[0]:.3f}")
    print_overhead(spread, watch, ray_costs)


def print_overhead(pace: Pace, watch: Watch, ray_costs: dict[str, float]) -> None:
    busy = [sum(times) for times in watch.busy.values()]
    idle = len(busy) * pace.seconds - sum(busy)
    counts = [len(times) for times in watch.busy.values()]
    tail = abs(busy[0] - busy[-1]) if len(busy) > 1 else 0.0
    print(f"batches per worker {counts}, busy {[round(seconds, 1) for seconds in busy]} s")
    print(
        f"cores idle between first and last batch: {idle:.1f} s, {idle / pace.batches:.2f} s per "
        f"batch; without waiting for the last one {max(idle - tail, 0.0) / pace.batches:.2f} s"
    )
    print("\n| the driver, per batch | ms |\n|---|---|")
    for name, times in watch.steps.items():
        print(f"| {name} | {1e3 * statistics.median(times):.2f} |")
    for name, seconds in ray_costs.items():
        print(f"| Ray alone: {name} | {1e3 * seconds:.2f} |")


def of_ray(address: str, flying: int = 2000) -> dict[str, float]:
    """What Ray takes of a driver, when so many tasks are in flight."""
    from cmdpax.experiments.cluster.connecting import connected

    with connected(address) as found:
        ray, call = found.ray, found.call
        answer = ray.remote(num_cpus=1)(lambda size: [bytes(size)])
        sleep = ray.remote(num_cpus=1)(lambda seconds, order: time.sleep(seconds))
        references = [answer.remote(ANSWER_BYTES) for _ in range(16)]
        ray.wait(references, num_returns=len(references), timeout=60)
        get = [clocked(call, ray.get, reference) for reference in references]
        order, started = bytes(20_000), []
        submit = [
            clocked(lambda: started.append(call(sleep.remote, 600, order))) for _ in range(flying)
        ]
        wait = [clocked(call, ray.wait, started, timeout=0, fetch_local=False) for _ in range(20)]
        ask = [clocked(found.pool) for _ in range(20)]
    names = (
        f"get an answer of {ANSWER_BYTES / 2**20:.1f} MiB",
        "submit",
        f"wait, {flying:,} in flight",
    )
    times = (get, submit, wait, ask)
    return dict(zip((*names, "how many workers"), map(statistics.median, times), strict=True))


def clocked(function: Callable[..., Any], *arguments: Any, **options: Any) -> float:
    begun = time.perf_counter()
    function(*arguments, **options)
    return time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cmdps", type=int, default=12, help="batches of 64 runs")
    parser.add_argument("--episodes", type=int, default=40_000)
    parser.add_argument("--simulate", action="store_true")
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--batches", type=int, default=100_000)
    parser.add_argument("--record", type=int, default=1000)
    for name, ms in (("submit", 3.1), ("get", 1.0), ("turn", 1.6)):
        parser.add_argument(f"--{name}-ms", type=float, default=ms, help="what Ray takes of it")
    parser.add_argument("--life", type=float, default=24.0, help="hours until a worker dies")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}\n")
    warnings.simplefilter("ignore", cmdpax.CmdpaxWarning)
    if options.simulate:
        simulated(options)
    else:
        efficiency(options)


if __name__ == "__main__":
    main()
