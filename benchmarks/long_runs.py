"""Ten million episodes: rate and memory along one run, and how strong regrets grow on 20 CMDPs.

    python benchmarks/long_runs.py rate rate.npz [--episodes 10000000] [--plot rate.png]
    python benchmarks/long_runs.py growth growth.npz [--episodes 10000000] [--cmdps 20]
                                                     [--plot growth.png]

What was measured is kept in the file, and drawn again if the file is there. Everything is Algorithm
1 in double precision on the CPU, on random CMDPs with S = A = H = 5 (seeds 123, 124, …), one run
each; the runs of all CMDPs and settings share the cores. An interrupted `growth` goes on from its
checkpoints.
"""

import argparse
import functools
import os
import pathlib
import time
import warnings
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import numpy as np

import cmdpax
from cmdpax.learners import as_algorithm
from cmdpax.learners.optimism import Optimism
from cmdpax.learning.checkpoint import Checkpoint
from cmdpax.learning.history import growth_exponent
from cmdpax.learning.loop import Design, Task
from cmdpax.learning.settings import Configuration
from cmdpax.learning.workers import num_cores, run_batch
from cmdpax.schemes.presets import regret_theorem
from cmdpax.schemes.schedules import parse_schedule
from cmdpax.storage.writing import write_npz

NAMES = {
    "vanilla": "vanilla: η = 0.1, τ = 0",
    "fixed": "fixed: η = 0.1, τ = 0.02",
    "decaying": "decaying: η = k^-0.3, τ = k^-0.6, margin k^-0.5",
    "theorem": "the theorem's η, τ, λ_max and bonuses",
}
FIRST_SEED = 123
ALGORITHM = as_algorithm("regularized-primal-dual")


def settings(cmdp: cmdpax.CMDP, slater_gap: float, num_episodes: int) -> dict[str, Configuration]:
    """The four ways to run Algorithm 1 on a CMDP."""
    empirical, schedule = Optimism.empirical(), functools.partial(parse_schedule, "schedule")
    theorem = regret_theorem(cmdp, num_episodes, slater_gap=slater_gap)
    chosen = {
        "vanilla": (0.1, 0.0, 6.0, 0.0),
        "fixed": (0.1, 0.02, 6.0, 0.0),
        "decaying": (schedule("1*k^-0.3"), schedule("1*k^-0.6"), 6.0, schedule("1*k^-0.5")),
        "theorem": (*theorem, 0.0),
    }
    optimism = {"theorem": Optimism.theory(num_episodes)}
    return {
        name: Configuration(
            0,
            ALGORITHM,
            ALGORITHM.choose(dict(zip(ALGORITHM.names, values, strict=True)), num_episodes),
            optimism.get(name, empirical),
        )
        for name, values in chosen.items()
    }


def task_of(
    cmdps: list[cmdpax.CMDP],
    optima: list[float],
    rewards_known: bool,
    recorded: np.ndarray,
    num_episodes: int,
) -> Task:
    design = Design(ALGORITHM, rewards_known, stacked=True)
    return Task(design, cmdps, optima, recorded, num_episodes, (1e-9,))


def growth(num_episodes: int, num_cmdps: int, out: pathlib.Path) -> dict[str, Any]:
    """Strong regrets of all settings on all CMDPs, `[cmdps, T]` each."""
    seeds = range(FIRST_SEED, FIRST_SEED + num_cmdps)
    cmdps = [cmdpax.environments.make("random", seed=seed) for seed in seeds]
    solutions = [cmdpax.solve(cmdp) for cmdp in cmdps]
    each = [
        settings(cmdp, float(solution.slater_gap or 0), num_episodes)
        for cmdp, solution in zip(cmdps, solutions, strict=True)
    ]
    optima = [solution.value for solution in solutions]
    recorded = np.unique(np.geomspace(1, num_episodes, 600).round().astype(np.int64))
    found: dict[str, Any] = {"episodes": recorded}
    begun, played = time.perf_counter(), 0
    for names, known in ((("vanilla", "fixed", "decaying"), True), (("theorem",), False)):
        task = task_of(cmdps * len(names), optima * len(names), known, recorded, num_episodes)
        configurations = [every[name] for name in names for every in each]
        manifest = {"names": list(names), "episodes": num_episodes, "cmdps": num_cmdps}
        checkpoint = Checkpoint(out.with_suffix(f".{names[0]}.checkpoint"), manifest)
        with jax.enable_x64(True):
            collected = run_batch(task, configurations, None, lambda done, total: None, checkpoint)
        played += len(configurations) * num_episodes
        strong = np.asarray(collected.entries.strong).reshape(len(names), num_cmdps, -1, 2)
        for name, regrets in zip(names, strong, strict=True):
            found[f"{name}_objective"], found[f"{name}_constraint"] = np.moveaxis(regrets, -1, 0)
    seconds = time.perf_counter() - begun
    print(f"{played:.3g} episodes in {seconds:.0f} s on {num_cores()} cores: ", end="")
    print(f"{played / seconds:,.0f} episodes/s, compilation included")
    return found


def resident_bytes() -> int:
    """Memory of this process, where the system tells it."""
    status = pathlib.Path("/proc/self/statm")
    pages = int(status.read_text().split()[1]) if status.exists() else 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def one_run(num_episodes: int) -> dict[str, Any]:
    """Episodes done, seconds and resident memory along one run through `cmdpax.learn`."""
    rows: list[tuple[float, float, float]] = []

    def report(done: int, total: int) -> None:
        if not rows or done - rows[-1][0] >= total / 400:
            rows.append((done, time.perf_counter(), resident_bytes()))

    cmdp = cmdpax.environments.make("random")
    cmdpax.learn(
        cmdp, "regularized-primal-dual", num_episodes=num_episodes, seeds=1, progress=report
    )
    episodes, seconds, memory = np.array(rows[1:]).T  # the first block is compiled
    return {"episodes": episodes, "seconds": seconds - seconds[0], "memory": memory}


def print_rate(found: dict[str, Any]) -> None:
    episodes, seconds, memory = (found[name] for name in ("episodes", "seconds", "memory"))
    tenths = np.array_split(np.arange(1, len(episodes)), 10)
    rates = [
        (episodes[part[-1]] - episodes[part[0] - 1]) / (seconds[part[-1]] - seconds[part[0] - 1])
        for part in tenths
    ]
    print("one run, episodes/s in each tenth: " + ", ".join(f"{rate:,.0f}" for rate in rates))
    print(
        f"resident memory after a tenth {memory[tenths[0][-1]] / 2**20:.0f} MiB, "
        f"at the end {memory[-1] / 2**20:.0f} MiB"
    )


def print_growth(found: dict[str, Any]) -> None:
    """Sums of the two strong regrets at K over the CMDPs, and the medians of their exponents."""
    episodes = found["episodes"]
    print("\n| setting | mean | median | largest | exponent, objective | constraint |")
    print("|---|---|---|---|---|---|")
    for name, text in NAMES.items():
        objective, constraint = found[f"{name}_objective"], found[f"{name}_constraint"]
        sums = (objective + constraint)[:, -1]
        cells = [f"{number:,.0f}" for number in (sums.mean(), np.median(sums), sums.max())]
        for regret in (objective, constraint):
            defined = growth_exponent(regret, episodes)
            defined = defined[~np.isnan(defined)]
            if len(defined):
                low, middle, high = np.quantile(defined, (0, 0.5, 1))
                cells.append(f"{middle:.2f} ({low:.2f} to {high:.2f})")
            else:
                cells.append("not defined")
        print(f"| {text} | " + " | ".join(cells) + " |")


def plot_growth(found: dict[str, Any], path: pathlib.Path) -> None:
    from cmdpax.figures.style import OBJECTIVE, OTHERS, REFERENCE, canvas, save_figure

    episodes = found["episodes"]
    figure, axes = canvas(1, 2, "episode k", (4.6, 3.8))
    colours = (REFERENCE, OTHERS[1], OBJECTIVE, OTHERS[2])
    for axis, kind in zip(axes[0], ("objective", "constraint"), strict=True):
        for (name, text), colour in zip(NAMES.items(), colours, strict=True):
            regrets = found[f"{name}_{kind}"]
            axis.loglog(episodes, _positive(regrets).T, color=colour, alpha=0.18, linewidth=0.6)
            middle = _positive(np.median(regrets, axis=0))
            axis.loglog(episodes, middle, color=colour, linewidth=1.8, label=text)
        axis.set(title=f"strong regret, {kind}", ylim=(1, None))
    axes[0, 0].set_ylabel("cumulative regret")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    save_figure(figure, path)


def _positive(regrets: np.ndarray) -> np.ndarray:
    """Without what a logarithmic axis cannot show."""
    return np.where(regrets > 0, regrets, np.nan)


def plot_rate(found: dict[str, Any], path: pathlib.Path) -> None:
    from cmdpax.figures.style import CONSTRAINT, OBJECTIVE, canvas, save_figure

    episodes, seconds, memory = (found[name] for name in ("episodes", "seconds", "memory"))
    figure, axes = canvas(1, 2, "episode k", (4.6, 3.0))
    rate = np.diff(episodes) / np.diff(seconds)
    axes[0, 0].plot(episodes[1:], rate, color=OBJECTIVE)
    axes[0, 0].set(title="rate", ylabel="episodes per second", ylim=(0, None))
    axes[0, 1].plot(episodes, memory / 2**20, color=CONSTRAINT)
    axes[0, 1].set(title="resident memory", ylabel="MiB", ylim=(0, None))
    save_figure(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("rate", "growth"))
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--episodes", type=int, default=10_000_000)
    parser.add_argument("--cmdps", type=int, default=20)
    parser.add_argument("--plot", type=pathlib.Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", cmdpax.CmdpaxWarning)
    if not arguments.data.exists():
        if arguments.what == "rate":
            found = one_run(arguments.episodes)
        else:
            found = growth(arguments.episodes, arguments.cmdps, arguments.data)
        write_npz(arguments.data, found)
    found = dict(np.load(arguments.data))
    (print_rate if arguments.what == "rate" else print_growth)(found)
    if arguments.plot:
        (plot_rate if arguments.what == "rate" else plot_growth)(found, arguments.plot)


if __name__ == "__main__":
    main()
