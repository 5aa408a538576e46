"""The episode that is being played: which call comes next, and what was observed so far."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from cmdpax.errors import OrderError


class EpisodeRecord(NamedTuple):
    """A finished episode, in the user's units.

    Attributes:
        episode: its number k, from 1.
        steps: how many happened; 0: nothing was counted, and the number is given again.
        reward: the sum of its rewards.
        constraint_returns: the sums of its constraint signals, `[I]`.
    """

    episode: int
    steps: int
    reward: float
    constraint_returns: np.ndarray


class OpenEpisode(NamedTuple):
    """What happened since `start`; no states: no episode is open.

    Immutable: a step is there whole or not at all, wherever an interruption comes.
    """

    states: tuple[int, ...] = ()
    actions: tuple[int, ...] = ()
    observed: tuple[np.ndarray, ...] = ()  # in the user's units, [J] each
    action: int | None = None  # proposed, and not yet observed

    @property
    def steps(self) -> int:
        """Steps that happened."""
        return len(self.actions)

    def after(self, action: int, signals: np.ndarray, following: int) -> "OpenEpisode":
        """The episode one step later."""
        return OpenEpisode(
            (*self.states, following), (*self.actions, action), (*self.observed, signals)
        )

    def expects(self, horizon: int) -> str:
        """The call that comes next; `end` is allowed earlier."""
        if not self.states:
            return "start"
        if self.steps == horizon:
            return "end"
        return "act" if self.action is None else "observe"

    def require(self, call: str, horizon: int) -> None:
        """Refuse a call in the wrong order."""
        expected = self.expects(horizon)
        if call == expected or (call == "end" and self.states):
            return
        if call == "feed" and expected == "start":
            return
        fix = "the order is start, then act and observe for every step, then end"
        if call in ("start", "feed"):
            fix = "agent.end() ends the episode that is open"
        raise OrderError(
            f"agent.{call} was called where agent.{expected} comes next ({self._where(horizon)}); "
            f"{fix}."
        )

    def _where(self, horizon: int) -> str:
        if not self.states:
            return "no episode is open"
        if self.steps == horizon:
            return f"all {horizon} steps of the episode happened"
        pending = "" if self.action is None else f", action {self.action} was given"
        return f"after {self.steps} of {horizon} steps, state {self.states[-1]}{pending}"

    def to_entries(self, num_signals: int) -> dict[str, np.ndarray]:
        """As arrays."""
        return {
            "open_states": np.array(self.states, dtype=np.int64),
            "open_actions": np.array(self.actions, dtype=np.int64),
            "open_observed": np.array(self.observed, dtype=float).reshape(-1, num_signals),
            "open_action": np.array(-1 if self.action is None else self.action),
        }

    @classmethod
    def from_entries(cls, arrays: Mapping[str, Any]) -> "OpenEpisode":
        """The episode that `to_entries` took apart."""
        whole = [arrays[f"open_{name}"] for name in ("states", "actions", "action")]
        if any(array.dtype.kind != "i" for array in whole):
            raise ValueError("states and actions are whole numbers")
        states, actions = (tuple(array.tolist()) for array in whole[:2])
        action = int(whole[2])
        return cls(states, actions, tuple(arrays["open_observed"]), None if action < 0 else action)
