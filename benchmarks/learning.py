"""Learning on the CPU: the compiled batch against a plain NumPy loop, and large models.

    python benchmarks/learning.py [--repeats 3] [--runs 30] [--episodes 4000] [--largest 4000]

Regularized primal-dual (Algorithm 1), empirical profile, double precision, accounts included. The
baseline is fair: one run at a time, matrix products for each step h, no Python loop over states or
actions, only the visited rows of the model updated. Ratios are taken within one run of this script,
median against median; compilation is the first call less the median of later ones.

Large models are gridworlds with A = 4 and H = 50 stored as successor lists, one run each: the time
of an episode against the number of transitions that the learner keeps estimates of.
"""

import argparse
import os
import platform
import statistics
import time
import warnings
from typing import Any

import jax
import numpy as np

import cmdpax
from cmdpax.learners import as_algorithm
from cmdpax.learning.loop import knowledge_of

SIZES = (
    {"num_states": 5, "num_actions": 5, "horizon": 5},
    {"num_states": 30, "num_actions": 3, "horizon": 10},
)
GRIDS = {250: (10, 25), 500: (20, 25), 1000: (25, 40), 2000: (40, 50), 4000: (50, 80)}
STEP_SIZE, REGULARIZATION, MAX_MULTIPLIER, SCALE = 0.1, 0.02, 6.0, 0.08


class NumpyLearner:
    """Algorithm 1 in plain NumPy, for one run."""

    def __init__(self, cmdp: cmdpax.CMDP, optimum: float, seed: int) -> None:
        _, self.horizon, self.num_states, self.num_actions = cmdp.sizes
        self.cmdp, self.optimum, self.random = cmdp, optimum, np.random.default_rng(seed)
        self.signals = np.moveaxis(
            np.concatenate([cmdp.rewards[None], cmdp.constraint_rewards]), 0, -1
        ).copy()
        pairs = (self.horizon, self.num_states, self.num_actions)
        self.visits = np.zeros(pairs)
        self.counts = np.zeros((*pairs, self.num_states))
        self.model = np.full((*pairs, self.num_states), 1 / self.num_states)
        self.bonus = np.full(pairs, SCALE)
        self.log_policy = np.full(pairs, -np.log(self.num_actions))
        self.multipliers = np.zeros(cmdp.num_constraints)
        self.cumulative = np.cumsum(cmdp.transitions, axis=-1)
        self.strong = np.zeros(1 + cmdp.num_constraints)
        self.weak = np.zeros(1 + cmdp.num_constraints)

    def episode(self) -> None:
        policy = np.exp(self.log_policy)
        q_values, constraint_values = self._evaluate(policy)
        states, actions = self._play(policy)
        self._account(policy)
        scores = self.log_policy + STEP_SIZE * q_values
        scores -= scores.max(axis=-1, keepdims=True)
        self.log_policy = scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True))
        shrunk = (1 - STEP_SIZE * REGULARIZATION) * self.multipliers
        moved = shrunk - STEP_SIZE * (constraint_values - self.cmdp.thresholds)
        self.multipliers = np.clip(moved, 0, MAX_MULTIPLIER)
        self._count(states, actions)

    def _evaluate(self, policy: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        log_a = np.log(self.num_actions)
        surprisal = -self.log_policy
        entropy = surprisal + self.bonus * log_a
        signals = np.concatenate([self.signals + self.bonus[..., None], entropy[..., None]], -1)
        values = np.zeros((self.num_states, signals.shape[-1]))
        weights = np.concatenate([[1.0], self.multipliers, [REGULARIZATION]])
        q_lagrangian = np.empty(policy.shape)
        for h in reversed(range(self.horizon)):
            rows = self.model[h].reshape(-1, self.num_states)
            q_step = signals[h] + (rows @ values).reshape(signals.shape[1:])
            left = self.horizon - h
            np.minimum(q_step[..., :-1], left, out=q_step[..., :-1])
            np.minimum(q_step[..., -1], surprisal[h] + left * log_a, out=q_step[..., -1])
            values = (policy[h][:, None, :] @ q_step)[:, 0]
            q_lagrangian[h] = q_step @ weights
        return q_lagrangian, (self.cmdp.initial @ values)[1:-1]

    def _play(self, policy: np.ndarray) -> tuple[list[int], list[int]]:
        uniforms = self.random.random((self.horizon, 2))
        states, actions = [int(np.argmax(self.cmdp.initial))], []
        for h in range(self.horizon):
            chances = np.cumsum(policy[h, states[-1]])
            action = int(np.searchsorted(chances, uniforms[h, 0] * chances[-1], side="right"))
            row = self.cumulative[h, states[-1], action]
            states.append(int(np.searchsorted(row, uniforms[h, 1] * row[-1], side="right")))
            actions.append(action)
        return states, actions

    def _account(self, policy: np.ndarray) -> None:
        mass, total = self.cmdp.initial, np.zeros(len(self.strong))
        for h in range(self.horizon):
            occupied = mass[:, None] * policy[h]
            total += occupied.ravel() @ self.signals[h].reshape(-1, len(total))
            mass = occupied.ravel() @ self.cmdp.transitions[h].reshape(-1, self.num_states)
        missing = np.concatenate([[self.optimum], self.cmdp.thresholds]) - total
        self.strong += np.maximum(missing, 0)
        self.weak += missing

    def _count(self, states: list[int], actions: list[int]) -> None:
        at = (np.arange(self.horizon), states[:-1], actions)
        self.visits[at] += 1
        self.counts[(*at, states[1:])] += 1
        self.model[at] = self.counts[at] / self.visits[at][:, None]
        self.bonus[at] = SCALE / np.sqrt(self.visits[at])


def numpy_rate(cmdp: cmdpax.CMDP, optimum: float, num_episodes: int) -> tuple[float, Any]:
    learner = NumpyLearner(cmdp, optimum, seed=0)
    for _ in range(20):
        learner.episode()
    start = time.perf_counter()
    for _ in range(num_episodes):
        learner.episode()
    return num_episodes / (time.perf_counter() - start), learner


def compiled_time(cmdp: cmdpax.CMDP, num_runs: int, num_episodes: int) -> float:
    start = time.perf_counter()
    cmdpax.learn(
        cmdp,
        "regularized-primal-dual",
        num_episodes=num_episodes,
        seeds=num_runs,
        step_size=STEP_SIZE,
        regularization=REGULARIZATION,
        max_multiplier=MAX_MULTIPLIER,
    )
    return time.perf_counter() - start


def against_numpy(options: argparse.Namespace) -> None:
    print("| S, A, H | NumPy [episodes/s] | cmdpax [episodes/s] | ratio | compile [s] |")
    print("|---|---|---|---|---|")
    for size in SIZES:
        cmdp = cmdpax.environments.make("random", **size)
        optimum = cmdpax.solve(cmdp).value
        first = compiled_time(cmdp, options.runs, 2)
        again = compiled_time(cmdp, options.runs, 2)
        baseline, compiled = [], []
        for _ in range(options.repeats):
            baseline.append(numpy_rate(cmdp, optimum, min(options.episodes, 1500))[0])
            seconds = compiled_time(cmdp, options.runs, options.episodes)
            compiled.append(options.runs * options.episodes / seconds)
        slow, fast = statistics.median(baseline), statistics.median(compiled)
        sizes = ", ".join(str(number) for number in size.values())
        row = (sizes, f"{slow:,.0f}", f"{fast:,.0f}", f"{fast / slow:.0f}×", f"{first - again:.1f}")
        print("| " + " | ".join(row) + " |", flush=True)


def episode_time(cmdp: cmdpax.CMDP, stationary: bool, num_episodes: int, repeats: int) -> float:
    """Median seconds per episode of one run, compilation apart."""
    times = []
    for _ in range(repeats + 1):
        marks: list[float] = []
        cmdpax.learn(
            cmdp,
            "regularized-primal-dual",
            num_episodes=num_episodes,
            record=[num_episodes],
            stationary=stationary,
            progress=lambda done, total, marks=marks: marks.append(time.perf_counter()),
        )
        times.append((marks[-1] - marks[0]) / num_episodes)
    return statistics.median(times[1:])


def state_bytes(cmdp: cmdpax.CMDP, stationary: bool) -> int:
    """What the learner of one run keeps, in double precision."""
    bonuses = cmdpax.Optimism.empirical().numbers(cmdp.sizes)
    algorithm = as_algorithm("regularized-primal-dual")
    chosen = algorithm.choose({"step_size": STEP_SIZE, "regularization": REGULARIZATION}, 1)
    with jax.enable_x64(True):
        knowledge = knowledge_of(cmdp, bonuses, True, stationary)
        state = jax.eval_shape(algorithm.factory(knowledge, chosen).init, jax.random.key(0))
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))


def growing_lists(options: argparse.Namespace) -> None:
    print("\n| S | transitions | counts | ms per episode | ns per transition | learner [MiB] |")
    print("|---|---|---|---|---|---|")
    for num_states, (height, width) in GRIDS.items():
        if num_states > options.largest:
            continue
        cmdp = cmdpax.environments.make(
            "gridworld", height=height, width=width, horizon=50, wall_density=0.0
        )
        stored = cmdp.transitions.probabilities.size * cmdp.horizon
        for stationary in (False, True):
            seconds = episode_time(cmdp, stationary, max(8, 40_000 // num_states), options.repeats)
            row = (
                f"{num_states:,}",
                f"{stored:,}",
                "shared" if stationary else "per step",
                f"{1e3 * seconds:.2f}",
                f"{1e9 * seconds / stored:.1f}",
                f"{state_bytes(cmdp, stationary) / 2**20:.1f}",
            )
            print("| " + " | ".join(row) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--episodes", type=int, default=4000)
    parser.add_argument("--largest", type=int, default=4000, help="largest gridworld, S")
    options = parser.parse_args()
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, JAX {jax.__version__} on "
        f"{jax.default_backend()}, Python {platform.python_version()}; "
        f"{options.runs} runs × {options.episodes} episodes, median of {options.repeats}\n"
    )
    warnings.simplefilter("ignore", cmdpax.CmdpaxWarning)
    against_numpy(options)
    growing_lists(options)


if __name__ == "__main__":
    main()
