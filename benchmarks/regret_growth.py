"""How regrets grow over a billion episodes: exponents on random CMDPs, and a figure.

    python benchmarks/regret_growth.py [--models 20] [--seeds 32] [--figure FILE.png]

The exponent is the slope of log(mean regret) over log(episodes) from 10⁷ to 10⁹. The regret is the
sum of the strong regrets of the objective and of the largest constraint, averaged over seeds. The
figure shows the default learner beside OptLP-bonus, Algorithm 1 and its decaying schedules, on one
CMDP. Learners that step in every episode are run for as long as is reasonable.
"""

import argparse
import math
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import cmdpax
from default_learner import SCHEDULES, lost

START, END = 10**7, 10**9
FIRST_SEED = 2000  # tuning used those from 1000 on
# What is drawn: algorithm, parameters, episodes, colour.
CURVES: dict[str, tuple[str, dict[str, Any], int, str]] = {
    "replanning (default)": ("replanning", {}, 10**9, "#0072B2"),
    "optimistic-planning (OptLP-bonus)": ("optimistic-planning", {}, 10**9, "#D55E00"),
    "regularized-primal-dual (Algorithm 1)": (
        "regularized-primal-dual",
        {"max_multiplier": 20.0},
        2 * 10**6,
        "#CC79A7",
    ),
    "the same, decaying schedules": (
        "regularized-primal-dual",
        {"max_multiplier": 20.0, **SCHEDULES},
        2 * 10**6,
        "#009E73",
    ),
}


def exponents(models: int, seeds: int) -> list[float]:
    """One exponent for every CMDP."""
    found = []
    for seed in range(models):
        begun = time.perf_counter()
        cmdp = cmdpax.environments.make("random", seed=FIRST_SEED + seed)
        record = [10**5, 10**6, START, 10**8, END]
        history = cmdpax.learn(cmdp, num_episodes=END, seeds=seeds, record=record)
        sums = lost(history)
        means = sums.mean(axis=0)
        found.append(math.log(means[-1] / means[2]) / math.log(END / START))
        print(
            f"model {FIRST_SEED + seed}: {'  '.join(f'{mean:>9,.0f}' for mean in means)}   "
            f"exponent {found[-1]:.3f}   worst seed {sums[:, -1].max():,.0f}   "
            f"{time.perf_counter() - begun:.1f} s",
            flush=True,
        )
    return found


def draw(path: Path, seeds: int) -> None:
    """Mean regrets with 95 % intervals over the seeds, on logarithmic axes."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    cmdp = cmdpax.environments.make("random")
    figure, axes = pyplot.subplots(figsize=(7.5, 4.8), layout="constrained")
    for label, (name, chosen, num_episodes, colour) in CURVES.items():
        record = np.unique(np.geomspace(100, num_episodes, 80).round().astype(int)).tolist()
        sums = lost(
            cmdpax.learn(
                cmdp, name, num_episodes=num_episodes, seeds=seeds, record=record, **chosen
            )
        )
        mean = sums.mean(axis=0)
        half = 1.96 * sums.std(axis=0) / math.sqrt(seeds)
        axes.plot(record, mean, color=colour, label=label)
        axes.fill_between(record, mean - half, mean + half, color=colour, alpha=0.2, linewidth=0)
        print(f"{label}: {mean[-1]:,.0f} after {num_episodes:,} episodes", flush=True)
    guide = np.array([1e3, 1e9])
    axes.plot(guide, 0.35 * np.sqrt(guide), color="0.5", linestyle=":", label=r"$\propto \sqrt{K}$")
    axes.set(xscale="log", yscale="log", xlabel="episodes", ylabel="strong regret, summed")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=9)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=32)
    parser.add_argument("--figure", type=Path)
    wanted = parser.parse_args()
    warnings.simplefilter("ignore")
    if wanted.figure is not None:
        draw(wanted.figure, min(wanted.seeds, 8))
    found = exponents(wanted.models, wanted.seeds)
    if found:
        print(f"exponents: mean {np.mean(found):.3f}, from {min(found):.3f} to {max(found):.3f}")


if __name__ == "__main__":
    main()
