"""The learner that users get by default, on families that it was not tuned on.

    python benchmarks/default_learner.py [--families NAME …] [--seeds 10] [--out FILE.json]

Sums of strong regrets (objective + largest constraint) at K = 4,000 and 50,000, means over seeds
that tuning did not use; random CMDPs are one model per seed. The large gridworld, whose episodes
have 400 steps and share their counts, is measured at K = 100 and 550. Every learner has one setting
for all families, but Algorithm 1, which has the best of the paper's step sizes and regularizations
on each.
Ratios are to the default; as geometric means over families each counts as at least 0.1.
`--dial` varies the pessimism κ instead, and `--figure` draws that.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import cmdpax
from cmdpax.board.models import chain

EPISODES = (4_000, 50_000)
FIRST_SEED = 100
LEVEL = 0.02
PESSIMISM = (0.0, 0.25, 1.0)


# ------------------------------------------------------------------------------------------ models


def sparse(seed: int) -> cmdpax.CMDP:
    """Rows from a Dirichlet(0.1) distribution, two constraints; each step has rows of its own."""
    rng = np.random.default_rng(seed)
    num_states, shape = 10, (8, 10, 3)
    rows = rng.dirichlet(np.full(num_states, 0.1), shape)
    return with_limits(rows, rng.random(shape), rng.random((2, *shape)), 0.3)


def with_limits(rows: Any, rewards: Any, constraint_rewards: Any, tightness: float) -> cmdpax.CMDP:
    """Thresholds a share of the way from what an optimal policy has to the best there is."""
    count, start = len(constraint_rewards), np.eye(rows.shape[1])[0]
    free = cmdpax.CMDP(rows, rewards, constraint_rewards, np.full(count, -1.0), start)
    best = [cmdpax.solve(free.replace(rewards=signal)).value for signal in constraint_rewards]
    reached = cmdpax.solve(free).constraint_values
    return free.replace(thresholds=reached + tightness * (np.array(best) - reached))


def seasonal(seed: int) -> cmdpax.CMDP:
    """An inventory whose demand depends on the day: the steps are alike, but not the same."""
    capacity, horizon = 5, 7
    stock = np.arange(capacity + 1)
    rows = np.zeros((horizon, capacity + 1, capacity + 1, capacity + 1))
    rewards = np.zeros(rows.shape[:3])
    saved = np.zeros((1, *rows.shape[:3]))
    for day in range(horizon):
        mean = 1.0 + 2.5 * (day >= 5)  # the weekend
        demand = np.exp(-mean) * mean**stock / np.cumprod(np.maximum(stock, 1))
        demand[-1] += 1 - demand.sum()
        for level, order in np.ndindex(capacity + 1, capacity + 1):
            filled = min(level + order, capacity)
            for wanted, probability in zip(stock, demand, strict=True):
                rows[day, level, order, max(filled - wanted, 0)] += probability
                rewards[day, level, order] += probability * min(filled, wanted) / capacity
            saved[0, day, level, order] = 1 - (0.7 * order + 0.3 * filled) / capacity
    return with_limits(rows, rewards, saved, 0.4)


def maintenance(seed: int) -> cmdpax.CMDP:
    """A machine that wears out: run it fast, slowly, or repair it; repairs are rationed."""
    worn, horizon = 8, 15
    rows = np.zeros((1, worn, 3, worn))
    for state in range(worn):
        for action, wear in enumerate((0.5, 0.2)):
            after = min(state + 1, worn - 1)
            rows[0, state, action, after] += wear
            rows[0, state, action, state] += 1 - wear
        rows[0, state, 2, max(state - 4, 0)] += 0.9
        rows[0, state, 2, state] += 0.1
    health = 1 - np.arange(worn) / (worn - 1)
    rewards = np.stack([0.3 + 0.7 * health, 0.2 + 0.3 * health, 0.0 * health], axis=-1)[None]
    spared = np.broadcast_to(np.array([1.0, 1.0, 0.0]), (1, worn, 3))
    cmdp = cmdpax.CMDP(rows, rewards, spared[None], [-1.0], np.eye(worn)[0], horizon)
    best = cmdpax.solve(cmdp.replace(rewards=spared)).value
    reached = cmdpax.solve(cmdp).constraint_values
    return cmdp.replace(thresholds=reached + 0.5 * (best - reached))


def built_in(name: str, **given: Any) -> Callable[[int], cmdpax.CMDP]:
    return lambda seed: cmdpax.environments.make(name, **given)


def random(**given: Any) -> Callable[[int], cmdpax.CMDP]:
    return lambda seed: cmdpax.environments.make("random", seed=seed, **given)


NOISY = {"optimism": "live", "observations": "bernoulli"}
# A family: a model for a seed, whether it depends on the seed, and what the learner sees.
FAMILIES: dict[str, tuple[Callable[[int], cmdpax.CMDP], bool, dict[str, Any]]] = {
    "random 5/5/5, I=1": (random(), True, {}),
    "random 8/4/8, I=2": (
        random(num_states=8, num_actions=4, horizon=8, num_constraints=2),
        True,
        {},
    ),
    "sparse 10/3/8, I=2": (sparse, True, {}),
    "streaming, buffer 6": (
        built_in("streaming", buffer=6, horizon=12, fast=0.8, slow=0.2, playout=0.7),
        False,
        {},
    ),
    "inventory, capacity 6": (
        built_in("inventory", capacity=6, demand=[0.2, 0.2, 0.2, 0.2, 0.1, 0.1], budget=4.0),
        False,
        {},
    ),
    "queue, capacity 7": (built_in("queue", capacity=7, horizon=14), False, {}),
    "ring of 5": (built_in("ring", num_states=5, horizon=10, budget=5.0), False, {}),
    "gridworld 6x6": (built_in("gridworld", height=6, width=6, horizon=20, seed=5), False, {}),
    "maintenance": (maintenance, False, {}),
    "seasonal inventory": (seasonal, False, {}),
    "deep sea": (chain(8, 14, 3.0), False, {}),
    "gridworld 20x20": (
        built_in("gridworld", height=20, width=20, horizon=400, unsafe_density=0.1, seed=11),
        False,
        {"stationary": True, "num_episodes": 550, "record": [100, 550]},
    ),
    "random, noisy": (random(), True, NOISY),
    "maintenance, noisy": (maintenance, False, NOISY),
}

# ---------------------------------------------------------------------------------------- learners

PUBLISHED = [
    {"step_size": step_size, "regularization": tau}
    for step_size in (0.05, 0.1, 0.2)
    for tau in (0.01, 0.02)
]
SCHEDULES = {
    "step_size": cmdpax.schedules.power(1.0, 0.3),
    "regularization": cmdpax.schedules.power(1.0, 0.6),
    "margin": cmdpax.schedules.power(1.0, 0.5),
}
LEARNERS: dict[str, list[dict[str, Any]]] = {
    "replanning": [{}],
    "optimistic-planning": [{}],
    "posterior-sampling": [{}],
    "replanning, bernstein, none": [{"exploration": "bernstein", "pooling": "none"}],
    "replanning, posterior, none": [{"pooling": "none"}],
    "regularized-primal-dual": PUBLISHED,
    "regularized-primal-dual, schedules": [SCHEDULES],
}


def lost(history: cmdpax.History) -> np.ndarray:
    """Objective and largest constraint, strong, `[R, E]`."""
    return history.strong_regret.objective + history.strong_regret.maximum


def learn(family: str, name: str, seeds: int, **chosen: Any) -> list[cmdpax.History]:
    """The histories of a family's runs."""
    make, per_seed, seen = FAMILIES[family]
    given = {"num_episodes": EPISODES[-1], "record": list(EPISODES), "unsafe_at": (LEVEL,)}
    numbers = range(FIRST_SEED, FIRST_SEED + seeds)
    if name.startswith("regularized"):
        chosen = {"max_multiplier": 20.0, **chosen}
    groups = [(seed, [seed]) for seed in numbers] if per_seed else [(0, list(numbers))]
    return [
        cmdpax.learn(make(seed), name, seeds=runs, **{**given, **seen, **chosen})
        for seed, runs in groups
    ]


def measured(family: str, seeds: int, learners: list[str]) -> Iterator[dict[str, Any]]:
    """A row for every learner."""
    for learner in learners:
        begun, best = time.perf_counter(), None
        for chosen in LEARNERS[learner]:
            found = learn(family, learner.partition(",")[0], seeds, **chosen)
            sums = np.concatenate([lost(one) for one in found])
            if best is None or sums[:, -1].mean() < best[0][:, -1].mean():
                best = (sums, chosen)
        assert best is not None
        sums, chosen = best
        yield {
            "family": family,
            "learner": learner,
            "chosen": {key: str(value) for key, value in chosen.items()},
            "means": sums.mean(axis=0).tolist(),
            "errors": (sums.std(axis=0) / len(sums) ** 0.5).tolist(),
            "seconds": time.perf_counter() - begun,
        }


def dialled(family: str, seeds: int) -> Iterator[dict[str, Any]]:
    """A row for every κ."""
    for pessimism in PESSIMISM:
        begun = time.perf_counter()
        found = learn(family, "replanning", seeds, pessimism=pessimism)
        objective = np.concatenate([one.strong_regret.objective for one in found])
        constraints = np.concatenate([one.strong_regret.maximum for one in found])
        yield {
            "family": family,
            "learner": f"κ = {pessimism:g}",
            "means": [float(objective[:, -1].mean()), float(constraints[:, -1].mean())],
            "errors": [float(np.concatenate([one.unsafe for one in found]).mean()), 0.0],
            "seconds": time.perf_counter() - begun,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", nargs="+", default=list(FAMILIES))
    parser.add_argument("--learners", nargs="+", default=list(LEARNERS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--dial", action="store_true")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--figure", type=Path)
    wanted = parser.parse_args()
    warnings.simplefilter("ignore")
    rows: list[dict[str, Any]] = []
    for family in wanted.families:
        found = measured(family, wanted.seeds, wanted.learners)
        for row in dialled(family, wanted.seeds) if wanted.dial else found:
            rows.append(row)
            first, second = row["means"]
            print(
                f"{family:<24}{row['learner']:<36}{first:>10.0f} ± {row['errors'][0]:<8.3g}"
                f"{second:>10.0f} ± {row['errors'][1]:<8.3g}{row['seconds']:>7.1f} s",
                flush=True,
            )
            if wanted.out is not None:
                wanted.out.write_text(json.dumps(rows, indent=1))
    if wanted.dial and wanted.figure is not None:
        draw_dial(rows, wanted.figure)
    if not wanted.dial and len(wanted.learners) == len(LEARNERS):
        print_ratios(rows)


def draw_dial(rows: list[dict[str, Any]], path: Path) -> None:
    """Violations against objective regret as κ varies: one line for every family."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7.5, 5.2), layout="constrained")
    colours = pyplot.get_cmap("tab20")
    for place, family in enumerate(dict.fromkeys(row["family"] for row in rows)):
        points = np.array([row["means"] for row in rows if row["family"] == family])
        per_episode = np.maximum(points / EPISODES[-1], 1e-7)
        axes.plot(*per_episode.T, color=colours(place), linewidth=1, label=family)
        sizes = [12 + 50 * pessimism for pessimism in PESSIMISM]
        axes.scatter(*per_episode.T, s=sizes, color=colours(place), zorder=3)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="strong regret of the objective, per episode",
        ylabel="strong violation of the worst constraint, per episode",
        title="κ from 0 (small dots) to 1 (large dots), 50,000 episodes",
    )
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(path, dpi=150)


def print_ratios(rows: list[dict[str, Any]]) -> None:
    """The default over the others: geometric means, and the worst family."""
    table = {(row["family"], row["learner"]): row["means"] for row in rows}
    families = list(dict.fromkeys(row["family"] for row in rows))
    for learner in list(LEARNERS)[1:]:
        ratios = np.array(
            [
                np.array(table[one, "replanning"]) / np.maximum(table[one, learner], 1e-9)
                for one in families
            ]
        )
        means = np.exp(np.log(np.maximum(ratios, 0.1)).mean(axis=0))
        worst = [families[place] for place in ratios.argmax(axis=0)]
        print(
            f"default / {learner:<36}"
            + "   ".join(
                f"K={number:,}: {mean:.2f}, at most {most:.2f} ({where})"
                for number, mean, most, where in zip(
                    EPISODES, means, ratios.max(axis=0), worst, strict=True
                )
            )
        )


if __name__ == "__main__":
    main()
