"""Statements of Section 5 and its appendices, on one episode of Algorithm 1.

An `Episode` has what a `Step` has: bounds on values and errors are those of the known model.
"""

import functools
import math
from typing import Any

import jax.numpy as jnp

from cmdpax.paper.audit.convergence import (
    constraint_error,
    dual_constant,
    local_norms_bounded,
    objective_error,
    primal_constant,
    start_ceiling,
    values_bounded,
    values_not_negative,
)
from cmdpax.paper.audit.episodes import Episode, expected_next
from cmdpax.paper.audit.problem import Problem
from cmdpax.paper.audit.statement import Sides, Statement

_MODEL = "App. E, properties of the model"

# ------------------------------------------------------------------- the success event, its parts


def rewards_near(_: Problem, episode: Episode) -> Sides:
    """|r - r̄| < b^r, |u - ū| < b^r: F^r does not happen."""
    missed = jnp.abs(episode.signals - episode.means)
    return Sides(missed, episode.reward_bonus[:, None])


def transitions_near(problem: Problem, episode: Episode) -> Sides:
    """H ‖p - p̄‖₁ < b^p: F^p does not happen."""
    return Sides(problem.horizon * episode.row_errors, episode.transition_bonus)


@functools.cache  # the same function for the same δ: one program serves many audits
def visits_enough(failure_probability: float) -> Any:
    """½ Σ_{j<k} d^{π_j} - H log(SAH/δ') < n: F^n does not happen."""

    def sides(problem: Problem, episode: Episode) -> Sides:
        pairs = math.prod(episode.visits.shape)
        slack = problem.horizon * math.log(pairs / (failure_probability / 3))
        return Sides(episode.expected_visits / 2 - slack, episode.visits.astype(float))

    return sides


# --------------------------------------------------------------------------------------- optimism


def _optimism(problem: Problem, episode: Episode, signal: Any, index: int) -> Sides:
    """x + p V̂_{h+1} ≤ Q̂."""
    estimate = episode.every_q[:, index]
    values = jnp.sum(episode.policy * estimate, axis=-1)
    return Sides(signal + expected_next(problem, values), estimate)


def reward_optimism(problem: Problem, episode: Episode) -> Sides:
    """r + p V̂_{r,h+1} ≤ Q̂_r."""
    return _optimism(problem, episode, episode.signals[:, 0], 0)


def constraint_optimism(problem: Problem, episode: Episode) -> Sides:
    """u_i + p V̂_{u_i,h+1} ≤ Q̂_{u_i}."""
    each = [
        _optimism(problem, episode, episode.signals[:, 1 + i], 1 + i)
        for i in range(problem.num_constraints)
    ]
    return Sides(*(jnp.stack(side, axis=1) for side in zip(*each, strict=True)))


def entropy_optimism(problem: Problem, episode: Episode) -> Sides:
    """ψ_k + p V̂_{ψ,h+1} ≤ Q̂_ψ."""
    return _optimism(problem, episode, -episode.log_policy, episode.every_q.shape[1] - 1)


def lagrangian_optimism(problem: Problem, episode: Episode) -> Sides:
    """z_k + p V̂_{z,h+1} ≤ Q̂_z."""
    weighted = jnp.einsum("i,hisa->hsa", episode.multipliers, episode.signals[:, 1:])
    surprise = -problem.regularization * episode.log_policy
    values = jnp.sum(episode.policy * episode.q_lagrangian, axis=-1)
    signal = episode.signals[:, 0] + weighted + surprise
    return Sides(signal + expected_next(problem, values), episode.q_lagrangian)


# ---------------------------------------------------------------------------- bounds and potential


def truncated_gradient_bounded(problem: Problem, episode: Episode) -> Sides:
    """‖V̂_u - c + τλ_k‖ ≤ √I (H + τ λ_max)."""
    gradient = episode.constraint_values - problem.cmdp.thresholds
    gradient = gradient + problem.regularization * episode.multipliers
    return Sides(jnp.sqrt(gradient @ gradient), jnp.sqrt(dual_constant(problem)))


def online_recursion(problem: Problem, episode: Episode) -> Sides:
    """Φ_{k+1} ≤ (1-ητ)Φ_k + η²(D + D') + η(V̂_z - V_z) + η λ_max Σ_i |V̂_{u_i} - V_{u_i}|."""
    eta, tau = problem.step_size, problem.regularization
    weights = jnp.concatenate([jnp.ones(1), episode.multipliers, tau[None]])
    excess = (episode.optimistic_values - episode.values) @ weights
    missed = jnp.sum(jnp.abs(episode.constraint_values - episode.values[1:-1]))
    added = eta**2 * (primal_constant(problem) + dual_constant(problem))
    learning = eta * excess + eta * problem.max_multiplier * missed
    return Sides(episode.next_potential, (1 - eta * tau) * episode.potential + added + learning)


EVENT = (
    ("rewards", rewards_near, "hjsa", "|r - r̄|, |u - ū| < b^r for all k"),
    ("transitions", transitions_near, "hsa", "H ‖p - p̄‖₁ < b^p for all k"),
)

ON_EVENT = (
    Statement("optimism of r", _MODEL, "r + p V̂_r ≤ Q̂_r", "hsa", reward_optimism),
    Statement(
        "optimism of u", _MODEL, "u_i + p V̂_{u_i} ≤ Q̂_{u_i}", "hisa", constraint_optimism,
        ("constraints",),
    ),
    Statement("optimism of ψ", _MODEL, "ψ_k + p V̂_ψ ≤ Q̂_ψ", "hsa", entropy_optimism),
    Statement("optimism of z", _MODEL, "z_k + p V̂_z ≤ Q̂_z", "hsa", lagrangian_optimism),
    Statement(
        "online potential recursion", "Lemma 5.1, its proof",
        "Φ_{k+1} ≤ (1-ητ)Φ_k + η²(D+D') + η(V̂_z-V_z) + ηλ_max Σ|V̂_u-V_u|",
        "", online_recursion, ("unit thresholds", "large cap", "small steps"),
        trivial=start_ceiling,
    ),
)  # fmt: skip

ALWAYS = (
    Statement(
        "truncated values are not negative", "App. E, truncated value function bounds",
        "0 ≤ Q̂_z", "hsa", values_not_negative,
    ),
    Statement(
        "truncated values are bounded", "App. E, truncated value function bounds",
        "Q̂_z ≤ -τ log π_k + H(1 + I λ_max + τ log A)", "hsa", values_bounded,
        note="through the caps; “bounded by the true values” (print) is false",
    ),
    Statement(
        "truncated local norms are bounded", "App. E, truncated value function bounds",
        "Σ_a π_k exp(ηQ̂_z) Q̂_z² ≤ √A exp(ηB) (2B² + 128 τ²/e²)", "hs",
        local_norms_bounded, ("small steps",),
    ),
    Statement(
        "truncated dual gradient is bounded", "App. E, truncated value function bounds",
        "‖V̂_u - c + τλ_k‖ ≤ √I (H + τ λ_max)", "", truncated_gradient_bounded,
        ("constraints", "unit thresholds"),
    ),
    Statement(
        "online objective error", "Lemma 4.2", "as with the model known, with the learner's Φ_k",
        "", objective_error, trivial=lambda problem: problem.horizon,
    ),
    Statement(
        "online constraint error", "Lemma 4.2", "as with the model known, with the learner's Φ_k",
        "i", constraint_error, ("constraints", "slater"),
        trivial=lambda problem: jnp.max(problem.cmdp.thresholds, initial=0.0),
    ),
)  # fmt: skip
