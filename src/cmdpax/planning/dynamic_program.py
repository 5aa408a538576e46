"""Backward induction: greedy, and soft (entropy-regularized).

Both plan for the signal z = w_0 r + Σ_i w_i u_i: w = (1, λ) gives the Lagrangian's reward, and
w = (0, λ) the signal that tests feasibility. With V_{H+1} = 0, backward in h:

* greedy: Q_h = z_h + p_h V_{h+1},  V_h(s) = max_a Q_h(s, a);
* soft:   Q_h = z_h + p_h V_{h+1},  V_h(s) = τ log Σ_a exp(Q_h(s, a)/τ),  π_h = softmax(Q_h/τ),
  the maximum of V_z^π + τ·entropy over policies.

Both also carry the values of each signal under the policy being built, W_h(s) = (V_r, V_{u_1}, …),
so that one backward pass plans *and* evaluates. In the greedy case V = W w, so only W is carried.
Q is -∞ for actions that are not available: no maximum takes them, and their softmax is 0.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer

from cmdpax.jax_context import in_double_precision
from cmdpax.model.availability import Flags, flags_at, only_available
from cmdpax.model.cmdp import CMDP, Sizes
from cmdpax.model.evaluation import backward_scan, signals_at
from cmdpax.model.transitions import (
    Transitions,
    Transposed,
    at_step,
    backup,
    backup_signals,
    choose,
)

_WORTH_MOVING = 250_000  # stored transitions times steps from which an accelerator is faster


def place(cmdp: CMDP) -> CMDP:
    """The model on the device that plans it fastest: an accelerator only if it is large.

    Planning is a chain of H small steps, and each takes an accelerator time to launch.
    """
    stored = jax.tree.leaves(cmdp.transitions)[-1]
    work = stored.size * (cmdp.horizon if stored.shape[0] == 1 else 1)
    if work >= _WORTH_MOVING:
        return jax.device_put(cmdp)
    if jax.default_backend() == "cpu":
        return _as_arguments(cmdp)
    return jax.device_put(cmdp, jax.local_devices(backend="cpu")[0])


@jax.jit
def _as_arguments(cmdp: CMDP) -> CMDP:
    """Small models move faster as arguments of a compiled function than by `device_put`."""
    return cmdp


def greedy_plan(
    cmdp: CMDP, weights: Float[Array, " J"]
) -> tuple[Float[Array, " J"], Integer[Array, "H S"]]:
    """(V_r, V_u) and the actions of a policy that maximises w_0 V_r + Σ_i w_i V_{u_i}.

    Where actions tie, it is the lowest. Backward induction, planning and evaluation in one pass.
    """
    kind = jnp.uint8 if cmdp.num_actions <= 256 else jnp.int32  # [H, S] can be large

    def step(
        values: Float[Array, "S J"], index: Array
    ) -> tuple[Float[Array, "S J"], Integer[Array, " S"]]:
        signals = signals_at(cmdp, index)
        transitions = at_step(cmdp.transitions, index)
        q_values = jnp.tensordot(weights, signals, axes=1)
        q_values = q_values + backup(transitions, values @ weights)
        q_values = only_available(q_values, flags_at(cmdp.available, index))
        actions = jnp.argmax(q_values, axis=-1).astype(jnp.int32)
        gained = jnp.take_along_axis(signals, actions[None, :, None], axis=2)[:, :, 0].T
        expected = backup(choose(transitions, actions), values)[:, 0]
        return gained + expected, actions.astype(kind)

    zeros = jnp.zeros((cmdp.num_states, 1 + cmdp.num_constraints), cmdp.rewards.dtype)
    values, actions = jax.lax.scan(step, zeros, jnp.arange(cmdp.horizon), reverse=True)
    return cmdp.initial @ values, actions


@jax.jit
def greedy_plans(
    cmdp: CMDP, weights: Float[Array, "B J"] | Float[np.ndarray, "B J"]
) -> tuple[Float[Array, "B J"], Integer[Array, "B H S"]]:
    """Greedy plans for a batch of weights."""
    return jax.vmap(greedy_plan, in_axes=(None, 0))(cmdp, jnp.asarray(weights))


@in_double_precision
def greedy_values(cmdp: CMDP, weights: np.ndarray) -> np.ndarray:
    """(V_r, V_u), `[B, 1 + I]`, of the greedy policies for a batch of weights."""
    values, _ = greedy_plans(cmdp, jnp.asarray(weights))
    return np.asarray(values)


Stage = tuple[Transitions | Transposed, Float[Array, "S A"], Float[Array, "J S A"]]
"""One step: its transitions, the reward to maximise and the signals to evaluate along the way."""

Rule = Callable[[Float[Array, "S A"]], tuple[Float[Array, "S A"], Float[Array, " S"]]]
"""From Q_h to the decisions log π_h and the values V_h that they maximise."""

Plan = tuple[Float[Array, ""], Float[Array, " J"], Float[Array, "H S A"]]
"""The maximum Σ_s μ(s) V_1(s), (V_r, V_u) of the policy (without an entropy), and log π."""


def soft(regularization: Float[Array, ""]) -> Rule:
    """π = softmax(Q/τ), V = τ log Σ exp(Q/τ)."""

    def decide(q_values: Float[Array, "S A"]) -> tuple[Float[Array, "S A"], Float[Array, " S"]]:
        scaled = q_values / regularization
        values = regularization * jax.nn.logsumexp(scaled, axis=-1)
        return jax.nn.log_softmax(scaled, axis=-1), values

    return decide


def greedy(
    q_values: Float[Array, "S A"],
) -> tuple[Float[Array, "S A"], Float[Array, " S"]]:
    """The first action within rounding of the maximum: 1e-10, or 1e-6 in single precision."""
    tolerance = 1e-10 if q_values.dtype == jnp.float64 else 1e-6
    values = jnp.max(q_values, axis=-1)
    chosen = jnp.argmax(q_values >= values[:, None] - tolerance, axis=-1)
    certain = jax.nn.one_hot(chosen, q_values.shape[-1], dtype=q_values.dtype)
    return jnp.log(certain), values


def backward_plan(
    stage_at: Callable[[Array | int], Stage],
    sizes: Sizes,
    rule: Rule,
    initial: Float[Array, " S"],
    unrolled: bool = False,
    available: Flags | None = None,
) -> Plan:
    """Backward induction by any rule, which also evaluates the signals under its policy."""

    def step(
        values: Float[Array, "L S"] | None, at: tuple[Any, ...]
    ) -> tuple[Float[Array, "L S"], Float[Array, "S A"]]:
        transitions, reward, signals = stage_at(at[0])
        if values is not None:
            expected = backup_signals(transitions, values)
            reward, signals = reward + expected[0], signals + expected[1:]
        log_policy, best_values = rule(only_available(reward, flags_at(available, at[0])))
        gained = jnp.sum(jnp.exp(log_policy)[None] * signals, axis=-1)
        return jnp.concatenate([best_values[None], gained]), log_policy

    num_constraints, horizon, num_states, _ = sizes
    # The maximised value first, then the signals' values.
    zeros = jnp.zeros((2 + num_constraints, num_states), initial.dtype)
    values, log_policy = backward_scan(step, zeros, (jnp.arange(horizon),), unrolled)
    at_start = values @ initial
    return at_start[0], at_start[1:], log_policy


def soft_plan(cmdp: CMDP, weights: Float[Array, " J"], regularization: Float[Array, ""]) -> Plan:
    """The optimum of V_{wᵀz}^π + τ·entropy: soft backward induction at temperature τ > 0."""

    def stage_at(index: Array | int) -> Stage:
        signals = signals_at(cmdp, index)
        reward = jnp.tensordot(weights, signals, axes=1)
        return at_step(cmdp.transitions, index), reward, signals

    return backward_plan(
        stage_at,
        cmdp.sizes,
        soft(regularization),
        jnp.asarray(cmdp.initial),
        available=cmdp.available,
    )
