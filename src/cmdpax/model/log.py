"""Episodes as they were observed."""

from typing import Any, NamedTuple


class Log(NamedTuple):
    """Logged episodes, `[K, …]`; several runs have another axis in front, one episode has none.

    Attributes:
        states: `[K, H+1]`.
        actions: `[K, H]`.
        rewards: `[K, H]`, as observed.
        constraint_rewards: `[K, I, H]`, as observed.
    """

    states: Any
    actions: Any
    rewards: Any
    constraint_rewards: Any

    def run(self, index: int) -> "Log":
        """The log of one of several runs."""
        return Log(*(array[index] for array in self))
