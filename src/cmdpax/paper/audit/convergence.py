"""Statements of Section 4 and its appendix: one iteration of the regularized primal-dual scheme.

With B = H(1 + I λ_max + τ log A), the constants of the proofs are

    D  = H √A exp(ηB) (2B² + 2τ² 64/e²),        D' = I (H + τ λ_max)².
"""

from typing import Any

import jax.numpy as jnp

from cmdpax.paper.audit.problem import Problem, Step
from cmdpax.paper.audit.statement import Sides, as_statement

_IDENTITY = 1e-10
_BOUNDS = "App. E, value function bounds"


def value_ceiling(problem: Problem) -> Any:
    """Compute B = H(1 + I λ_max + τ log A)."""
    tau, cap = problem.regularization, problem.max_multiplier
    sums = 1 + problem.num_constraints * cap + tau * problem.log_num_actions
    return problem.horizon * sums


def local_norm_ceiling(problem: Problem) -> Any:
    """Compute √A exp(ηB) (2B² + 2τ² 64/e²)."""
    tau, eta, ceiling = problem.regularization, problem.step_size, value_ceiling(problem)
    root = jnp.sqrt(1.0 * problem.cmdp.num_actions)
    return root * jnp.exp(eta * ceiling) * (2 * ceiling**2 + 2 * tau**2 * 64 / jnp.exp(2.0))


def primal_constant(problem: Problem) -> Any:
    """Compute D."""
    return problem.horizon * local_norm_ceiling(problem)


def dual_constant(problem: Problem) -> Any:
    """Compute D' = I (H + τ λ_max)²."""
    reach = problem.horizon + problem.regularization * problem.max_multiplier
    return problem.num_constraints * reach**2


def start_ceiling(problem: Problem) -> Any:
    """Compute H log A + ½ I λ_max², which Φ_1 never exceeds: a larger bound says nothing."""
    squares = problem.num_constraints * problem.max_multiplier**2 / 2
    return problem.horizon * problem.log_num_actions + squares


# ----------------------------------------------------------------------------------- value bounds


@as_statement("values are not negative", _BOUNDS, "hsa", premises=("unit rewards",))
def values_not_negative(_: Problem, step: Step) -> Sides:
    """0 ≤ Q_z(s, a)."""
    return -step.q_lagrangian, 0.0


@as_statement("values are bounded", _BOUNDS, "hsa", premises=("unit rewards",))
def values_bounded(problem: Problem, step: Step) -> Sides:
    """Q_z(s, a) ≤ -τ log π_k(a|s) + H(1 + I λ_max + τ log A)."""
    surprise = -problem.regularization * step.log_policy
    return step.q_lagrangian, surprise + value_ceiling(problem)


@as_statement(
    "local norms are bounded",
    _BOUNDS,
    "hs",
    premises=("unit rewards", "small steps"),
    note="needs ητ ≤ 1/4 (print: η, τ < 1)",
)
def local_norms_bounded(problem: Problem, step: Step) -> Sides:
    """Σ_a π_k exp(ηQ_z) Q_z² ≤ √A exp(ηB) (2B² + 128 τ²/e²)."""
    return local_norms(problem, step), local_norm_ceiling(problem)


@as_statement(
    "dual gradient is bounded", _BOUNDS, premises=("constraints", "unit rewards", "unit thresholds")
)
def gradient_bounded(problem: Problem, step: Step) -> Sides:
    """‖V_u - c + τλ_k‖ ≤ √I (H + τ λ_max)."""
    gradient = dual_gradient(problem, step)
    return jnp.sqrt(gradient @ gradient), jnp.sqrt(dual_constant(problem))


def local_norms(problem: Problem, step: Step) -> Any:
    """Compute Σ_a π_k exp(ηQ_z) Q_z², `[H, S]`."""
    weights = jnp.exp(step.log_policy + problem.step_size * step.q_lagrangian)
    return jnp.sum(weights * step.q_lagrangian**2, axis=-1)


def dual_gradient(problem: Problem, step: Step) -> Any:
    """Compute V_u - c + τλ_k."""
    slack = step.values[1:-1] - problem.cmdp.thresholds
    return slack + problem.regularization * step.multipliers


# ------------------------------------------------------------------------------------ the updates


def divergence(log_first: Any, log_second: Any) -> Any:
    """Compute KL(first, second) at every (h, s)."""
    return jnp.sum(jnp.exp(log_first) * (log_first - log_second), axis=-1)


@as_statement(
    "mirror descent with local norms",
    "App. I, descent lemma; App. D",
    "hs",
    premises=("unit rewards",),
    note="exp(ηQ) (print: exp(Q))",
)
def mirror_descent(problem: Problem, step: Step) -> Sides:
    """⟨Q_z, π*_τ - π_k⟩ ≤ (KL_k - KL_{k+1})/η + η/2 Σ_a π_k exp(ηQ_z) Q_z²."""
    target, eta = problem.saddle.log_policy, problem.step_size
    gained = jnp.sum((jnp.exp(target) - step.policy) * step.q_lagrangian, axis=-1)
    before = divergence(target, step.log_policy)
    after = divergence(target, step.next_log_policy)
    return gained, (before - after) / eta + eta / 2 * local_norms(problem, step)


@as_statement(
    "projected dual descent",
    "App. I, descent lemma PGD",
    premises=("constraints",),
    note="1/(2η), as the proof has it (print: 1/η)",
)
def projected_descent(problem: Problem, step: Step) -> Sides:
    """(λ_k - λ*_τ)ᵀg ≤ (‖λ*_τ-λ_k‖² - ‖λ*_τ-λ_{k+1}‖²)/(2η) + η/2 ‖g‖²."""
    target, eta = problem.saddle.multipliers, problem.step_size
    gradient = dual_gradient(problem, step)
    before, after = step.multipliers - target, step.next_multipliers - target
    moved = (before @ before - after @ after) / (2 * eta)
    return before @ gradient, moved + eta / 2 * gradient @ gradient


@as_statement(
    "three-point identity",
    "App. I, mirror descent update",
    "hs",
    note="x = π*_τ; Q_z at (π_k, λ_k)",
)
def three_points(problem: Problem, step: Step) -> Sides:
    """|η⟨Q_z, x-π_{k+1}⟩ - KL(x,π_k) + KL(x,π_{k+1}) + KL(π_{k+1},π_k)| ≤ 1e-10."""
    target, following = problem.saddle.log_policy, step.next_log_policy
    change = (jnp.exp(target) - jnp.exp(following)) * step.q_lagrangian
    left = problem.step_size * jnp.sum(change, axis=-1)
    before, after = divergence(target, step.log_policy), divergence(target, following)
    moved = divergence(following, step.log_policy)
    scale = 1 + before + after + problem.step_size * jnp.max(jnp.abs(step.q_lagrangian), axis=-1)
    return jnp.abs(left - (before - after - moved)), _IDENTITY * scale


@as_statement("multiplier update", "Eq. (7)", "i", premises=("constraints",))
def multiplier_update(problem: Problem, step: Step) -> Sides:
    """|λ_{k+1} - clip((1-ητ)λ_k - η(V_u^{π_k} - c))| ≤ 1e-10."""
    eta, gradient = problem.step_size, dual_gradient(problem, step)
    expected = jnp.clip(step.multipliers - eta * gradient, 0, problem.max_multiplier)
    return jnp.abs(step.next_multipliers - expected), _IDENTITY


# ---------------------------------------------------------------------------------- the potential


@as_statement(
    "potential recursion",
    "Lemma 4.1, its proof",
    premises=("unit rewards", "unit thresholds", "small steps", "large cap"),
    trivial=start_ceiling,
    note="with the regularized saddle point (print: the plain one)",
)
def recursion(problem: Problem, step: Step) -> Sides:
    """Φ_{k+1} ≤ (1-ητ)Φ_k + η²(D + D')."""
    eta, tau = problem.step_size, problem.regularization
    added = eta**2 * (primal_constant(problem) + dual_constant(problem))
    return step.next_potential, (1 - eta * tau) * step.potential + added


@as_statement(
    "objective error",
    "Lemma 4.2",
    premises=("unit rewards",),
    trivial=lambda problem: problem.horizon,
)
def objective_error(problem: Problem, step: Step) -> Sides:
    """[V_r* - V_r^{π_k}]_+ ≤ H^{3/2}(2Φ_k)^{1/2} + τ H log A."""
    missing = jnp.maximum(problem.optimal_values[0] - step.values[0], 0)
    entropy = problem.regularization * problem.horizon * problem.log_num_actions
    return missing, distance_error(problem, step.potential) + entropy


@as_statement(
    "constraint error",
    "Lemma 4.2",
    "i",
    premises=("constraints", "slater", "unit rewards"),
    trivial=lambda problem: jnp.max(problem.cmdp.thresholds, initial=0.0),
    note="τλ_max/2, as the proof has it (print: τλ_max)",
)
def constraint_error(problem: Problem, step: Step) -> Sides:
    """[c_i - V_{u_i}]_+ ≤ H^{3/2}(2Φ_k)^{1/2} + τλ_max/2 + (H²/Ξ + τ H log A)/λ_max."""
    missing = jnp.maximum(problem.cmdp.thresholds - step.values[1:-1], 0)
    return missing, distance_error(problem, step.potential) + fixed_constraint_error(problem)


def distance_error(problem: Problem, distance: Any) -> Any:
    """Compute H^{3/2} (2Φ)^{1/2}; rounding may make Φ negative at the saddle point."""
    return problem.horizon**1.5 * jnp.sqrt(jnp.maximum(2 * distance, 0))


def fixed_constraint_error(problem: Problem) -> Any:
    """Compute τλ_max/2 + (H²/Ξ + τ H log A)/λ_max."""
    tau, cap = problem.regularization, problem.max_multiplier
    entropy = tau * problem.horizon * problem.log_num_actions
    return tau * cap / 2 + (problem.horizon**2 / problem.slater_gap + entropy) / cap


STEPS = (
    values_not_negative,
    values_bounded,
    local_norms_bounded,
    gradient_bounded,
    mirror_descent,
    projected_descent,
    three_points,
    multiplier_update,
    recursion,
    objective_error,
    constraint_error,
)
