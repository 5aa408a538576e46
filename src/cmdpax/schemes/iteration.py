"""The schemes with the model known: exact values in place of optimistic ones.

primal-dual:  Q = Q^{π_k} of r + λ_kᵀu + τψ_k,   π_{k+1} ∝ π_k exp(ηQ)             Eqs. (3), (6)
dual:         π_k = argmax_π V_{r + λ_kᵀu}^π + τ·entropy(π)
both:         λ_{k+1} = clip((1 - ητ) λ_k - η (V_u^{π_k} - c))                     Eqs. (4), (7)
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer

from cmdpax.checks import check_choice, real_number, require_count
from cmdpax.errors import ParameterError
from cmdpax.jax_context import in_double_precision, to_numpy
from cmdpax.model.availability import surprisal_of, uniform_log_policy
from cmdpax.model.cmdp import CMDP
from cmdpax.model.evaluation import occupancy, q_values, signal_array
from cmdpax.model.transitions import at_step
from cmdpax.model.validation import validate
from cmdpax.planning.dynamic_program import backward_plan, greedy, soft
from cmdpax.planning.saddle_point import RegularizedSolution
from cmdpax.schemes.hyperparameters import (
    Hyperparameters,
    Rates,
    choose_hyperparameters,
    rates_at,
)
from cmdpax.schemes.parameters import parameters_in_words
from cmdpax.schemes.potential import potential, saddle_of
from cmdpax.schemes.schedules import Scheduled, as_schedule, is_constant
from cmdpax.schemes.updates import dual_descent, primal_dual_step, raise_to_floor

SCHEMES = ("primal-dual", "dual")
_BLOCK = 1024


class Iterates(NamedTuple):
    """The iterates k = 1, …, T of a scheme.

    Attributes:
        value: V_r^{π_k}, `[T]`.
        constraint_values: V_u^{π_k}, `[T, I]`, in the senses of the constraints.
        multipliers: λ_k, `[T, I]`.
        potential: Φ_k, `[T]`, for a constant τ > 0; else None.
        policy: π_T, the last one evaluated, `[H, S, A]`.
        mixture: the policy of the averaged occupancy of all iterates, `[H, S, A]`.
    """

    value: np.ndarray
    constraint_values: np.ndarray
    multipliers: np.ndarray
    potential: np.ndarray | None
    policy: np.ndarray
    mixture: np.ndarray


def evaluate_with_entropy(
    cmdp: CMDP, log_policy: Float[Array, "H S A"]
) -> tuple[Float[Array, "H L S A"], Float[Array, " L"]]:
    """Q and V of the rewards, of every constraint and of ψ = -log π, in this order."""
    flags = None if cmdp.available is None else cmdp.available[:, None]
    known = signal_array(cmdp)
    signals = jnp.concatenate([known, surprisal_of(log_policy[:, None], flags)], axis=1)
    every_q, values = q_values(cmdp.transitions, signals, jnp.exp(log_policy))
    return every_q, values @ cmdp.initial


def _step(
    cmdp: CMDP,
    log_policy: Float[Array, "H S A"],
    multipliers: Float[Array, " I"],
    rates: Rates,
    policy_floor: Float[Array, ""],
    scheme: str,
) -> tuple[Float[Array, "H S A"], Float[Array, "H S A"], Float[Array, " I"]]:
    """log π_k as it is played, log π_{k+1} and λ_{k+1}; the dual scheme plans its own π_k."""
    if scheme == "primal-dual":
        every_q, values = evaluate_with_entropy(cmdp, log_policy)
        slacks = values[1:-1] - cmdp.thresholds
        ascended, descended, _ = primal_dual_step(log_policy, multipliers, every_q, slacks, rates)
        return log_policy, raise_to_floor(ascended, policy_floor, cmdp.available), descended
    signals = signal_array(cmdp)
    reward = signals[:, 0] + jnp.einsum("i,hisa->hsa", multipliers, signals[:, 1:])
    _, values, planned = backward_plan(
        lambda step: (at_step(cmdp.transitions, step), reward[step], signals[step]),
        cmdp.sizes,
        soft(rates.regularization) if scheme == "dual" else greedy,
        jnp.asarray(cmdp.initial),
        available=cmdp.available,
    )
    slacks = values[1:] - cmdp.thresholds
    step_size, regularization, max_multiplier, _ = rates
    descended = dual_descent(multipliers, slacks, step_size, regularization, max_multiplier)
    return planned, planned, descended


@functools.partial(jax.jit, static_argnames="scheme")
def _advance(
    cmdp: CMDP,
    log_policy: Float[Array, "H S A"],
    multipliers: Float[Array, " I"],
    kept: Any,
    chosen: Hyperparameters,
    policy_floor: Float[Array, ""],
    saddle: RegularizedSolution | None,
    first: Integer[Array, ""],
    count: Integer[Array, ""],
    scheme: str,
) -> tuple[Float[Array, "H S A"], Float[Array, " I"], Any]:
    """The iterations from `first` on, `count` ≤ a block of them.

    They are kept as `Iterates`, with log π_k for the policy and the sum of all occupancies for the
    mixture.
    """
    signals = signal_array(cmdp)

    def body(index: Array, carry: tuple[Array, Array, Any]) -> tuple[Array, Array, Any]:
        log_policy, multipliers, kept = carry
        rates = rates_at(chosen, first + index)
        played, following, descended = _step(
            cmdp, log_policy, multipliers, rates, policy_floor, scheme
        )
        mass = occupancy(cmdp, jnp.exp(played))
        gained = jnp.einsum("hsa,hjsa->j", mass, signals)
        kept = kept._replace(
            value=kept.value.at[index].set(gained[0]),
            constraint_values=kept.constraint_values.at[index].set(gained[1:]),
            multipliers=kept.multipliers.at[index].set(multipliers),
            policy=played,
            mixture=kept.mixture + mass,
        )
        if saddle is not None:
            distance = potential(saddle, played, multipliers)
            kept = kept._replace(potential=kept.potential.at[index].set(distance))
        return following, descended, kept

    return jax.lax.fori_loop(0, count, body, (log_policy, multipliers, kept))


@in_double_precision
def iterate(
    cmdp: CMDP,
    scheme: str,
    *,
    num_iterations: int,
    step_size: Scheduled = 0.1,
    regularization: Scheduled = 0.0,
    max_multiplier: float = 6.0,
    policy_floor: float = 0.0,
) -> Iterates:
    """Iterate a scheme on a known CMDP, from the uniform policy and λ_1 = 0.

    Where only some actions are available, the first policy is uniform over those.

    Args:
        cmdp: the model; any finite rewards.
        scheme: "primal-dual" or "dual".
        num_iterations: T.
        step_size: η, a number or a schedule.
        regularization: τ, a number or a schedule; 0 is the vanilla scheme.
        max_multiplier: λ_max.
        policy_floor: ε_0 ∈ [0, 1]: keeps π(a | s) ≥ ε_0/A, the restricted simplex of RPG-PD
            (primal-dual only); A counts the available actions of the state.

    Examples:
        >>> import cmdpax
        >>> cmdp = cmdpax.environments.make("bandit")
        >>> damped = cmdpax.iterate(cmdp, "primal-dual", num_iterations=2000, regularization=0.05)
        >>> bool(abs(damped.value[-1] - damped.value[-2]) < 1e-6)
        True
    """
    validate(cmdp)
    check_choice("scheme", scheme, tuple(SCHEMES))
    num_iterations = require_count("num_iterations", num_iterations)
    chosen = choose_hyperparameters(
        num_iterations,
        step_size=step_size,
        regularization=regularization,
        max_multiplier=max_multiplier,
    )
    _check_floor(scheme, policy_floor)
    tau = as_schedule("regularization", chosen.regularization)
    saddle = None
    if is_constant(tau) and tau.initial > 0:
        saddle = saddle_of(cmdp, tau.initial, chosen.max_multiplier)
    kind = "greedy" if scheme == "dual" and tau.initial == 0 else scheme
    return _collect(cmdp, chosen, float(policy_floor), saddle, num_iterations, kind)


def _collect(
    cmdp: CMDP,
    chosen: Hyperparameters,
    policy_floor: float,
    saddle: RegularizedSolution | None,
    num_iterations: int,
    scheme: str,
) -> Iterates:
    """Run block after block and put the pieces together."""
    num_constraints, *pairs = cmdp.sizes
    log_policy, multipliers = _first_policy(cmdp), np.zeros(num_constraints)
    numbers, vectors = np.zeros(_BLOCK), np.zeros((_BLOCK, num_constraints))
    distances = None if saddle is None else numbers
    kept = Iterates(numbers, vectors, vectors, distances, log_policy, np.zeros(pairs))
    model, rates = jax.device_put(cmdp), jax.tree.map(jnp.asarray, chosen)
    floor, parts = jnp.asarray(policy_floor), []
    for done in range(0, num_iterations, _BLOCK):
        count = min(_BLOCK, num_iterations - done)
        block = (jnp.int32(done + 1), jnp.int32(count), scheme)
        log_policy, multipliers, kept = _advance(
            model, log_policy, multipliers, kept, rates, floor, saddle, *block
        )
        parts.append((to_numpy(kept), count))

    def joined(name: str) -> np.ndarray:
        return np.concatenate([getattr(part, name)[:count] for part, count in parts])

    found = Iterates(
        joined("value"),
        cmdp.words.turn(joined("constraint_values"), cmdp.horizon),
        joined("multipliers"),
        None if saddle is None else joined("potential"),
        np.exp(np.asarray(kept.policy)),
        _policy_of(np.asarray(kept.mixture), _uniform(cmdp)),
    )
    _require_finite(found, chosen)
    return found


def _require_finite(found: Iterates, chosen: Hyperparameters) -> None:
    """The mixture of all policies may look harmless beside iterates that are no numbers."""
    finite = np.isfinite(found.value) & np.isfinite(found.multipliers).all(axis=-1)
    if not finite.all():
        raise ParameterError(
            f"iteration {int(np.argmin(finite)) + 1} is not a finite number with "
            f"{parameters_in_words(chosen)}; choose "
            "less extreme hyperparameters."
        )


def _first_policy(cmdp: CMDP) -> Float[np.ndarray, "H S A"]:
    """log π_1."""
    _, *pairs = cmdp.sizes
    if cmdp.available is None:
        return np.full(pairs, -np.log(pairs[-1]))
    return np.array(uniform_log_policy(pairs, cmdp.available, float))


def _uniform(cmdp: CMDP) -> Float[np.ndarray, "H S A"]:
    """The policy that is uniform over the available actions."""
    _, *pairs = cmdp.sizes
    if cmdp.available is None:
        return np.full(pairs, 1 / pairs[-1])
    rows = cmdp.available / cmdp.available.sum(axis=-1, keepdims=True)
    return np.broadcast_to(rows, pairs).copy()


def _policy_of(
    mass: Float[np.ndarray, "H S A"], uniform: Float[np.ndarray, "H S A"]
) -> Float[np.ndarray, "H S A"]:
    """π(a | s) = d(s, a) / Σ_a d(s, a); uniform where no mass arrives."""
    total = mass.sum(axis=-1, keepdims=True)
    return np.divide(mass, total, out=uniform, where=total > 0)


def _check_floor(scheme: str, policy_floor: Any) -> None:
    if not 0 <= real_number(policy_floor) <= 1:
        raise ParameterError(f"policy_floor is {policy_floor}, it must be between 0 and 1.")
    if policy_floor and scheme != "primal-dual":
        raise ParameterError("policy_floor restricts the primal-dual scheme; the dual one plans.")
