"""A CMDP in words and numbers: sizes, optimum, bounds, rewards, and what its thresholds cost."""

import warnings
from typing import Any

import numpy as np

from cmdpax.errors import CmdpaxError, CmdpaxWarning
from cmdpax.model.cmdp import CMDP
from cmdpax.model.words import Words
from cmdpax.planning.frontier import frontier
from cmdpax.reporting.encoding import all_rounded, rounded

_MOST_POINTS = 1500
_FRONTIER_POINTS = 25
_MOST_TRIPLES = 20_000
_MOST_CONSTRAINTS = 4


def describe_problem(cmdp: CMDP, described: dict[str, Any], *, rewards: bool) -> dict[str, Any]:
    """Describe a CMDP for the page, without its frontier.

    Args:
        cmdp: the model.
        described: its entry in the manifest.
        rewards: whether the picture of its rewards is wanted.
    """
    return {
        "name": described["name"],
        "fingerprint": cmdp.fingerprint,
        "sizes": cmdp.sizes._asdict(),
        "optimum": rounded(described["optimum"]),
        "multipliers": all_rounded(described["multipliers"]),
        "thresholds": all_rounded(cmdp.bounds),
        "objective": _objective(cmdp.words),
        "constraints": [_constraint(cmdp, index) for index in range(cmdp.num_constraints)],
        "slater_gap": rounded(described["slater_gap"]),
        "rewards": _rewards(cmdp) if rewards else None,
        "frontier": None,
    }


def _objective(words: Words) -> dict[str, Any]:
    """Describe the objective by its name and unit, if they were said."""
    named = words.objective_name is not None or bool(words.unit())
    label = words.label() if named else "objective"
    return {"name": words.objective if named else "objective", "label": label, "named": named}


def _constraint(cmdp: CMDP, index: int) -> dict[str, Any]:
    """Describe a constraint as the user reads it: name, unit, sense and bound.

    `sign` is -1 where the sense is "at most": violations are `sign * (bound - value)`.
    """
    words, bound = cmdp.words, float(cmdp.bounds[index])
    named = words.constraint_names is not None
    name = words.constraint(index) if named or cmdp.num_constraints > 1 else "constraint"
    unit = words.unit(1 + index)
    label = f"{name} [{unit}]" if unit else name
    sense = words.sense(index)
    per = f"{words.unit() or '1'} per {unit or 'unit'}" if unit or words.unit() else ""
    return {
        "name": name,
        "label": label,
        "named": named or bool(unit),
        "sense": sense,
        "sign": -1 if sense == "at most" else 1,
        "bound": rounded(bound),
        "text": f"{label}, {sense} {bound:.6g}",
        "price": per,
    }


def _rewards(cmdp: CMDP) -> dict[str, Any]:
    """List r and u of the triples (h, s, a), or of the pairs (s, a) if all steps are the same.

    Costs are costs, as the user gave them. Of very many, an even selection is taken.
    """
    signals = [cmdp.rewards, *cmdp.words.turn_signals(cmdp.constraint_rewards)]
    shape = np.broadcast_shapes(*(signal.shape for signal in signals))
    total = int(np.prod(shape))
    picked = np.linspace(0, total - 1, min(total, _MOST_POINTS)).round().astype(int)
    points = [all_rounded(np.broadcast_to(signal, shape).ravel()[picked]) for signal in signals]
    return {"r": points[0], "u": points[1:], "total": total, "steps": shape[0]}


def find_frontiers(cmdp: CMDP, optimum: float) -> list[dict[str, Any] | None] | None:
    """Find what each constraint's threshold costs; None where that would take long, or fails."""
    num_constraints, horizon, num_states, num_actions = cmdp.sizes
    if horizon * num_states * num_actions > _MOST_TRIPLES or num_constraints > _MOST_CONSTRAINTS:
        return None
    return [_frontier(cmdp, optimum, constraint) for constraint in range(num_constraints)]


def _frontier(cmdp: CMDP, optimum: float, constraint: int) -> dict[str, Any] | None:
    """Compute the feasible part, with the optimum among its points."""
    try:
        with warnings.catch_warnings():
            # It warns about points whose gap stays open, which no picture would show.
            warnings.simplefilter("ignore", CmdpaxWarning)
            found = frontier(cmdp, constraint=constraint, num_points=_FRONTIER_POINTS)
    except (CmdpaxError, RuntimeError):  # solvers and devices raise the latter
        return None
    own = float(cmdp.bounds[constraint])
    apart = found.feasible & (np.abs(found.thresholds - own) > 1e-9 * max(1.0, abs(own)))
    thresholds = np.append(found.thresholds[apart], own)
    values = np.append(found.value[apart], optimum)
    order = np.argsort(thresholds)
    return {
        "thresholds": all_rounded(thresholds[order]),
        "values": all_rounded(values[order]),
        "largest": rounded(found.largest_feasible),
    }
