"""Episodes of an agent: the coming or open one, with the calls it expects, and those of a log."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cmdpax.errors import ModelError, OrderError
from cmdpax.live.declaration import Declaration
from cmdpax.model.log import Log, check_played, reached, read_log, require_final_states
from cmdpax.model.observations import check_indices

_BETWEEN = ("feed", "freeze", "resume", "catch_up")  # calls between two episodes
_WAITING = "waiting_"


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


class Episode(NamedTuple):
    """An episode: what happened, and what the learner decided and believed before it began.

    Without states it is not open yet. A log tells only what happened. Immutable: a step is there
    whole or not at all, wherever an interruption comes.
    """

    states: tuple[int, ...] = ()
    actions: tuple[int, ...] = ()
    observed: Any = ()  # for each step its signals in the user's units, [J]
    action: int | None = None  # proposed, and not yet observed
    drawn: Any = None  # actions for every state, [H, S], of which one is met at each step
    policy: Any = None  # π_k, [H, S, A]
    multipliers: Any = None  # λ_k, [I]
    optimistic: Any = None  # V̂_u of π_k, [I]
    visits: Any = None  # how often every action was tried, [H, S, A], where the learner shows it
    plan: Any = None  # the plan, [H, S, A]; π_k is this, or the baseline
    by_plan: Any = True  # whether π_k is the plan
    plans: Any = None  # how many plans the learner has made, if it makes any
    feasible: Any = None  # whether the last of them meets its constraints in its model
    remaining: Any = None  # episodes until the next one
    glimpse: Any = None  # from a file: what it shows of the agent without the learner

    @property
    def steps(self) -> int:
        """Steps that happened."""
        return len(self.actions)

    def after(self, action: int, signals: np.ndarray, following: int) -> "Episode":
        """The episode one step later."""
        return self._replace(
            states=(*self.states, following),
            actions=(*self.actions, action),
            observed=(*self.observed, signals),
            action=None,
        )

    def going_on(self, before: "Episode") -> "Episode":
        """What happened in an open episode, with the policy of this one from now on."""
        return self._replace(
            states=before.states,
            actions=before.actions,
            observed=before.observed,
            action=before.action,
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
        if call in _BETWEEN and expected == "start":
            return
        fix = "the order is start, then act and observe for every step, then end"
        if call in ("start", *_BETWEEN):
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
        """What happened, as arrays."""
        return {
            "open_states": np.array(self.states, dtype=np.int64),
            "open_actions": np.array(self.actions, dtype=np.int64),
            "open_observed": np.array(self.observed, dtype=float).reshape(-1, num_signals),
            "open_action": np.array(-1 if self.action is None else self.action),
        }

    @classmethod
    def from_entries(cls, arrays: Mapping[str, Any]) -> "Episode":
        """What happened in the episode that `to_entries` took apart."""
        whole = [arrays[f"open_{name}"] for name in ("states", "actions", "action")]
        if any(array.dtype.kind != "i" for array in whole):
            raise ValueError("states and actions are whole numbers")
        states, actions = (tuple(array.tolist()) for array in whole[:2])
        action = int(whole[2])
        return cls(states, actions, tuple(arrays["open_observed"]), None if action < 0 else action)


def entries_of_waiting(episodes: Sequence[Episode]) -> dict[str, np.ndarray]:
    """Finished episodes as arrays, one after the other; nothing where there are none."""
    if not episodes:
        return {}
    return {
        f"{_WAITING}steps": np.array([one.steps for one in episodes]),
        f"{_WAITING}states": np.concatenate([one.states for one in episodes]),
        f"{_WAITING}actions": np.concatenate([one.actions for one in episodes]),
        f"{_WAITING}observed": np.concatenate([one.observed for one in episodes]),
    }


def read_waiting(arrays: Mapping[str, Any]) -> tuple[Episode, ...]:
    """The episodes that `entries_of_waiting` took apart."""
    if not any(name.startswith(_WAITING) for name in arrays):
        return ()
    names = ("steps", "states", "actions", "observed")
    steps, states, actions, observed = (arrays[_WAITING + name] for name in names)
    if any(array.dtype.kind != "i" for array in (steps, states, actions)) or steps.min() < 1:
        raise ValueError("steps, states and actions are whole numbers")
    ends = np.cumsum(steps)
    if not len(actions) == len(observed) == len(states) - len(steps) == ends[-1]:
        raise ValueError("steps of other episodes")
    parts = (
        np.split(states, (ends + np.arange(1, 1 + len(ends)))[:-1]),
        np.split(actions, ends[:-1]),
        np.split(observed, ends[:-1]),
    )
    return tuple(
        Episode(tuple(of_one.tolist()), tuple(taken.tolist()), tuple(seen))
        for of_one, taken, seen in zip(*parts, strict=True)
    )


def episodes_of(log: Log, declared: Declaration) -> list[Episode]:
    """The episodes of a log that have steps, checked against the declaration."""
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
        episodes.append(Episode(states, tuple(found.actions[index, :length].tolist()), observed))
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
    require_final_states(found.states, played)
    check_indices("states", found.states, reached(played), num_states)
    check_indices("actions", found.actions, found.actions != -1, num_actions)
    check_played(played)
    return found
