"""Learners that plan: how long runs of up to 10¹² episodes take, and what ten lines do instead.

    python benchmarks/long_runs.py [--quick]

Times of the first call include compilation; the others do not. The ten lines estimate the model
with `cmdpax.estimate` and plan with `cmdpax.solve` every 50 episodes, played one by one in NumPy.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import cmdpax

ALGORITHMS = ("replanning", "posterior-sampling", "optimistic-planning")


def seconds(function: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    result = function()
    return time.perf_counter() - begun, result


def long_runs(quick: bool) -> None:
    cmdp = cmdpax.environments.make("random")
    print(f"{cmdp}: seconds of `learn`, recorded at 10,000 episodes")
    print(f"{'algorithm':<22}{'runs':>6}{'episodes':>10}{'first':>9}{'again':>9}{'plans':>8}")
    cases = [(1, 10**9), (1, 10**12), (100, 10**9)]
    for algorithm in ALGORITHMS:
        for runs, episodes in cases[:1] if quick else cases:

            def learn(runs: int = runs, episodes: int = episodes, name: str = algorithm) -> Any:
                return cmdpax.learn(cmdp, name, num_episodes=episodes, seeds=runs)

            first, _ = seconds(learn)
            again, history = seconds(learn)
            plans = (history.plans.episodes > 0).sum(axis=1).mean()
            row = (
                f"{algorithm:<22}{runs:>6}{episodes:>10.0e}{first:>9.2f}{again:>9.2f}{plans:>8.0f}"
            )
            print(row, flush=True)


def ten_lines(cmdp: cmdpax.CMDP, num_episodes: int, seed: int) -> list[np.ndarray]:
    """What a user writes: act, log, and every 50 episodes estimate and solve."""
    rng = np.random.default_rng(seed)
    _, horizon, num_states, num_actions = cmdp.sizes
    policy = np.full((horizon, num_states, num_actions), 1 / num_actions)
    log, policies = [], []
    for k in range(num_episodes):
        state = rng.choice(num_states, p=cmdp.initial)
        states, actions = [state], []
        for h in range(horizon):
            action = rng.choice(num_actions, p=policy[h, state])
            state = rng.choice(num_states, p=cmdp.transitions[h, state, action])
            actions.append(action)
            states.append(state)
        log.append((states, actions))
        policies.append(policy)
        if k % 50 == 49:
            policy = replanned(cmdp, log, policy)
    return policies


def replanned(cmdp: cmdpax.CMDP, log: list[Any], policy: np.ndarray) -> np.ndarray:
    states, actions = (np.array(part) for part in zip(*log, strict=True))
    steps = np.arange(cmdp.horizon)
    at = (steps[None], states[:, :-1], actions)
    observed = cmdpax.Log(
        states,
        actions,
        cmdp.rewards[at],
        np.stack([signal[at] for signal in cmdp.constraint_rewards], axis=1),
    )
    _, _, num_states, num_actions = cmdp.sizes
    model = cmdpax.estimate(
        observed,
        num_states=num_states,
        num_actions=num_actions,
        thresholds=cmdp.thresholds,
        initial=cmdp.initial,
    )
    model = model.replace(  # rewards are known, as they are to the learners
        rewards=cmdp.rewards, constraint_rewards=cmdp.constraint_rewards
    )
    try:
        return cmdpax.solve(model).policy
    except cmdpax.InfeasibleError:
        return policy


def against_ten_lines(quick: bool) -> None:
    num_episodes, seeds = (1000, 2) if quick else (4000, 8)
    cmdp = cmdpax.environments.make("random")
    print(f"\nstrong regrets after {num_episodes} episodes, {seeds} seeds: objective + constraint")

    def naive() -> list[float]:
        sums = []
        for seed in range(seeds):
            found = cmdpax.account(cmdp, np.stack(ten_lines(cmdp, num_episodes, seed)))
            last = found.strong_regret
            sums.append(last.objective[-1] + last.maximum[-1])
        return sums

    took, sums = seconds(naive)
    print(f"{'ten lines':<26}{np.mean(sums):>9.0f} ± {np.std(sums):<6.0f}{took:>9.1f} s")
    for algorithm in (*ALGORITHMS, "regularized-primal-dual"):
        cmdpax.learn(cmdp, algorithm, num_episodes=10, seeds=seeds, record=10)

        def learn(name: str = algorithm) -> Any:
            return cmdpax.learn(cmdp, name, num_episodes=num_episodes, seeds=seeds)

        took, history = seconds(learn)
        last = history.summary()
        sums = last["strong_objective"] + last["strong_constraints"]
        print(f"{algorithm:<26}{np.mean(sums):>9.0f} ± {np.std(sums):<6.0f}{took:>9.1f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a few seconds of each")
    chosen = parser.parse_args()
    long_runs(chosen.quick)
    against_ten_lines(chosen.quick)
