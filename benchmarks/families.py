"""Strong regrets of the learners on families of environments: objective + largest constraint.

    python benchmarks/families.py [--episodes 4000 50000] [--seeds 8]

Rewards are known, observations are means, accounts are exact. Random CMDPs are one model per seed,
the other families one model with several seeds.
"""

import argparse
import time
import warnings
from typing import Any

import numpy as np

import cmdpax

FAMILIES: dict[str, dict[str, Any]] = {
    "random, I=1": {"name": "random"},
    "random, I=3": {"name": "random", "num_constraints": 3},
    "streaming": {"name": "streaming"},
    "inventory": {"name": "inventory"},
    "queue": {"name": "queue"},
    "ring": {"name": "ring"},
}
ALONE = {"pooling": "none"}  # every step learns by itself
LEARNERS: dict[str, dict[str, Any]] = {
    "replanning": {},
    "optimistic-planning": {},
    "replanning, posterior": {**ALONE},
    "replanning, bernstein 0.5, 0.2": {**ALONE, "exploration": "bernstein"},
    "replanning, bernstein 0.7, 0.1": {
        **ALONE,
        "exploration": "bernstein",
        "deviation_weight": 0.7,
        "range_weight": 0.1,
    },
    "replanning, count": {**ALONE, "exploration": "count"},
    "replanning, none": {**ALONE, "exploration": "none"},
    "posterior-sampling": {},
    "regularized-primal-dual": {"max_multiplier": 20.0},
}


def sums(family: str, learner: str, num_episodes: int, seeds: int) -> np.ndarray:
    """One number per seed."""
    name = learner.partition(",")[0]
    given = dict(FAMILIES[family])
    environment = given.pop("name")
    chosen: dict[str, Any] = {"num_episodes": num_episodes, "record": 1, **LEARNERS[learner]}
    if environment == "random":
        models = [cmdpax.environments.make(environment, seed=s, **given) for s in range(seeds)]
        histories = [
            cmdpax.learn(cmdp, name, seeds=[place], **chosen) for place, cmdp in enumerate(models)
        ]
    else:
        cmdp = cmdpax.environments.make(environment, **given)
        histories = [cmdpax.learn(cmdp, name, seeds=seeds, **chosen)]
    found = [history.summary() for history in histories]
    return np.concatenate([one["strong_objective"] + one["strong_constraints"] for one in found])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, nargs="+", default=[4000, 50_000])
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--families", nargs="+", default=list(FAMILIES))
    parser.add_argument("--learners", nargs="+", default=list(LEARNERS))
    wanted = parser.parse_args()
    warnings.simplefilter("ignore")
    for num_episodes in wanted.episodes:
        print(
            f"\nK = {num_episodes:,}, {wanted.seeds} seeds: means, standard errors of them, seconds"
        )
        for family in wanted.families:
            for learner in wanted.learners:
                begun = time.perf_counter()
                found = sums(family, learner, num_episodes, wanted.seeds)
                error = found.std() / len(found) ** 0.5
                took = time.perf_counter() - begun
                row = f"{family:<14}{learner:<34}{found.mean():>10.0f} ± {error:<8.0f}{took:>7.1f}"
                print(row, flush=True)


if __name__ == "__main__":
    main()
