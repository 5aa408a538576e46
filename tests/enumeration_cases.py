"""Environments whose tables are known."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete


class Table(gymnasium.Env[Any, Any]):
    """A deterministic table: next states, rewards and ends, `[S, A]`; others may go on from ends.

    `s` is the state, as in toy-text environments; `show` makes the observation of it.
    """

    def __init__(self, following: Any, rewards: Any, ends: Any, show: Any = int) -> None:
        self.following, self.rewards = np.array(following), np.array(rewards, dtype=float)
        self.ends, self.show = np.array(ends, dtype=bool), show
        self.observation_space = Discrete(len(self.following)) if show is int else Box(-99, 99)
        self.action_space = Discrete(self.following.shape[1])
        pairs = np.ndindex(self.following.shape)
        self.P: dict[int, dict[int, Any]] = {s: {} for s in range(len(self.following))}
        for s, a in pairs:
            self.P[s][a] = [(1.0, self.following[s, a], self.rewards[s, a], self.ends[s, a])]
        self.initial_state_distrib = np.eye(len(self.following))[0]

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.s = 0
        return self.show(0), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        before, self.s = self.s, int(self.following[self.s, action])
        info = {"toll": {"paid": float(before)}}
        reward = float(self.rewards[before, action])
        return self.show(self.s), reward, bool(self.ends[before, action]), False, info


def random_table(seed: int, show: Any = int, num_states: int = 7) -> Table:
    rng = np.random.default_rng(seed)
    shape = (num_states, 3)
    ends = rng.random(shape) < 0.2
    return Table(rng.integers(num_states, size=shape), rng.normal(size=shape), ends, show)


def shown(state: int) -> np.ndarray:
    return np.array([state / 2, -state], dtype=np.float32)


class Counter:
    """Two places; what they pay depends on a count that nobody sees, and `state` restores or not.

    No spaces and no base class; `reset` takes no seed.
    """

    action_space = Discrete(2)

    def __init__(self, kept: str = "state") -> None:
        self.kept = kept

    def __getattr__(self, name: str) -> Any:
        if name == self.__dict__.get("kept"):
            return self.place
        raise AttributeError(name)

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__["place" if name == self.__dict__.get("kept") else name] = value

    def reset(self) -> tuple[int, dict[str, Any]]:
        self.place = self.count = 0
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.count += 1
        self.place = action
        return self.place, float(self.count), False, False, {"cost": 0.0}
