"""The table `P` of a toy-text environment, read and checked.

`P[s][a]` is a list of `(probability, next state, reward, terminated)`, one for each outcome of the
action a in the state s.
"""

from typing import Any

import numpy as np

from cmdpax.errors import ModelError, ParameterError
from cmdpax.model.validation import ROW_SUM_TOLERANCE

_OUTCOME = np.dtype(
    [
        ("state", np.int64),
        ("action", np.int64),
        ("probability", np.float64),
        ("successor", np.int64),
        ("reward", np.float64),
        ("terminated", np.bool),
    ]
)


def read_outcomes(env: Any) -> tuple[np.ndarray, tuple[int, int]]:
    """The outcomes of positive probability, a row for each, and (S, A)."""
    table = getattr(getattr(env, "unwrapped", env), "P", None)
    if table is None:
        raise ParameterError(
            f"{env} has no table P of transitions; from_env reads toy-text environments, such as "
            'gymnasium.make("FrozenLake-v1").'
        )
    try:
        widths = [len(table[s]) for s in range(len(table))]
        listed = [
            (s, a, *outcome)
            for s, width in enumerate(widths)
            for a in range(width)
            for outcome in table[s][a]
        ]
        columns = np.array(listed, dtype=np.float64).reshape(-1, 6).T
    except (LookupError, TypeError, ValueError, OverflowError):
        raise ModelError(
            "P cannot be read; P[s][a] must be a list of (probability, next state, reward, "
            "terminated), for states s and actions a that count from 0."
        ) from None
    shape = _shape(widths)
    _check_columns(columns, shape)
    outcomes = np.empty(columns.shape[1], _OUTCOME)
    for name, column in zip(_OUTCOME.names or (), columns, strict=True):
        outcomes[name] = column
    outcomes = outcomes[outcomes["probability"] > 0]
    _check_sums(outcomes, shape)
    return outcomes, shape


def expected(outcomes: np.ndarray, values: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """The expectation `[S, A]` of a value of each outcome; 0 for a pair without any."""
    pairs = outcomes["state"] * shape[1] + outcomes["action"]
    weights = outcomes["probability"] * values
    return np.bincount(pairs, weights, minlength=shape[0] * shape[1]).reshape(shape)


def _shape(widths: list[int]) -> tuple[int, int]:
    """(S, A), where every state has the same number of actions."""
    found = sorted(set(widths))
    if len(found) != 1 or found == [0]:
        numbers = " or ".join(str(width) for width in found) or "no states with"
        raise ModelError(
            f"P has {numbers} actions; it needs a state, and the same actions in every state."
        )
    return len(widths), found[0]


def _check_columns(columns: np.ndarray, shape: tuple[int, int]) -> None:
    """Refuse numbers that no outcome can have."""
    states, actions, probabilities, successors, rewards, _ = columns
    last = shape[0] - 1
    is_state = (successors >= 0) & (successors <= last) & (np.floor(successors) == successors)
    checks = (
        ("probability", probabilities, probabilities >= 0, "a number of at least 0"),
        ("next state", successors, is_state, f"one of 0 … {last}"),
        ("reward", rewards, np.isfinite(rewards), "a finite number"),
    )
    for name, values, valid, expected in checks:
        if not valid.all():
            wrong = int(np.argmin(valid))
            raise ModelError(
                f"P[{states[wrong]:.0f}][{actions[wrong]:.0f}] lists the {name} "
                f"{values[wrong]:g}, it must be {expected}."
            )


def _check_sums(outcomes: np.ndarray, shape: tuple[int, int]) -> None:
    sums = expected(outcomes, np.ones(len(outcomes)), shape)
    off = np.abs(sums - 1) > ROW_SUM_TOLERANCE
    if off.any():
        state, action = np.argwhere(off)[0]
        raise ModelError(
            f"the probabilities of P[{state}][{action}] sum to {sums[state, action]:.12g}, not "
            "to 1; divide them by their sum."
        )
