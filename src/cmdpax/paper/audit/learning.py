"""Statements of Section 5 and its appendices on one episode of Algorithm 1.

Bounds on values and errors are those of the known model, applied to a learner's `Step`.
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
from cmdpax.paper.audit.problem import Problem, Step, expected_next
from cmdpax.paper.audit.statement import Sides, Statement, as_statement

_EVENT = "App. E, success event"
_MODEL = "App. E, properties of the model"
_BOUNDS = "App. E, truncated value function bounds"

# ------------------------------------------------------------------- the success event, its parts


@as_statement("success event, rewards", _EVENT, "hjsa")
def rewards_near(_: Problem, episode: Step) -> Sides:
    """|r - r̄|, |u - ū| < b^r for all k.

    Otherwise F^r happens.
    """
    missed = jnp.abs(episode.signals - episode.means)
    return missed, episode.reward_bonus[:, None]


@as_statement("success event, transitions", _EVENT, "hsa")
def transitions_near(problem: Problem, episode: Step) -> Sides:
    """H ‖p - p̄‖₁ < b^p for all k.

    Otherwise F^p happens.
    """
    return problem.horizon * episode.row_errors, episode.transition_bonus


@functools.cache  # the same statement for the same δ: one program serves many audits
def visits_enough(failure_probability: float) -> Statement:
    """State that all pairs were visited often enough; otherwise F^n happens."""

    @as_statement("success event, visits", _EVENT, "hsa")
    def often(problem: Problem, episode: Step) -> Sides:
        """n > ½ Σ_{j<k} d^{π_j} - H log(SAH/δ') for all k."""
        pairs = math.prod(episode.visits.shape)
        slack = problem.horizon * math.log(pairs / (failure_probability / 3))
        return episode.expected_visits / 2 - slack, episode.visits.astype(float)

    return often


# --------------------------------------------------------------------------------------- optimism


def _optimism(problem: Problem, episode: Step, signal: Any, index: int) -> Sides:
    """Compare x + p V̂_{h+1} ≤ Q̂ for one signal x."""
    estimate = episode.every_q[:, index]
    values = jnp.sum(episode.policy * estimate, axis=-1)
    return signal + expected_next(problem, values), estimate


@as_statement("optimism of r", _MODEL, "hsa")
def reward_optimism(problem: Problem, episode: Step) -> Sides:
    """r + p V̂_r ≤ Q̂_r."""
    return _optimism(problem, episode, episode.signals[:, 0], 0)


@as_statement("optimism of u", _MODEL, "hisa", premises=("constraints",))
def constraint_optimism(problem: Problem, episode: Step) -> Sides:
    """u_i + p V̂_{u_i} ≤ Q̂_{u_i}."""
    each = [
        _optimism(problem, episode, episode.signals[:, 1 + i], 1 + i)
        for i in range(problem.num_constraints)
    ]
    left, right = (jnp.stack(side, axis=1) for side in zip(*each, strict=True))
    return left, right


@as_statement("optimism of ψ", _MODEL, "hsa")
def entropy_optimism(problem: Problem, episode: Step) -> Sides:
    """ψ_k + p V̂_ψ ≤ Q̂_ψ."""
    return _optimism(problem, episode, -episode.log_policy, episode.every_q.shape[1] - 1)


@as_statement("optimism of z", _MODEL, "hsa")
def lagrangian_optimism(problem: Problem, episode: Step) -> Sides:
    """z_k + p V̂_z ≤ Q̂_z."""
    weighted = jnp.einsum("i,hisa->hsa", episode.multipliers, episode.signals[:, 1:])
    surprise = -problem.regularization * episode.log_policy
    values = jnp.sum(episode.policy * episode.q_lagrangian, axis=-1)
    signal = episode.signals[:, 0] + weighted + surprise
    return signal + expected_next(problem, values), episode.q_lagrangian


# ---------------------------------------------------------------------------- bounds and potential


@as_statement(
    "truncated dual gradient is bounded", _BOUNDS, premises=("constraints", "unit thresholds")
)
def truncated_gradient_bounded(problem: Problem, episode: Step) -> Sides:
    """‖V̂_u - c + τλ_k‖ ≤ √I (H + τ λ_max)."""
    gradient = episode.constraint_values - problem.cmdp.thresholds
    gradient = gradient + problem.regularization * episode.multipliers
    return jnp.sqrt(gradient @ gradient), jnp.sqrt(dual_constant(problem))


@as_statement(
    "online potential recursion",
    "Lemma 5.1, its proof",
    premises=("unit thresholds", "large cap", "small steps"),
    trivial=start_ceiling,
)
def online_recursion(problem: Problem, episode: Step) -> Sides:
    """Φ_{k+1} ≤ (1-ητ)Φ_k + η²(D+D') + η(V̂_z-V_z) + ηλ_max Σ|V̂_u-V_u|."""
    eta, tau = problem.step_size, problem.regularization
    weights = jnp.concatenate([jnp.ones(1), episode.multipliers, tau[None]])
    excess = (episode.optimistic_values - episode.values) @ weights
    missed = jnp.sum(jnp.abs(episode.constraint_values - episode.values[1:-1]))
    added = eta**2 * (primal_constant(problem) + dual_constant(problem))
    learning = eta * excess + eta * problem.max_multiplier * missed
    return episode.next_potential, (1 - eta * tau) * episode.potential + added + learning


ON_EVENT = (
    reward_optimism,
    constraint_optimism,
    entropy_optimism,
    lagrangian_optimism,
    online_recursion,
)
"""These hold if the success event happens."""

_SAME = "as with the model known, with the learner's Φ_k"
ALWAYS = (
    values_not_negative._replace(
        name="truncated values are not negative", place=_BOUNDS, text="0 ≤ Q̂_z", premises=()
    ),
    values_bounded._replace(
        name="truncated values are bounded",
        place=_BOUNDS,
        text="Q̂_z ≤ -τ log π_k + H(1 + I λ_max + τ log A)",
        premises=(),
        note="through the caps; “bounded by the true values” (print) is false",
    ),
    local_norms_bounded._replace(
        name="truncated local norms are bounded",
        place=_BOUNDS,
        text="Σ_a π_k exp(ηQ̂_z) Q̂_z² ≤ √A exp(ηB) (2B² + 128 τ²/e²)",
        premises=("small steps",),
        note="",
    ),
    truncated_gradient_bounded,
    objective_error._replace(name="online objective error", text=_SAME, premises=()),
    constraint_error._replace(
        name="online constraint error", text=_SAME, premises=("constraints", "slater"), note=""
    ),
)
"""These hold in every run."""
