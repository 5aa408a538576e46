"""What an account shows every day: confidence sequences of a live system's returns.

An episode that was cut short has no return. Its missing steps are taken to have brought the least
that they could, and, in sums of their own, the most; an interval reaches from the one to the other.
Where no range is declared nobody knows what that is: the episode is left out, and no verdict given.
"""

import numpy as np

from cmdpax.live.declaration import Declaration
from cmdpax.live.sequences import Band, Sequence, episodes_left, make_bands
from cmdpax.live.units import ROUNDING, Units


def after_returns(
    sequence: Sequence, returns: np.ndarray, missing: int, horizon: int, units: Units
) -> Sequence:
    """The sums, of shape `[2, J]`, after an episode with these returns and missing steps."""
    declared = units.declared
    ends = np.where(declared, [units.low, units.high], 0.0)
    centre = horizon * ends.mean(axis=0)
    return sequence.after(returns + missing * ends, centre, declared | (missing == 0))


def bands_of(sequence: Sequence, declared: Declaration) -> list[Band]:
    """The intervals of the reward and of every constraint."""
    units, horizon = declared.units, declared.sizes.horizon
    ranges = units.declared
    return make_bands(sequence, horizon * units.low, horizon * units.high, ranges)


def show_verdicts(
    sequence: Sequence, bands: list[Band], declared: Declaration, cut_short: int
) -> list[tuple[str, int | None]]:
    """For every constraint what its interval shows and, while that is open, how long it stays so.

    Args:
        sequence: the sums, of shape `[2, J]`.
        bands: the intervals of the reward and of every constraint.
        declared: the system.
        cut_short: how many episodes were.
    """
    found: list[tuple[str, int | None]] = []
    senses, scale = declared.units.senses, declared.sizes.horizon * declared.units.scale
    for i, threshold in enumerate(declared.thresholds.tolist()):
        band = bands[1 + i]
        verdict = band.verdict(senses[i], threshold, ROUNDING * max(1.0, abs(threshold)))
        if cut_short and not band.exact:
            found.append(("open", None))
        elif verdict != "open":
            found.append((verdict, None))
        else:
            one = Sequence(*(array[:, 1 + i] for array in sequence))
            found.append(("open", _left(one, threshold, float(scale[1 + i]), band.exact)))
    return found


def _left(sequence: Sequence, threshold: float, scale: float, declared: bool) -> int | None:
    """How many more episodes until all of an interval is on the side that its mean is on."""
    below, above = threshold - sequence.mean[1], sequence.mean[0] - threshold
    row, distance = (1, below) if below > 0 else (0, above)
    one = Sequence(*(array[row] for array in sequence))
    return episodes_left(one, float(distance), scale, declared)
