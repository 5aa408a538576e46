"""A model with two constraints of different senses, names and units."""

from typing import Any

import numpy as np

import cmdpax

STATES, ACTIONS = ("idle", "busy", "hot"), ("off", "slow", "fast")
ENERGY = np.array([[1.0, 6.0, 12.0], [2.0, 7.0, 14.0], [3.0, 8.0, 20.0]])
QUALITY = np.array([[0.1, 0.5, 0.9], [0.2, 0.6, 0.8], [0.3, 0.4, 0.7]])
PROFIT = np.array([[0.0, 10.0, 25.0], [1.0, 12.0, 30.0], [2.0, 11.0, 22.0]])
HORIZON = 6


def furnace(**changes: Any) -> cmdpax.CMDP:
    """Two constraints of different senses, in kWh and in points."""
    rows = np.random.default_rng(4).dirichlet(np.ones(3), (3, 3))
    given: dict[str, Any] = {
        "constraint_rewards": [ENERGY, QUALITY],
        "thresholds": [40.0, 2.0],
        "senses": ["at most", "at least"],
        "state_names": STATES,
        "action_names": ACTIONS,
        "constraint_names": ["energy", "quality"],
        "objective_name": "profit",
        "units": {"energy": "kWh", "profit": "EUR"},
        "horizon": HORIZON,
        "initial": "idle",
    }
    return cmdpax.from_arrays(rows, PROFIT, **(given | changes))
