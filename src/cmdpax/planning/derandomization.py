"""Fewer random decisions: an optimal policy that randomises in at most I places.

A mixture of I + 1 deterministic policies, written as one Markov policy, is random wherever they
differ, which can be thousands of (h, s) where actions tie. A vertex of the optimal face is random
in at most I of them. Two reductions lead there, neither of which lowers the value or a constraint
value (beyond rounding):

1. *Within a step*, values are linear in that step's decisions: V = Σ_s m(s) Σ_a π(a | s) Q(s, a)
   with m the mass that arrives and Q the later policy's values. Any I + 1 random choices have a
   direction that keeps all V_u, along which one of them becomes certain (Carathéodory's argument).
   Forward through the steps, this leaves at most I per step.
2. *Across steps*, values are linear in occupancies. Let the policy take a base action everywhere,
   and x_e be the occupancy of the alternative e = (h, s, b) to it. By the performance difference
   identity V = V⁰ + Σ_e x_e A_e, with A_e the advantage of e under the base policy, and the mass
   that arrives at a state is m(s) = m⁰(s) + Σ_e x_e R_{e,s}, with R the change in the probability
   of reaching it. So V_u as it is, x ≥ 0 and Σ_{e at s} x_e ≤ m(s) describe a
   polytope in a handful of numbers, and the same moves lead to a vertex of it.
"""

from collections.abc import Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer

from cmdpax.evaluation import signals_at
from cmdpax.model import CMDP
from cmdpax.planning.dynamic_program import place
from cmdpax.transitions import at_step, backup, choose, push

_DEPENDENT = 1e-12  # gains per unit of occupancy that count as linearly dependent
_ROUNDING = 1e-14  # what rounding leaves of probabilities and rates that would be 0
_BLOCK = 256  # random decisions that are reduced together
_COLUMN_BLOCK = 32  # arrays grow in blocks, so that compiled steps are reused


def derandomize(cmdp: CMDP, policy: Float[np.ndarray, "H S A"]) -> np.ndarray:
    """An equally good policy that randomises in at most I places (expects double precision)."""
    device_cmdp = place(cmdp)
    policy = policy.copy()
    if _num_alternatives(policy) > cmdp.num_constraints:
        _reduce_within_steps(device_cmdp, policy)
    if _num_alternatives(policy) > cmdp.num_constraints:
        _reduce_across_steps(device_cmdp, policy)
    return policy


def _num_alternatives(policy: np.ndarray) -> int:
    """How many actions have positive probability beside the first in their state."""
    return int(np.count_nonzero(policy) - policy.shape[0] * policy.shape[1])


# ------------------------------------------------------------------ one step of the model, jitted


@jax.jit
def _q_values(cmdp: CMDP, step: Array | int, values: Float[Array, "S J"]) -> Float[Array, "S A J"]:
    expected = backup(at_step(cmdp.transitions, step), values)
    return jnp.moveaxis(signals_at(cmdp, step), 0, -1) + expected


@jax.jit
def _advance(cmdp: CMDP, step: Array | int, mass: Float[Array, "S A"]) -> Float[Array, " S"]:
    return push(at_step(cmdp.transitions, step), mass, cmdp.num_states)


@jax.jit
def _chosen_backup(
    cmdp: CMDP,
    step: Array | int,
    actions: Integer[Array, "L S"],
    functions: Float[Array, "S F"],
) -> Float[Array, "L S F"]:
    """Expected next value of several functions under several choices of actions."""
    transitions = at_step(cmdp.transitions, step)
    return jax.vmap(lambda row: backup(choose(transitions, row), functions)[:, 0])(actions)


# -------------------------------------------------------------------------------- the reduction


class Choices(NamedTuple):
    """Where a policy is random: places n = (h, s), and alternatives e at one of them."""

    steps: np.ndarray  # [n]
    states: np.ndarray  # [n]
    base: np.ndarray  # [n]: the likeliest action
    owner: np.ndarray  # [E]: the place of each alternative
    actions: np.ndarray  # [E]
    layer: np.ndarray  # [E]: 1, 2, … counts the alternatives of one place

    @classmethod
    def of(cls, policy: Float[np.ndarray, "H S A"]) -> "Choices":
        """The random decisions of a policy."""
        steps, states = np.nonzero(np.count_nonzero(policy, axis=2) > 1)
        rows = policy[steps, states]
        base = rows.argmax(axis=1)
        support = rows > 0
        support[np.arange(len(steps)), base] = False
        owner, actions = np.nonzero(support)
        layer = np.cumsum(support, axis=1)[owner, actions]
        return cls(steps, states, base, owner, actions, layer)

    def blocks(self, size: int) -> Iterator["Choices"]:
        """The same, cut into parts of at most `size` places."""
        for start in range(0, len(self.steps), size):
            part = slice(start, start + size)
            mine = (self.owner >= start) & (self.owner < start + size)
            yield Choices(
                self.steps[part],
                self.states[part],
                self.base[part],
                self.owner[mine] - start,
                self.actions[mine],
                self.layer[mine],
            )

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
    while True:
        active = np.flatnonzero(free > 0)[: num_constraints + 1]
        _, singular, right = np.linalg.svd(gains[active, 1:].T)
        independent = singular.min(initial=np.inf) > _DEPENDENT
        if not active.size or (active.size <= num_constraints and independent):
            break
        move = right[-1] if right[-1] @ gains[active, 0] >= 0 else -right[-1]
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
        column = int(active[np.abs(response[row, active]).argmax()])
        _pivot(response, gains, row, column)
        bound[row], free[column] = free[column], 0.0
        column_of[column], row_of[row] = row_of[row], column_of[column]
    result = np.zeros(len(free) + len(bound))
    result[column_of], result[row_of] = free, bound
    return result[: len(free)], result[len(free) :]


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


def _reduce_within_steps(cmdp: CMDP, policy: np.ndarray) -> None:
    """Leave at most I random decisions in every step, in place."""
    horizon, num_states, _ = policy.shape
    later = np.zeros((horizon + 1, num_states, 1 + cmdp.num_constraints))
    for step in reversed(range(horizon)):
        q_values = np.asarray(_q_values(cmdp, step, later[step + 1]))
        later[step] = np.einsum("sa,sai->si", policy[step], q_values)
    mass = np.asarray(cmdp.initial)
    for step in range(horizon):
        if np.count_nonzero(policy[step]) > num_states:
            q_values = np.asarray(_q_values(cmdp, step, later[step + 1]))
            policy[step] = _reduce_step(policy[step], mass, q_values)
        mass = np.asarray(_advance(cmdp, step, mass[:, None] * policy[step]))


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


# ----------------------------------------------------------------------------------- across steps


def _reduce_across_steps(cmdp: CMDP, policy: np.ndarray) -> None:
    """Leave at most I random decisions in all, in place."""
    choices = Choices.of(policy)
    gains, reach = _respond(cmdp, policy.argmax(axis=2), choices)
    alternatives, base = _occupancies(cmdp, policy, choices)
    response = reach.T - choices.incidence()
    choices.apply(policy, *move_to_vertex(alternatives, base, response, gains))


def _respond(
    cmdp: CMDP, base: Integer[np.ndarray, "H S"], choices: Choices
) -> tuple[Float[np.ndarray, "E J"], Float[np.ndarray, "E n"]]:
    """A and R of the base policy, by one backward pass.

    The functions carried are the signals' values and, for each place, the probability of
    reaching it.
    """
    horizon, num_states = base.shape
    num_places, num_signals = len(choices.steps), 1 + cmdp.num_constraints
    width = -(-(num_signals + num_places) // _COLUMN_BLOCK) * _COLUMN_BLOCK
    functions = np.zeros((num_states, width))
    response = np.zeros((len(choices.owner), width))
    num_layers = 1 + choices.layer.max()
    at = choices.steps[choices.owner]
    for step in reversed(range(horizon)):
        actions = np.repeat(base[step][None], num_layers, axis=0)
        now = np.flatnonzero(at == step)
        states, layers = choices.states[choices.owner[now]], choices.layer[now]
        actions[layers, states] = choices.actions[now]
        needed = actions if now.size else actions[:1]
        after = np.array(_chosen_backup(cmdp, step, needed, functions))
        signals = np.asarray(signals_at(cmdp, step))  # [1+I, S, A]
        gained = signals[:, np.arange(num_states), needed]  # [1+I, L, S]
        after[:, :, :num_signals] += np.moveaxis(gained, 0, -1)
        response[now] = after[layers, states] - after[0, states]
        functions = after[0]
        here = np.flatnonzero(choices.steps == step)
        functions[choices.states[here], num_signals + here] = 1.0
    used = slice(num_signals, num_signals + num_places)
    return response[:, :num_signals], response[:, used]


def _occupancies(
    cmdp: CMDP, policy: np.ndarray, choices: Choices
) -> tuple[Float[np.ndarray, " E"], Float[np.ndarray, " n"]]:
    """Occupancies of the alternatives and the base actions under the policy as it is."""
    mass = np.asarray(cmdp.initial)
    arriving = np.zeros(len(choices.steps))
    for step in range(policy.shape[0]):
        here = np.flatnonzero(choices.steps == step)
        arriving[here] = mass[choices.states[here]]
        mass = np.asarray(_advance(cmdp, step, mass[:, None] * policy[step]))
    rows = arriving[:, None] * policy[choices.steps, choices.states]
    base = rows[np.arange(len(rows)), choices.base]
    return rows[choices.owner, choices.actions], base
