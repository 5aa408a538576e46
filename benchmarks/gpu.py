"""Learning on an accelerator: rates by batch size, algorithm and model, and what bounds them.

    python benchmarks/gpu.py [--largest 262144] [--skip agreement large pricing solves plans]

Single precision, one key per run, integer counts, accounts included, through `cmdpax.learn`. A rate
is that of the second call: from the first block to the last, compilation and setup apart. Needs
numpy, jax, jaxtyping and SciPy.

The share of bandwidth compares the bytes that an episode must move at the least with a copy of a
large array on the same device. At the least: p̂ is read once, and eight arrays of the policy's shape
are read or written (the visits, log π of this episode and the next, π for the play and for the
accounts, Q).
"""

import argparse
import functools
import itertools
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import cmdpax
from cmdpax.intervals import interval
from cmdpax.planning.batched import plan
from cmdpax.planning.dynamic_program import greedy_plans

ALGORITHM = "regularized-primal-dual"
SMALL = {"num_states": 5, "num_actions": 5, "horizon": 5}
MIDDLE = {"num_states": 30, "num_actions": 3, "horizon": 10}
LARGE = {"num_states": 100, "num_actions": 5, "horizon": 20}
BATCHES = (32, 128, 512, 2048, 8192, 32_768, 131_072, 262_144)
PLANNED = (4096, 65_536, 262_144)
GRIDS = {1_000: (25, 40), 10_000: (100, 100), 100_000: (250, 400), 1_000_000: (1000, 1000)}


def print_table(title: str, rows: list[dict[str, Any]]) -> None:
    print(f"\n{title}\n\n| " + " | ".join(rows[0]) + " |\n|" + "---|" * len(rows[0]))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row.values()) + " |")
    sys.stdout.flush()


def copy_bandwidth() -> float:
    """Bytes per second, read and written, of a copy of 2 GiB."""
    array = jnp.zeros(2**29, jnp.float32)
    copy = jax.jit(lambda x: x + 1)
    copy(array).block_until_ready()
    begun = time.perf_counter()
    for _ in range(20):
        array = copy(array)
    array.block_until_ready()
    return 20 * 2 * array.nbytes / (time.perf_counter() - begun)


def measure(
    cmdp: cmdpax.CMDP, algorithm: str, num_runs: int, num_episodes: int, **options: Any
) -> tuple[float, float, float]:
    """Episodes/s of the second call, its setup, and what the first took more."""
    loops, walls = [], []
    for _ in range(2):
        marks: list[float] = []
        begun = time.perf_counter()
        cmdpax.learn(
            cmdp,
            algorithm,
            num_episodes=num_episodes,
            seeds=num_runs,
            record=[num_episodes],
            precision="single",
            progress=lambda done, total, marks=marks: marks.append(time.perf_counter()),
            **options,
        )
        walls.append(time.perf_counter() - begun)
        loops.append(marks[-1] - marks[0])
    return num_runs * num_episodes / loops[1], walls[1] - loops[1], walls[0] - walls[1]


def least_bytes(cmdp: cmdpax.CMDP) -> int:
    """That an episode of a run must move, in single precision."""
    _, horizon, num_states, num_actions = cmdp.sizes
    row = jax.tree.leaves(cmdp.transitions)[-1].shape[-1]
    return int(4 * horizon * num_states * num_actions * (row + 8))


def least_operations(cmdp: cmdpax.CMDP) -> int:
    """Additions and multiplications of the evaluation and the accounts alone."""
    num_constraints, horizon, num_states, num_actions = cmdp.sizes
    row = jax.tree.leaves(cmdp.transitions)[-1].shape[-1]
    signals = 2 + num_constraints
    return int(2 * horizon * num_states * num_actions * (signals * row + row + signals))


def rate_rows(
    cmdp: cmdpax.CMDP,
    algorithm: str,
    batches: list[int],
    bandwidth: float,
    most: int = 4096,
    **options: Any,
) -> list[dict[str, Any]]:
    rows = []
    target = 2e10 / least_bytes(cmdp)  # episodes of all runs: seconds, not minutes
    for num_runs in batches:
        num_episodes = int(np.clip(target * 40 / num_runs, 64, most))
        rate, setup, compilation = measure(cmdp, algorithm, num_runs, num_episodes, **options)
        rows.append(
            {
                "runs": f"{num_runs:,}",
                "episodes/s": f"{rate:.3g}",
                "µs per episode of all": f"{1e6 * num_runs / rate:,.0f}",
                "of copy bandwidth": f"{rate * least_bytes(cmdp) / bandwidth:.0%}",
                "Tflop/s": f"{rate * least_operations(cmdp) / 1e12:.2g}",
                "setup [s]": f"{setup:.2f}",
                "compile [s]": f"{compilation:.1f}",
            }
        )
    return rows


def rates(largest: int, bandwidth: float) -> None:
    small, middle, large = (
        cmdpax.environments.make("random", **size) for size in (SMALL, MIDDLE, LARGE)
    )
    batches = [batch for batch in BATCHES if batch <= largest]
    some = [batch for batch in (2048, 32_768, 131_072) if batch <= largest]
    tables = (
        (small, ALGORITHM, batches),
        (small, "regularized-dual", some),
        (middle, ALGORITHM, [b for b in (512, 2048, 8192, 32_768) if b <= largest]),
        (middle, "regularized-dual", [b for b in (8192,) if b <= largest]),
        (large, ALGORITHM, [b for b in (64, 256, 1024, 2048) if b <= largest]),
    )
    for cmdp, algorithm, chosen in tables:
        if not chosen:
            continue
        rows = rate_rows(cmdp, algorithm, chosen, bandwidth)
        print_table(f"{algorithm}, {cmdp}, {least_bytes(cmdp):,} bytes per episode", rows)


def large_lists(largest: int, bandwidth: float) -> None:
    cmdp = cmdpax.environments.make(
        "gridworld", height=25, width=40, horizon=50, wall_density=0.0, uniform_start=True
    )
    for stationary in (False, True):
        rows = rate_rows(
            cmdp, ALGORITHM, [b for b in (1, 16, 256) if b <= largest], bandwidth, most=256,
            stationary=stationary,
        )  # fmt: skip
        counts = "shared over the steps" if stationary else "per step"
        print_table(f"{ALGORITHM}, {cmdp}, counts {counts}", rows)


# ------------------------------------------------------------------------- agreement with double


def regrets(num_runs: int, precision: str) -> dict[str, list[float]]:
    history = cmdpax.learn(
        cmdpax.environments.make("random", **SMALL),
        ALGORITHM,
        num_episodes=4000,
        seeds=num_runs,
        record=[4000],
        precision=precision,
    )
    return {
        f"{kind} {part}": getattr(regret, name)[:, -1].tolist()
        for kind, regret in (("strong", history.strong_regret), ("weak", history.weak_regret))
        for part, name in (("objective", "objective"), ("constraint", "maximum"))
    }


def elsewhere(part: str) -> Any:
    """The same on the CPU, in a process of its own."""
    command = [sys.executable, __file__, "--part", part]
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def agreement(num_runs: int = 100) -> None:
    here, there = regrets(num_runs, "single"), elsewhere("agreement")
    rows = []
    for name, ours in here.items():
        theirs = there[name]
        error = np.hypot(np.std(ours, ddof=1), np.std(theirs, ddof=1)) / np.sqrt(num_runs)
        rows.append(
            {
                "regret at K = 4000": name,
                f"single, {jax.default_backend()}": str(interval(np.array(ours))),
                "double, cpu": str(interval(np.array(theirs))),
                "spread of the runs": f"{np.std(theirs, ddof=1):.3g}",
                "difference": f"{np.mean(ours) - np.mean(theirs):+.3g}",
                "in standard errors": f"{(np.mean(ours) - np.mean(theirs)) / error:+.2f}",
            }
        )
    print_table(f"Single precision here against double on the CPU, {num_runs} runs", rows)


# --------------------------------------------------------------------------------------- planning


def planned_models() -> Iterator[tuple[str, cmdpax.CMDP]]:
    for num_states in (50, 100, 400):
        size = {"num_states": num_states, "num_actions": 5, "horizon": 20, "num_constraints": 2}
        yield f"dense, {num_states:,}, H = 20", cmdpax.environments.make("random", **size)
    for num_states, (height, width) in GRIDS.items():
        grid = {"height": height, "width": width, "horizon": 100, "num_constraints": 2}
        free = {"wall_density": 0.0, "uniform_start": True, "budget": 5.0}
        cmdp = cmdpax.environments.make("gridworld", **grid, **free)
        yield f"lists, {num_states:,}, H = 100", cmdp


def pricing_seconds() -> dict[str, float]:
    """Of one batch of columns, in double precision; the model is on the device."""
    found = {}
    for name, cmdp in planned_models():
        with jax.enable_x64(True):
            model = jax.device_put(cmdp)
            weights = jnp.asarray([[1.0, 0.5, 0.5], [1.0, 0.2, 0.2]])
            times = []
            for _ in range(4):
                begun = time.perf_counter()
                jax.block_until_ready(greedy_plans(model, weights))
                times.append(time.perf_counter() - begun)
        found[name] = min(times[1:])
    return found


def pricing() -> None:
    here, there = pricing_seconds(), elsewhere("pricing")
    rows = [
        {
            "transitions, S": name,
            f"{jax.default_backend()} [ms]": f"{1e3 * seconds:.2f}",
            "cpu [ms]": f"{1e3 * there[name]:.2f}",
            "ratio": f"{there[name] / seconds:.1f}×",
        }
        for name, seconds in here.items()
    ]
    cores = cmdpax.learning.workers.num_cores()
    print_table(f"Pricing two columns, double precision (CPU: {cores} cores)", rows)


def solves() -> None:
    """Exact optima of gridworlds, with the model and the pricing on the device."""
    rows = []
    for num_states, (height, width) in GRIDS.items():
        grid = {"height": height, "width": width, "horizon": 100, "num_constraints": 2}
        cmdp = cmdpax.environments.make("gridworld", **grid, wall_density=0.0, uniform_start=True)
        times = []
        for _ in range(2):
            begun = time.perf_counter()
            solution = cmdpax.solve(cmdp)
            times.append(time.perf_counter() - begun)
        stored = jax.local_devices()[0].memory_stats() or {}
        rows.append(
            {
                "S": f"{num_states:,}",
                "solve [s]": f"{times[1]:.2f}",
                "columns": solution.num_columns,
                "gap": f"{solution.gap:.1e}",
                "peak on the device [GiB]": f"{stored.get('peak_bytes_in_use', 0) / 2**30:.2f}",
                "compile [s]": f"{times[0] - times[1]:.1f}",
            }
        )
    print_table("Gridworlds, A = 4, H = 100, two constraints, uniform start", rows)


def batched_plans() -> None:
    """Exact plans of many models at once, as replanning learners make them."""
    rows = []
    for count, precision in itertools.product((1, 3), ("single", "double")):
        base = [
            cmdpax.environments.make("random", seed=seed, num_constraints=count)
            for seed in range(64)
        ]
        with jax.enable_x64(precision == "double"):
            compiled = jax.jit(jax.vmap(functools.partial(planned, base[0].horizon)))
            for number in PLANNED:
                chosen = np.random.default_rng(0).integers(64, size=number)
                stacked = jax.tree.map(
                    lambda *parts, chosen=chosen: jnp.asarray(np.stack(parts)[chosen], float),
                    *map(arrays_of, base),
                )
                times = []
                for _ in range(4):
                    begun = time.perf_counter()
                    jax.block_until_ready(compiled(*stacked))
                    times.append(time.perf_counter() - begun)
                rows.append(
                    {
                        "constraints": count,
                        "precision": precision,
                        "models": f"{number:,}",
                        "plans/s": f"{number / min(times[1:]):.2g}",
                        "compile [s]": f"{times[0] - min(times[1:]):.1f}",
                    }
                )
    print_table("Plans of random models, S = A = H = 5", rows)


def arrays_of(cmdp: cmdpax.CMDP) -> tuple[np.ndarray, ...]:
    return (
        cmdp.transitions,
        cmdp.rewards,
        cmdp.constraint_rewards,
        cmdp.thresholds,
        cmdp.initial,
    )


def planned(horizon: int, *arrays: jax.Array) -> jax.Array:
    model = cmdpax.CMDP.tree_unflatten(horizon, (*arrays, None))
    return plan(model, jnp.zeros_like(model.thresholds)).policy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest", type=int, default=262_144, help="largest batch")
    parser.add_argument(
        "--skip",
        nargs="*",
        default=[],
        choices=("rates", "agreement", "large", "pricing", "solves", "plans"),
    )
    parser.add_argument("--part", choices=("agreement", "pricing"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", cmdpax.CmdpaxWarning)
    if arguments.part:
        found = regrets(100, "double") if arguments.part == "agreement" else pricing_seconds()
        print(json.dumps(found))
        return
    print(f"{cmdpax.learning.manifest.devices()}, JAX {jax.__version__}")
    if "solves" not in arguments.skip:  # first: its peak of memory is its own
        solves()
    bandwidth = copy_bandwidth()
    print(f"\ncopies {bandwidth / 1e12:.2f} TB/s")
    if "agreement" not in arguments.skip:
        agreement()
    if "rates" not in arguments.skip:
        rates(arguments.largest, bandwidth)
    if "large" not in arguments.skip:
        large_lists(arguments.largest, bandwidth)
    if "pricing" not in arguments.skip:
        pricing()
    if "plans" not in arguments.skip:
        batched_plans()


if __name__ == "__main__":
    main()
