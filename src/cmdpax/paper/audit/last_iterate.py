"""The last-iterate theorem: what it asks for an accuracy ε, and what suffices in practice."""

import jax
import numpy as np

from cmdpax.model.cmdp import CMDP
from cmdpax.paper.audit.convergence import (
    dual_constant,
    fixed_constraint_error,
    primal_constant,
    start_ceiling,
)
from cmdpax.paper.audit.problem import Problem
from cmdpax.paper.audit.statement import NOTHING, Row
from cmdpax.schemes.iteration import iterate
from cmdpax.schemes.presets import last_iterate_theorem

_LARGE = 1e9  # iterations that nobody runs
_TRIED = (0.1, 0.05, 0.02, 0.01, 0.005, 0.002)
_TRIALS = 20_000
_ABOUT = (
    "last iterate",
    "Theorem 4.3",
    "iterations that suffice in practice ≤ iterations that the theorem asks for",
)


def last_iterate_rows(problem: Problem, accuracy: float, against: str = "") -> list[Row]:
    """Compare the iterations until ε: those of the theorem, and of practical parameters.

    Where the theorem does not apply, `against` is the reason.
    """
    cmdp = problem.cmdp
    gap = float(problem.slater_gap)
    if cmdp.num_constraints == 0 or cmdp.num_actions < 2 or not 0 < gap < np.inf:
        return []
    if against:
        return [Row(*_ABOUT, *NOTHING, "does not apply", {}, against)]
    exact = jax.tree.map(np.asarray, cmdp)
    internal, needed = _theorem(problem, exact, accuracy, gap)
    tau, reached = _practice(exact, float(problem.optimal_values[0]), accuracy)
    note = (
        f"ε = {accuracy:g}: with the proof's constants the theorem needs ε' = {internal:.2g} and "
        f"{needed:.2g} iterations"
    )
    if needed > _LARGE:
        note += ", an astronomical number"
    if reached is None:
        practical = (
            f"none of τ = {_TRIED[0]} … {_TRIED[-1]} stays within ε after {_TRIALS} iterations"
        )
    else:
        practical = f"η = 0.1, τ = {tau:g} stay within ε from iteration {reached} on"
    return [
        Row(
            *_ABOUT,
            float("nan") if reached is None else float(reached),
            needed,
            needed - (reached or 0),
            "vacuous" if needed > _LARGE else ("holds" if reached is not None else "fails"),
            {},
            f"{note}; {practical}",
        )
    ]


def _theorem(problem: Problem, cmdp: CMDP, accuracy: float, gap: float) -> tuple[float, float]:
    """Find the ε' whose parameters guarantee the accuracy, and the number of iterations."""
    internal = accuracy
    for _ in range(400):
        preset = last_iterate_theorem(cmdp, min(internal, 0.999), slater_gap=gap)
        chosen = problem._replace(
            step_size=preset.step_size,
            regularization=preset.regularization,
            max_multiplier=preset.max_multiplier,
        )
        eta, tau = preset.step_size, preset.regularization
        bias = eta / tau * float(primal_constant(chosen) + dual_constant(chosen))
        fixed = max(
            float(fixed_constraint_error(chosen)),
            tau * cmdp.horizon * np.log(cmdp.num_actions),
        )
        left = accuracy - fixed - cmdp.horizon**1.5 * np.sqrt(2 * bias)
        if np.isfinite(left) and left > 0:
            # H^{3/2} (2 (1-ητ)^k Φ_1)^{1/2} ≤ what is left
            allowed = left**2 / (2 * cmdp.horizon**3)
            start = float(start_ceiling(chosen))
            return internal, max(1.0, float(np.log(allowed / start) / np.log1p(-eta * tau)))
        internal *= 0.8
    return internal, float("inf")


def _practice(cmdp: CMDP, optimum: float, accuracy: float) -> tuple[float, int | None]:
    """Find the largest τ, with η = 0.1, whose iterates stay within ε, and from when on."""
    for tau in _TRIED:
        found = iterate(cmdp, "primal-dual", num_iterations=_TRIALS, regularization=tau)
        violation = np.maximum(cmdp.thresholds - found.constraint_values, 0).max(axis=1)
        errors = np.maximum(np.maximum(optimum - found.value, 0), violation)
        outside = np.flatnonzero(errors > accuracy)
        first = 1 if outside.size == 0 else int(outside[-1]) + 2
        if first <= _TRIALS * 3 // 4:
            return tau, first
    return _TRIED[-1], None
