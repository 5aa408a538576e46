"""One step of a model at a few states and actions, on NumPy arrays.

Recovering a policy goes through the steps with other rows each time. Compiled programs would spend
their time on being started, and on rows that nobody asks for.
"""

import numpy as np

from cmdpax.model import CMDP
from cmdpax.transitions import Successors


class Stepper:
    """Rows of transitions and rewards; pairs are given as arrays of states and of actions."""

    def __init__(self, cmdp: CMDP) -> None:
        """Keep views of the model's arrays."""
        self.horizon, self.num_states = cmdp.horizon, cmdp.num_states
        self.num_signals = 1 + cmdp.num_constraints
        self.initial = cmdp.initial
        self._rewards = cmdp.rewards
        self._constraints = cmdp.constraint_rewards
        self._transitions = cmdp.transitions

    def q_values(
        self, step: int, states: np.ndarray, actions: np.ndarray, functions: np.ndarray
    ) -> np.ndarray:
        """Expected next values of functions `[S, F]`, `[n, F]`.

        The first 1 + I of them are the signals: those gain what the step itself gives.
        """
        expected = self.expected(step, states, actions, functions)
        expected[:, : self.num_signals] += self.signals(step, states, actions)
        return expected

    def signals(self, step: int, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """r_h and u_{i,h}, `[n, 1 + I]`."""
        result = np.empty((len(states), self.num_signals))
        result[:, 0] = part_at(self._rewards, step)[states, actions]
        here = self._constraints[:, 0 if self._constraints.shape[1] == 1 else step]
        result[:, 1:] = here[:, states, actions].T
        return result

    def expected(
        self, step: int, states: np.ndarray, actions: np.ndarray, functions: np.ndarray
    ) -> np.ndarray:
        """Expected next values of functions, without what the step gives."""
        if not isinstance(self._transitions, Successors):
            rows: np.ndarray = part_at(self._transitions, step)[states, actions]
            return rows @ functions
        lists, probabilities = self._transitions
        lists = part_at(lists, step)[states, actions]
        probabilities = part_at(probabilities, step)[states, actions]
        total = probabilities[:, :1] * functions[lists[:, 0]]
        for slot in range(1, lists.shape[1]):
            total += probabilities[:, slot, None] * functions[lists[:, slot]]
        return total

    def values(self, step: int, decisions: np.ndarray, functions: np.ndarray) -> np.ndarray:
        """The same under decisions π_h, `[S, A]`: functions of the state, `[S, F]`."""
        states, actions = np.nonzero(decisions)
        q_values = self.q_values(step, states, actions, functions)
        if len(states) == self.num_states:
            return q_values
        q_values *= decisions[states, actions][:, None]
        first = np.searchsorted(states, np.arange(self.num_states))
        result: np.ndarray = np.add.reduceat(q_values, first, axis=0)
        return result

    def advance(self, step: int, mass: np.ndarray, decisions: np.ndarray) -> np.ndarray:
        """Where the mass on states goes under decisions π_h."""
        moving = mass[:, None] * decisions
        states, actions = np.nonzero(moving)
        return self._push(step, states, actions, moving[states, actions])

    def move(self, step: int, mass: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Where the mass on states goes under one action for each."""
        states = np.flatnonzero(mass)
        return self._push(step, states, actions[states], mass[states])

    def _push(
        self, step: int, states: np.ndarray, actions: np.ndarray, moving: np.ndarray
    ) -> np.ndarray:
        if not isinstance(self._transitions, Successors):
            arriving: np.ndarray = moving @ part_at(self._transitions, step)[states, actions]
            return arriving
        lists, probabilities = self._transitions
        lists = part_at(lists, step)[states, actions]
        flow = moving[:, None] * part_at(probabilities, step)[states, actions]
        return np.bincount(lists.ravel(), flow.ravel(), minlength=self.num_states)


def part_at(array: np.ndarray, step: int) -> np.ndarray:
    """Entry `step` of an array whose leading axis is the horizon, or 1 (stationary)."""
    part: np.ndarray = array[0 if array.shape[0] == 1 else step]
    return part


def values_ahead(stepper: Stepper, policy: np.ndarray) -> np.ndarray:
    """A policy's values of every signal from each step on, `[H + 1, S, 1 + I]`."""
    ahead = np.zeros((stepper.horizon + 1, stepper.num_states, stepper.num_signals))
    for step in reversed(range(stepper.horizon)):
        ahead[step] = stepper.values(step, policy[step], ahead[step + 1])
    return ahead


def state_occupancy_of(stepper: Stepper, actions: np.ndarray) -> np.ndarray:
    """P[s_h = s] under a deterministic policy `[H, S]`."""
    occupancy = np.empty(actions.shape)
    mass = stepper.initial
    for step in range(stepper.horizon):
        occupancy[step] = mass
        mass = stepper.move(step, mass, actions[step])
    return occupancy


def occupancy_of(stepper: Stepper, policy: np.ndarray) -> np.ndarray:
    """d_h(s, a) of a policy, `[H, S, A]`."""
    occupancy = np.empty_like(policy)
    mass = stepper.initial
    for step in range(stepper.horizon):
        occupancy[step] = mass[:, None] * policy[step]
        mass = stepper.advance(step, mass, policy[step])
    return occupancy
