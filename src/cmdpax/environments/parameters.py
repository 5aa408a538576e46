"""Checks of sizes against the memory, and rounding of numbers that are stored."""

import math

import numpy as np

from cmdpax.storage.limits import require_room


def require_fitting(*shape: int) -> None:
    """Refuse sizes whose largest array, of doubles, would not fit the memory."""
    require_room(f"an array of shape {shape}", 8 * math.prod(shape), "choose smaller sizes")


def stable(values: np.ndarray) -> np.ndarray:
    """Round computed numbers to 12 decimals.

    The last bits of a sum depend on the processor; without them the same parameters give the same
    arrays, and so the same fingerprint, on every machine.
    """
    return np.round(values, 12) + 0.0
