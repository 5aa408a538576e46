"""Steps of a model under given decisions, on NumPy arrays.

Recovering a policy passes through the steps only a few times, so compilation would not pay.
Instead, the transitions under the given decisions are collected for many steps at once, and each
step is then a single product.
"""

import numpy as np
from jaxtyping import Float, Shaped

from cmdpax.model.cmdp import CMDP
from cmdpax.model.transitions import Successors

_BLOCK = 2_000_000  # numbers that are collected at once
_SMALL = 32  # states up to which a matrix is faster than lists


class Stepper:
    """The transitions and signals of a model by step, state and action."""

    def __init__(self, cmdp: CMDP) -> None:
        """Keep views of the model's arrays; lists of few states become matrices."""
        self.horizon, self.num_states = cmdp.horizon, cmdp.num_states
        self.num_signals = 1 + cmdp.num_constraints
        self.initial = cmdp.initial
        self._signals = [cmdp.rewards, *cmdp.constraint_rewards]
        self.transitions = cmdp.transitions
        if isinstance(cmdp.transitions, Successors) and cmdp.num_states <= _SMALL:
            self.transitions = _dense(cmdp.transitions)
        self.has_lists = isinstance(self.transitions, Successors)

    def signals(
        self, step: int | np.ndarray, states: np.ndarray, actions: np.ndarray
    ) -> Float[np.ndarray, "n J"]:
        """r_h and u_{i,h} of pairs."""
        of_each = [part_at(signal, step, states, actions) for signal in self._signals]
        return np.stack(of_each, axis=1)

    def gained(self, policy: Shaped[np.ndarray, "H S A"]) -> Float[np.ndarray, "H S J"]:
        """The expected signals of each step under a policy."""
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
            return _expected(*self.lists(step, states, actions), functions)
        return part_at(self.transitions, step, states, actions) @ functions

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
                where, rows = self.lists(*pairs)
                values = ahead[after[:, None], where]
            else:
                rows, values = part_at(self.transitions, *pairs), ahead[after]
            result[part] += np.einsum("nt,ntj->nj", rows, values)
        return result

    def row(self, step: int, state: int, action: int) -> Float[np.ndarray, " S"]:
        """Where a pair leads."""
        if self.has_lists:
            return np.bincount(*self.lists(step, state, action), minlength=self.num_states)
        return part_at(self.transitions, step, state, action)

    def lists(
        self, step: int | np.ndarray, states: int | np.ndarray, actions: int | np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Successors of pairs and their probabilities, both `[…, N]`, where lists are stored."""
        successors, probabilities = self.transitions
        pairs = step, states, actions
        return part_at(successors, *pairs), part_at(probabilities, *pairs)

    def flows(self, policy: Shaped[np.ndarray, "H S A"]) -> "MatrixFlows | ListFlows":
        """The steps under a policy."""
        return ListFlows(self, policy) if self.has_lists else MatrixFlows(self, policy)


class MatrixFlows:
    """The steps of a model with matrices under a policy, collected in blocks."""

    def __init__(self, stepper: Stepper, policy: Shaped[np.ndarray, "H S A"]) -> None:
        """Collect nothing yet."""
        self._transitions, self._policy = stepper.transitions, policy
        self._length = max(1, _BLOCK // stepper.num_states**2)
        self._start, self._block = -1, np.empty(0)

    def push(self, step: int, masses: Float[np.ndarray, "*n S"]) -> Float[np.ndarray, "*n S"]:
        """Where masses on states go."""
        return masses @ self._matrix(step)

    def expected(self, step: int, functions: Float[np.ndarray, "S F"]) -> np.ndarray:
        """Expected next values of functions of the state, `[S, F]`."""
        return self._matrix(step) @ functions

    def _matrix(self, step: int) -> Float[np.ndarray, "S S"]:
        start = step - step % self._length
        if start != self._start:
            self._start, self._block = start, self._collect(start)
        return self._block[step - start]

    def _collect(self, start: int) -> Float[np.ndarray, "L S S"]:
        """The steps of a block: rows of the likeliest actions, and means in random places."""
        policy = self._policy[start : start + self._length]
        length, num_states, num_actions = policy.shape
        steps = start + np.arange(length)[:, None]
        rows = part_at(self._transitions, steps, np.arange(num_states), policy.argmax(axis=2))
        places = np.nonzero(np.count_nonzero(policy, axis=2) > 1)
        size = max(1, _BLOCK // (num_states * num_actions))
        for first in range(0, len(places[0]), size):
            at, states = (index[first : first + size] for index in places)
            choices = part_at(self._transitions, start + at, states)
            rows[at, states] = np.einsum("na,nat->nt", policy[at, states], choices)
        return rows


class ListFlows:
    """The steps of a model with lists under a policy."""

    def __init__(self, stepper: Stepper, policy: Shaped[np.ndarray, "H S A"]) -> None:
        """Collect nothing."""
        self._stepper, self._policy = stepper, policy

    def push(self, step: int, masses: Float[np.ndarray, "*n S"]) -> Float[np.ndarray, "*n S"]:
        """Where masses on states go."""
        states, successors, probabilities = self._lists(step)
        pushed = np.empty_like(masses)
        for index in np.ndindex(masses.shape[:-1]):
            mass = masses[index][states]
            used = np.flatnonzero(mass)
            where, flow = successors[used], mass[used, None] * probabilities[used]
            pushed[index] = np.bincount(where.ravel(), flow.ravel(), masses.shape[-1])
        return pushed

    def expected(self, step: int, functions: Float[np.ndarray, "S F"]) -> np.ndarray:
        """Expected next values of functions of the state, `[S, F]`."""
        states, successors, probabilities = self._lists(step)
        total = _expected(successors, probabilities, functions)
        if len(states) == len(functions):
            return total
        return np.add.reduceat(total, np.searchsorted(states, np.arange(len(functions))), axis=0)

    def _lists(self, step: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """States, by increasing index, the successors of an action there, and probabilities."""
        decisions = self._policy[step]
        states, actions = np.nonzero(decisions)
        successors, probabilities = self._stepper.lists(step, states, actions)
        if len(states) > len(decisions):
            probabilities = probabilities * decisions[states, actions][:, None]
        return states, successors, probabilities


def _expected(
    successors: np.ndarray, probabilities: np.ndarray, functions: np.ndarray
) -> np.ndarray:
    total = probabilities[:, :1] * functions[successors[:, 0]]
    for slot in range(1, successors.shape[1]):
        total += probabilities[:, slot, None] * functions[successors[:, slot]]
    return total


def part_at(array: np.ndarray, step: int | np.ndarray, *index: np.ndarray | int) -> np.ndarray:
    """Entries of an array whose leading axis is the horizon, or 1 (stationary)."""
    if array.shape[0] == 1:
        # Steps still broadcast against the other indices.
        index = index if np.ndim(step) < 2 else tuple(np.broadcast_arrays(step, *index)[1:])
        return array[0][index]
    return array[(step, *index)]


def _dense(transitions: Successors) -> np.ndarray:
    successors, probabilities = transitions
    num_states = successors.shape[1]
    dense = np.zeros((*successors.shape[:3], num_states))
    index = np.indices(successors.shape, sparse=True)[:3]
    np.add.at(dense, (*index, successors), probabilities)
    return dense


def values_ahead(stepper: Stepper, policy: Shaped[np.ndarray, "H S A"]) -> np.ndarray:
    """A policy's values of every signal from each step on, `[H + 1, S, 1 + I]`."""
    ahead = np.zeros((stepper.horizon + 1, stepper.num_states, stepper.num_signals))
    ahead[:-1], flows = stepper.gained(policy), stepper.flows(policy)
    for step in reversed(range(stepper.horizon - 1)):
        ahead[step] += flows.expected(step, ahead[step + 1])
    return ahead


def occupancy_of(
    stepper: Stepper, policy: Shaped[np.ndarray, "H S A"]
) -> Float[np.ndarray, "H S A"]:
    """d_h(s, a) of a policy."""
    mass, flows = np.empty(policy.shape[:2]), stepper.flows(policy)
    mass[0] = stepper.initial
    for step in range(stepper.horizon - 1):
        mass[step + 1] = flows.push(step, mass[step])
    return mass[:, :, None] * policy
