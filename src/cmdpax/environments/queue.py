"""A queue whose server and inflow are both controlled: two constraints."""

import numpy as np

from cmdpax.checks import require_count
from cmdpax.environments.parameters import require_fitting
from cmdpax.model.cmdp import CMDP

_SERVICE = np.array([0.2, 0.4, 0.6, 0.8])
_FLOW = np.array([0.4, 0.5, 0.6, 0.7])


def queue(capacity: int = 5, horizon: int = 20) -> CMDP:
    """Choose the rate of service and the rate of inflow of a queue, under a budget for each.

    State x: the customers waiting, 0 … `capacity`, none at the start. An action is a pair of a
    service probability a ∈ {.2, .4, .6, .8} and an inflow probability b ∈ {.4, .5, .6, .7} (action
    4i + j is the i-th a with the j-th b). From x the queue falls with probability a(1 - b) and
    rises with (1 - a)b; an empty queue only rises, with b(1 - a); a full one only falls, with a.

    Reward: capacity - x. Two constraints, on the sums over the horizon: 6 - 10a ≥ 0 (service is
    dear) and 2 - 8(1 - b)² ≥ 0 (customers must not be turned away). All three are shifted and
    scaled to [0, 1], the thresholds with them.

    Source: Altman (1999), a server of rate a and a flow of rate b, with the numbers that later
    work on learning CMDPs uses. Those papers are discounted or average-reward: the horizon and
    the empty start are ours.
    """
    last = require_count("capacity", capacity)
    require_fitting(last + 1, len(_SERVICE) * len(_FLOW), last + 1)
    horizon = require_count("horizon", horizon)
    service, flow = (grid.ravel() for grid in np.meshgrid(_SERVICE, _FLOW, indexing="ij"))
    states = np.arange(last + 1)[:, None]
    rises = np.where(states < last, (1 - service) * flow, 0.0)
    falls = np.where(states > 0, service * (1 - flow), 0.0)
    falls = np.where(states == last, service, falls)
    transitions = np.zeros((1, last + 1, len(service), last + 1))
    actions = np.arange(len(service))
    np.add.at(transitions[0], (states, actions, np.minimum(states + 1, last)), rises)
    np.add.at(transitions[0], (states, actions, np.maximum(states - 1, 0)), falls)
    np.add.at(transitions[0], (states, actions, states), 1 - rises - falls)
    utilities = np.stack([6 - 10 * service, 2 - 8 * (1 - flow) ** 2])  # each at least 0
    low, high = utilities.min(axis=1), utilities.max(axis=1)
    scaled = (utilities - low[:, None]) / (high - low)[:, None]
    shape = (2, 1, last + 1, len(service))
    return CMDP(
        transitions=transitions,
        rewards=np.broadcast_to((last - states) / last, (1, *shape[2:])),
        constraint_rewards=np.broadcast_to(scaled[:, None, None, :], shape),
        thresholds=-horizon * low / (high - low),
        initial=np.eye(last + 1)[0],
        horizon=horizon,
        state_names=[f"{waiting} waiting" for waiting in range(last + 1)],
        action_names=[f"serve {a:g}, admit {b:g}" for a, b in zip(service, flow, strict=True)],
        constraint_names=["unspent service", "admission"],
        objective_name="free places",
    )
