"""Models of the suites that are no built-in environments: easy to state, and each hard in one way.

Thresholds come from dynamic programs and are rounded, so that a seed gives the same fingerprint on
every machine.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from cmdpax import environments
from cmdpax.environments.parameters import stable
from cmdpax.model.cmdp import CMDP
from cmdpax.planning.dynamic_program import greedy_values

Make = Callable[[int], CMDP]
"""Makes the model of a seed."""

_NEARLY, _RELAXED, _TIGHTNESS = 0.95, 0.9, 0.3


def built_in(name: str, **parameters: Any) -> Make:
    """A built-in environment that is the same for every seed."""
    return lambda seed: environments.make(name, **parameters)


def seeded(name: str, **parameters: Any) -> Make:
    """A built-in environment with a model for every seed."""
    return lambda seed: environments.make(name, seed=seed, **parameters)


def nearly_infeasible(**parameters: Any) -> Make:
    """Random models whose threshold leaves a twentieth of the room that there was."""
    return partial(_with_threshold, parameters, lambda low, high, c: c + _NEARLY * (high - c))


def slack(**parameters: Any) -> Make:
    """Random models whose constraint never binds: the best policy exceeds it by a tenth."""
    return partial(_with_threshold, parameters, lambda low, high, c: _RELAXED * low)


def _with_threshold(parameters: dict[str, Any], change: Any, seed: int) -> CMDP:
    """Change c, given V_u of the reward-optimal policy and max_π V_u."""
    cmdp = environments.make("random", seed=seed, **parameters)
    low, high = _range_of_constraints(cmdp)
    return cmdp.replace(thresholds=stable(change(low, high, cmdp.thresholds)))


def _range_of_constraints(cmdp: CMDP) -> tuple[np.ndarray, np.ndarray]:
    """V_u of the reward-optimal policy, and max_π V_{u_i} for every i."""
    plans = greedy_values(cmdp, np.eye(1 + cmdp.num_constraints))
    return plans[0, 1:], np.diagonal(plans)[1:]


def several_optima(num_actions: int = 5, **parameters: Any) -> Make:
    """Random models in which some actions are copies of others, so that optima abound."""

    def make(seed: int) -> CMDP:
        single = (num_actions + 1) // 2
        one = environments.make("random", seed=seed, num_actions=single, **parameters)
        copies = np.arange(num_actions) % single
        return CMDP(
            transitions=np.asarray(one.transitions)[:, :, copies],
            rewards=np.asarray(one.rewards)[..., copies],
            constraint_rewards=np.asarray(one.constraint_rewards)[..., copies],
            thresholds=one.thresholds,
            initial=one.initial,
        )

    return make


def sparse(num_states: int, num_actions: int, horizon: int, num_constraints: int) -> Make:
    """Rows from a Dirichlet(0.1) distribution, and rewards that are independent of everything."""

    def make(seed: int) -> CMDP:
        rng = np.random.default_rng(seed)
        shape = (horizon, num_states, num_actions)
        cmdp = CMDP(
            transitions=rng.dirichlet(np.full(num_states, 0.1), shape),
            rewards=rng.random(shape),
            constraint_rewards=rng.random((num_constraints, *shape)),
            thresholds=np.zeros(num_constraints),
            initial=np.eye(num_states)[0],
        )
        low, high = _range_of_constraints(cmdp)
        return cmdp.replace(thresholds=stable(low + _TIGHTNESS * (high - low)))

    return make


def chain(length: int, horizon: int, threshold: float) -> Make:
    """Right all the way, at a cost in every step, finds the reward; a small one is at the start."""

    def make(seed: int) -> CMDP:
        rows, rewards = np.zeros((1, length, 2, length)), np.zeros((1, length, 2))
        for state in range(length):
            rows[0, state, 0, max(state - 1, 0)] = 1.0
            rows[0, state, 1, min(state + 1, length - 1)] += 0.9
            rows[0, state, 1, max(state - 1, 0)] += 0.1
        rewards[0, 0, 0], rewards[0, -1, 1] = 0.02, 1.0
        saved = np.ones((1, 1, length, 2))
        saved[..., 1] = 0.0
        return CMDP(rows, rewards, saved, [threshold], np.eye(length)[0], horizon)

    return make
