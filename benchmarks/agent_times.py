"""An agent on a live system: how long a decision, an update and a save take.

    python benchmarks/agent_times.py [--episodes 1000]

The system answers at once (a CMDP's own rows), so that what is measured is the agent. Times are
medians, 99th percentiles and maxima in milliseconds over all calls; compilation happens when an
agent is made, and is told apart. The last column is the agent's whole episode (start, H decisions
and observations, the update) against an episode of the plain NumPy learner of `learning.py`, which
plays, updates and evaluates its policy in the true model, both in this run. Below 1 the agent is
slower: handing an update to a compiled program takes longer than it runs.
"""

import argparse
import platform
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

import cmdpax
from learning import NumpyLearner

SIZES = ((5, 5, 5), (30, 3, 10), (100, 5, 20), (500, 6, 30))  # S, A, H
SHARED = 500  # from so many states on the steps share their counts, as one would have it


class Clock:
    """Times of calls, by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)

    def __call__(self, name: str, function: Any, *arguments: Any) -> Any:
        begun = time.perf_counter()
        result = function(*arguments)
        self.seconds[name].append(time.perf_counter() - begun)
        return result

    def told(self, name: str) -> str:
        milliseconds = 1e3 * np.array(self.seconds[name])
        median, nearly_all = np.quantile(milliseconds, [0.5, 0.99])
        return f"{median:.4f} / {nearly_all:.4f} / {milliseconds.max():.3f}"


def play(agent: cmdpax.Agent, cmdp: cmdpax.CMDP, num_episodes: int, file: Path) -> Clock:
    """The agent's episodes, timed call by call."""
    clock, random = Clock(), np.random.default_rng(0)
    cumulative = np.cumsum(cmdp.transitions, axis=-1)
    for episode in range(num_episodes):
        begun = time.perf_counter()
        clock("start", agent.start, 0)
        while agent.expects == "act":
            step, state = agent.step, agent.state
            action = clock("act", agent.act, state)
            place = (step, state, action)
            signals = cmdp.rewards[place], cmdp.constraint_rewards[(slice(None), *place)]
            following = min(
                np.searchsorted(cumulative[place], random.random()), cmdp.num_states - 1
            )
            clock("observe", agent.observe, *signals, following)
        clock("end", agent.end)
        clock.seconds["episode"].append(time.perf_counter() - begun)
        if episode % 20 == 0:
            clock("save", agent.save, file)
    return clock


def measure(sizes: tuple[int, int, int], num_episodes: int, file: Path) -> None:
    names = ("num_states", "num_actions", "horizon")
    cmdp = cmdpax.environments.make("random", **dict(zip(names, sizes, strict=True)))
    begun = time.perf_counter()
    agent = cmdpax.Agent(
        "regularized-primal-dual",
        **dict(zip(names, sizes, strict=True)),
        thresholds=cmdp.thresholds,
        initial=0,
        rewards=cmdp.rewards,
        constraint_rewards=cmdp.constraint_rewards,
        stationary=sizes[0] >= SHARED,
    )
    made = time.perf_counter() - begun
    clock = play(agent, cmdp, num_episodes, file)
    columns = [f"{made:.1f} s", *(clock.told(name) for name in ("act", "observe", "end", "save"))]
    columns.append(f"{file.stat().st_size / 2**20:.2f} MiB")
    columns.append(
        "" if agent.declaration.stationary else f"{ratio(cmdp, clock, num_episodes):.1f}"
    )
    print(f"| {sizes} | {' | '.join(columns)} |")


def ratio(cmdp: cmdpax.CMDP, clock: Clock, num_episodes: int) -> float:
    """An episode of the plain NumPy learner against one of the agent."""
    learner = NumpyLearner(cmdp, cmdpax.solve(cmdp).value, 0)
    for _ in range(num_episodes):
        clock("numpy", learner.episode)
    return float(np.median(clock.seconds["numpy"]) / np.median(clock.seconds["episode"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=1000)
    options = parser.parse_args()
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}")
    print("median / 99 % / maximum in ms, regularized primal-dual\n")
    print("| S, A, H | made in | act | observe | end | save | file | NumPy episode / agent's |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for sizes in SIZES:
            measure(sizes, options.episodes, Path(folder, "agent.npz"))


if __name__ == "__main__":
    main()
