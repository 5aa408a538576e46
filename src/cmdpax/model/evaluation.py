"""Values and occupancies of a policy in a known CMDP.

Backward, for any signal z (the rewards, a constraint, a Lagrangian), with V_{H+1} = 0:

    Q_h(s, a) = z_h(s, a) + Σ_t p_h(t | s, a) V_{h+1}(t),    V_h(s) = Σ_a π_h(a | s) Q_h(s, a).

Forward, the occupancy d_h(s, a) = P[s_h = s, a_h = a]:

    Σ_a d_1(s, a) = μ(s),    Σ_a d_{h+1}(t, a) = Σ_{s,a} d_h(s, a) p_h(t | s, a),

with which V_z^π = ⟨d, z⟩. The occupancy sums to 1 at every step, to H in all.
"""

import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer

from cmdpax.jax_context import in_double_precision, to_numpy
from cmdpax.model.arrays import ArrayLike
from cmdpax.model.cmdp import CMDP
from cmdpax.model.transitions import (
    Successors,
    Transitions,
    at_step,
    backup_signals,
    pick_step,
    push,
)
from cmdpax.model.validation import validate, validate_policy


class Evaluation(NamedTuple):
    """What a policy achieves.

    Attributes:
        value: V_r^π.
        constraint_values: V_u^π, `[I]`, in the senses of the constraints.
        occupancy: d_h(s, a), `[H, S, A]`; sums to 1 at every step.
    """

    value: float
    constraint_values: np.ndarray
    occupancy: np.ndarray


@in_double_precision
def evaluate(cmdp: CMDP, policy: ArrayLike) -> Evaluation:
    """The exact value, constraint values and occupancy of a policy.

    Args:
        cmdp: the model.
        policy: π_h(a | s), `[H, S, A]`, or `[1, S, A]` for a stationary one.

    Examples:
        >>> import cmdpax
        >>> cmdp = cmdpax.environments.make("bandit")
        >>> result = cmdpax.evaluate(cmdp, [[[0.5, 0.5, 0.0]]])
        >>> round(result.value, 12), result.constraint_values.round(12).tolist()
        (0.6, [0.5])
    """
    checked = validate_policy(validate(cmdp), policy)
    values, mass = to_numpy(evaluate_policy(cmdp, checked))
    reached = cmdp.words.turn(values[1:], cmdp.horizon)
    return Evaluation(float(values[0]), reached, mass)


@jax.jit
def evaluate_policy(
    cmdp: CMDP, policy: Float[Array, "H S A"]
) -> tuple[Float[Array, " J"], Float[Array, "H S A"]]:
    """(V_r, V_u) and the occupancy of a policy."""
    mass = occupancy(cmdp, policy)
    return occupancy_values(cmdp, mass), mass


def policy_values(cmdp: CMDP, policies: Float[Array, "B H S A R"]) -> Float[Array, "B J R"]:
    """(V_r, V_u) of many policies, all at once.

    They are stacked along the first axis, the last, or both, as they lie in memory.
    Dense transitions are one matrix product per step forward in time; lists are read backward,
    where the next values are gathered: scattering the mass takes ten times as long.
    """
    if isinstance(cmdp.transitions, Successors):
        each = jax.vmap(functools.partial(_values, cmdp), in_axes=-1, out_axes=-1)
        return jax.vmap(each)(policies)
    num_first, _, num_states, _, num_last = policies.shape

    def step(
        carry: tuple[Float[Array, "B S R"], Float[Array, "B J R"]], index: Array
    ) -> tuple[tuple[Array, Array], None]:
        state_mass, total = carry
        mass = state_mass[:, :, None] * policies[:, index]
        total = total + jnp.einsum("bsar,jsa->bjr", mass, signals_at(cmdp, index))
        transitions = at_step(cmdp.transitions, index)
        return (jnp.einsum("bsar,sat->btr", mass, transitions), total), None

    initial = jnp.asarray(cmdp.initial)[None, :, None]
    start = (
        jnp.broadcast_to(initial, (num_first, num_states, num_last)),
        jnp.zeros((num_first, 1 + cmdp.num_constraints, num_last), policies.dtype),
    )
    (_, total), _ = jax.lax.scan(step, start, jnp.arange(cmdp.horizon))
    return total


def _values(cmdp: CMDP, policy: Float[Array, "H S A"]) -> Float[Array, " J"]:
    """(V_r, V_u) of a policy, backward in time."""

    def step(
        values: Float[Array, "J S"], at: tuple[Array, Array]
    ) -> tuple[Float[Array, "J S"], None]:
        index, decision = at
        transitions = at_step(cmdp.transitions, index)
        every_q = signals_at(cmdp, index) + backup_signals(transitions, values)
        return jnp.sum(decision[None] * every_q, axis=-1), None

    zeros = jnp.zeros((1 + cmdp.num_constraints, cmdp.num_states), policy.dtype)
    stages = (jnp.arange(cmdp.horizon), policy)
    values, _ = jax.lax.scan(step, zeros, stages, reverse=True)
    return values @ cmdp.initial


def signals_at(cmdp: CMDP, step: Array | int) -> Float[Array, "J S A"]:
    """r_h and u_{i,h} of one step, stacked: signal 0 is the reward."""
    rewards = pick_step(cmdp.rewards, step)
    constraints = pick_step(jnp.swapaxes(cmdp.constraint_rewards, 0, 1), step)
    return jnp.concatenate([rewards[None], constraints])


def signals_of(
    cmdp: CMDP, step: Array | int, state: Integer[Array, ""], action: Integer[Array, ""]
) -> Float[Array, " J"]:
    """r_h(s, a) and u_{i,h}(s, a), without reading those of other states."""
    constraints, rewards = jnp.asarray(cmdp.constraint_rewards), jnp.asarray(cmdp.rewards)
    reward = rewards[0 if rewards.shape[0] == 1 else step, state, action]
    others = constraints[:, 0 if constraints.shape[1] == 1 else step, state, action]
    return jnp.concatenate([reward[None], others])


def occupancy(cmdp: CMDP, policy: Float[Array, "H S A"]) -> Float[Array, "H S A"]:
    """Occupancy d_h(s, a) of a policy, forward in time."""

    def step(
        state_mass: Float[Array, " S"], at: tuple[Array, Array]
    ) -> tuple[Float[Array, " S"], Float[Array, "S A"]]:
        index, decision = at
        mass = state_mass[:, None] * decision
        return push(at_step(cmdp.transitions, index), mass, cmdp.num_states), mass

    _, result = jax.lax.scan(step, cmdp.initial, (jnp.arange(cmdp.horizon), policy))
    return result


def occupancy_values(cmdp: CMDP, mass: Float[Array, "H S A"]) -> Float[Array, " J"]:
    """(⟨d, r⟩, ⟨d, u⟩): the values of an occupancy."""

    def add(
        total: Float[Array, " J"], at: tuple[Array, Float[Array, "S A"]]
    ) -> tuple[Float[Array, " J"], None]:
        index, step_mass = at
        return total + jnp.tensordot(signals_at(cmdp, index), step_mass, axes=2), None

    start = jnp.zeros(1 + cmdp.num_constraints, mass.dtype)
    total, _ = jax.lax.scan(add, start, (jnp.arange(cmdp.horizon), mass))
    return total


# ------------------------------------------------------------- Q-values of several signals at once


def signal_array(cmdp: CMDP) -> Float[Array, "H J S A"]:
    """r and u of every step, stacked: signal 0 is the reward."""
    return jax.vmap(lambda step: signals_at(cmdp, step))(jnp.arange(cmdp.horizon))


def q_values(
    transitions: Transitions,
    signals: Float[Array, "H L S A"],
    policy: Float[Array, "H S A"],
) -> tuple[Float[Array, "H L S A"], Float[Array, "L S"]]:
    """Q of each signal under a policy, and V at the first step."""

    def step(
        values: Float[Array, "L S"], at: tuple[Array, Array, Array]
    ) -> tuple[Float[Array, "L S"], Float[Array, "L S A"]]:
        index, signal, decision = at
        q_step = signal + backup_signals(at_step(transitions, index), values)
        return jnp.sum(decision[None] * q_step, axis=-1), q_step

    horizon, num_signals, num_states, _ = signals.shape
    start = jnp.zeros((num_signals, num_states), signals.dtype)
    stages = (jnp.arange(horizon), signals, policy)
    values, result = jax.lax.scan(step, start, stages, reverse=True)
    return result, values


def backward_scan(
    step: Callable[[Any, Any], tuple[Any, Any]], zeros: Array, stages: Any, unrolled: bool
) -> tuple[Any, Any]:
    """`lax.scan` from the last stage to the first; unrolled, each stage is compiled by itself.

    Unrolled code takes longer to compile and is faster where steps are small, and it can read
    arrays that are kept step by step. Its last stage gets None for V_{H+1} = 0, which saves a
    product.
    """
    if not unrolled:
        return jax.lax.scan(step, zeros, stages, reverse=True)
    horizon = jax.tree.leaves(stages)[0].shape[0]
    shown: list[Any] = [None] * horizon
    values = None
    for index in reversed(range(horizon)):
        _, *rest = jax.tree.map(operator.itemgetter(index), stages)
        values, shown[index] = step(values, (index, *rest))
    return values, jax.tree.map(lambda *arrays: jnp.stack(arrays), *shown)
