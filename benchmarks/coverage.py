"""How often intervals of `cmdpax.uncertainty` hold the true values.

    python benchmarks/coverage.py [--models 400] [--repetitions 60]

Three questions about 95 % intervals of the posterior: models drawn from its prior (rows from
Dirichlet distributions, mean signals uniform), fixed models with a policy that was chosen without
the log, and fixed models with the plan of the same log. Then the robust bound: how often all of its
intervals hold at once, and how wide they are, relative to what a value may be.
"""

import argparse
import time
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


def from_prior(models: int) -> None:
    """Models from the prior."""
    print("| H, S, A | weight of a row | episodes | signals | coverage |")
    for shape, weight, count, noisy in PRIORS:
        found = []
        for seed in range(models):
            cmdp = drawn(seed, shape, weight)
            policy = policy_of(cmdp, seed)
            log = logged(cmdp, behaviour(cmdp, "uniform"), count, seed, noisy)
            sure = cmdpax.uncertainty(log, policy, samples=1000, **data_of(cmdp), **RANGES)
            found.append(held(sure, cmdp, policy))
        share, kind = np.mean(found), "Bernoulli" if noisy else "certain"
        print(f"| {shape} | {weight:g} | {count} | {kind} | {100 * share:.1f} % |", flush=True)


def of_fixed(repetitions: int) -> None:
    """Fixed models: a policy from elsewhere, the plan of the same log, and the robust bound."""
    print("| family | episodes | a policy from elsewhere | the plan of the log | robust | width |")
    for family in FIXED:
        make, noisy = FAMILIES[family]
        for count in (100, 1_000, 10_000):
            start = time.perf_counter()
            rows: dict[str, list[Any]] = {"other": [], "own": [], "robust": [], "width": []}
            for seed in range(repetitions):
                cmdp = make(seed)
                data = data_of(cmdp) | RANGES
                log = logged(cmdp, behaviour(cmdp, "uniform"), count, seed, noisy)
                best = np.asarray(cmdpax.solve(cmdp).policy)
                sure = cmdpax.uncertainty(log, best, samples=1000, **data)
                rows["other"].append(held(sure, cmdp, best))
                own = own_plan(cmdp, log)
                if own is not None:
                    sure = cmdpax.uncertainty(log, own, samples=1000, **data)
                    rows["own"].append(held(sure, cmdp, own))
                    bound = cmdpax.uncertainty(log, own, method="robust", **data)
                    rows["robust"].append(held(bound, cmdp, own).all())
                    rows["width"].append(np.diff(bound.value)[0] / cmdp.horizon)
            other, own_share, robust, width = (
                float(np.mean(rows[name])) if rows[name] else float("nan") for name in rows
            )
            seconds = (time.perf_counter() - start) / repetitions
            print(
                f"| {family} | {count:,} | {100 * other:.0f} % | {100 * own_share:.0f} % | "
                f"{100 * robust:.0f} % | {width:.3f} H | {seconds:.2f} s",
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
    chosen = parser.parse_args()
    if chosen.models:
        from_prior(chosen.models)
    if chosen.repetitions:
        of_fixed(chosen.repetitions)


if __name__ == "__main__":
    main()
