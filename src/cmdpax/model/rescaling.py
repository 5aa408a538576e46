"""Rewards rescaled to [0, 1], which learning needs, and results back in the user's units."""

from typing import NamedTuple

import numpy as np

from cmdpax.errors import ModelError
from cmdpax.model.cmdp import CMDP
from cmdpax.model.validation import validate


class Rescaling(NamedTuple):
    """A CMDP with rewards in [0, 1], and how its values map back.

    Attributes:
        cmdp: the rescaled model; its policies are the original's.
        scale: `[1 + I]`, units per unit of the rescaled reward and constraint rewards.
        shift: `[1 + I]`, the original signal of a step where the rescaled one is 0.
    """

    cmdp: CMDP
    scale: np.ndarray
    shift: np.ndarray

    def value(self, rescaled: np.ndarray | float) -> np.ndarray:
        """V_r in the user's units."""
        return np.asarray(rescaled) * self.scale[0] + self.cmdp.horizon * self.shift[0]

    def constraint_values(self, rescaled: np.ndarray) -> np.ndarray:
        """V_u in the user's units; the constraints are the last axis."""
        return np.asarray(rescaled) * self.scale[1:] + self.cmdp.horizon * self.shift[1:]

    def multipliers(self, rescaled: np.ndarray) -> np.ndarray:
        """λ in the user's units: reward per unit of a constraint."""
        return np.asarray(rescaled) * self.scale[0] / self.scale[1:]


def rescale(cmdp: CMDP) -> Rescaling:
    """The same problem with all rewards in [0, 1], and the way back to the user's units.

    Signals that are in [0, 1] already stay as they are. Others are shifted and scaled by their
    smallest and largest entries, thresholds with them; the optimal policies are the same.

    Examples:
        >>> import cmdpax
        >>> raw = cmdpax.environments.make("ring", scale_rewards=False)
        >>> rescaling = cmdpax.rescale(raw)
        >>> float(rescaling.cmdp.rewards.max())
        1.0
        >>> round(float(rescaling.value(cmdpax.solve(rescaling.cmdp).value)), 9)
        6.0
    """
    validate(cmdp)
    ranges = [(cmdp.rewards.min(), cmdp.rewards.max())]
    ranges += [(signal.min(), signal.max()) for signal in cmdp.constraint_rewards]
    low, high = np.array(ranges, dtype=float).T
    inside = (low >= 0) & (high <= 1)
    shift = np.where(inside, 0.0, low)
    scale = np.where(inside, 1.0, np.where(high > low, high - low, 1.0))
    axes = (slice(None), None, None, None)
    rescaled = cmdp.replace(
        rewards=(cmdp.rewards - shift[0]) / scale[0],
        constraint_rewards=(cmdp.constraint_rewards - shift[1:][axes]) / scale[1:][axes],
        thresholds=(cmdp.thresholds - cmdp.horizon * shift[1:]) / scale[1:],
    )
    return Rescaling(rescaled, scale, shift)


def require_unit_rewards(cmdp: CMDP) -> None:
    """Refuse rewards outside [0, 1], which learning assumes."""
    named = [("rewards", cmdp.rewards)]
    named += [(f"constraint_rewards[{i}]", u) for i, u in enumerate(cmdp.constraint_rewards)]
    for name, signal in named:
        low, high = float(signal.min()), float(signal.max())
        if low < 0 or high > 1:
            raise ModelError(
                f"{name} lies in [{low:.6g}, {high:.6g}], learning needs [0, 1]; "
                "use cmdpax.rescale(cmdp).cmdp, whose results map back to your units."
            )
