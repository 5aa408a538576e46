"""A service queue controlled live for a week, with a restart in the middle of a session.

    python examples/service_queue.py service_queue.png

A ferry leaves every half hour and takes everybody along. Until then, every two minutes, the agent
opens one to three desks, to pay as little as it can while customers wait for at most 25 turns per
session. Wages and waiting are known, arrivals and service not. On Thursday the machine restarts.
"""

import sys
from pathlib import Path

import numpy as np

import cmdpax
from cmdpax.figures import plot_returns, save_figure

PLACES, DESKS, TURNS, LIMIT = 8, 3, 15, 25.0
SESSIONS, RESTART = 7 * 48, (160, 7)  # of a week; episode and step


def customers(waiting: int, desks: int, generator: np.random.Generator) -> int:
    """The real system: two minutes of arrivals and service."""
    change = generator.binomial(2, 0.55) - generator.binomial(desks, 0.5)
    return int(np.clip(waiting + change, 0, PLACES - 1))


def main(picture: Path) -> cmdpax.Agent:
    """Control the queue, and restart once."""
    waiting = np.broadcast_to(np.arange(PLACES)[:, None], (1, 1, PLACES, DESKS))
    wages = np.broadcast_to(np.arange(1, DESKS + 1), (1, PLACES, DESKS))
    agent = cmdpax.Agent(
        "regularized-primal-dual", num_states=PLACES, num_actions=DESKS, horizon=TURNS, initial=0,
        rewards=-wages, reward_range=(-DESKS, -1), constraint_rewards=waiting, stationary=True,
        constraint_ranges=(0, PLACES - 1), thresholds=LIMIT, senses="at most", seed=1,
        names=["turns of waiting"], regularization=0.01, max_multiplier=10, margin=0.4,
    )  # fmt: skip
    generator, records, kept = np.random.default_rng(0), [], picture.with_suffix(".npz")
    while agent.num_episodes < SESSIONS:
        agent.start(0)
        while agent.expects == "act":
            state = agent.state
            desks = 1 + agent.act(state)
            agent.observe(-desks, state, customers(state, desks, generator))
            if (agent.episode, agent.step) == RESTART:
                agent.save(kept)
                agent = cmdpax.Agent.load(kept)  # as another process would
                print(f"restarted in session {agent.episode}, after turn {agent.step}")
        records.append(agent.end())
    rewards = [record.reward for record in records]
    returns = [record.constraint_returns for record in records]
    figure = plot_returns(rewards, returns, agent.account, marks={RESTART[0]: "restart"}, window=48)
    save_figure(figure, picture)
    print(agent.account)
    return agent


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "service_queue.png"))
