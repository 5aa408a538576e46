"""Exact planning: against HiGHS, many models and frontiers against solves, large gridworlds.

    python benchmarks/planning.py [--repeats 3] [--largest 100000] [--skip-lp]
    python benchmarks/planning.py --many [--repeats 3]
    python benchmarks/planning.py --before FOLDER

The second plans many models at once, and nothing else. The third compares this checkout with
another one of the library, in one run: processes of both take turns.

Ratios are taken within one run, median against median: machines are noisy, ratios less so. Every
gridworld is solved in a process of its own, whose peak memory is that of the operating system.
Compilation is reported apart: it is the first call less the median of later ones.
"""

import argparse
import json
import os
import pathlib
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

GRIDS = {1_000: (25, 40), 10_000: (100, 100), 100_000: (250, 400), 1_000_000: (1000, 1000)}
LARGEST_POLICY = 100_000  # beyond it the policy alone is 3 GB, and making it needs several of them
SIZES = (
    {"num_states": 50, "num_actions": 5, "horizon": 20, "num_constraints": 3},
    {"num_states": 100, "num_actions": 5, "horizon": 20, "num_constraints": 5},
)
MANY = ((1, 16), (1, 64), (1, 256), (1, 1024), (2, 256), (3, 256), (5, 256))  # I, models


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def median_time(function: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    runs = [timed(function) for _ in range(repeats)]
    return statistics.median(seconds for seconds, _ in runs), runs[-1][1]


def print_table(title: str, rows: list[dict[str, str]]) -> None:
    print(f"\n{title}\n")
    print("| " + " | ".join(rows[0]) + " |")
    print("|" + "---|" * len(rows[0]))
    for row in rows:
        print("| " + " | ".join(row.values()) + " |")
    sys.stdout.flush()


def against_the_linear_program(repeats: int) -> None:
    import cmdpax

    rows = []
    for size in SIZES:
        cmdp = cmdpax.environments.make("random", **size, seed=0)
        first, _ = timed(lambda cmdp=cmdp: cmdpax.solve(cmdp).policy)
        columns, solution = median_time(lambda cmdp=cmdp: cmdpax.solve(cmdp), repeats)
        recovery, _ = timed(lambda solution=solution: solution.policy)
        program, exact = median_time(lambda cmdp=cmdp: cmdpax.solve(cmdp, "occupancy-lp"), repeats)
        rows.append(
            {
                "S, A, H, I": ", ".join(str(number) for number in size.values()),
                "occupancy LP [s]": f"{program:.3f}",
                "column generation [s]": f"{columns:.4f}",
                "ratio": f"{program / columns:.0f}×",
                "with policy": f"{program / (columns + recovery):.0f}×",
                "compile [s]": f"{first - columns - recovery:.2f}",
                "columns": str(solution.num_columns),
                "gap": f"{solution.gap:.1e}",
                "difference of optima": f"{abs(solution.value - exact.value):.1e}",
            }
        )
    print_table(
        f"Column generation against HiGHS on the occupancy LP (dense random CMDPs, median of "
        f"{repeats})",
        rows,
    )


def many_at_once(repeats: int) -> None:
    """`solve_many` and its compiled core against a loop over `solve`, which take turns."""
    import jax
    import numpy as np

    import cmdpax
    from cmdpax.planning.batched import plan_stacked

    core, rows = jax.jit(plan_stacked), []
    for num_constraints, count in MANY:
        sizes = {"num_constraints": num_constraints}  # S = A = H = 5
        cmdps = [cmdpax.environments.make("random", **sizes, seed=seed) for seed in range(count)]
        stack = jax.tree.map(lambda *arrays: np.stack(arrays), *cmdps)

        def plan(start: Any, stack: Any = stack) -> Any:
            with jax.enable_x64(True):
                return jax.block_until_ready(core(stack, start))

        zeros = np.zeros((count, num_constraints))
        first, _ = timed(lambda cmdps=cmdps: cmdpax.solve_many(cmdps))
        cold = plan(zeros)
        runs: dict[str, list[float]] = {"loop": [], "many": [], "core": []}
        for _ in range(repeats):
            seconds, solutions = timed(lambda cmdps=cmdps: [cmdpax.solve(one) for one in cmdps])
            runs["loop"].append(seconds)
            for _ in range(5):
                seconds, found = timed(lambda cmdps=cmdps: cmdpax.solve_many(cmdps))
                runs["many"].append(seconds)
                runs["core"].append(timed(lambda plan=plan, zeros=zeros: plan(zeros))[0])
        loop, many, compiled = (statistics.median(seconds) for seconds in runs.values())
        warm = plan(1.02 * np.asarray(cold.multipliers))
        pairs = zip(found, solutions, strict=True)
        rows.append(
            {
                "I": str(num_constraints),
                "models": str(count),
                "loop over solve [ms]": f"{1e3 * loop:.0f}",
                "solve_many [ms]": f"{1e3 * many:.1f} ({1e3 * min(runs['many']):.1f})",
                "ratio": f"{loop / many:.0f}×",
                "models/s": f"{count / many:,.0f}",
                "core alone [ms]": f"{1e3 * compiled:.1f} ({1e3 * min(runs['core']):.1f})",
                "core: ratio": f"{loop / compiled:.0f}×",
                "compile [s]": f"{first - many:.1f}",
                "inductions: mean, most": f"{cold.rounds.mean():.1f}, {cold.rounds.max()}",
                "warm": f"{warm.rounds.mean():.1f}",
                "largest gap": f"{max(one.gap for one in found):.1e}",
                "difference of optima": f"{max(abs(a.value - b.value) for a, b in pairs):.1e}",
            }
        )
    print_table(
        f"Many random models, S = A = H = 5, against a loop over solve (medians of {repeats}, "
        "the fastest in brackets; warm: λ of the optimum times 1.02)",
        rows,
    )


def make_grid(num_states: int) -> Any:
    import cmdpax

    height, width = GRIDS[num_states]
    return cmdpax.environments.make(
        "gridworld",
        height=height,
        width=width,
        horizon=100,
        num_constraints=2,
        wall_density=0.0,
        uniform_start=True,
    )


def frontier_against_solves(repeats: int) -> None:
    """The frontier's points at once, and each by a solve of its own (infeasible ones included)."""
    import cmdpax

    def separately(cmdp: Any, thresholds: Any) -> tuple[Any, int]:
        values, num_columns = [], 0
        for threshold in thresholds:
            there = cmdp.replace(thresholds=[threshold, *cmdp.thresholds[1:]])
            try:
                solution = cmdpax.solve(there)
            except cmdpax.InfeasibleError:
                values.append(float("nan"))
            else:
                values.append(solution.value)
                num_columns += solution.num_columns
        return values, num_columns

    rows = []
    paper = cmdpax.environments.make("random")
    for cmdp in (paper, cmdpax.environments.make("random", **SIZES[0], seed=0), make_grid(10_000)):
        for num_points in (20, 100) if cmdp.num_states < 1000 else (20,):
            cmdpax.frontier(cmdp, num_points=num_points)  # compiles
            together, found = median_time(
                lambda cmdp=cmdp, points=num_points: cmdpax.frontier(cmdp, num_points=points),
                repeats,
            )
            apart, (values, num_columns) = median_time(
                lambda cmdp=cmdp, found=found: separately(cmdp, found.thresholds), repeats
            )
            differences = abs(found.value - values)[found.feasible]
            rows.append(
                {
                    "model": repr(cmdp),
                    "points": str(num_points),
                    "solves [s]": f"{apart:.3f}",
                    "frontier [s]": f"{together:.3f}",
                    "ratio": f"{apart / together:.1f}×",
                    "columns of all solves": str(num_columns),
                    "of the frontier": str(found.num_columns),
                    "largest gap": f"{found.gap[found.feasible].max():.1e}",
                    "difference of optima": f"{differences.max():.1e}",
                }
            )
    print_table(f"The frontier against as many solves (median of {repeats})", rows)


def peak_memory() -> float:
    """Of this process, in GiB; `ru_maxrss` would count the parent's from before the exec."""
    status = pathlib.Path("/proc/self/status")
    if status.exists():
        line = next(row for row in status.read_text().splitlines() if row.startswith("VmHWM"))
        return int(line.split()[1]) / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def solve_grid(num_states: int, repeats: int) -> None:
    """In a process of its own: solve one gridworld, print one line of JSON."""
    import cmdpax

    made, cmdp = timed(lambda: make_grid(num_states))
    first, _ = timed(lambda: cmdpax.solve(cmdp))
    seconds, solution = median_time(lambda: cmdpax.solve(cmdp), repeats)
    row = {
        "S": f"{cmdp.num_states:,}",
        "solve [s]": f"{seconds:.2f}",
        "columns": str(solution.num_columns),
        "gap": f"{solution.gap:.1e}",
        "memory to solve [GiB]": f"{peak_memory():.2f}",
        "compile [s]": f"{first - seconds:.2f}",
        "make [s]": f"{made:.2f}",
    }
    if num_states <= LARGEST_POLICY:
        recovery, policy = timed(lambda: solution.policy)
        occupied = solution.occupancy.sum(axis=-1) > 0
        row |= {
            "policy [s]": f"{recovery:.2f}",
            "random decisions": str(int(((policy.max(axis=-1) < 1) & occupied).sum())),
            "with policy [GiB]": f"{peak_memory():.2f}",
        }
    else:
        row |= dict.fromkeys(("policy [s]", "random decisions", "with policy [GiB]"), "not made")
    print(json.dumps(row))


def growing_gridworlds(largest: int, repeats: int) -> None:
    rows = []
    for num_states in GRIDS:
        if num_states <= largest:
            command = [sys.executable, __file__, "--grid", str(num_states)]
            command += ["--repeats", str(repeats)]
            finished = subprocess.run(command, capture_output=True, text=True, check=True)
            rows.append(json.loads(finished.stdout.splitlines()[-1]))
    print_table(
        f"Gridworlds, A = 4, H = 100, two constraints, uniform start (median of {repeats})", rows
    )


def long_model() -> Any:
    """Decisions tie in thousands of steps, since a stationary model forgets its end."""
    import numpy as np

    import cmdpax

    draw = np.random.default_rng(0)
    return cmdpax.CMDP(
        transitions=draw.dirichlet(np.full(21, 0.3), (1, 21, 3)),
        rewards=draw.random((1, 21, 3)),
        constraint_rewards=draw.random((1, 1, 21, 3)),
        thresholds=[3300.0],
        initial=np.eye(21)[0],
        horizon=5_000,
    )


def time_some() -> None:
    """In a process of its own: milliseconds of a few solves and policies, one line of JSON."""
    import cmdpax

    models = {
        "random 5, 5, 5, 1": cmdpax.environments.make("random"),
        "random 50, 5, 20, 3": cmdpax.environments.make("random", **SIZES[0], seed=0),
        "random 100, 5, 20, 5": cmdpax.environments.make("random", **SIZES[1], seed=0),
        "gridworld 1,000, 4, 100, 2": make_grid(1_000),
        "gridworld 10,000, 4, 100, 2": make_grid(10_000),
        "stationary 21, 3, 5,000, 1": long_model(),
    }
    found = {}
    for name, cmdp in models.items():
        cold, solution = timed(lambda cmdp=cmdp: cmdpax.solve(cmdp))
        cold_policy, _ = timed(lambda solution=solution: solution.policy)
        solve, solution = median_time(lambda cmdp=cmdp: cmdpax.solve(cmdp), 5)
        policy, _ = timed(lambda solution=solution: solution.policy)
        found[name] = [1e3 * seconds for seconds in (solve, policy, cold, cold_policy)]
    print(json.dumps(found))


def before_and_after(before: str, repeats: int) -> None:
    folders = {"before": pathlib.Path(before), "after": pathlib.Path(__file__).parents[1]}
    runs: dict[str, list[Any]] = {name: [] for name in folders}
    for _ in range(repeats):
        for name, folder in folders.items():
            environment = os.environ | {"PYTHONPATH": str((folder / "src").resolve())}
            finished = subprocess.run(
                [sys.executable, __file__, "--time"],
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
            runs[name].append(json.loads(finished.stdout.splitlines()[-1]))
    columns = ("solve", "policy", "solve, cold", "policy, cold")
    rows = []
    for model in runs["after"][0]:
        row = {"model: S, A, H, I": model}
        for index, column in enumerate(columns):
            old, new = (
                statistics.median(run[model][index] for run in runs[name]) for name in folders
            )
            row[f"{column} [ms]"] = f"{old:.1f} → {new:.1f} ({old / new:.1f}×)"
        rows.append(row)
    print_table(f"Before and after (medians of {repeats} processes each)", rows)


def import_time() -> None:
    script = (
        "import time; a = time.perf_counter(); import jax; b = time.perf_counter(); "
        "import cmdpax; print(b - a, time.perf_counter() - b)"
    )
    runs = []
    for _ in range(5):
        finished = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        )
        runs.append([float(part) for part in finished.stdout.split()])
    jax_time, own_time = (statistics.median(column) for column in zip(*runs, strict=True))
    print(f"\nimport cmdpax: {own_time:.3f} s beside {jax_time:.3f} s of JAX's own (median of 5)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--largest", type=int, default=100_000, help="largest gridworld, S")
    parser.add_argument("--skip-lp", action="store_true", help="gridworlds only")
    parser.add_argument("--many", action="store_true", help="many models at once only")
    parser.add_argument("--before", metavar="FOLDER", help="compare with another checkout")
    parser.add_argument("--time", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--grid", type=int, choices=GRIDS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.grid:
        solve_grid(arguments.grid, arguments.repeats)
        return
    if arguments.time:
        time_some()
        return
    import jax

    print(
        f"{platform.machine()}, {os.cpu_count()} cores, JAX {jax.__version__} on "
        f"{jax.default_backend()}, Python {platform.python_version()}"
    )
    if arguments.before:
        before_and_after(arguments.before, arguments.repeats)
        return
    if arguments.many:
        many_at_once(arguments.repeats)
        return
    import_time()
    if not arguments.skip_lp:
        against_the_linear_program(arguments.repeats)
        many_at_once(arguments.repeats)
        frontier_against_solves(arguments.repeats)
    growing_gridworlds(arguments.largest, arguments.repeats)


if __name__ == "__main__":
    main()
