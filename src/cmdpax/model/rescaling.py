"""Rewards rescaled to [0, 1], which learners assume, and results back in the user's units."""

from typing import NamedTuple

import numpy as np

from cmdpax.model.arrays import ROUNDING
from cmdpax.model.cmdp import CMDP
from cmdpax.model.validation import validate
from cmdpax.model.words import Words


class Rescaling(NamedTuple):
    """A CMDP with rewards in [0, 1], and how its values map back.

    Attributes:
        cmdp: the rescaled model; its policies are the original's, and so are its names and senses.
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
        """V_u in the user's units and senses; the constraints are the last axis."""
        return np.asarray(rescaled) * self.scale[1:] + self.cmdp.horizon * self.shift[1:]

    def multipliers(self, rescaled: np.ndarray) -> np.ndarray:
        """λ in the user's units: reward per unit of a constraint."""
        return np.asarray(rescaled) * self.scale[0] / self.scale[1:]

    def rescaled_value(self, value: float) -> float:
        """V_r of the rescaled model, from the user's units."""
        return float((value - self.cmdp.horizon * self.shift[0]) / self.scale[0])

    def outward(self, horizon: int) -> tuple[np.ndarray, np.ndarray]:
        """Factors and offsets, `[1 + I]`, from sums over steps as they are stored to the user's.

        The user's V_r and V_u are factor · V + offset, where V_u is that of the constraint rewards
        which `cmdp` stores, whatever their senses are.
        """
        words, scale, shift = self.cmdp.words, self.scale, self.shift
        if words.ceilings is None:
            return scale, horizon * shift
        ceilings, signs = np.insert(words.ceilings, 0, 0.0), np.insert(words.signs, 0, 1.0)
        return signs * scale, horizon * (shift + ceilings * scale)


def rescale(cmdp: CMDP) -> Rescaling:
    """The same problem with all rewards in [0, 1], and the way back to the user's units.

    Signals that are in [0, 1] already stay as they are, and those that leave it by rounding are
    clipped. Others are shifted and scaled by their smallest and largest entries, thresholds with
    them; the optimal policies are the same. Costs are scaled, and not shifted.

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
    if ((low >= 0) & (high <= 1)).all():
        return Rescaling(cmdp, np.ones(len(low)), np.zeros(len(low)))
    inside = (low >= -ROUNDING) & (high <= 1 + ROUNDING)
    shift = np.where(inside, 0.0, low)
    scale = np.where(inside, 1.0, np.where(high > low, high - low, 1.0))
    axes = (slice(None), None, None, None)
    rewards = (cmdp.rewards - shift[0]) / scale[0]
    others = (cmdp.constraint_rewards - shift[1:][axes]) / scale[1:][axes]
    rescaled = cmdp.with_arrays(
        rewards=np.clip(rewards, 0, 1),
        constraint_rewards=np.clip(others, 0, 1),
        thresholds=(cmdp.thresholds - cmdp.horizon * shift[1:]) / scale[1:],
    )
    words = _rescaled_words(cmdp.words, scale[1:], shift[1:])
    # What is a cost to users is m - u, inside and outside: only its scale changes.
    shift[1:] = np.where(np.broadcast_to(words.signs, shift[1:].shape) < 0, 0.0, shift[1:])
    return Rescaling(rescaled.with_words(words), scale, shift)


def _rescaled_words(words: Words, scale: np.ndarray, shift: np.ndarray) -> Words:
    """The words of the rescaled model, whose numbers have no units."""
    words = words._replace(units=None)
    if words.ceilings is None:
        return words
    moved = (np.array(words.ceilings) - shift) / scale
    moved = np.where(words.signs < 0, moved, 0.0)
    return words._replace(ceilings=tuple(moved.tolist()))
