"""Models in words: one with two senses and units, and one that is a map."""

import numpy as np

import cmdpax

ENERGY, COMFORT = 24.0, 3.0
"""The bounds of the office."""


def office(horizon: int = 8) -> cmdpax.CMDP:
    """Heat a room: energy in kWh at most, hours of comfort at least; both bind or nearly do."""
    num_states, num_actions = 5, 3
    transitions = np.zeros((1, num_states, num_actions, num_states))
    for state in range(num_states):
        for action, rise in enumerate((-1, 0, 1)):
            for change, chance in ((rise, 0.7), (rise - 1, 0.2), (0, 0.1)):
                place = min(max(state + change, 0), num_states - 1)
                transitions[0, state, action, place] += chance
    shape = (1, num_states, num_actions)
    comfort = np.zeros(shape)
    comfort[0, 2:4] = 1.0
    return cmdpax.CMDP(
        transitions,
        np.broadcast_to(3.0 - np.array([0.0, 0.5, 1.0]), shape),
        np.stack([np.broadcast_to([0.2, 2.0, 5.0], shape), comfort]),
        [ENERGY, COMFORT],
        np.eye(num_states)[1],
        horizon,
        senses=["at most", "at least"],
        state_names=[f"{16 + state} °C" for state in range(num_states)],
        action_names=["off", "half", "full"],
        constraint_names=["energy", "comfort"],
        objective_name="savings",
        units={"savings": "EUR", "energy": "kWh", "comfort": "h"},
    )


def maze(**parameters: object) -> cmdpax.CMDP:
    """A map of three rows with a wall, a mud hole and a goal, named as maps are.

    S 1 G
    . # .
    . . .
    """
    drawing = ("S1G", ".#.", "...")
    given = {"layout": "/".join(drawing), "horizon": 8, "slip": 0.0, "budget": 0.5} | parameters
    places = [(r, c) for r, row in enumerate(drawing) for c, sign in enumerate(row) if sign != "#"]
    return cmdpax.environments.make("gridworld", **given).replace(
        state_names=[f"row {row}, column {column}" for row, column in places],
        action_names=["up", "right", "down", "left"],
        constraint_names=["time in mud"],
        objective_name="time at the goal",
        units={"time in mud": "min"},
    )
