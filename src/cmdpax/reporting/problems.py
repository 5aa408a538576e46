"""A CMDP in numbers: sizes, optimum, rewards, and what its thresholds cost."""

import warnings
from typing import Any

import numpy as np

from cmdpax.errors import CmdpaxError, CmdpaxWarning
from cmdpax.model.cmdp import CMDP
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
        "thresholds": all_rounded(cmdp.thresholds),
        "slater_gap": rounded(described["slater_gap"]),
        "rewards": _rewards(cmdp) if rewards else None,
        "frontier": None,
    }


def _rewards(cmdp: CMDP) -> dict[str, Any]:
    """List r and u of the triples (h, s, a), or of the pairs (s, a) if all steps are the same.

    Of very many, an even selection is taken.
    """
    signals = [cmdp.rewards, *cmdp.constraint_rewards]
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
    own = float(cmdp.thresholds[constraint])
    apart = found.feasible & (np.abs(found.thresholds - own) > 1e-9 * max(1.0, abs(own)))
    thresholds = np.append(found.thresholds[apart], own)
    values = np.append(found.value[apart], optimum)
    order = np.argsort(thresholds)
    return {
        "thresholds": all_rounded(thresholds[order]),
        "values": all_rounded(values[order]),
        "largest": rounded(found.largest_feasible),
    }
