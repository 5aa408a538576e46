"""Logged episodes as an agent takes them, checked against its declaration."""

from typing import NamedTuple

import numpy as np

from cmdpax.errors import ModelError
from cmdpax.history import Log
from cmdpax.live.declaration import Declaration


class Logged(NamedTuple):
    """The steps of an episode that happened, in the user's units."""

    states: tuple[int, ...]
    actions: tuple[int, ...]
    signals: np.ndarray  # [steps, J]


def episodes_of(log: Log, declared: Declaration) -> list[Logged]:
    """The episodes of a log, those without a step left out."""
    arrays = _checked(log, declared)
    lengths = _lengths(arrays["actions"])
    signals = np.concatenate(
        [arrays["rewards"][:, None], arrays["constraint_rewards"]], axis=1, dtype=float
    ).swapaxes(1, 2)
    names = ("the log's reward", *(f"the log's signal of {name}" for name in declared.names))
    found = []
    for episode, length in enumerate(lengths):
        if not length:
            continue
        states = tuple(arrays["states"][episode, : length + 1].tolist())
        actions = tuple(arrays["actions"][episode, :length].tolist())
        for signal in signals[episode, :length]:
            declared.units.require_inside(signal, names)
        if not declared.initial[states[0]] > 0:
            raise ModelError(
                f"the log's episode {episode} begins in state {states[0]}, which initial gives "
                "probability 0; declare where episodes begin."
            )
        found.append(Logged(states, actions, signals[episode, :length]))
    return found


def _checked(log: Log, declared: Declaration) -> dict[str, np.ndarray]:
    """The arrays of a log; shapes and indices must be those of the declaration."""
    num_constraints, horizon, num_states, num_actions = declared.sizes
    missing = [name for name in Log._fields if not hasattr(log, name)]
    if missing:
        raise ModelError(
            f"the log is a {type(log).__name__} without {missing[0]}; give a cmdpax.Log with "
            f"{', '.join(Log._fields)}."
        )
    arrays = {name: np.asarray(getattr(log, name)) for name in Log._fields}
    count = len(arrays["actions"]) if arrays["actions"].ndim else 0
    expected = {
        "states": (count, horizon + 1),
        "actions": (count, horizon),
        "rewards": (count, horizon),
        "constraint_rewards": (count, num_constraints, horizon),
    }
    for name, shape in expected.items():
        if arrays[name].shape != shape:
            raise ModelError(
                f"the log's {name} has shape {arrays[name].shape}, expected {shape} for {count} "
                "episodes; of several runs feed one, such as log.run(0)."
            )
    for name, size, least in (("states", num_states, 0), ("actions", num_actions, -1)):
        array = arrays[name]
        if array.dtype.kind not in "iu" or (
            array.size and (array.min() < least or array.max() >= size)
        ):
            raise ModelError(
                f"the log's {name} must be whole numbers, the system has 0 … {size - 1}."
            )
    return arrays


def _lengths(actions: np.ndarray) -> np.ndarray:
    """How many steps of every episode happened: the others have action -1, and come last."""
    happened = actions >= 0
    lengths = happened.sum(axis=1)
    if (happened != (np.arange(actions.shape[1])[None] < lengths[:, None])).any():
        raise ModelError("the log has steps after one that did not happen (action -1).")
    return lengths
