"""FrozenLake with a budget on unsafe cells: planned exactly, learned online, accounted for.

    python examples/frozen_lake.py frozen_lake.png

A cell next to a hole is unsafe. The plan knows the ice; the agent only sees what happens, and may
spend four steps per episode there on average. The true values of its policies, which no live system
has, are drawn next to what it observed.
"""

import sys
from pathlib import Path

import gymnasium
import numpy as np

import cmdpax
from cmdpax.figures import Truth, plot_returns, save_figure
from cmdpax.gymnasium import from_env, interact

HORIZON, BUDGET = 20, 4.0


def unsafe_cells(ice: np.ndarray) -> np.ndarray:
    """1 where a neighbour is a hole, `[S]`."""
    around = np.pad(ice == b"H", 1)
    beside = around[:-2, 1:-1] | around[2:, 1:-1] | around[1:-1, :-2] | around[1:-1, 2:]
    return (beside & (ice != b"H")).ravel().astype(float)


def main(picture: Path, num_episodes: int = 3000) -> tuple[float, Truth, cmdpax.AgentAccount]:
    """Plan, learn, compare."""
    env = gymnasium.make("FrozenLake-v1", success_rate=0.8)
    costs = unsafe_cells(env.unwrapped.desc)
    cmdp = from_env(env, HORIZON, costs=costs, limits=BUDGET)
    optimum = cmdpax.solve(cmdp).value
    agent = cmdpax.Agent(
        "regularized-primal-dual", num_states=16, num_actions=4, horizon=HORIZON, initial=0, seed=0,
        thresholds=BUDGET, senses="at most", names=["steps on unsafe cells"],
        stationary=True, regularization=0.005, margin=0.15,
    )  # fmt: skip
    seen: list[tuple[int, float, float]] = []

    def compare(agent: cmdpax.Agent, _: cmdpax.EpisodeRecord) -> None:
        if agent.num_episodes % 50 == 0:
            exact = cmdpax.evaluate(cmdp, agent.policy)  # of the coming episode
            seen.append((agent.episode, exact.value, exact.constraint_values[0]))

    found = interact(env, agent, num_episodes, costs=costs, seed=0, callbacks=compare)
    episodes, values, spent = np.array(seen).T
    truth = Truth(episodes, values, spent[:, None])
    drawn = (found.rewards, found.constraint_returns, found.account)
    save_figure(plot_returns(*drawn, truth=truth, optimum=optimum, window=200), picture)
    print(f"planned {optimum:.3f}, learned {values[-1]:.3f} with {spent[-1]:.2f} unsafe steps")
    print(found.account)
    return optimum, truth, found.account


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "frozen_lake.png"))
