"""The live agent against everything else that one would do, on simulated systems.

    PYTHONPATH=. python benchmarks/live.py [--systems NAME …] [--seeds 8] [--workers 2] [--out FILE]
    PYTHONPATH=. python benchmarks/live.py --from FILE …

The systems of `examples/systems/` are played for K episodes by the agent, the agent with a safe
rule to start from, the paper's four algorithms, ten lines of `estimate` and `solve` (every 50
episodes, with 5 % random actions), tabular Q-learning with a penalty (the best of five for every
system and K, chosen in hindsight), and the fixed safe rule.

Loss is the optimum minus the true value of the policy that is played, as a mean over the K
episodes. The positive part of each constraint's true violation is priced at its exact multiplier
λ*. Policies are evaluated exactly: those of plans whenever they change, those of the four
algorithms and of Q-learning in about 60 episodes on a logarithmic grid, each counting for the
episodes next to it. Losses are means over seeds ± standard errors, with the share of episodes whose
policy is unsafe in truth in parentheses. A task is a system, a method and a seed; it appends its
lines as it ends, so that an interrupted benchmark shows what it has. The last line of every K says
whether the agent loses at most half of what the best rival loses, as a geometric mean over the
systems, is worse than it on none, and is unsafe in at most 10 % of the episodes if it has a
baseline. `--set exploration=none` gives
the two agents other parameters.
"""

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import cmdpax
from examples.systems import SYSTEMS
from live_methods import ALGORITHMS, METHODS

EPISODES = (200, 500, 2_000)
ALONE = {  # every process has one core, and the programs that it compiles are for all
    "JAX_PLATFORMS": "cpu",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.2",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}
AGENTS = ("agent", "agent, baseline")
MOST_LOST, MOST_UNSAFE = 0.5, 0.1  # of the best rival, as a geometric mean; with a baseline
RIVALS = ("estimate + solve", "Q-learning", *ALGORITHMS)


class Task(NamedTuple):
    """One run."""

    system: str
    method: str
    seed: int
    episodes: tuple[int, ...]
    parameters: dict[str, Any]  # of the agents

    @property
    def work(self) -> float:
        """About how long it takes: the longest are begun first."""
        system = SYSTEMS[self.system]
        size = system.horizon * system.num_states * system.num_actions
        return size * (3.0 if self.method in AGENTS else 1.0 if self.method in ALGORITHMS else 0.5)


def measured(task: Task) -> list[dict[str, Any]]:
    """A row for the run, or for each penalty of Q-learning."""
    warnings.simplefilter("ignore")
    begun = time.perf_counter()
    system = SYSTEMS[task.system](seed=1_000 + task.seed)
    optimum = cmdpax.solve(system.model)
    rows = []
    given = task.parameters if task.method in AGENTS else {}
    for account, penalty in METHODS[task.method](system, task.seed, max(task.episodes), **given):
        losses, unsafe = account.losses(optimum)
        for count in task.episodes:
            row = {"system": task.system, "method": task.method, "seed": task.seed}
            row |= {"penalty": penalty, "episodes": count, "optimum": optimum.value}
            row |= {"loss": losses[:count].mean(), "last": losses[count - 1]}
            rows.append(row | {"unsafe": unsafe[:count].mean()})
    seconds = time.perf_counter() - begun
    return [{**row, "seconds": seconds} for row in rows]


def attempted(task: Task) -> tuple[list[dict[str, Any]], str]:
    """The rows, or why there are none: one task that fails does not end the others."""
    try:
        return measured(task), ""
    except Exception as error:
        return [], f"{task.system}, {task.method}, seed {task.seed}: {error!r}"


def run(tasks: list[Task], workers: int, out: Path | None) -> list[dict[str, Any]]:
    """Rows of all tasks, appended to a file as they end."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as compiled:
        for name, value in {**ALONE, "JAX_COMPILATION_CACHE_DIR": compiled}.items():
            os.environ.setdefault(name, value)
        with multiprocessing.get_context("spawn").Pool(workers) as pool:
            for found, failure in pool.imap_unordered(attempted, tasks):
                rows += found
                if failure:
                    print(failure, file=sys.stderr, flush=True)
                if out is not None:
                    with out.open("a", encoding="utf-8") as lines:
                        lines.writelines(json.dumps(row) + "\n" for row in found)
    return rows


# ------------------------------------------------------------------------------------------ tables


class Cell(NamedTuple):
    """A method on a system, over seeds."""

    loss: float
    error: float
    last: float
    unsafe: float

    def __str__(self) -> str:
        """As the table has it."""
        return f"{self.loss:.3g} ± {self.error:.1g} ({self.unsafe:.0%})"


def cells(rows: list[dict[str, Any]], count: int) -> dict[tuple[str, str], Cell]:
    """By system and method; of several penalties the one that loses least."""
    found: dict[tuple[str, str], dict[float | None, list[dict[str, Any]]]]
    found = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row["episodes"] == count:
            found[row["system"], row["method"]][row["penalty"]].append(row)
    return {
        place: min(map(_cell, groups.values()), key=lambda cell: cell.loss)
        for place, groups in found.items()
    }


def _cell(rows: list[dict[str, Any]]) -> Cell:
    losses = np.array([row["loss"] for row in rows])
    error = losses.std(ddof=1) / len(rows) ** 0.5 if len(rows) > 1 else 0.0
    last, unsafe = (float(np.mean([row[name] for row in rows])) for name in ("last", "unsafe"))
    return Cell(float(losses.mean()), float(error), last, unsafe)


def show(rows: list[dict[str, Any]], count: int) -> None:
    """The table of one K, and how the agents compare with the best of their rivals."""
    found = cells(rows, count)
    systems = [name for name in SYSTEMS if any(name == place[0] for place in found)]
    methods = [name for name in METHODS if any(name == place[1] for place in found)]
    for title, shown in (("loss per episode", str), ("loss of the last policy", _last)):
        print(f"\nK = {count}, {title}\n\n| | {' | '.join(methods)} |")
        print("|---|" + "---|" * len(methods))
        for system in systems:
            entries = [found.get((system, method)) for method in methods]
            print(f"| {system} | {' | '.join(shown(cell) if cell else '' for cell in entries)} |")
    print()
    ratios = [_compare(found, systems, method) for method in AGENTS]
    print(verdict(found, ratios[0]))


def _last(cell: Cell) -> str:
    return f"{cell.last:.3g}"


def _compare(found: dict[tuple[str, str], Cell], systems: list[str], method: str) -> list[float]:
    """The ratios of a method's losses to those of the best rival, which may differ by system."""
    ratios = {}
    for system in systems:
        rivals = [found[system, name].loss for name in RIVALS if (system, name) in found]
        if rivals and (system, method) in found:
            ratios[system] = max(found[system, method].loss, 0.0) / min(rivals)
    if ratios:
        told = ", ".join(f"{system} {ratio:.2f}" for system, ratio in ratios.items())
        unsafe = max(found[system, method].unsafe for system in ratios)
        print(
            f"{method} / best rival: geometric mean {_mean(ratios.values()):.2f}, worst "
            f"{max(ratios.values()):.2f} ({told}); unsafe in at most {unsafe:.0%} of the episodes "
            "of a system"
        )
    return list(ratios.values())


def _mean(ratios: Iterable[float]) -> float:
    return float(np.exp(np.mean(np.log(np.maximum(list(ratios), 1e-9)))))


def verdict(found: dict[tuple[str, str], Cell], ratios: list[float]) -> str:
    """In a line, which promises the agent does not keep, and how much is missing."""
    whole = [(system, method) for system in SYSTEMS for method in METHODS]
    absent = [f"{method} on {system}" for system, method in whole if (system, method) not in found]
    alone, safe = AGENTS
    unsafe = [
        f"{system} {cell.unsafe:.1%}"
        for (system, method), cell in found.items()
        if method == safe and cell.unsafe > MOST_UNSAFE
    ]
    broken = []
    if ratios and _mean(ratios) > MOST_LOST:
        broken.append(f"{alone} loses {_mean(ratios):.2f} of the best rival, not {MOST_LOST}")
    if ratios and max(ratios) > 1:
        broken.append(f"{alone} is worse than the best rival on {sum(r > 1 for r in ratios)}")
    if unsafe:
        broken.append(f"{safe} is unsafe too often ({', '.join(unsafe)})")
    told = "; ".join(broken) if broken else "all promises are kept"
    more = f"; {len(absent)} of {len(whole)} cells are missing" if absent else ""
    return f"verdict: {told}{more}"


def parameter(text: str) -> tuple[str, Any]:
    """A parameter of the agents and its value: a number, or a text."""
    name, _, value = text.partition("=")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS), choices=list(SYSTEMS))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--episodes", type=int, nargs="+", default=list(EPISODES))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--set", type=parameter, nargs="+", default=[], metavar="NAME=VALUE")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--from", dest="files", type=Path, nargs="+")
    options = parser.parse_args()
    if options.files:
        lines = [line for file in options.files for line in file.read_text("utf-8").splitlines()]
        rows = [json.loads(line) for line in lines]
    else:
        tasks = [
            Task(system, method, seed, tuple(sorted(options.episodes)), dict(options.set))
            for system in options.systems
            for method in options.methods
            for seed in range(options.first_seed, options.first_seed + options.seeds)
        ]
        tasks.sort(key=lambda task: -task.work)
        rows = run(tasks, options.workers, options.out)
    for count in sorted({row["episodes"] for row in rows}):
        show(rows, count)


if __name__ == "__main__":
    main()
