"""What the statements are about: the CMDP, its optimum and saddle point, and one iteration."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer

from cmdpax import schemes
from cmdpax.errors import ParameterError, nearest_name
from cmdpax.model.cmdp import CMDP
from cmdpax.model.evaluation import evaluate, signal_array
from cmdpax.model.transitions import at_step, backup
from cmdpax.paper.audit.statement import Statement
from cmdpax.planning.saddle_point import solve_regularized
from cmdpax.planning.solution import slater_gap, solve
from cmdpax.schemes.exact import evaluate_with_entropy
from cmdpax.schemes.potential import potential
from cmdpax.schemes.scheme import Move, at_iteration
from cmdpax.schemes.updates import lagrangian, primal_dual_step

SLATER_TOLERANCE = 1e-7  # at the gap itself hardly any policy is feasible


class Problem(NamedTuple):
    """A CMDP, the parameters of the scheme, and what is known exactly.

    Attributes:
        cmdp: the model.
        step_size: η.
        regularization: τ.
        max_multiplier: λ_max.
        slater_gap: Ξ; infinite without constraints.
        slater_values: (V_r, V_u) of the best policy among those that attain Ξ, `[1 + I]`.
        optimal_values: (V_r, V_u) of π*, `[1 + I]`.
        optimal_multipliers: λ*, `[I]`.
        saddle: (π*_τ, λ*_τ), a `RegularizedSolution`.
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
    saddle: Any
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
    """One iteration of a scheme, or one episode of a learner, and what belongs to it.

    Attributes:
        iteration: k.
        log_policy: log π_k.
        multipliers: λ_k.
        next_log_policy: log π_{k+1}.
        next_multipliers: λ_{k+1}.
        every_q: Q_r, Q_{u_i} and Q_ψ of π_k, `[H, L, S, A]`; a learner's are those of Algorithm 2.
        q_lagrangian: Q of r + λ_kᵀu + τψ_k, as the learner used it; None if it plans.
        values: V_r, V_{u_i} and the entropy of π_k in the true model, `[L]`.
        potential: Φ_k.
        next_potential: Φ_{k+1}.
        constraint_values: V̂_u as the learner used it. This and all below are None without one.
        optimistic_values: V̂_r, V̂_{u_i} and V̂_ψ at the start, `[L]`.
        means: r̄ and ū, `[H, J, S, A]`.
        signals: r and u, `[H, J, S, A]`.
        reward_bonus: b^r, `[H, S, A]`.
        transition_bonus: b^p, `[H, S, A]`.
        row_errors: ‖p - p̄‖₁, `[H, S, A]`.
        visits: n, `[H, S, A]`.
        expected_visits: Σ_{j<k} d^{π_j}, `[H, S, A]`.
        occupancy: d^{π_k}, `[H, S, A]`.
    """

    iteration: Integer[Array, ""]
    log_policy: Float[Array, "H S A"]
    multipliers: Float[Array, " I"]
    next_log_policy: Float[Array, "H S A"]
    next_multipliers: Float[Array, " I"]
    every_q: Float[Array, "H L S A"]
    q_lagrangian: Any  # [H, S, A]
    values: Float[Array, " L"]
    potential: Float[Array, ""]
    next_potential: Float[Array, ""]
    constraint_values: Any = None
    optimistic_values: Any = None
    means: Any = None
    signals: Any = None
    reward_bonus: Any = None
    transition_bonus: Any = None
    row_errors: Any = None
    visits: Any = None
    expected_visits: Any = None
    occupancy: Any = None

    @property
    def policy(self) -> Float[Array, "H S A"]:
        """π_k."""
        return jnp.exp(self.log_policy)


Own = Callable[[Problem, Array, Array], tuple[Array, Array]]
"""From the problem, log π_k and λ_k to log π_{k+1} and λ_{k+1}."""

Scheme = Own | schemes.Scheme
"""A function, or a scheme that has a name."""


def make_problem(
    cmdp: CMDP,
    step_size: float,
    regularization: float,
    max_multiplier: float | None,
    gap: float | None,
) -> Problem:
    """Solve everything exactly; λ_max is max(6, H/Ξ) unless it is given."""
    solution, found = solve(cmdp), slater_gap(cmdp)
    slater = solution
    if found is not None:
        reachable = cmdp.thresholds + found.gap - SLATER_TOLERANCE
        slater = solve(cmdp.with_arrays(thresholds=reachable))
    if gap is None:
        gap = float("inf") if found is None else found.gap
    cap = max_multiplier
    if cap is None:
        cap = max(6.0, cmdp.horizon / gap) if gap > 0 else 6.0
    saddle = solve_regularized(cmdp, regularization, cap)
    reached = evaluate(cmdp, saddle.policy)
    entropy = -np.sum(reached.occupancy * np.where(reached.occupancy > 0, saddle.log_policy, 0.0))
    return Problem(
        cmdp,
        step_size,
        regularization,
        cap,
        gap,
        np.append(slater.value, slater.constraint_values),
        np.append(solution.value, solution.constraint_values),
        solution.multipliers,
        saddle,
        np.concatenate([[reached.value], reached.constraint_values, [entropy]]),
    )


def library_scheme(problem: Problem, log_policy: Array, multipliers: Array) -> tuple[Array, Array]:
    """Iterate the regularized primal-dual scheme once, Eqs. (6)-(7)."""
    every_q, values = evaluate_with_entropy(problem.cmdp, log_policy)
    slacks = values[1:-1] - problem.cmdp.thresholds
    ascended, descended, _ = primal_dual_step(log_policy, multipliers, every_q, slacks, problem)
    return ascended, descended


def first_move(problem: Problem, scheme: Scheme) -> Move:
    """Make the first iteration of a scheme."""
    if isinstance(scheme, schemes.Scheme):
        state = scheme.init(problem.cmdp, _parameters(problem, scheme))
        return next_move(problem, scheme, state, jnp.asarray(1, jnp.int32))
    return next_move(problem, scheme, start_of(problem), jnp.asarray(1, jnp.int32))


def next_move(problem: Problem, scheme: Scheme, state: Any, iteration: Array) -> Move:
    """Make iteration k of a scheme, from the state before it."""
    if isinstance(scheme, schemes.Scheme):
        rates = at_iteration(_parameters(problem, scheme), iteration)
        return scheme.step(problem.cmdp, rates, state)
    log_policy, multipliers = state
    return Move(log_policy, multipliers, scheme(problem, log_policy, multipliers))


def _parameters(problem: Problem, scheme: schemes.Scheme) -> Any:
    """Take the audit's η, τ and λ_max where a scheme has them, and its defaults for the rest."""
    chosen = scheme.choose({}, 1)
    numbers = jax.tree.map(jnp.asarray, scheme.numbers(chosen))
    for name in ("step_size", "regularization", "max_multiplier"):
        if name in numbers:
            numbers[name] = getattr(problem, name)
    return scheme.assemble(numbers, scheme.choices(chosen))


def make_step(problem: Problem, iteration: Array, now: Move, following: Move) -> Step:
    """Evaluate what the statements need, without the scheme's help."""
    log_policy, multipliers, *_ = now
    next_log_policy, next_multipliers, *_ = following
    every_q, values = evaluate_with_entropy(problem.cmdp, log_policy)
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
    """Start from log π_1 (uniform) and λ_1 = 0."""
    cmdp = problem.cmdp
    uniform = jnp.full((cmdp.horizon, cmdp.num_states, cmdp.num_actions), 1.0 / cmdp.num_actions)
    return jnp.log(uniform), jnp.zeros(cmdp.num_constraints)


def signals_of(problem: Problem, log_policy: Array, multipliers: Array) -> Float[Array, "H S A"]:
    """Compute z = r + λᵀu + τψ."""
    signals = signal_array(problem.cmdp)
    constraints = jnp.einsum("i,hisa->hsa", multipliers, signals[:, 1:])
    return signals[:, 0] + constraints - problem.regularization * log_policy


def expected_next(problem: Problem, values: Float[Array, "H S"]) -> Float[Array, "H S A"]:
    """Compute Σ_t p_h(t | s, a) V_{h+1}(t), with V_{H+1} = 0."""
    later = jnp.concatenate([values[1:], jnp.zeros_like(values[:1])])
    return jax.vmap(lambda step, value: backup(at_step(problem.cmdp.transitions, step), value))(
        jnp.arange(problem.horizon), later
    )


def applies(problem: Problem, statement: Statement) -> bool:
    """Tell whether to check a statement: those on constraints need some."""
    return problem.num_constraints > 0 or "constraints" not in statement.premises


def unmet(problem: Problem, premises: Sequence[str]) -> list[str]:
    """Say which premises are not met, a sentence each."""
    eta, tau = float(problem.step_size), float(problem.regularization)
    cap, gap = float(problem.max_multiplier), float(problem.slater_gap)
    arrays = {
        "rewards": problem.cmdp.rewards,
        "constraint_rewards": problem.cmdp.constraint_rewards,
    }
    outside = [
        name
        for name, array in arrays.items()
        if array.size and (jnp.min(array) < 0 or jnp.max(array) > 1)
    ]
    checks: dict[str, tuple[bool, str]] = {
        "constraints": (problem.num_constraints > 0, "there are no constraints"),
        "unit rewards": (not outside, f"{' and '.join(outside)} leave [0, 1]"),
        "unit thresholds": (
            bool(jnp.all(problem.cmdp.thresholds >= 0)),
            f"thresholds leave [0, H = {problem.horizon}]",
        ),
        "small steps": (eta * tau <= 0.25, f"ητ = {eta * tau:.4g} exceeds 1/4"),
        "large cap": (
            cap >= problem.horizon / gap if gap > 0 else False,
            f"λ_max = {cap:.4g} is below H/Ξ = {problem.horizon / gap if gap else np.inf:.4g}",
        ),
        "slater": (gap > 0, f"Ξ = {gap:.4g} is not positive"),
    }
    for name in premises:
        if name not in checks:
            raise ParameterError(f"unknown premise {name!r}; {nearest_name(name, checks)}.")
    return [sentence for name, (met, sentence) in checks.items() if name in premises and not met]
