"""What the simulated systems have in common: exact means, and observations with noise.

A system is defined once, by its outcomes: what may follow when an action is taken in a state, with
which probability, and what it brings. Their means are the model; drawing one of them, and adding
the noise of the meters, is a step of the simulation. An agent sees the declaration only.
"""

import functools
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np

import cmdpax

CUT = 2.0  # standard deviations at which a meter's error is cut, on both sides: its mean stays 0


class Tables(NamedTuple):
    """The outcomes of all steps (or of one, if they are alike) in slots, the unused ones last."""

    chances: np.ndarray  # [H or 1, S, A, N]
    following: np.ndarray  # [H or 1, S, A, N]
    signals: np.ndarray  # [H or 1, S, A, N, 1 + I], the reward first


class System:
    """A live system: `reset`, then `step` until the horizon."""

    name: str
    num_states: int
    num_actions: int
    horizon: int
    stationary = True
    start = 0  # the first state
    declared: ClassVar[dict[str, Any]]  # what the agent is told in words
    errors: tuple[float, ...]  # the standard deviation of each meter, the reward's first
    coins: tuple[int, ...] = ()  # signals that are 0 or 1, drawn with the outcome's probability
    listed = False  # whether the states that may follow are few, and are declared

    def outcomes(self, step: int, state: int, action: int) -> Iterator[tuple[float, ...]]:
        """What may happen: (probability, next state, reward, constraint signals …)."""
        raise NotImplementedError

    def is_available(self, state: int, action: int) -> bool:
        """Whether an action can be taken."""
        return True

    def safe_rule(self, state: int) -> int:
        """The action of a fixed rule that meets every constraint with something to spare."""
        raise NotImplementedError

    def __init__(self, seed: int = 0) -> None:
        """Ready for the first episode."""
        self.generator = np.random.default_rng(seed)
        self.state, self.time = self.start, 0
        chances, following, signals = self.tables
        self._cumulative = np.cumsum(chances, axis=-1)[..., :-1]  # rounding stays in the last slot
        self._following, self._signals = following, signals

    def reset(self) -> int:
        """Begin an episode; returns its first state."""
        self.state, self.time = self.start, 0
        return self.state

    def step(self, action: int) -> tuple[float, np.ndarray, int]:
        """Take an action; returns the reward, the constraint signals and the next state."""
        observed, following = self.draw(self.time, self.state, action, self.generator)
        self.state, self.time = int(following), self.time + 1
        return float(observed[0]), observed[1:], self.state

    def draw(self, step: int, states: Any, actions: Any, generator: np.random.Generator) -> Any:
        """Observed signals and next states of one state and action, or of arrays of them."""
        place = (0 if self.stationary else step, states, actions)
        rows = self._cumulative[place]
        slots = (generator.random((*rows.shape[:-1], 1)) >= rows).sum(axis=-1)
        means, following = self._signals[(*place, slots)], self._following[(*place, slots)]
        errors = generator.standard_normal(means.shape).clip(-CUT, CUT)
        observed = means + errors * self.errors
        for coin in self.coins:
            observed[..., coin] = generator.random(means.shape[:-1]) < means[..., coin]
        return observed, following

    @functools.cached_property
    def tables(self) -> Tables:
        """All outcomes, as arrays."""
        steps = range(1 if self.stationary else self.horizon)
        shape = (len(steps), self.num_states, self.num_actions)
        rows = {
            place: list(self.outcomes(*place)) if self.is_available(*place[1:]) else []
            for place in np.ndindex(*shape)
        }
        most = max(map(len, rows.values()))
        chances, following = np.zeros((*shape, most)), np.zeros((*shape, most), int)
        signals = np.zeros((*shape, most, len(self.errors)))
        for place, row in rows.items():
            for slot, (chance, after, *means) in enumerate(row):
                chances[place][slot], following[place][slot] = chance, after
                signals[place][slot] = means
        return Tables(chances, following, signals)

    @functools.cached_property
    def model(self) -> cmdpax.CMDP:
        """The exact means."""
        chances, following, signals = self.tables
        means = np.moveaxis(np.einsum("hsan,hsanj->hsaj", chances, signals), -1, 0)
        if self.listed:
            transitions: Any = cmdpax.Successors(following, chances)
        else:
            transitions = np.einsum("hsan,hsant->hsat", chances, np.eye(self.num_states)[following])
        return cmdpax.CMDP(
            transitions,
            means[0],
            means[1:],
            self.declared["thresholds"],
            np.eye(self.num_states)[self.start],
            self.horizon,
            available=self.available,
            senses=self.declared["senses"],
            constraint_names=self.declared["names"],
            units=self.declared.get("units"),
            objective_name="reward",
        )

    @functools.cached_property
    def available(self) -> np.ndarray | None:
        """Flags of the actions, `[S, A]`; None: all of them can always be taken."""
        places = np.ndindex(self.num_states, self.num_actions)
        flags = np.reshape([self.is_available(*place) for place in places], (-1, self.num_actions))
        return None if flags.all() else flags

    @property
    def declaration(self) -> dict[str, Any]:
        """What a user tells `cmdpax.Agent`: nothing about probabilities."""
        given: dict[str, Any] = {
            "num_states": self.num_states,
            "num_actions": self.num_actions,
            "horizon": self.horizon,
            "initial": self.start,
            "stationary": self.stationary,
            "available": self.available,
            **self.declared,
        }
        if self.listed:
            given["successors"] = np.where(self.tables.chances > 0, self.tables.following, -1)
        return given

    @property
    def rule(self) -> np.ndarray:
        """The safe rule as a policy, `[S, A]`."""
        chosen = [self.safe_rule(state) for state in range(self.num_states)]
        return np.eye(self.num_actions)[chosen]
