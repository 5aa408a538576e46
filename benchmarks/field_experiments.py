"""All learners on the experiments that others have published, with the same account for each.

    python benchmarks/field_experiments.py [--episodes 10000] [--seeds 3] [--learners NAME …]

Strong regrets of the objective and of the constraint, and the share of episodes whose policy is
unsafe in truth, as means over seeds. Rewards are known, as in the publications. Learners that start
from a safe baseline get the one of the experiment: in DOPE's, the best policy for a fifth of the
budget; in OPSE's, the safest. A learner has its defaults everywhere. A row is printed as it is
measured; seconds include compilation.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import cmdpax
from cmdpax.learners import as_algorithm


class Experiment(NamedTuple):
    """A model, and the baseline of its publication."""

    source: str
    make: Callable[[], cmdpax.CMDP]
    baseline: Callable[[cmdpax.CMDP], Any]


def for_a_fifth(cmdp: cmdpax.CMDP) -> Any:
    """The best policy for a fifth of the budget, DOPE's C_b = C/5."""
    return cmdpax.solve(cmdp.replace(thresholds=cmdp.bounds / 5)).policy


def safest(cmdp: cmdpax.CMDP) -> str:
    """The policy with the largest V_u."""
    return "safest"


def sparse_random(num_states: int, horizon: int, share: float, chance: float) -> cmdpax.CMDP:
    """r, u ~ Bernoulli(chance), rows ~ Dirichlet(0.1), threshold a share of the largest V_u."""
    rng = np.random.default_rng(1)
    shape = (horizon, num_states, 3)
    rows = rng.dirichlet(np.full(num_states, 0.1), shape)
    rewards, signals = (rng.random((2, *shape)) < chance).astype(float)
    start = np.eye(num_states)[0]
    free = cmdpax.CMDP(rows, rewards, signals[None], [-1.0], start)
    best = cmdpax.solve(free.replace(rewards=signals)).value
    return free.replace(thresholds=[share * best])


EXPERIMENTS = {
    "chain": Experiment("DOPE", lambda: cmdpax.environments.make("ring"), for_a_fifth),
    "streaming": Experiment("DOPE", lambda: cmdpax.environments.make("streaming"), for_a_fifth),
    "sparse 5/3/4": Experiment("OPSE", lambda: sparse_random(5, 4, 0.6, 0.3), safest),
    "random 5/5/5": Experiment("the paper", lambda: cmdpax.environments.make("random"), safest),
}


def measured(name: str, learner: str, num_episodes: int, seeds: int) -> str:
    """A row of the table."""
    experiment = EXPERIMENTS[name]
    cmdp = experiment.make()
    given: dict[str, Any] = {"num_episodes": num_episodes, "seeds": seeds, "record": 1}
    if as_algorithm(learner).needs_baseline:
        given["baseline"] = experiment.baseline(cmdp)
    begun = time.perf_counter()
    history = cmdpax.learn(cmdp, learner, **given)
    seconds = time.perf_counter() - begun
    found = history.summary()
    cells = [np.mean(found[f"strong_{kind}"]) for kind in ("objective", "constraints")]
    unsafe = 100 * np.mean(found["unsafe_at_0.01"])
    numbers = f"{cells[0]:.0f} | {cells[1]:.0f} | {unsafe:.1f} % | {seconds:.0f}"
    return f"| {name} | {learner} | {numbers} |"


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--learners", nargs="+", default=cmdpax.algorithms())
    parser.add_argument("--experiments", nargs="+", default=list(EXPERIMENTS))
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| experiment | learner | objective | constraint | unsafe | s |")
    print("|---|---|--:|--:|--:|--:|")
    for name in chosen.experiments:
        for learner in chosen.learners:
            print(measured(name, learner, chosen.episodes, chosen.seeds), flush=True)


if __name__ == "__main__":
    main()
