"""A media player that pays for the fast link."""

import numpy as np

from cmdpax.checks import require_count, require_number
from cmdpax.environments.parameters import require_fitting
from cmdpax.model.cmdp import CMDP, from_costs


def streaming(
    buffer: int = 9,
    horizon: int = 10,
    fast: float = 0.9,
    slow: float = 0.1,
    playout: float = 0.8,
    budget: float = 5.0,
) -> CMDP:
    """A playback buffer filled by a fast link, which is rationed, or by a slow one.

    States are the packets in the buffer, 0 … `buffer`; the start is empty. Action 0 is the fast
    link (a packet arrives with probability `fast`), action 1 the slow one (`slow`); a packet is
    played with probability `playout`. So the buffer rises with probability μ(1 - playout), falls
    with (1 - μ)·playout, and reflects at both ends. An empty buffer costs 1 per step: the reward
    is 1 - cost. The fast link may be used `budget` times in expectation.

    Source: the media streaming example of DOPE (Bura et al., 2022).
    """
    last = require_count("buffer", buffer)
    require_fitting(last + 1, 2, last + 1)
    horizon = require_count("horizon", horizon)
    playout = require_number("playout", playout, 0.0, 1.0)
    transitions = np.zeros((1, last + 1, 2, last + 1))
    states = np.arange(last + 1)
    for action, (name, value) in enumerate([("fast", fast), ("slow", slow)]):
        arrival = require_number(name, value, 0.0, 1.0)
        up, down = arrival * (1 - playout), (1 - arrival) * playout
        move = transitions[0, :, action]
        move[states, np.minimum(states + 1, last)] += up
        move[states, np.maximum(states - 1, 0)] += down
        move[states, states] += 1 - up - down
    uses_fast = np.zeros((1, 1, last + 1, 2))
    uses_fast[..., 0] = 1.0
    return from_costs(
        transitions=transitions,
        rewards=np.broadcast_to((states > 0)[None, :, None], (1, last + 1, 2)),
        costs=uses_fast,
        limits=[require_number("budget", budget, minimum=0.0)],
        initial=np.eye(last + 1)[0],
        horizon=horizon,
        state_names=[f"{packets} packets" for packets in range(last + 1)],
        action_names=["fast link", "slow link"],
        constraint_names=["uses of the fast link"],
        objective_name="steps of playback",
    )
