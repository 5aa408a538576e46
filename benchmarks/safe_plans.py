"""Plans from logs: how often they are unsafe in truth, and what safety costs.

    python benchmarks/safe_plans.py [--families NAME …] [--workers 2] [--out FILE]
    python benchmarks/safe_plans.py --figure docs/images/safe-plans.png --from FILE

Every family is logged with 100, 1,000 and 10,000 episodes of two behaviours: uniformly random
actions, and a cautious rule that keeps half of the possible slack, and plays a random action now
and then. Compared are `cmdpax.solve_safely` at 95 %, plain `cmdpax.estimate` + `cmdpax.solve`, and
the same with every bound moved by a fixed 5 % of the slack that there is (which only somebody who
knows the model could choose). A plan is unsafe if some constraint is missed in the true model; its
loss is relative to the true optimum. Stationary models are declared as such.
"""

import argparse
import json
import multiprocessing
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import cmdpax
from default_learner import maintenance, seasonal, sparse

EPISODES = (100, 1_000, 10_000)
BEHAVIOURS = ("uniform", "cautious")
CONFIDENCE = 0.95

METHODS = ("safely", "plain", "fixed margin")

Model = Callable[[int], cmdpax.CMDP]
Task = tuple[str, str, int, int]  # family, behaviour, episodes, seed


def _built_in(name: str, **parameters: Any) -> Model:
    return lambda seed: cmdpax.environments.make(name, **parameters)


FAMILIES: dict[str, tuple[Model, bool]] = {  # whether observations are Bernoulli
    "bandit": (_built_in("bandit"), True),
    "box": (_built_in("box"), False),
    "gridworld": (_built_in("gridworld"), False),
    "inventory": (_built_in("inventory"), False),
    "mars-rover": (_built_in("mars-rover"), False),
    "queue": (_built_in("queue"), False),
    "random": (lambda seed: cmdpax.environments.make("random", seed=1000 + seed), False),
    "random, three constraints": (
        lambda seed: cmdpax.environments.make("random", seed=1000 + seed, num_constraints=3),
        False,
    ),
    "random, noisy": (lambda seed: cmdpax.environments.make("random", seed=1000 + seed), True),
    "ring": (_built_in("ring"), True),
    "streaming": (_built_in("streaming"), False),
    # Nothing was chosen on these three.
    "maintenance": (maintenance, True),
    "seasonal inventory": (seasonal, False),
    "sparse, two constraints": (lambda seed: sparse(5000 + seed), False),
}


# -------------------------------------------------------------------------------------------- logs


def behaviour(cmdp: cmdpax.CMDP, kind: str) -> np.ndarray:
    """The policy that is logged, `[H, S, A]`."""
    flags = np.ones((1, *cmdp.sizes[2:])) if cmdp.available is None else cmdp.available
    uniform = np.broadcast_to(flags / flags.sum(axis=-1, keepdims=True), cmdp.sizes[1:])
    if kind == "uniform":
        return uniform
    half = cmdpax.slater_gap(cmdp).gap / 2
    rule = np.asarray(cmdpax.solve(_moved(cmdp, half)).policy)
    for share in (0.2, 0.1, 0.05, 0.02, 0.01, 0.0):
        mixed = (1 - share) * rule + share * uniform
        if not is_unsafe(cmdp, mixed):
            return mixed
    return rule


def _moved(cmdp: cmdpax.CMDP, amount: float) -> cmdpax.CMDP:
    """Every bound moved to the safe side."""
    return cmdp.replace(thresholds=cmdp.bounds + cmdp.words.signs * amount)


def is_unsafe(cmdp: cmdpax.CMDP, policy: Any) -> bool:
    """Whether some constraint is missed."""
    reached = cmdpax.evaluate(cmdp, policy).constraint_values
    return bool((cmdp.words.slack(reached, cmdp.bounds) < -1e-9).any())


def logged(cmdp: cmdpax.CMDP, policy: np.ndarray, count: int, seed: int, noisy: bool) -> cmdpax.Log:
    """Episodes of a policy."""
    rng = np.random.default_rng(seed)
    num_constraints, horizon, num_states, _ = cmdp.sizes
    signals = np.concatenate([cmdp.rewards[None], cmdp.signals])
    states = np.zeros((count, horizon + 1), int)
    actions = np.zeros((count, horizon), int)
    observed = np.zeros((1 + num_constraints, count, horizon))
    states[:, 0] = rng.choice(num_states, count, p=cmdp.initial)
    for step in range(horizon):
        at = states[:, step]
        actions[:, step] = _drawn(policy[step][at], rng)
        means = signals[:, step % signals.shape[1], at, actions[:, step]]
        observed[..., step] = rng.random(means.shape) < means if noisy else means
        states[:, step + 1] = _next(cmdp, step, at, actions[:, step], rng)
    return cmdpax.Log(states, actions, observed[0], np.moveaxis(observed[1:], 0, 1))


def _drawn(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    below = rng.random(len(rows))[:, None] > np.cumsum(rows, axis=1)[:, :-1]
    return below.sum(axis=1)


def _next(
    cmdp: cmdpax.CMDP, step: int, at: np.ndarray, actions: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    if not isinstance(cmdp.transitions, cmdpax.Successors):
        return _drawn(cmdp.transitions[step % len(cmdp.transitions), at, actions], rng)
    lists, chances = cmdp.transitions
    place = (step % len(lists), at, actions)
    return np.asarray(lists[place][np.arange(len(at)), _drawn(chances[place], rng)])


# ------------------------------------------------------------------------------------------- plans


def data_of(cmdp: cmdpax.CMDP) -> dict[str, Any]:
    """What a user would declare."""
    lists = isinstance(cmdp.transitions, cmdpax.Successors)
    stored = cmdp.transitions.probabilities if lists else cmdp.transitions
    return {
        "thresholds": cmdp.bounds,
        "senses": [cmdp.words.sense(i) for i in range(cmdp.num_constraints)],
        "stationary": len(stored) == 1 and len(cmdp.rewards) == 1,
        "num_states": cmdp.num_states,
        "num_actions": cmdp.num_actions,
        "available": cmdp.available,
    }


def plans(cmdp: cmdpax.CMDP, log: cmdpax.Log, seed: int) -> Iterator[tuple[str, Any]]:
    """The policies, and None where nothing was certified or feasible."""
    data = data_of(cmdp)
    try:
        yield "safely", cmdpax.solve_safely(log, **data, confidence=CONFIDENCE, seed=seed).policy
    except cmdpax.InsufficientDataError:
        yield "safely", None
    estimated = cmdpax.estimate(log, **data)
    gap = cmdpax.slater_gap(cmdp)
    for name, amount in (("plain", 0.0), ("fixed margin", 0.05 * gap.gap)):
        try:
            yield name, cmdpax.solve(_moved(estimated, amount)).policy
        except cmdpax.InfeasibleError:
            yield name, None


def measure_once(task: Task) -> dict[str, Any]:
    """Every plan of one log: whether it is unsafe, and its loss; None where there is no plan."""
    family, kind, count, seed = task
    warnings.simplefilter("ignore", cmdpax.CmdpaxWarning)
    make, noisy = FAMILIES[family]
    cmdp = make(seed)
    start = time.perf_counter()
    best = cmdpax.solve(cmdp).value
    log = logged(cmdp, behaviour(cmdp, kind), count, seed, noisy)
    found: dict[str, Any] = {}
    for name, policy in plans(cmdp, log, seed):
        found[name] = None
        if policy is not None:
            loss = (best - cmdpax.evaluate(cmdp, policy).value) / abs(best)
            found[name] = (float(is_unsafe(cmdp, policy)), float(loss))
    return {"task": task, "seconds": time.perf_counter() - start, "found": found}


def measure(tasks: list[Task], workers: int) -> Iterator[dict[str, Any]]:
    """All of them, as they come."""
    if workers == 1:
        yield from map(measure_once, tasks)
        return
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        yield from pool.imap_unordered(measure_once, tasks)


def summarise(measured: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Shares and means over logs: a row for each family, behaviour and number of episodes."""
    groups: dict[Any, list[dict[str, Any]]] = {}
    for one in measured:
        groups.setdefault(tuple(one["task"][:3]), []).append(one)
    rows = []
    for (family, kind, count), group in groups.items():
        row: dict[str, Any] = {"family": family, "behaviour": kind, "episodes": count}
        row |= {"repetitions": len(group), "seconds": np.mean([one["seconds"] for one in group])}
        for name in METHODS:
            found = [one["found"][name] for one in group if one["found"][name] is not None]
            unsafe, loss = np.mean(found, axis=0) if found else (np.nan, np.nan)
            refused = 1 - len(found) / len(group)
            row[name] = {"unsafe": float(unsafe), "loss": float(loss), "refused": refused}
        rows.append(row)
    places = {family: place for place, family in enumerate(FAMILIES)}
    return sorted(rows, key=lambda row: (places[row["family"]], row["behaviour"], row["episodes"]))


# ---------------------------------------------------------------------------------------- the rest


def show(row: dict[str, Any]) -> None:
    """A row of the table."""
    cells = [row["family"], row["behaviour"], f"{row['episodes']:,}"]
    for name in METHODS:
        entry = row[name]
        cells.append(f"{100 * entry['unsafe']:.0f} %, loss {100 * entry['loss']:.1f} %")
        if name == "safely":
            cells.append(f"{100 * entry['refused']:.0f} %")
    print("| " + " | ".join(cells) + f" | {row['seconds']:.2f} s", flush=True)


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Shares of unsafe plans, and losses, family by family."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    families = list(dict.fromkeys(row["family"] for row in rows))
    figure, axes = pyplot.subplots(2, 3, figsize=(11, 6.5), sharex=True, sharey="row")
    places = np.arange(len(families))
    styles = (("plain", "#c44e52", "o"), ("safely", "#2a6f97", "s"))
    for column, count in enumerate(EPISODES):
        for name, colour, marker in styles:
            for kind in BEHAVIOURS:
                chosen = {
                    row["family"]: row[name]
                    for row in rows
                    if (row["episodes"], row["behaviour"]) == (count, kind)
                }
                kwargs: dict[str, Any] = {
                    "color": colour,
                    "marker": marker,
                    "linestyle": "none",
                    "fillstyle": "full" if kind == "uniform" else "none",
                }
                label = "estimate + solve" if name == "plain" else "solve_safely"
                for axis, key in zip(axes[:, column], ("unsafe", "loss"), strict=True):
                    values = [100 * chosen.get(f, {}).get(key, np.nan) for f in families]
                    axis.plot(places, values, label=f"{label}, {kind} log", **kwargs)
        axes[0, column].axhline(5, color="black", linewidth=0.8)
        axes[0, column].set_title(f"{count:,} logged episodes")
        axes[1, column].set_xticks(places, families, rotation=60, ha="right")
        axes[1, column].set_yscale("symlog", linthresh=1)
    axes[0, 0].set_ylabel("unsafe plans [%]")
    axes[1, 0].set_ylabel("loss of value [%]")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncols=4, frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 0.95))
    figure.savefig(path, dpi=150)


def main() -> None:
    """Measure, or draw what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", nargs="+", default=list(FAMILIES))
    parser.add_argument("--behaviours", nargs="+", default=list(BEHAVIOURS))
    parser.add_argument("--episodes", nargs="+", type=int, default=list(EPISODES))
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, help="a line for each log, appended")
    parser.add_argument("--from", dest="source", type=Path, nargs="+")
    parser.add_argument("--figure", type=Path)
    chosen = parser.parse_args()
    measured: list[dict[str, Any]] = []
    for path in chosen.source or []:
        measured += map(json.loads, path.read_text().splitlines())
    seeds = range(chosen.first, chosen.first + chosen.repetitions)
    settings = (seeds, chosen.families, chosen.behaviours, chosen.episodes)
    tasks = [(family, kind, count, seed) for seed, family, kind, count in product(*settings)]
    for one in measure([] if chosen.source else tasks, chosen.workers):
        measured.append(one)
        if chosen.out:
            with chosen.out.open("a") as file:
                file.write(json.dumps(one) + "\n")
    rows = summarise(measured)
    for row in rows:
        show(row)
    if chosen.figure:
        draw(rows, chosen.figure)


if __name__ == "__main__":
    main()
