"""How often intervals of `cmdpax.uncertainty` hold the true values.

    python benchmarks/coverage.py [--models 400] [--repetitions 60] [--workers 2]

Three questions about 95 % intervals of the posterior: models drawn from its prior (rows from
Dirichlet distributions, mean signals uniform), fixed models with a policy that was chosen without
the log, and fixed models with the plan of the same log. Then the robust bound: how often all of its
intervals hold at once, and how wide they are, relative to what a value may be.
"""

import argparse
import multiprocessing
from itertools import product
from typing import Any

import numpy as np

import cmdpax
from safe_plans import FAMILIES, behaviour, data_of, logged

RANGES = {"reward_range": (0.0, 1.0), "constraint_ranges": (0.0, 1.0)}
PRIORS = (  # (H, S, A), total weight of a row, episodes, Bernoulli signals
    ((2, 3, 2), 3.0, 40, True),
    ((3, 5, 3), 1.0, 60, True),
    ((3, 5, 3), 5.0, 60, False),
    ((3, 5, 3), 0.2, 200, True),
    ((5, 5, 5), 2.5, 300, False),
    ((5, 5, 5), 2.5, 2000, True),
)
FIXED = ("random", "streaming", "inventory", "queue", "ring", "gridworld")


def drawn(seed: int, shape: tuple[int, int, int], weight: float) -> cmdpax.CMDP:
    """A model from the prior."""
    rng = np.random.default_rng(seed)
    num_states = shape[1]
    return cmdpax.CMDP(
        rng.dirichlet(np.full(num_states, weight / num_states), shape),
        rng.random(shape),
        rng.random((1, *shape)),
        [1.0],
        np.eye(num_states)[0],
    )


def policy_of(cmdp: cmdpax.CMDP, seed: int) -> np.ndarray:
    """Every second one is deterministic."""
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.ones(cmdp.num_actions), cmdp.sizes[1:3])
    return 1.0 * (rows == rows.max(axis=-1, keepdims=True)) if seed % 2 else rows


def held(found: cmdpax.Uncertainty, cmdp: cmdpax.CMDP, policy: Any) -> np.ndarray:
    """Which intervals hold the true values, `[1 + I]`."""
    truth = cmdpax.evaluate(cmdp, policy)
    ends = np.vstack([found.value, found.constraint_values])
    values = np.append(truth.value, truth.constraint_values)
    return (ends[:, 0] <= values + 1e-12) & (values <= ends[:, 1] + 1e-12)


def of_prior(task: tuple[int, int]) -> np.ndarray:
    """Which intervals hold, in a model from the prior."""
    number, seed = task
    shape, weight, count, noisy = PRIORS[number]
    cmdp = drawn(seed, shape, weight)
    policy = policy_of(cmdp, seed)
    log = logged(cmdp, behaviour(cmdp, "uniform"), count, seed, noisy)
    return held(
        cmdpax.uncertainty(log, policy, samples=1000, **data_of(cmdp), **RANGES), cmdp, policy
    )


def of_fixed(task: tuple[str, int, int]) -> dict[str, Any]:
    """In a fixed model: a policy from elsewhere, the plan of the same log, and the robust bound."""
    family, count, seed = task
    make, noisy = FAMILIES[family]
    cmdp = make(seed)
    data = data_of(cmdp) | RANGES
    log = logged(cmdp, behaviour(cmdp, "uniform"), count, seed, noisy)
    best = np.asarray(cmdpax.solve(cmdp).policy)
    sure = cmdpax.uncertainty(log, best, samples=1000, **data)
    found: dict[str, Any] = {"task": task, "other": held(sure, cmdp, best).mean()}
    own = own_plan(cmdp, log)
    if own is not None:
        sure = cmdpax.uncertainty(log, own, samples=1000, **data)
        bound = cmdpax.uncertainty(log, own, method="robust", **data)
        found |= {"own": held(sure, cmdp, own).mean(), "robust": held(bound, cmdp, own).all()}
        found["width"] = np.diff(bound.value)[0] / cmdp.horizon
    return found


def measured(function: Any, tasks: list[Any], workers: int) -> list[Any]:
    """The results of all tasks, in their order."""
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        return pool.map(function, tasks, chunksize=1)


def show_priors(models: int, workers: int) -> None:
    """Models from the prior."""
    print("| H, S, A | weight of a row | episodes | signals | coverage |")
    tasks = [(number, seed) for number in range(len(PRIORS)) for seed in range(models)]
    found = measured(of_prior, tasks, workers)
    for number, (shape, weight, count, noisy) in enumerate(PRIORS):
        share = np.mean(found[number * models : (number + 1) * models])
        kind = "Bernoulli" if noisy else "certain"
        print(f"| {shape} | {weight:g} | {count} | {kind} | {100 * share:.1f} % |", flush=True)


def show_fixed(repetitions: int, workers: int) -> None:
    """Fixed models."""
    print("| family | episodes | a policy from elsewhere | the plan of the log | robust | width |")
    places = list(product(FIXED, (100, 1_000, 10_000)))
    tasks = [(*place, seed) for seed in range(repetitions) for place in places]
    found = measured(of_fixed, tasks, workers)
    for family, count in places:
        group = [one for one in found if one["task"][:2] == (family, count)]
        other, own, robust, width = (
            np.mean([one[name] for one in group if name in one] or [np.nan])
            for name in ("other", "own", "robust", "width")
        )
        print(
            f"| {family} | {count:,} | {100 * other:.0f} % | {100 * own:.0f} % | "
            f"{100 * robust:.0f} % | {width:.3f} H |",
            flush=True,
        )


def own_plan(cmdp: cmdpax.CMDP, log: cmdpax.Log) -> np.ndarray | None:
    """What `estimate` and `solve` make of the log."""
    try:
        return np.asarray(cmdpax.solve(cmdpax.estimate(log, **data_of(cmdp))).policy)
    except cmdpax.InfeasibleError:
        return None


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=400)
    parser.add_argument("--repetitions", type=int, default=60)
    parser.add_argument("--workers", type=int, default=1)
    chosen = parser.parse_args()
    if chosen.models:
        show_priors(chosen.models, chosen.workers)
    if chosen.repetitions:
        show_fixed(chosen.repetitions, chosen.workers)


if __name__ == "__main__":
    main()
