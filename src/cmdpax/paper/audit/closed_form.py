"""The potential's closed form, and what it is worth against the measured bias."""

import numpy as np

from cmdpax.paper.audit.convergence import dual_constant, primal_constant, start_ceiling
from cmdpax.paper.audit.problem import Problem, unmet
from cmdpax.paper.audit.statement import Row, Verdict

_PREMISES = ("unit rewards", "unit thresholds", "small steps", "large cap")


def closed_form_rows(problem: Problem, potentials: np.ndarray) -> list[Row]:
    """Compare Φ_k with the bound of Lemma 4.1, and with its rate and the measured bias."""
    proved, decay = proved_bound(problem, potentials), decaying(problem, potentials)
    proved_bias = float(proved[0] - decay[0])
    bias = float(potentials[3 * len(potentials) // 4 :].max())
    ceiling = float(start_ceiling(problem))
    first = _row(
        "potential, closed form",
        "Φ_k ≤ (1-ητ)^{k-1} Φ_1 + (η/τ)(D + D')",
        potentials,
        proved,
        "vacuous" if proved.min() >= ceiling else "holds",
        f"the bias term alone is {proved_bias:.3g}; Φ_1 is at most {ceiling:.4g}",
    )
    second = _row(
        "potential, measured bias",
        "Φ_k ≤ (1-ητ)^{k-1} Φ_1 + the largest Φ of the last quarter",
        potentials,
        decay + bias,
        "holds",
        f"the measured bias is {bias:.3g}, the proved one {proved_bias:.3g}",
    )
    if second.verdict == "fails":  # no lemma says that the last quarter's Φ bounds the bias
        note = f"Φ is larger on its way than its rate and its last quarter explain; {second.note}"
        second = second._replace(verdict="premise not met", note=note)
    if missing := unmet(problem, _PREMISES):
        first = first._replace(verdict="premise not met", note="; ".join([*missing, first.note]))
    return [first, second]


def decaying(problem: Problem, potentials: np.ndarray) -> np.ndarray:
    """Compute (1-ητ)^{k-1} Φ_1 for every k."""
    rate = 1 - float(problem.step_size) * float(problem.regularization)
    return np.asarray(rate ** np.arange(len(potentials)) * potentials[0])


def proved_bound(problem: Problem, potentials: np.ndarray) -> np.ndarray:
    """Compute (1-ητ)^{k-1} Φ_1 + (η/τ)(D + D') for every k."""
    constants = float(primal_constant(problem) + dual_constant(problem))
    ratio = float(problem.step_size) / float(problem.regularization)
    return decaying(problem, potentials) + ratio * constants


def _row(
    name: str, text: str, left: np.ndarray, right: np.ndarray, verdict: Verdict, note: str
) -> Row:
    slack = right - left
    place = int(np.argmin(slack))
    held = slack[place] >= -1e-9 * max(1.0, abs(right[place]))
    return Row(
        name,
        "Lemma 4.1",
        text,
        float(left[place]),
        float(right[place]),
        float(slack[place]),
        verdict if held else "fails",
        {"k": place + 1},
        note,
    )
