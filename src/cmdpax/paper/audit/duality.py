"""Statements of the appendix on the Lagrangian, and the difference lemmas."""

import jax
import jax.numpy as jnp

from cmdpax.model.transitions import at_step, backup
from cmdpax.paper.audit.problem import SLATER_TOLERANCE, Problem, Step, signals_of
from cmdpax.paper.audit.statement import Sides, Statement
from cmdpax.planning.dynamic_program import greedy_plan, soft_plan

EXACT = 1e-8


def _lagrangian(problem: Problem, values: jax.Array, multipliers: jax.Array) -> jax.Array:
    """L(π, λ) = V_r + λᵀ(V_u - c), of (V_r, V_u)."""
    return values[0] + multipliers @ (values[1:] - problem.cmdp.thresholds)


def _regularized(problem: Problem, values: jax.Array, multipliers: jax.Array) -> jax.Array:
    """L_τ(π, λ) = L(π, λ) + τ (entropy + ½‖λ‖²), of (V_r, V_u, entropy)."""
    square = multipliers @ multipliers / 2
    plain = _lagrangian(problem, values[:-1], multipliers)
    return plain + problem.regularization * (values[-1] + square)


def strong_duality(problem: Problem) -> Sides:
    """max_π L(π, λ*) = V_r^{π*}: the dual function meets the optimum."""
    weights = jnp.concatenate([jnp.ones(1), problem.optimal_multipliers])
    best = greedy_plan(problem.cmdp, weights).signal_values @ weights
    dual = best - problem.optimal_multipliers @ problem.cmdp.thresholds
    return Sides(jnp.abs(dual - problem.optimal_values[0]), EXACT)


def regularized_duality(problem: Problem) -> Sides:
    """max_π L_τ(π, λ*_τ) = L_τ(π*_τ, λ*_τ)."""
    multipliers = problem.saddle.multipliers
    weights = jnp.concatenate([jnp.ones(1), multipliers])
    plan = soft_plan(problem.cmdp, weights, problem.regularization)
    square = problem.regularization * multipliers @ multipliers / 2
    best = plan.value - multipliers @ problem.cmdp.thresholds + square
    value = _regularized(problem, problem.saddle_values, multipliers)
    return Sides(jnp.abs(best - value), EXACT)


def saddle_policies(problem: Problem, step: Step) -> Sides:
    """L(π_k, λ*) ≤ L(π*, λ*)."""
    multipliers = problem.optimal_multipliers
    return Sides(
        _lagrangian(problem, step.values[:-1], multipliers),
        _lagrangian(problem, problem.optimal_values, multipliers),
    )


def saddle_multipliers(problem: Problem, step: Step) -> Sides:
    """L(π*, λ*) ≤ L(π*, λ_k)."""
    return Sides(
        _lagrangian(problem, problem.optimal_values, problem.optimal_multipliers),
        _lagrangian(problem, problem.optimal_values, step.multipliers),
    )


def regularized_saddle_policies(problem: Problem, step: Step) -> Sides:
    """L_τ(π_k, λ*_τ) ≤ L_τ(π*_τ, λ*_τ)."""
    multipliers = problem.saddle.multipliers
    return Sides(
        _regularized(problem, step.values, multipliers),
        _regularized(problem, problem.saddle_values, multipliers),
    )


def regularized_saddle_multipliers(problem: Problem, step: Step) -> Sides:
    """L_τ(π*_τ, λ*_τ) ≤ L_τ(π*_τ, λ_k)."""
    return Sides(
        _regularized(problem, problem.saddle_values, problem.saddle.multipliers),
        _regularized(problem, problem.saddle_values, step.multipliers),
    )


def slater_point(problem: Problem) -> Sides:
    """Ξ = max_π min_i (V_{u_i} - c_i) is what the Slater policy attains."""
    attained = jnp.min(problem.slater_values[1:] - problem.cmdp.thresholds)
    return Sides(jnp.abs(attained - problem.slater_gap), 2 * SLATER_TOLERANCE)


def multiplier_bound(problem: Problem) -> Sides:
    """‖λ*‖₁ ≤ (V_r^{π*} - V_r^{Slater}) / Ξ."""
    gain = problem.optimal_values[0] - problem.slater_values[0]
    return Sides(jnp.sum(problem.optimal_multipliers), gain / problem.slater_gap)


def coarse_multiplier_bound(problem: Problem) -> Sides:
    """(V_r^{π*} - V_r^{Slater}) / Ξ ≤ H / Ξ."""
    gain = problem.optimal_values[0] - problem.slater_values[0]
    return Sides(gain / problem.slater_gap, problem.horizon / problem.slater_gap)


def performance_difference(problem: Problem, step: Step) -> Sides:
    """V_z^{π*_τ} - V_z^{π_k} = Σ_{h,s} P_{π*_τ}[s_h = s] ⟨Q_z^{π_k}, π*_τ - π_k⟩."""
    signal = signals_of(problem, step.log_policy, step.multipliers)
    mass = problem.saddle.occupancy
    weights = jnp.concatenate([jnp.ones(1), step.multipliers, problem.regularization[None]])
    value = step.values @ weights
    difference = jnp.sum(mass * signal) - value
    state_mass = jnp.sum(mass, axis=-1, keepdims=True)
    moved = jnp.sum((mass - state_mass * step.policy) * step.q_lagrangian)
    scale = 1 + jnp.abs(difference) + jnp.abs(value)
    return Sides(jnp.abs(difference - moved), 1e-10 * scale)


def value_difference(problem: Problem, step: Step) -> Sides:
    """The simulation lemma, for Q̂ = Q_z capped at its mean (any Q̂ will do) and π*_τ."""
    signal = signals_of(problem, step.log_policy, step.multipliers)
    approximate = jnp.minimum(step.q_lagrangian, jnp.mean(step.q_lagrangian))
    values = jnp.sum(step.policy * approximate, axis=-1)  # V̂_h(s)
    later = jnp.concatenate([values[1:], jnp.zeros_like(values[:1])])
    expected = jax.vmap(
        lambda index, value: backup(at_step(problem.cmdp.transitions, index), value)
    )(jnp.arange(problem.horizon), later)
    mass = problem.saddle.occupancy
    state_mass = jnp.sum(mass, axis=-1, keepdims=True)
    left = problem.cmdp.initial @ values[0] - jnp.sum(mass * signal)
    policies = jnp.sum((state_mass * step.policy - mass) * approximate)
    bellman = jnp.sum(mass * (approximate - signal - expected))
    scale = 1 + jnp.abs(left) + jnp.abs(policies) + jnp.abs(bellman)
    return Sides(jnp.abs(left - policies - bellman), 1e-10 * scale)


ONCE = (
    Statement(
        "strong duality",
        "App. C, strong duality CMDP",
        "|max_π L(π, λ*) - V_r*| ≤ 1e-8",
        "",
        strong_duality,
    ),
    Statement(
        "regularized strong duality",
        "App. C, strong duality regularized CMDP",
        "|max_π L_τ(π, λ*_τ) - L_τ(π*_τ, λ*_τ)| ≤ 1e-8",
        "",
        regularized_duality,
    ),
    Statement(
        "Slater gap",
        "Assumption 2.1",
        "|min_i (V_u of the Slater policy - c) - Ξ| ≤ 2e-7",
        "",
        slater_point,
        ("constraints",),
    ),
    Statement(
        "multiplier bound",
        "App. C, dual bound",
        "‖λ*‖₁ ≤ (V_r* - V_r of the Slater policy)/Ξ",
        "",
        multiplier_bound,
        ("constraints", "slater"),
        tolerance=1e-6,
        note="the 1-norm; it can be an equality",
    ),
    Statement(
        "coarse multiplier bound",
        "App. C, dual bound",
        "(V_r* - V_r of the Slater policy)/Ξ ≤ H/Ξ",
        "",
        coarse_multiplier_bound,
        ("constraints", "slater", "unit rewards"),
    ),
)

STEPS = (
    Statement(
        "saddle point, policies",
        "App. C, saddle point CMDP",
        "L(π_k, λ*) ≤ L(π*, λ*)",
        "",
        saddle_policies,
        tolerance=EXACT,
    ),
    Statement(
        "saddle point, multipliers",
        "App. C, saddle point CMDP",
        "L(π*, λ*) ≤ L(π*, λ_k)",
        "",
        saddle_multipliers,
        tolerance=EXACT,
    ),
    Statement(
        "regularized saddle point, policies",
        "App. C, saddle point regularized CMDP",
        "L_τ(π_k, λ*_τ) ≤ L_τ(π*_τ, λ*_τ)",
        "",
        regularized_saddle_policies,
        tolerance=EXACT,
        note="τ-strongly convex in λ (print: 1-strongly)",
    ),
    Statement(
        "regularized saddle point, multipliers",
        "App. C, saddle point regularized CMDP",
        "L_τ(π*_τ, λ*_τ) ≤ L_τ(π*_τ, λ_k)",
        "",
        regularized_saddle_multipliers,
        tolerance=EXACT,
    ),
    Statement(
        "performance difference",
        "App. H, performance difference lemma",
        "|V_z^{π*_τ} - V_z^{π_k} - Σ d ⟨Q_z, π*_τ - π_k⟩| ≤ rounding",
        "",
        performance_difference,
    ),
    Statement(
        "value difference",
        "App. H, extended value difference lemma",
        "|V̂ - V_z^{π*_τ} - policies' part - Bellman part| ≤ rounding",
        "",
        value_difference,
    ),
)
