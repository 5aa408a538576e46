"""Logs for the tests of `cmdpax.data`."""

from typing import Any

import numpy as np

import cmdpax
from cmdpax.data.evidence import Evidence, gather


def random_model(seed: int, sizes: tuple[int, int, int, int] = (1, 3, 3, 2)) -> cmdpax.CMDP:
    """A dense CMDP of sizes (I, H, S, A); thresholds are in the middle of what can be reached."""
    num_constraints, horizon, num_states, num_actions = sizes
    rng = np.random.default_rng(seed)
    shape = (horizon, num_states, num_actions)
    free = cmdpax.CMDP(
        rng.dirichlet(np.ones(num_states), shape),
        rng.random(shape),
        rng.random((num_constraints, *shape)),
        np.full(num_constraints, -1.0),
        rng.dirichlet(np.ones(num_states)),
    )
    ends = [
        [sign * cmdpax.solve(free.replace(rewards=sign * signal)).value for sign in (-1.0, 1.0)]
        for signal in free.constraint_rewards
    ]
    return free.replace(thresholds=np.mean(ends, axis=1))


def uniform(cmdp: cmdpax.CMDP) -> np.ndarray:
    return np.full(cmdp.sizes[1:], 1 / cmdp.num_actions)


def random_policy(cmdp: cmdpax.CMDP, seed: int) -> np.ndarray:
    _, horizon, num_states, num_actions = cmdp.sizes
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(num_actions), (horizon, num_states))


def logged(
    cmdp: cmdpax.CMDP, policy: np.ndarray, count: int, seed: int, *, noise: str = ""
) -> cmdpax.Log:
    """Episodes, step by step; `noise` is nothing, "bernoulli" or "normal"."""
    rng = np.random.default_rng(seed)
    num_constraints, horizon, num_states, num_actions = cmdp.sizes
    transitions = np.broadcast_to(cmdp.transitions, (horizon, *cmdp.transitions.shape[1:]))
    signals = np.concatenate([cmdp.rewards[None], cmdp.signals])
    signals = np.broadcast_to(signals, (1 + num_constraints, *cmdp.sizes[1:]))
    states = np.zeros((count, horizon + 1), int)
    actions = np.zeros((count, horizon), int)
    observed = np.zeros((count, 1 + num_constraints, horizon))
    for k in range(count):
        states[k, 0] = rng.choice(num_states, p=cmdp.initial)
        for h in range(horizon):
            s = states[k, h]
            actions[k, h] = a = rng.choice(num_actions, p=policy[h, s])
            means = signals[:, h, s, a]
            if noise == "bernoulli":
                means = rng.random(len(means)) < means
            elif noise == "normal":
                means = means + 0.2 * rng.standard_normal(len(means))
            observed[k, :, h] = means
            states[k, h + 1] = rng.choice(num_states, p=transitions[h, s, a])
    return cmdpax.Log(states, actions, observed[:, 0], observed[:, 1:])


def declared(cmdp: cmdpax.CMDP, **more: Any) -> dict[str, Any]:
    """What `uncertainty` and `solve_safely` are told."""
    return {
        "thresholds": cmdp.bounds,
        "senses": [cmdp.words.sense(i) for i in range(cmdp.num_constraints)] or None,
        "num_states": cmdp.num_states,
        "num_actions": cmdp.num_actions,
        **more,
    }


def evidence_of(cmdp: cmdpax.CMDP, log: cmdpax.Log, **more: Any) -> Evidence:
    """What the functions make of their arguments."""
    empty = dict.fromkeys(
        ("limits", "initial", "reward_range", "constraint_ranges", "available"), None
    )
    given: dict[str, Any] = {"stationary": False, "words": {}, **empty, **declared(cmdp), **more}
    return gather("test", log, **given)
