"""The theorems' hyperparameters, as keyword arguments of `learn` and `iterate`.

They need the Slater gap Ξ: pass a CMDP, whose gap is computed, or give `slater_gap` yourself.
"""

import math
from typing import NamedTuple

from cmdpax.checks import require_share
from cmdpax.errors import ParameterError
from cmdpax.model.cmdp import CMDP
from cmdpax.planning.solution import slater_gap as find_slater_gap


class Preset(NamedTuple):
    """η, τ and λ_max of a theorem."""

    step_size: float
    regularization: float
    max_multiplier: float


def regret_theorem(cmdp: CMDP, num_episodes: int, *, slater_gap: float | None = None) -> Preset:
    """The choices of the regret bound: τ = K^(-1/7), η = Ξ K^(-5/7)/(H² I), λ_max = (H/Ξ) K^(1/14).

    Examples:
        >>> import cmdpax
        >>> preset = cmdpax.parameters.regret_theorem(cmdpax.environments.make("random"), 10**6)
        >>> [round(number, 6) for number in preset]
        [4e-06, 0.13895, 7.332615]
    """
    if not num_episodes >= 1:
        raise ParameterError(f"num_episodes is {num_episodes}, it must be at least 1.")
    gap = _slater_gap(cmdp, slater_gap)
    horizon, num_constraints = cmdp.horizon, max(cmdp.num_constraints, 1)
    return Preset(
        step_size=gap * num_episodes ** (-5 / 7) / (horizon**2 * num_constraints),
        regularization=num_episodes ** (-1 / 7),
        max_multiplier=horizon / gap * num_episodes ** (1 / 14),
    )


def last_iterate_theorem(cmdp: CMDP, accuracy: float, *, slater_gap: float | None = None) -> Preset:
    """Those of last-iterate convergence: τ = ε², η = Ξ ε⁶/(H² I log A), λ_max = (H/Ξ)/ε."""
    accuracy = require_share("accuracy", accuracy)
    if cmdp.num_actions < 2:
        raise ParameterError("the theorem's step size divides by log A: it needs two actions.")
    gap = _slater_gap(cmdp, slater_gap)
    horizon, num_constraints = cmdp.horizon, max(cmdp.num_constraints, 1)
    constants = horizon**2 * num_constraints * math.log(cmdp.num_actions)
    return Preset(
        step_size=gap * accuracy**6 / constants,
        regularization=accuracy**2,
        max_multiplier=horizon / gap / accuracy,
    )


def strict_safety(num_episodes: int, alpha: float) -> float:
    """The margin K^((α-1)/2) of the paper's reduction to strict safety.

    If the strong violation grows like K^α, learning against c + margin leaves a share of unsafe
    episodes that vanishes.

    Examples:
        >>> import cmdpax
        >>> round(cmdpax.parameters.strict_safety(10_000, alpha=0.5), 6)
        0.1
    """
    if not num_episodes >= 1:
        raise ParameterError(f"num_episodes is {num_episodes}, it must be at least 1.")
    alpha = require_share("alpha", alpha)
    return float(num_episodes ** ((alpha - 1) / 2))


def _slater_gap(cmdp: CMDP, given: float | None) -> float:
    """Ξ > 0, given or computed."""
    if given is None:
        found = find_slater_gap(cmdp)
        if found is None:
            raise ParameterError("the theorems need constraints: this CMDP has none.")
        given = found.gap
    if not (math.isfinite(given) and given > 0):
        raise ParameterError(
            f"the Slater gap is {given:.6g}, the theorems need a positive one; "
            "lower the thresholds."
        )
    return float(given)
