"""The potential's closed form, and what it is worth against the measured bias."""

import numpy as np

from cmdpax.paper.audit.convergence import dual_constant, primal_constant, start_ceiling
from cmdpax.paper.audit.problem import Problem, unmet
from cmdpax.paper.audit.statement import NOTHING, Row, Verdict

_HEADS = (
    ("potential, closed form", "Lemma 4.1", "Φ_k ≤ (1-ητ)^{k-1} Φ_1 + (η/τ)(D + D')"),
    (
        "potential, measured bias",
        "Lemma 4.1",
        "Φ_k ≤ (1-ητ)^{k-1} Φ_1 + the largest Φ of the last quarter",
    ),
)
_PREMISES = ("unit rewards", "unit thresholds", "small steps", "large cap")


def closed_form_rows(problem: Problem, potentials: np.ndarray, against: str = "") -> list[Row]:
    """Compare Φ_k with the bound of Lemma 4.1, and with its rate and the measured bias.

    Where the lemma does not apply, `against` is the reason.
    """
    if against:
        return [Row(*head, *NOTHING, "does not apply", {}, against) for head in _HEADS]
    proved, decay = proved_bound(problem, potentials), decaying(problem, potentials)
    proved_bias = float(proved[0] - decay[0])
    bias = float(potentials[3 * len(potentials) // 4 :].max())
    ceiling = float(start_ceiling(problem))
    first = _row(
        _HEADS[0],
        potentials,
        proved,
        "vacuous" if proved.min() >= ceiling else "holds",
        f"the bias term alone is {proved_bias:.3g}; Φ_1 is at most {ceiling:.4g}",
    )
    second = _row(
        _HEADS[1],
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
    head: tuple[str, str, str], left: np.ndarray, right: np.ndarray, verdict: Verdict, note: str
) -> Row:
    slack = right - left
    place = int(np.argmin(slack))
    held = slack[place] >= -1e-9 * max(1.0, abs(right[place]))
    sides = (float(left[place]), float(right[place]), float(slack[place]))
    return Row(*head, *sides, verdict if held else "fails", {"k": place + 1}, note)
