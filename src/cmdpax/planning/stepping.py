"""Steps of a model under given decisions, on NumPy arrays.

Recovering a policy goes through the steps a few times. Compiled programs would spend their time on
being compiled. What decisions make of the transitions of a step is therefore collected for many
steps at once, and one step is then a single product.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Shaped

from cmdpax.model.cmdp import CMDP
from cmdpax.model.transitions import Successors

_BLOCK = 2_000_000  # numbers that are collected at once
_SMALL = 32  # states up to which a matrix is faster than lists


class Matrix(NamedTuple):
    """Where decisions lead from each state, `[S, S]`."""

    rows: np.ndarray

    def push(self, vectors: Float[np.ndarray, "*n S"]) -> Float[np.ndarray, "*n S"]:
        """Where masses on states go."""
        pushed: np.ndarray = vectors @ self.rows
        return pushed

    def expected(self, functions: Float[np.ndarray, "S F"]) -> Float[np.ndarray, "S F"]:
        """Expected next values of functions of the state."""
        result: np.ndarray = self.rows @ functions
        return result


class Lists(NamedTuple):
    """The same as lists, for n pairs of a state and an action in the order of states."""

    states: np.ndarray  # [n]
    successors: np.ndarray  # [n, N]
    probabilities: np.ndarray  # [n, N], times those of the actions
    num_states: int

    def push(self, vectors: np.ndarray) -> np.ndarray:
        """Where masses on states go."""
        if vectors.ndim > 1:
            return np.array([self.push(vector) for vector in vectors])
        used = np.flatnonzero(vectors[self.states])
        flow = vectors[self.states[used], None] * self.probabilities[used]
        where = self.successors[used]
        return np.bincount(where.ravel(), flow.ravel(), minlength=self.num_states)

    def expected(self, functions: np.ndarray) -> np.ndarray:
        """Expected next values of functions of the state."""
        total = _expected(self.successors, self.probabilities, functions)
        if len(self.states) == self.num_states:
            return total
        first = np.searchsorted(self.states, np.arange(self.num_states))
        result: np.ndarray = np.add.reduceat(total, first, axis=0)
        return result


def _expected(
    successors: np.ndarray, probabilities: np.ndarray, functions: np.ndarray
) -> np.ndarray:
    total = probabilities[:, :1] * functions[successors[:, 0]]
    for slot in range(1, successors.shape[1]):
        total += probabilities[:, slot, None] * functions[successors[:, slot]]
    return total


class Stepper:
    """The transitions and signals of a model by step, state and action."""

    def __init__(self, cmdp: CMDP) -> None:
        """Keep views of the model's arrays; short lists become matrices."""
        self.horizon, self.num_states = cmdp.horizon, cmdp.num_states
        self.num_signals = 1 + cmdp.num_constraints
        self.initial = cmdp.initial
        self._signals = [cmdp.rewards, *cmdp.constraint_rewards]
        self._transitions = cmdp.transitions
        if isinstance(cmdp.transitions, Successors) and cmdp.num_states <= _SMALL:
            self._transitions = _dense(cmdp.transitions)
        self.has_lists = isinstance(self._transitions, Successors)

    def signals(
        self, step: int | np.ndarray, states: np.ndarray, actions: np.ndarray
    ) -> Float[np.ndarray, "n J"]:
        """r_h and u_{i,h} of pairs."""
        of_each = [_at(signal, step, states, actions) for signal in self._signals]
        return np.stack(of_each, axis=1)

    def gained(self, policy: Shaped[np.ndarray, "H S A"]) -> Float[np.ndarray, "H S J"]:
        """What each step gives under a policy."""
        result = np.empty((*policy.shape[:2], self.num_signals))
        for index, signal in enumerate(self._signals):
            np.einsum(
                "hsa,hsa->hs", policy, np.broadcast_to(signal, policy.shape), out=result[..., index]
            )
        return result

    def expected(
        self, step: int, states: np.ndarray, actions: np.ndarray, functions: np.ndarray
    ) -> np.ndarray:
        """Expected next values of functions `[S, F]` after pairs of one step, `[n, F]`."""
        if self.has_lists:
            return _expected(
                _at(self._transitions.successors, step, states, actions),
                _at(self._transitions.probabilities, step, states, actions),
                functions,
            )
        rows = _at(self._transitions, step, states, actions)
        result: np.ndarray = rows @ functions
        return result

    def q_values(
        self, steps: np.ndarray, states: np.ndarray, actions: np.ndarray, ahead: np.ndarray
    ) -> Float[np.ndarray, "n J"]:
        """The values of pairs, given those from each step on, `[H + 1, S, J]`."""
        result = self.signals(steps, states, actions)
        size = max(1, _BLOCK // (self.num_states * self.num_signals))
        for start in range(0, len(steps), size):
            part = slice(start, start + size)
            pairs = steps[part], states[part], actions[part]
            after = steps[part] + 1
            if self.has_lists:
                where = _at(self._transitions.successors, *pairs)
                rows, values = (
                    _at(self._transitions.probabilities, *pairs),
                    ahead[after[:, None], where],
                )
            else:
                rows, values = _at(self._transitions, *pairs), ahead[after]
            result[part] += np.einsum("nt,ntj->nj", rows, values)
        return result

    def row(self, step: int, state: int, action: int) -> Float[np.ndarray, " S"]:
        """Where a pair leads."""
        if not self.has_lists:
            row: np.ndarray = _at(self._transitions, step, state, action)
            return row
        where = _at(self._transitions.successors, step, state, action)
        flow = _at(self._transitions.probabilities, step, state, action)
        return np.bincount(where, flow, minlength=self.num_states)

    def flows(self, policy: Shaped[np.ndarray, "H S A"]) -> "Flows":
        """The steps under a policy."""
        return Flows(self, policy)

    def lists_of(self, step: int, decisions: Shaped[np.ndarray, "S A"]) -> Lists:
        """One step of a model with lists under decisions."""
        states, actions = np.nonzero(decisions)
        successors = _at(self._transitions.successors, step, states, actions)
        probabilities = _at(self._transitions.probabilities, step, states, actions)
        if len(states) > self.num_states:
            probabilities = probabilities * decisions[states, actions][:, None]
        return Lists(states, successors, probabilities, self.num_states)

    def matrices_of(self, start: int, policy: Shaped[np.ndarray, "L S A"]) -> np.ndarray:
        """Steps from `start` on under a policy, `[L, S, S]`, where matrices are stored."""
        steps = start + np.arange(len(policy))[:, None]
        likeliest = policy.argmax(axis=2)
        rows: np.ndarray = _at(self._transitions, steps, np.arange(self.num_states), likeliest)
        places = np.nonzero(np.count_nonzero(policy, axis=2) > 1)
        size = max(1, _BLOCK // (self.num_states * policy.shape[2]))
        for first in range(0, len(places[0]), size):
            at, states = (index[first : first + size] for index in places)
            choices = _at(self._transitions, start + at, states)
            rows[at, states] = np.einsum("na,nat->nt", policy[at, states], choices)
        return rows


class Flows:
    """The steps of a model under a policy, each made when it is asked for."""

    def __init__(self, stepper: Stepper, policy: Shaped[np.ndarray, "H S A"]) -> None:
        """Collect nothing yet."""
        self._stepper, self._policy = stepper, policy
        self._length = 1 if stepper.has_lists else max(1, _BLOCK // stepper.num_states**2)
        self._block: list[Matrix | Lists] = []
        self._start = -1

    def __getitem__(self, step: int) -> Matrix | Lists:
        """One step; steps that stand together are made together."""
        start = step - step % self._length
        if start != self._start:
            self._start, part = start, self._policy[start : start + self._length]
            if self._stepper.has_lists:
                self._block = [self._stepper.lists_of(step, part[0])]
            else:
                self._block = [Matrix(rows) for rows in self._stepper.matrices_of(start, part)]
        return self._block[step - start]


def _at(array: np.ndarray, step: int | np.ndarray, *index: np.ndarray | int) -> np.ndarray:
    """Entries of an array whose leading axis is the horizon, or 1 (stationary)."""
    if array.shape[0] == 1:
        # A step for each pair still sets the shape of the result.
        index = index if np.ndim(step) < 2 else tuple(np.broadcast_arrays(step, *index)[1:])
        entries: np.ndarray = array[0][index]
        return entries
    return array[(step, *index)]


def _dense(transitions: Successors) -> np.ndarray:
    successors, probabilities = transitions
    num_states = successors.shape[1]
    dense = np.zeros((*successors.shape[:3], num_states))
    index = np.indices(successors.shape, sparse=True)[:3]
    np.add.at(dense, (*index, successors), probabilities)
    return dense


def part_at(array: np.ndarray, step: int) -> np.ndarray:
    """Entry `step` of an array whose leading axis is the horizon, or 1 (stationary)."""
    part: np.ndarray = array[0 if array.shape[0] == 1 else step]
    return part


def values_ahead(stepper: Stepper, policy: Shaped[np.ndarray, "H S A"]) -> np.ndarray:
    """A policy's values of every signal from each step on, `[H + 1, S, 1 + I]`."""
    ahead = np.zeros((stepper.horizon + 1, stepper.num_states, stepper.num_signals))
    ahead[:-1], flows = stepper.gained(policy), stepper.flows(policy)
    for step in reversed(range(stepper.horizon - 1)):
        ahead[step] += flows[step].expected(ahead[step + 1])
    return ahead


def state_occupancy_of(
    stepper: Stepper, policy: Shaped[np.ndarray, "H S A"]
) -> Float[np.ndarray, "H S"]:
    """P[s_h = s] under a policy."""
    occupancy, flows = np.empty(policy.shape[:2]), stepper.flows(policy)
    occupancy[0] = stepper.initial
    for step in range(stepper.horizon - 1):
        occupancy[step + 1] = flows[step].push(occupancy[step])
    return occupancy


def occupancy_of(
    stepper: Stepper, policy: Shaped[np.ndarray, "H S A"]
) -> Float[np.ndarray, "H S A"]:
    """d_h(s, a) of a policy."""
    return state_occupancy_of(stepper, policy)[:, :, None] * policy
