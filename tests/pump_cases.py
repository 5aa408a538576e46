"""A small noisy system that several tests of the agent play: a tank, a pump, and what it spills.

Waiting is safe and earns little, pumping earns more and spills more. All agents have the same
sizes, so that few programs are compiled.
"""

from typing import Any

import numpy as np

import cmdpax

WAIT, PUMP = 0, 1
SPILLS = np.array([[0.05, 0.5], [0.15, 0.7]])
"""The chance of a spill, by state and action."""
EARNS = np.array([[0.2, 0.6], [0.3, 0.9]])
WET = np.array([[0.3, 0.6], [0.5, 0.8]])
"""The chance that the tank is wet afterwards."""
WAITS = np.broadcast_to([1.0, 0.0], (3, 2, 2))
"""The policy that always waits."""
NAMES: dict[str, Any] = {
    "state_names": ["dry", "wet"],
    "action_names": ["wait", "pump"],
    "names": ["spills"],
    "units": {"reward": "EUR", "spills": "l"},
}
RANGES: dict[str, Any] = {"reward_range": (0, 10), "constraint_ranges": (0, 2)}
"""A reward is 0 or 10, a spill 0 or 2."""


def truth(threshold: float = 2.0) -> cmdpax.CMDP:
    """The model, in the units of the agents."""
    rows = np.stack([1 - WET, WET], axis=-1)[None]
    return cmdpax.CMDP(
        rows, 10 * EARNS[None], 2 * SPILLS[None, None], [threshold], [1, 0], 3, senses="at most"
    )


def pump_agent(threshold: float = 2.0, **changes: Any) -> cmdpax.Agent:
    """An agent that knows the sizes; per episode waiting spills 0.43 and pumping 3.53."""
    told: dict[str, Any] = {
        "num_states": 2,
        "num_actions": 2,
        "horizon": 3,
        "thresholds": [threshold],
        "senses": "at most",
        "initial": 0,
        "stationary": True,
        "seed": 3,
    }
    return cmdpax.Agent(**(told | RANGES | changes))


class Tank:
    """What follows is a function of the seed, the episode and the step: it can be played again."""

    def __init__(self, seed: int = 0) -> None:
        """No state is kept."""
        self.seed = seed

    def step(
        self, episode: int, step: int, state: int, action: int
    ) -> tuple[float, list[float], int]:
        """Reward, spill and next state."""
        generator = np.random.default_rng((self.seed, episode, step))
        earns, spills, wet = generator.random(3) < (
            EARNS[state, action],
            SPILLS[state, action],
            WET[state, action],
        )
        return 10.0 * earns, [2.0 * spills], int(wet)

    def call_next(self, agent: cmdpax.Agent) -> str:
        """The one call that comes next, and its name."""
        expected = agent.expects
        if expected == "start":
            agent.start(0)
        elif expected == "act":
            agent.act(agent.state)
        elif expected == "end":
            agent.end()
        else:
            now = agent._now.episode  # the agent itself would answer with names
            agent.observe(*self.step(agent.episode, agent.step, now.states[-1], now.action))
        return expected

    def play(self, agent: cmdpax.Agent, num_episodes: int) -> cmdpax.Agent:
        """Play until so many episodes are counted."""
        while agent.num_episodes < num_episodes:
            self.call_next(agent)
        return agent

    def log(self, action: int, num_episodes: int) -> cmdpax.Log:
        """Episodes in which always the same was done."""
        states = np.zeros((num_episodes, 4), int)
        rewards, spills = np.zeros((num_episodes, 3)), np.zeros((num_episodes, 1, 3))
        for k in range(num_episodes):
            for step in range(3):
                told = self.step(k + 10**6, step, states[k, step], action)
                rewards[k, step], spills[k, :, step], states[k, step + 1] = told
        return cmdpax.Log(states, np.full((num_episodes, 3), action), rewards, spills)
