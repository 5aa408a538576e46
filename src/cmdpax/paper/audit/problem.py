"""What the statements speak of: the CMDP, its optimum and saddle point, and one iteration."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer

from cmdpax.model.cmdp import CMDP
from cmdpax.model.evaluation import evaluate, signal_array
from cmdpax.planning.saddle_point import solve_regularized
from cmdpax.planning.solution import slater_gap, solve
from cmdpax.schemes.iteration import evaluate_with_entropy
from cmdpax.schemes.potential import Saddle, potential
from cmdpax.schemes.updates import lagrangian, primal_dual_step

_NO_CONSTRAINTS = float("inf")
SLATER_TOLERANCE = 1e-7  # at the gap itself hardly any policy is feasible


class Problem(NamedTuple):
    """A CMDP, the parameters of the scheme, and what is known exactly.

    Attributes:
        cmdp: the model.
        step_size: η.
        regularization: τ.
        max_multiplier: λ_max.
        slater_gap: Ξ; infinite without constraints.
        slater_values: (V_r, V_u) of a policy that attains Ξ, `[1 + I]`.
        optimal_values: (V_r, V_u) of π*, `[1 + I]`.
        optimal_multipliers: λ*, `[I]`.
        saddle: (π*_τ, λ*_τ) with its occupancy.
        saddle_values: (V_r, V_u, entropy) of π*_τ, `[2 + I]`.
    """

    cmdp: CMDP
    step_size: Any
    regularization: Any
    max_multiplier: Any
    slater_gap: Any
    slater_values: Any
    optimal_values: Any
    optimal_multipliers: Any
    saddle: Saddle
    saddle_values: Any

    @property
    def horizon(self) -> int:
        """H."""
        return self.cmdp.horizon

    @property
    def num_constraints(self) -> int:
        """I."""
        return self.cmdp.num_constraints

    @property
    def log_num_actions(self) -> Any:
        """log A."""
        return jnp.log(self.cmdp.num_actions).astype(self.cmdp.rewards.dtype)


class Step(NamedTuple):
    """One iteration of a scheme, and what belongs to it.

    Attributes:
        iteration: k.
        log_policy: log π_k.
        multipliers: λ_k.
        next_log_policy: log π_{k+1}.
        next_multipliers: λ_{k+1}.
        every_q: Q_r, Q_{u_i} and Q_ψ of π_k, `[H, L, S, A]`.
        q_lagrangian: Q of r + λ_kᵀu + τψ_k.
        values: V_r, V_{u_i} and the entropy of π_k, `[L]`.
        potential: Φ_k.
        next_potential: Φ_{k+1}.
    """

    iteration: Integer[Array, ""]
    log_policy: Float[Array, "H S A"]
    multipliers: Float[Array, " I"]
    next_log_policy: Float[Array, "H S A"]
    next_multipliers: Float[Array, " I"]
    every_q: Float[Array, "H L S A"]
    q_lagrangian: Float[Array, "H S A"]
    values: Float[Array, " L"]
    potential: Float[Array, ""]
    next_potential: Float[Array, ""]

    @property
    def policy(self) -> Float[Array, "H S A"]:
        """π_k."""
        return jnp.exp(self.log_policy)


Scheme = Callable[[Problem, Array, Array], tuple[Array, Array]]
"""From the problem, log π_k and λ_k to log π_{k+1} and λ_{k+1}."""


def make_problem(
    cmdp: CMDP,
    step_size: float,
    regularization: float,
    max_multiplier: float | None,
    gap: float | None,
) -> Problem:
    """Solve everything exactly; λ_max = max(6, H/Ξ) unless it is given."""
    solution = solve(cmdp)
    found = slater_gap(cmdp) if gap is None else None
    if gap is None:
        gap = _NO_CONSTRAINTS if found is None else found.gap
    cap = (
        max(6.0, cmdp.horizon / gap if gap > 0 else 6.0)
        if max_multiplier is None
        else max_multiplier
    )
    saddle = solve_regularized(cmdp, regularization, cap)
    reached = evaluate(cmdp, saddle.policy)
    entropy = -np.sum(reached.occupancy * np.where(reached.occupancy > 0, saddle.log_policy, 0.0))
    return Problem(
        cmdp,
        step_size,
        regularization,
        cap,
        gap,
        _slater_values(cmdp),
        np.append(solution.value, solution.constraint_values),
        solution.multipliers,
        Saddle(reached.occupancy, saddle.log_policy, saddle.multipliers),
        np.concatenate([[reached.value], reached.constraint_values, [entropy]]),
    )


def _slater_values(cmdp: CMDP) -> np.ndarray:
    """(V_r, V_u) of a policy that attains the Slater gap: the best one for the rewards."""
    found = slater_gap(cmdp)
    if found is None:
        solution = solve(cmdp)
    else:
        solution = solve(cmdp.replace(thresholds=cmdp.thresholds + found.gap - SLATER_TOLERANCE))
    return np.append(solution.value, solution.constraint_values)


def library_scheme(problem: Problem, log_policy: Array, multipliers: Array) -> tuple[Array, Array]:
    """The regularized primal-dual scheme, Eqs. (6)-(7)."""
    every_q, values = evaluate_with_entropy(problem.cmdp, log_policy)
    slacks = values[1:-1] - problem.cmdp.thresholds
    step = primal_dual_step(log_policy, multipliers, every_q, slacks, problem)
    return step.log_policy, step.multipliers


def make_step(
    problem: Problem, iteration: Array, log_policy: Array, multipliers: Array, scheme: Scheme
) -> Step:
    """Iterate once, and evaluate what the statements need, without the scheme's help."""
    every_q, values = evaluate_with_entropy(problem.cmdp, log_policy)
    next_log_policy, next_multipliers = scheme(problem, log_policy, multipliers)
    return Step(
        iteration,
        log_policy,
        multipliers,
        next_log_policy,
        next_multipliers,
        every_q,
        lagrangian(every_q, multipliers, problem.regularization),
        values,
        potential(problem.saddle, log_policy, multipliers),
        potential(problem.saddle, next_log_policy, next_multipliers),
    )


def start_of(problem: Problem) -> tuple[Array, Array]:
    """log π_1 (uniform) and λ_1 = 0."""
    cmdp = problem.cmdp
    uniform = jnp.full((cmdp.horizon, cmdp.num_states, cmdp.num_actions), 1.0 / cmdp.num_actions)
    return jnp.log(uniform), jnp.zeros(cmdp.num_constraints)


def signals_of(problem: Problem, log_policy: Array, multipliers: Array) -> Float[Array, "H S A"]:
    """z = r + λᵀu + τψ."""
    signals = signal_array(problem.cmdp)
    constraints = jnp.einsum("i,hisa->hsa", multipliers, signals[:, 1:])
    return signals[:, 0] + constraints - problem.regularization * log_policy
