"""A ring of three states."""

import numpy as np

from cmdpax.checks import require_count, require_flag, require_number
from cmdpax.environments.parameters import require_fitting
from cmdpax.model.cmdp import CMDP, from_costs


def ring(
    num_states: int = 3,
    horizon: int = 6,
    budget: float = 3.0,
    scale_rewards: bool = True,
    uniform_start: bool = False,
) -> CMDP:
    """Stay for nothing, or move on around a ring for a reward and a cost.

    In state s, *stay* (action 0) earns and costs nothing; *move* (action 1) leads to s + 1 modulo
    `num_states`, earns s + 1 (divided by `num_states` if `scale_rewards`) and costs 1. At most
    `budget` moves are allowed in expectation. The start is state 0, or uniform.

    Source: the three-state example after Zheng and Ratliff (2020), as used by AlwaysSafe and DOPE
    (the variant with raw rewards starts uniformly).
    """
    num_states = require_count("num_states", num_states)
    require_fitting(num_states, 2, num_states)
    horizon = require_count("horizon", horizon)
    budget = require_number("budget", budget, minimum=0.0)
    states = np.arange(num_states)
    transitions = np.zeros((1, num_states, 2, num_states))
    transitions[0, states, 0, states] = 1.0
    transitions[0, states, 1, (states + 1) % num_states] = 1.0
    move = np.stack([np.zeros(num_states), states + 1.0], axis=1)[None]
    rewards = move / num_states if require_flag("scale_rewards", scale_rewards) else move
    uniform = require_flag("uniform_start", uniform_start)
    return from_costs(
        transitions=transitions,
        rewards=rewards,
        costs=(move > 0)[None],
        limits=[budget],
        initial=np.full(num_states, 1 / num_states) if uniform else np.eye(num_states)[0],
        horizon=horizon,
        state_names=[f"place {place}" for place in range(num_states)],
        action_names=["stay", "move"],
        constraint_names=["moves"],
        objective_name="reward",
    )
