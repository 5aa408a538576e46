"""Fewer random decisions: an optimal policy that randomises in at most I places.

A mixture of I + 1 deterministic policies, written as one Markov policy, is random wherever they
differ, which can be thousands of (h, s) where actions tie. A vertex of the optimal face is random
in at most I of them. Two reductions lead there, neither of which lowers the value or a constraint
value (beyond rounding):

1. *Within a step*, values are linear in that step's decisions: V = Σ_s m(s) Σ_a π(a | s) Q(s, a)
   with m the mass that arrives and Q the later policy's values. Any I + 1 random choices have a
   direction that keeps all V_u, along which one of them becomes certain (Carathéodory's argument).
   Forward through the steps, this leaves at most I per step.
2. *Across the steps of a window*, values are linear in occupancies. Let the policy take a base
   action everywhere, and x_e be the occupancy of the alternative e = (h, s, b) to it. By the
   performance difference identity V = V⁰ + Σ_e x_e A_e, with A_e the advantage of e under the base
   policy, and the mass that arrives at a state is m(s) = m⁰(s) + Σ_e x_e R_{e,s}, with R the change
   in the probability of reaching it. So V_u as it is, x ≥ 0 and Σ_{e at s} x_e ≤ m(s) describe a
   polytope in a handful of numbers, and the same moves lead to a vertex of it. Windows hold a few
   random decisions each, so that R stays small. Forward through the windows, this leaves at most I
   per window; wider windows follow, until I are left in all.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from cmdpax.model import CMDP
from cmdpax.planning.stepping import Stepper, values_ahead

_DEPENDENT = 1e-12  # gains per unit of occupancy that count as linearly dependent
_ROUNDING = 1e-14  # what rounding leaves of probabilities and rates that would be 0
_SAFE_PIVOT = 1e-6
_SKEW = 0.01  # the sine of an angle from which a cross product is accurate
_MOST_MOVES = 10  # per decision, since rounding might make moves go round in circles
_BLOCK = 256  # random decisions of a step that are reduced together
_WINDOW = 32  # random decisions of a window at first, or four times the constraints
_LATER_WINDOWS = 50_000  # numbers per step that wider windows may carry


def derandomize(cmdp: CMDP, policy: Float[np.ndarray, "H S A"]) -> np.ndarray:
    """An equally good policy that randomises in at most I places.

    Expects signals of magnitude 1, as scaled models have them.
    """
    policy, stepper = policy.copy(), Stepper(cmdp)
    size = max(_WINDOW, 4 * cmdp.num_constraints)
    if _alternatives_by_step(policy).max() > size:
        _reduce_within_steps(stepper, policy)
    left = _num_alternatives(policy)
    while left > cmdp.num_constraints:
        _reduce_windows(stepper, policy, size)
        before, left = left, _num_alternatives(policy)
        if left >= before:
            break
        size = max(size, min(16 * size, _LATER_WINDOWS // cmdp.num_states))
    return policy


def _alternatives_by_step(policy: np.ndarray) -> np.ndarray:
    """How many actions have positive probability beside the first in their state, `[H]`."""
    return np.count_nonzero(policy, axis=(1, 2)) - policy.shape[1]


def _num_alternatives(policy: np.ndarray) -> int:
    return int(_alternatives_by_step(policy).sum())


# -------------------------------------------------------------------------------- the reduction


class Choices(NamedTuple):
    """Where a policy is random: places n = (h, s), and alternatives e at one of them."""

    steps: np.ndarray  # [n]
    states: np.ndarray  # [n]
    base: np.ndarray  # [n]: the likeliest action
    owner: np.ndarray  # [E]: the place of each alternative
    actions: np.ndarray  # [E]

    @classmethod
    def of(cls, policy: Float[np.ndarray, "H S A"]) -> "Choices":
        """The random decisions of a policy."""
        steps, states = np.nonzero(np.count_nonzero(policy, axis=2) > 1)
        rows = policy[steps, states]
        base = rows.argmax(axis=1)
        support = rows > 0
        support[np.arange(len(steps)), base] = False
        owner, actions = np.nonzero(support)
        return cls(steps, states, base, owner, actions)

    def part(self, start: int, stop: int) -> "Choices":
        """The places from `start` to `stop`."""
        mine = (self.owner >= start) & (self.owner < stop)
        return Choices(
            self.steps[start:stop],
            self.states[start:stop],
            self.base[start:stop],
            self.owner[mine] - start,
            self.actions[mine],
        )

    def blocks(self, size: int) -> Iterator["Choices"]:
        """The same, cut into parts of at most `size` places."""
        for start in range(0, len(self.steps), size):
            yield self.part(start, start + size)

    def incidence(self) -> Float[np.ndarray, "n E"]:
        """1 where alternative e belongs to place n."""
        return (np.arange(len(self.steps))[:, None] == self.owner).astype(float)

    def apply(self, policy: np.ndarray, alternatives: np.ndarray, base: np.ndarray) -> None:
        """Write these occupancies as the decisions at the places, in place."""
        rows = np.zeros((len(self.steps), policy.shape[2]))
        rows[np.arange(len(rows)), self.base] = base
        rows[self.owner, self.actions] = alternatives
        total = rows.sum(axis=1, keepdims=True)
        certain = np.eye(policy.shape[2])[self.base]  # where no mass arrives any more
        divided = np.divide(rows, total, out=certain, where=total > 0)
        divided[divided < _ROUNDING] = 0.0
        policy[self.steps, self.states] = divided / divided.sum(axis=1, keepdims=True)


def move_to_vertex(
    alternatives: Float[np.ndarray, " E"],
    base: Float[np.ndarray, " n"],
    response: Float[np.ndarray, "n E"],
    gains: Float[np.ndarray, "E J"],
) -> tuple[Float[np.ndarray, " E"], Float[np.ndarray, " n"]]:
    """Occupancies of the alternatives and of the base actions at a vertex.

    The base occupancies change by `response` and the values by `gains` per unit of an alternative;
    all occupancies stay non-negative, V_u stays what it is and V_r does not fall. At most I
    alternatives are left beside one action per place. When a base occupancy becomes 0, an
    alternative of that place takes its part (a pivot of the tableau of `response` and `gains`).
    """
    free, bound = alternatives.copy(), base.copy()
    response, gains = response.copy(), gains.copy()
    # Which variable stands in a column or row: alternatives are 0 … E-1, bases E, E+1, …
    column_of, row_of = np.arange(len(free)), len(free) + np.arange(len(bound))
    num_constraints = gains.shape[1] - 1
    for _ in range(_MOST_MOVES * (1 + len(free) + len(bound))):
        active = np.flatnonzero(free > 0)[: num_constraints + 1]
        move = _idle_direction(gains[active, 1:].T)
        if move is None:
            break
        move = move if move @ gains[active, 0] >= 0 else -move
        change = response[:, active] @ move
        room = np.concatenate([free[active], bound])
        rate = -np.concatenate([move, change])
        shrinking = rate > _ROUNDING  # a pivot on less would be one on noise
        lengths = np.where(shrinking, room / np.where(shrinking, rate, 1.0), np.inf)
        first = int(lengths.argmin())
        free[active] = np.maximum(free[active] + lengths[first] * move, 0.0)
        bound = np.maximum(bound + lengths[first] * change, 0.0)
        if first < active.size:
            free[active[first]] = 0.0
            continue
        row = first - active.size
        column = _pivot_column(np.abs(response[row]), free)
        _pivot(response, gains, row, column)
        bound[row], free[column] = free[column], 0.0
        column_of[column], row_of[row] = row_of[row], column_of[column]
    result = np.zeros(len(free) + len(bound))
    result[column_of], result[row_of] = free, bound
    return result[: len(free)], result[len(free) :]


def _idle_direction(gains: Float[np.ndarray, "I E"]) -> np.ndarray | None:
    """A unit vector that the gains do not notice; None if they are independent."""
    num_constraints, num_active = gains.shape
    if num_active == 0:
        return None
    if num_constraints == 1 and num_active == 2:  # most models have one constraint
        one, other = gains[0]
        length = math.hypot(one, other)
        return np.array([other, -one]) / length if length > 0 else np.array([1.0, 0.0])
    if num_constraints == 2 and num_active == 3:
        (a, b, c), (d, e, f) = gains.tolist()
        normal = np.array([b * f - c * e, c * d - a * f, a * e - b * d])
        length = math.sqrt(normal @ normal)
        if length > _SKEW * np.abs(gains[0]).max() * np.abs(gains[1]).max():
            return normal / length  # else cancellation would spoil it
    _, singular, right = np.linalg.svd(gains)
    independent = singular.min(initial=np.inf) > _DEPENDENT
    return None if num_active <= num_constraints and independent else right[-1]


def _pivot_column(response: np.ndarray, free: np.ndarray) -> int:
    """The column to exchange with a row that became 0: a large entry keeps rounding small.

    Each one that is in use leaves one alternative fewer; the others serve where all of those are
    tiny, as the probability of reaching a place may be.
    """
    used = np.where(free > 0, response, 0.0)
    return int(used.argmax() if used.max() > _SAFE_PIVOT else response.argmax())


def _pivot(response: np.ndarray, gains: np.ndarray, row: int, column: int) -> None:
    """Exchange a column and a row of the tableau, in place."""
    pivot = response[row, column]
    replaced = -response[row] / pivot
    replaced[column] = 1.0 / pivot
    columns = np.flatnonzero(replaced)  # few, where decisions do not reach each other
    for table in (response, gains.T):
        rows = np.flatnonzero(table[:, column])
        factor = table[rows, column]
        table[rows, column] = 0.0
        table[np.ix_(rows, columns)] += factor[:, None] * replaced[columns]
    response[row] = replaced


# --------------------------------------------------------------------------------- within a step


def _reduce_within_steps(stepper: Stepper, policy: np.ndarray) -> None:
    """Leave at most I random decisions in every step, in place."""
    ahead, mass = values_ahead(stepper, policy), stepper.initial
    num_actions = policy.shape[2]
    for step in range(stepper.horizon):
        states = np.flatnonzero(np.count_nonzero(policy[step], axis=1) > 1)
        if states.size:
            pairs = np.repeat(states, num_actions), np.tile(np.arange(num_actions), len(states))
            q_values = stepper.q_values(step, *pairs, ahead[step + 1])
            q_values = q_values.reshape(len(states), num_actions, -1)
            policy[step, states] = _reduce_step(policy[step, states], mass[states], q_values)
        mass = stepper.advance(step, mass, policy[step])


def _reduce_step(
    decisions: Float[np.ndarray, "S A"],
    mass: Float[np.ndarray, " S"],
    q_values: Float[np.ndarray, "S A J"],
) -> Float[np.ndarray, "S A"]:
    """The decisions of one step, of which at most I are random."""
    # Where actions tie in every signal (symmetric models have many), the likeliest will do.
    likeliest = np.take_along_axis(q_values, decisions.argmax(1)[:, None, None], axis=1)
    alike = np.abs(q_values - likeliest).max(axis=2) <= _DEPENDENT * np.abs(q_values).max()
    merged = np.where(alike, 0.0, decisions)
    np.put_along_axis(
        merged, decisions.argmax(1)[:, None], 1.0 - merged.sum(axis=1, keepdims=True), axis=1
    )
    policy = merged[None]
    while True:
        found = Choices.of(policy)
        before = len(found.owner)
        for block in found.blocks(_BLOCK):
            states = block.states[block.owner]
            base_q = q_values[block.states, block.base][block.owner]
            occupancies = mass[:, None] * policy[0]
            vertex = move_to_vertex(
                occupancies[states, block.actions],
                occupancies[block.states, block.base],
                -block.incidence(),
                q_values[states, block.actions] - base_q,
            )
            block.apply(policy, *vertex)
        if before <= _BLOCK or len(Choices.of(policy).owner) == before:
            return policy[0]


# ------------------------------------------------------------------------------------ in a window


def _reduce_windows(stepper: Stepper, policy: np.ndarray, size: int) -> None:
    """Leave at most I random decisions in each window of about that many, in place."""
    ahead, mass, done = values_ahead(stepper, policy), stepper.initial, 0
    for window in _windows(Choices.of(policy), size):
        start, stop = int(window.steps[0]), int(window.steps[-1]) + 1
        for step in range(done, start):
            mass = stepper.advance(step, mass, policy[step])
        gains, reach = _respond(stepper, policy, window, ahead[stop])
        alternatives, base = _occupancies(stepper, policy, window, mass)
        response = reach.T - window.incidence()
        window.apply(policy, *move_to_vertex(alternatives, base, response, gains))
        done = start


def _windows(choices: Choices, size: int) -> Iterator[Choices]:
    """Runs of whole steps with about `size` places each."""
    start = 0
    while start < len(choices.steps):
        last = choices.steps[min(start + size, len(choices.steps)) - 1]
        stop = int(np.searchsorted(choices.steps, last, side="right"))
        yield choices.part(start, stop)
        start = stop


def _respond(
    stepper: Stepper, policy: np.ndarray, choices: Choices, ahead: Float[np.ndarray, "S J"]
) -> tuple[Float[np.ndarray, "E J"], Float[np.ndarray, "E n"]]:
    """A and R of the base actions in a window, by one backward pass.

    The functions carried are the signals' values and, for each place, the probability of
    reaching it.
    """
    num_signals, num_places = stepper.num_signals, len(choices.steps)
    functions = np.concatenate([ahead, np.zeros((stepper.num_states, num_places))], axis=1)
    response = np.zeros((len(choices.owner), num_signals + num_places))
    at = choices.steps[choices.owner]
    every = np.arange(stepper.num_states)
    for step in range(int(choices.steps[-1]), int(choices.steps[0]) - 1, -1):
        now, here = np.flatnonzero(at == step), np.flatnonzero(choices.steps == step)
        if now.size:
            states = choices.states[choices.owner[now]]
            response[now] = stepper.q_values(step, states, choices.actions[now], functions)
        functions = stepper.q_values(step, every, policy[step].argmax(axis=1), functions)
        if now.size:
            response[now] -= functions[states]
            functions[choices.states[here], num_signals + here] = 1.0
    return response[:, :num_signals], response[:, num_signals:]


def _occupancies(
    stepper: Stepper, policy: np.ndarray, choices: Choices, mass: Float[np.ndarray, " S"]
) -> tuple[Float[np.ndarray, " E"], Float[np.ndarray, " n"]]:
    """Occupancies of the alternatives and the base actions under the policy as it is."""
    arriving = np.zeros(len(choices.steps))
    for step in range(int(choices.steps[0]), int(choices.steps[-1]) + 1):
        here = np.flatnonzero(choices.steps == step)
        arriving[here] = mass[choices.states[here]]
        mass = stepper.advance(step, mass, policy[step])
    rows = arriving[:, None] * policy[choices.steps, choices.states]
    base = rows[np.arange(len(rows)), choices.base]
    return rows[choices.owner, choices.actions], base
