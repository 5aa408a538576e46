"""`iterate`: a scheme on a known model, and the accounts of its iterates.

The schemes are in `cmdpax.schemes.known`, one file each; the loop is here, once.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer

from cmdpax.checks import require_count
from cmdpax.errors import ParameterError
from cmdpax.jax_context import in_double_precision, to_numpy
from cmdpax.model.cmdp import CMDP
from cmdpax.model.evaluation import occupancy, signal_array
from cmdpax.model.validation import validate
from cmdpax.planning.saddle_point import RegularizedSolution
from cmdpax.schemes.parameters import parameters_in_words
from cmdpax.schemes.potential import potential, saddle_of
from cmdpax.schemes.registry import Named, as_scheme
from cmdpax.schemes.schedules import as_schedule, is_constant
from cmdpax.schemes.scheme import Scheme, Step, at_iteration

_BLOCK = 1024


class Iterates(NamedTuple):
    """The iterates k = 1, …, T of a scheme.

    Attributes:
        value: V_r^{π_k}, `[T]`.
        constraint_values: V_u^{π_k}, `[T, I]`, in the senses of the constraints.
        multipliers: λ_k, `[T, I]`.
        potential: Φ_k, `[T]`, for a constant τ > 0 of a scheme that looks for the regularized
            saddle point; else None.
        policy: π_T, the last one evaluated, `[H, S, A]`.
        mixture: the policy of the averaged occupancy of all iterates, `[H, S, A]`; of "crpo", of
            those that ascended the reward.
    """

    value: np.ndarray
    constraint_values: np.ndarray
    multipliers: np.ndarray
    potential: np.ndarray | None
    policy: np.ndarray
    mixture: np.ndarray


class _Program(NamedTuple):
    """What is compiled in: the iteration, and parameters that are no numbers."""

    step: Step
    record: Any
    choices: tuple[tuple[str, Any], ...]


@functools.partial(jax.jit, static_argnames="program")
def _advance(
    cmdp: CMDP,
    state: Any,
    kept: Any,
    numbers: dict[str, Any],
    saddle: RegularizedSolution | None,
    first: Integer[Array, ""],
    count: Integer[Array, ""],
    program: _Program,
) -> tuple[Any, Any]:
    """The iterations from `first` on, `count` ≤ a block of them.

    They are kept as `Iterates`, with log π_k for the policy and the sum of all occupancies for the
    mixture.
    """
    signals = signal_array(cmdp)
    chosen = program.record(**numbers, **dict(program.choices))

    def body(index: Array, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        state, kept = carry
        move = program.step(cmdp, at_iteration(chosen, first + index), state)
        mass = occupancy(cmdp, jnp.exp(move.log_policy))
        gained = jnp.einsum("hsa,hjsa->j", mass, signals)
        kept = kept._replace(
            value=kept.value.at[index].set(gained[0]),
            constraint_values=kept.constraint_values.at[index].set(gained[1:]),
            multipliers=kept.multipliers.at[index].set(move.multipliers),
            policy=move.log_policy,
            mixture=kept.mixture + (mass if move.weight is None else move.weight * mass),
        )
        if saddle is not None:
            distance = potential(saddle, move.log_policy, move.multipliers)
            kept = kept._replace(potential=kept.potential.at[index].set(distance))
        return move.state, kept

    return jax.lax.fori_loop(0, count, body, (state, kept))


@in_double_precision
def iterate(cmdp: CMDP, scheme: Named, *, num_iterations: int, **parameters: Any) -> Iterates:
    """Iterate a scheme on a known CMDP, from the uniform policy and λ_1 = 0.

    Where only some actions are available, the first policy is uniform over those. The schemes that
    plan have no first policy.

    Args:
        cmdp: the model; any finite rewards.
        scheme: one of `cmdpax.scheme_names()`, or a `cmdpax.schemes.Scheme` of your own.
        num_iterations: T.
        **parameters: the scheme's parameters, such as `step_size=0.1`, `regularization=0.02` and
            `max_multiplier=6`; `cmdpax schemes` lists them. Numbers may be schedules where it
            says so.

    Examples:
        >>> import cmdpax
        >>> cmdp = cmdpax.environments.make("bandit")
        >>> damped = cmdpax.iterate(cmdp, "primal-dual", num_iterations=2000, regularization=0.05)
        >>> bool(abs(damped.value[-1] - damped.value[-2]) < 1e-6)
        True
    """
    validate(cmdp)
    known = as_scheme(scheme)
    num_iterations = require_count("num_iterations", num_iterations)
    chosen = known.choose(parameters, num_iterations)
    saddle = None
    if known.has_potential:
        tau = as_schedule("regularization", chosen.regularization)
        if is_constant(tau) and tau.initial > 0:
            saddle = saddle_of(cmdp, tau.initial, chosen.max_multiplier)
    return _collect(cmdp, known, chosen, saddle, num_iterations)


def _collect(
    cmdp: CMDP,
    scheme: Scheme,
    chosen: Any,
    saddle: RegularizedSolution | None,
    num_iterations: int,
) -> Iterates:
    """Run block after block and put the pieces together."""
    num_constraints, *pairs = cmdp.sizes
    model, zeros = jax.device_put(cmdp), np.zeros(pairs)
    values, vectors = np.zeros(_BLOCK), np.zeros((_BLOCK, num_constraints))
    distances = None if saddle is None else values
    kept = Iterates(values, vectors, vectors, distances, zeros, zeros)
    program = _Program(scheme.step_with(chosen), scheme.record, scheme.choices(chosen))
    numbers = jax.tree.map(jnp.asarray, scheme.numbers(chosen))
    state, parts = scheme.init(model, chosen), []
    for done in range(0, num_iterations, _BLOCK):
        count = min(_BLOCK, num_iterations - done)
        block = (jnp.int32(done + 1), jnp.int32(count), program)
        state, kept = _advance(model, state, kept, numbers, saddle, *block)
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


def _require_finite(found: Iterates, chosen: Any) -> None:
    """The mixture of all policies may look harmless beside iterates that are no numbers."""
    finite = np.isfinite(found.value) & np.isfinite(found.multipliers).all(axis=-1)
    if not finite.all():
        raise ParameterError(
            f"iteration {int(np.argmin(finite)) + 1} is not a finite number with "
            f"{parameters_in_words(chosen)}; choose "
            "less extreme hyperparameters."
        )


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
