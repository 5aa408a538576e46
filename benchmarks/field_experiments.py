"""All learners on the experiments that others have published, with the same account for each.

    python benchmarks/field_experiments.py [--episodes 10000] [--seeds 3] [--learners NAME …]
        [--experiments NAME …] [--published]

Strong regrets of the objective and of the constraint, and the share of episodes whose policy is
unsafe in truth, as means over seeds. Rewards are known, as in the publications. Learners that start
from a safe baseline get the one of the experiment: in DOPE's, the best policy for a fifth of the
budget; in OPSE's, the safest. DOPE's code counts all steps together and knows which states may
follow, and so do learners in its experiments. A learner has its defaults everywhere, or with
`--published` the constants of its publication. The first rows are what any learner is measured by:
the uniform policy, the baseline of the experiment, and a plan from the counts alone, which explores
nothing. A row is printed as it is measured; seconds include compilation.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import cmdpax
from cmdpax.learners import as_algorithm
from cmdpax.planning.safest import safest_policy


class Experiment(NamedTuple):
    """A model, and the baseline of its publication."""

    source: str
    make: Callable[[], cmdpax.CMDP]
    baseline: Callable[[cmdpax.CMDP], Any]
    stationary: bool = False  # whether its code counts all steps together


def of_dope(name: str) -> cmdpax.CMDP:
    """With lists of the states that may follow, which DOPE's code knows."""
    cmdp = cmdpax.environments.make(name)
    rows = np.asarray(cmdp.transitions)
    most = int((rows > 0).sum(axis=-1).max())
    lists = np.sort(np.argsort(-rows, axis=-1, kind="stable")[..., :most], axis=-1)
    chances = np.take_along_axis(rows, lists, axis=-1)
    return cmdp.replace(transitions=cmdpax.Successors(lists, chances))


def for_a_fifth(cmdp: cmdpax.CMDP) -> Any:
    """The best policy for a fifth of the budget, DOPE's C_b = C/5."""
    return cmdpax.solve(cmdp.replace(thresholds=cmdp.bounds / 5)).policy


def safest(cmdp: cmdpax.CMDP) -> str:
    """The policy with the largest V_u."""
    return "safest"


def sparse_random(
    num_states: int, horizon: int, share: float, chance: float, seed: int
) -> cmdpax.CMDP:
    """r, u ~ Bernoulli(chance), rows ~ Dirichlet(0.1), threshold a share of the largest V_u."""
    rng = np.random.default_rng(seed)
    shape = (horizon, num_states, 3)
    rows = rng.dirichlet(np.full(num_states, 0.1), shape)
    rewards, signals = (rng.random((2, *shape)) < chance).astype(float)
    start = np.eye(num_states)[0]
    free = cmdpax.CMDP(rows, rewards, signals[None], [-1.0], start)
    best = cmdpax.solve(free.replace(rewards=signals)).value
    return free.replace(thresholds=[share * best])


def small_streaming() -> cmdpax.CMDP:
    """OPSE's: a buffer of 5 and 4 steps; at most 40 % of the uses of the fast link."""
    numbers = {"fast": 0.7, "slow": 0.3, "playout": 0.25, "budget": 1.6}
    return cmdpax.environments.make("streaming", buffer=5, horizon=4, **numbers)


EXPERIMENTS = {
    "chain": Experiment("DOPE", lambda: of_dope("ring"), for_a_fifth, True),
    "streaming": Experiment("DOPE", lambda: of_dope("streaming"), for_a_fifth, True),
    "inventory": Experiment("DOPE", lambda: of_dope("inventory"), for_a_fifth, True),
    "sparse 5/3/4": Experiment("OPSE", lambda: sparse_random(5, 4, 0.6, 0.1, seed=3), safest),
    "streaming 6/2/4": Experiment("OPSE", small_streaming, safest),
    "denser 5/3/4": Experiment("ours", lambda: sparse_random(5, 4, 0.6, 0.3, seed=1), safest),
    "random 5/5/5": Experiment("the paper", lambda: cmdpax.environments.make("random"), safest),
}
WIDE = {"bonus_scale": 1.0}
SOFT = {"bonus_scale": 1.0, "temperature": 0.1}
PUBLISHED: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("opt-lp", "opt-lp-bonus", "opt-dual", "opt-aug"), WIDE),
    **dict.fromkeys(("dope", "opt-pess-lp"), WIDE),
    "opt-primal-dual": {**WIDE, "step_scale": 1.0},
    "opt-pess-primal-dual": {**WIDE, "margin_scale": 1.0},
    "opse": {**SOFT, "compensation": 1.0},
    "ghosh": SOFT,
    "s-ops": {"caution": 1.0},
}
"""Constants of the publications; learners that are missing here have them by default."""
COUNTS_ALONE = {"exploration": "none", "pooling": "none"}


class Run(NamedTuple):
    """What is measured."""

    experiment: str
    learner: str
    num_episodes: int
    seeds: int
    published: bool = False


def measured(run: Run) -> str:
    """A row of the table."""
    experiment = EXPERIMENTS[run.experiment]
    cmdp, learner = experiment.make(), run.learner
    given: dict[str, Any] = {"num_episodes": run.num_episodes, "seeds": run.seeds, "record": 1}
    given["stationary"] = experiment.stationary
    given |= PUBLISHED.get(learner, {}) if run.published else {}
    if learner == "counts alone":
        learner, given = "replanning", given | COUNTS_ALONE
    if as_algorithm(learner).needs_baseline:
        given["baseline"] = experiment.baseline(cmdp)
    begun = time.perf_counter()
    history = cmdpax.learn(cmdp, learner, **given)
    seconds = time.perf_counter() - begun
    found = history.summary()
    cells = [np.mean(found[f"strong_{kind}"]) for kind in ("objective", "constraints")]
    unsafe = 100 * np.mean(found["unsafe_at_0.01"])
    numbers = f"{cells[0]:,.0f} | {cells[1]:,.0f} | {unsafe:.1f} % | {seconds:.0f}"
    return f"| {run.experiment} | {run.learner} | {numbers} |"


def fixed_policies(name: str, num_episodes: int) -> list[str]:
    """Rows of what is played without learning."""
    experiment = EXPERIMENTS[name]
    cmdp = experiment.make()
    _, horizon, num_states, num_actions = cmdp.sizes
    safe = experiment.baseline(cmdp)
    policies = {
        "(uniform)": np.full((horizon, num_states, num_actions), 1 / num_actions),
        "(baseline)": safest_policy(cmdp) if isinstance(safe, str) else safe,
    }
    rows = []
    for called, policy in policies.items():
        found = cmdpax.evaluate(cmdp, policy)
        lost = max(cmdpax.solve(cmdp).value - found.value, 0) * num_episodes
        missing = -cmdp.words.slack(found.constraint_values, cmdp.bounds)
        missed = max(float(missing.max()), 0.0) + 0.0  # and not -0
        unsafe = 100.0 * (missed >= 0.01)
        rows.append(
            f"| {name} | {called} | {lost:,.0f} | {missed * num_episodes:,.0f} | {unsafe:.1f} % | |"
        )
    return rows


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--learners", nargs="+", default=["counts alone", *cmdpax.algorithms()])
    parser.add_argument("--experiments", nargs="+", default=list(EXPERIMENTS))
    parser.add_argument("--published", action="store_true")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| experiment | learner | objective | constraint | unsafe | s |")
    print("|---|---|--:|--:|--:|--:|")
    for name in chosen.experiments:
        print("\n".join(fixed_policies(name, chosen.episodes)), flush=True)
        for learner in chosen.learners:
            run = Run(name, learner, chosen.episodes, chosen.seeds, chosen.published)
            print(measured(run), flush=True)


if __name__ == "__main__":
    main()
