"""A rover among rocks that are worth hitting: reward and constraint conflict."""

import numpy as np

from cmdpax.checks import require_count, require_number
from cmdpax.environments.grid import (
    MOVE_NAMES,
    cell_names,
    neighbours,
    on_arrival,
    read_drawing,
    slipping,
)
from cmdpax.model.cmdp import CMDP, from_costs

_LAYOUT = ".......G/...P..../......../.....P../......../......../...P..../S......."


def mars_rover(
    layout: str = _LAYOUT,
    horizon: int = 30,
    slip: float = 0.1,
    budget: float = 0.3,
    rock_reward: float = 1.0,
) -> CMDP:
    """Drive to a goal, or end sooner on a rock, which earns as much but is rationed.

    States are the cells without wall, row by row; actions 0 … 3 are up, right, down and left. A
    move goes astray with probability `slip` (all four directions alike) and stays put at walls
    and edges. Goals and rocks are never left. Arriving at a goal earns 1; arriving on a rock earns
    `rock_reward` and costs 1. From then on every step earns and costs 1/H of that, so that an
    earlier end is worth more: one after n moves sums to 1 + (H - n)/H. The costs may sum to
    `budget` in expectation. What a move earns and costs is its expectation over where it leads.

    The map is `layout`: rows separated by `/` or new lines, with `#` wall, `S` start, `G` goal,
    `P` rock and `.` free. Several starts are equally likely.

    Source: the Mars rover of ConRL (Brantley et al., 2020), after Tessler et al. (2019). The
    published code has the same map (among others), and there too rocks earn 1, which is what makes
    the constraint bind: with `rock_reward=0` only slips lead to rocks, and the budget suffices.
    """
    horizon = require_count("horizon", horizon)
    drawing = read_drawing(layout, "P", "P rock")
    signs = drawing[drawing != "#"]  # of the states
    goals, rocks, starts = ((signs == sign).astype(float) for sign in "GPS")
    targets = neighbours(drawing == "#", np.isin(drawing, ["G", "P"]))
    transitions = slipping(targets, require_number("slip", slip, 0.0, 1.0))
    prizes = goals + require_number("rock_reward", rock_reward, 0.0, 1.0) * rocks
    parts = np.where(goals + rocks > 0, horizon, 1)[:, None]  # 1/H of it, once there
    return from_costs(
        transitions=transitions,
        rewards=on_arrival(transitions, prizes) / parts,
        costs=on_arrival(transitions, rocks)[None] / parts,
        limits=[require_number("budget", budget, minimum=0.0)],
        initial=starts / starts.sum(),
        horizon=horizon,
        state_names=cell_names(drawing == "#"),
        action_names=MOVE_NAMES,
        constraint_names=["cost of rocks"],
        objective_name="reward",
    )
