"""Statements of the appendix on the Lagrangian, and the difference lemmas."""

import jax
import jax.numpy as jnp

from cmdpax.paper.audit.problem import SLATER_TOLERANCE, Problem, Step, expected_next, signals_of
from cmdpax.paper.audit.statement import Sides, as_statement
from cmdpax.planning.dynamic_program import greedy_plan, soft_plan

EXACT = 1e-8


def _lagrangian(problem: Problem, values: jax.Array, multipliers: jax.Array) -> jax.Array:
    """Compute L(π, λ) = V_r + λᵀ(V_u - c) from (V_r, V_u)."""
    return values[0] + multipliers @ (values[1:] - problem.cmdp.thresholds)


def _regularized(problem: Problem, values: jax.Array, multipliers: jax.Array) -> jax.Array:
    """Compute L_τ(π, λ) = L(π, λ) + τ (entropy + ½‖λ‖²) from (V_r, V_u, entropy)."""
    square = multipliers @ multipliers / 2
    plain = _lagrangian(problem, values[:-1], multipliers)
    return plain + problem.regularization * (values[-1] + square)


@as_statement("strong duality", "App. C, strong duality CMDP")
def strong_duality(problem: Problem) -> Sides:
    """|max_π L(π, λ*) - V_r*| ≤ 1e-8."""
    weights = jnp.concatenate([jnp.ones(1), problem.optimal_multipliers])
    values, _ = greedy_plan(problem.cmdp, weights)
    dual = values @ weights - problem.optimal_multipliers @ problem.cmdp.thresholds
    return jnp.abs(dual - problem.optimal_values[0]), EXACT


@as_statement("regularized strong duality", "App. C, strong duality regularized CMDP")
def regularized_duality(problem: Problem) -> Sides:
    """|max_π L_τ(π, λ*_τ) - L_τ(π*_τ, λ*_τ)| ≤ 1e-8."""
    multipliers = problem.saddle.multipliers
    weights = jnp.concatenate([jnp.ones(1), multipliers])
    most, _, _ = soft_plan(problem.cmdp, weights, problem.regularization)
    square = problem.regularization * multipliers @ multipliers / 2
    best = most - multipliers @ problem.cmdp.thresholds + square
    value = _regularized(problem, problem.saddle_values, multipliers)
    return jnp.abs(best - value), EXACT


@as_statement("saddle point, policies", "App. C, saddle point CMDP", tolerance=EXACT)
def saddle_policies(problem: Problem, step: Step) -> Sides:
    """L(π_k, λ*) ≤ L(π*, λ*)."""
    multipliers = problem.optimal_multipliers
    return (
        _lagrangian(problem, step.values[:-1], multipliers),
        _lagrangian(problem, problem.optimal_values, multipliers),
    )


@as_statement("saddle point, multipliers", "App. C, saddle point CMDP", tolerance=EXACT)
def saddle_multipliers(problem: Problem, step: Step) -> Sides:
    """L(π*, λ*) ≤ L(π*, λ_k)."""
    return (
        _lagrangian(problem, problem.optimal_values, problem.optimal_multipliers),
        _lagrangian(problem, problem.optimal_values, step.multipliers),
    )


@as_statement(
    "regularized saddle point, policies",
    "App. C, saddle point regularized CMDP",
    tolerance=EXACT,
    note="τ-strongly convex in λ (print: 1-strongly)",
)
def regularized_saddle_policies(problem: Problem, step: Step) -> Sides:
    """L_τ(π_k, λ*_τ) ≤ L_τ(π*_τ, λ*_τ)."""
    multipliers = problem.saddle.multipliers
    return (
        _regularized(problem, step.values, multipliers),
        _regularized(problem, problem.saddle_values, multipliers),
    )


@as_statement(
    "regularized saddle point, multipliers",
    "App. C, saddle point regularized CMDP",
    tolerance=EXACT,
)
def regularized_saddle_multipliers(problem: Problem, step: Step) -> Sides:
    """L_τ(π*_τ, λ*_τ) ≤ L_τ(π*_τ, λ_k)."""
    return (
        _regularized(problem, problem.saddle_values, problem.saddle.multipliers),
        _regularized(problem, problem.saddle_values, step.multipliers),
    )


@as_statement("Slater gap", "Assumption 2.1", premises=("constraints",))
def slater_point(problem: Problem) -> Sides:
    """|min_i (V_u of the Slater policy - c) - Ξ| ≤ 2e-7."""
    attained = jnp.min(problem.slater_values[1:] - problem.cmdp.thresholds)
    return jnp.abs(attained - problem.slater_gap), 2 * SLATER_TOLERANCE


@as_statement(
    "multiplier bound",
    "App. C, dual bound",
    premises=("constraints", "slater"),
    tolerance=1e-6,
    note="the 1-norm; it can be an equality",
)
def multiplier_bound(problem: Problem) -> Sides:
    """‖λ*‖₁ ≤ (V_r* - V_r of the Slater policy)/Ξ."""
    gain = problem.optimal_values[0] - problem.slater_values[0]
    return jnp.sum(problem.optimal_multipliers), gain / problem.slater_gap


@as_statement(
    "coarse multiplier bound",
    "App. C, dual bound",
    premises=("constraints", "slater", "unit rewards"),
)
def coarse_multiplier_bound(problem: Problem) -> Sides:
    """(V_r* - V_r of the Slater policy)/Ξ ≤ H/Ξ."""
    gain = problem.optimal_values[0] - problem.slater_values[0]
    return gain / problem.slater_gap, problem.horizon / problem.slater_gap


@as_statement("performance difference", "App. H, performance difference lemma")
def performance_difference(problem: Problem, step: Step) -> Sides:
    """|V_z^{π*_τ} - V_z^{π_k} - Σ d ⟨Q_z, π*_τ - π_k⟩| ≤ rounding."""
    signal = signals_of(problem, step.log_policy, step.multipliers)
    mass = problem.saddle.occupancy
    weights = jnp.concatenate([jnp.ones(1), step.multipliers, problem.regularization[None]])
    value = step.values @ weights
    difference = jnp.sum(mass * signal) - value
    state_mass = jnp.sum(mass, axis=-1, keepdims=True)
    moved = jnp.sum((mass - state_mass * step.policy) * step.q_lagrangian)
    scale = 1 + jnp.abs(difference) + jnp.abs(value)
    return jnp.abs(difference - moved), 1e-10 * scale


@as_statement("value difference", "App. H, extended value difference lemma")
def value_difference(problem: Problem, step: Step) -> Sides:
    """|V̂ - V_z^{π*_τ} - policies' part - Bellman part| ≤ rounding.

    This is the simulation lemma for Q̂ = Q_z capped at its mean (any Q̂ will do) and π*_τ.
    """
    signal = signals_of(problem, step.log_policy, step.multipliers)
    approximate = jnp.minimum(step.q_lagrangian, jnp.mean(step.q_lagrangian))
    values = jnp.sum(step.policy * approximate, axis=-1)  # V̂_h(s)
    expected = expected_next(problem, values)
    mass = problem.saddle.occupancy
    state_mass = jnp.sum(mass, axis=-1, keepdims=True)
    left = problem.cmdp.initial @ values[0] - jnp.sum(mass * signal)
    policies = jnp.sum((state_mass * step.policy - mass) * approximate)
    bellman = jnp.sum(mass * (approximate - signal - expected))
    scale = 1 + jnp.abs(left) + jnp.abs(policies) + jnp.abs(bellman)
    return jnp.abs(left - policies - bellman), 1e-10 * scale


ONCE = (
    strong_duality,
    regularized_duality,
    slater_point,
    multiplier_bound,
    coarse_multiplier_bound,
)

STEPS = (
    saddle_policies,
    saddle_multipliers,
    regularized_saddle_policies,
    regularized_saddle_multipliers,
    performance_difference,
    value_difference,
)
