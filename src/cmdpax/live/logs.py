"""Logged episodes as an agent takes them, checked against its declaration."""

from typing import NamedTuple

import numpy as np

from cmdpax.errors import ModelError
from cmdpax.live.declaration import Declaration
from cmdpax.model.empirical import check_indices, check_played, reached, read_log
from cmdpax.model.log import Log


class Logged(NamedTuple):
    """The steps of an episode that happened, in the user's units."""

    states: tuple[int, ...]
    actions: tuple[int, ...]
    signals: np.ndarray  # [steps, J]


def episodes_of(log: Log, declared: Declaration) -> list[Logged]:
    """The episodes of a log, those without a step left out."""
    found = _checked(log, declared)
    lengths = (found.actions >= 0).sum(axis=1)
    signals = np.concatenate([found.rewards[:, None], found.constraint_rewards], axis=1)
    names = ("the log's reward", *(f"the log's signal of {name}" for name in declared.names))
    episodes = []
    for index in np.flatnonzero(lengths):
        length = lengths[index]
        states = tuple(found.states[index, : length + 1].tolist())
        observed = signals[index, :, :length].T
        for signal in observed:
            declared.units.require_inside(signal, names)
        if not declared.initial[states[0]] > 0:
            raise ModelError(
                f"the log's episode {index} begins in state {states[0]}, which initial gives "
                "probability 0; declare where episodes begin."
            )
        episodes.append(Logged(states, tuple(found.actions[index, :length].tolist()), observed))
    return episodes


def _checked(log: Log, declared: Declaration) -> Log:
    """The log, whose sizes and indices must be those of the declaration."""
    count, horizon, num_states, num_actions = declared.sizes
    found = read_log(log)
    shape = found.constraint_rewards.shape
    if shape[1:] != (count, horizon):
        raise ModelError(
            f"the log's constraint_rewards has shape {shape}, expected (K, {count}, {horizon}) as "
            "was declared; of several runs feed one, such as log.run(0)."
        )
    played = found.actions >= 0
    check_indices("states", found.states, reached(played), num_states)
    check_indices("actions", found.actions, found.actions != -1, num_actions)
    check_played(played)
    return found
