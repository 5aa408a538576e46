"""Fewer episodes of a curve, without hiding its extremes.

Every n-th point of an oscillating curve shows whatever the oscillation happens to be at these
points. Instead the episodes are cut into buckets of equal width, and each bucket keeps its first
episode and those where a row has its minimum or its maximum: the envelope is the same.
"""

import numpy as np


def thin(rows: np.ndarray, wanted: int) -> np.ndarray:
    """Choose the points to keep, ascending: at most `wanted`, with the first and the last.

    If the extremes of all rows are too many even for one bucket, those of the first rows count.

    Args:
        rows: `[N, T]`, the most important first.
        wanted: how many may be kept, 2 at least.
    """
    length = rows.shape[1]
    if length <= max(wanted, 2):
        return np.arange(length)
    kept = _keep(rows, length)
    while len(kept) > wanted and len(rows):
        rows = rows[:-1]
        kept = _keep(rows, length)
    # Wider buckets keep fewer points, nearly always; what is kept at `fitting` does fit.
    fitting, too_narrow = length, 0
    while fitting - too_narrow > 1:
        width = (fitting + too_narrow) // 2
        found = _keep(rows, width)
        if len(found) <= wanted:
            fitting, kept = width, found
        else:
            too_narrow = width
    return kept


def _keep(rows: np.ndarray, width: int) -> np.ndarray:
    """Find what stays with buckets of this width."""
    length = rows.shape[1]
    starts = np.arange(0, length, width)
    padding = ((0, 0), (0, len(starts) * width - length))
    places = [starts, np.array([length - 1])]
    for end, find in ((np.inf, np.argmin), (-np.inf, np.argmax)):
        padded = np.pad(rows, padding, constant_values=end)
        buckets = padded.reshape(len(rows), len(starts), width)
        places.append((starts + find(buckets, axis=2)).ravel())
    return np.unique(np.concatenate(places))
