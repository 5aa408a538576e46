"""Logged episodes."""

from typing import NamedTuple

import numpy as np


class Log(NamedTuple):
    """Logged episodes, `[K, …]`, or of several runs `[R, K, …]`.

    Attributes:
        states: `[K, H+1]`.
        actions: `[K, H]`.
        rewards: `[K, H]`, as observed.
        constraint_rewards: `[K, I, H]`, as observed.
    """

    states: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    constraint_rewards: np.ndarray

    def run(self, index: int) -> "Log":
        """The log of one of several runs."""
        return Log(*(array[index] for array in self))
