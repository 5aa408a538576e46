"""The objective and each constraint in units of its own.

Models mix units: euros, seconds and probabilities, between 1e-8 and 1e8. Planning divides signals
by powers of two, so that the largest entry of each lies in [1/2, 1). Such a division is exact,
except for entries below 1e-308 times the largest: the scaled model has the same policies, optimum
and certificates, and every tolerance is relative to its signal.
"""

import numpy as np

from cmdpax.model.arrays import ROW_SUM_TOLERANCE
from cmdpax.model.cmdp import CMDP


class Scaled:
    """A model whose signals have magnitudes in [1/2, 1).

    Attributes:
        cmdp: the scaled model.
        exponents: signal j of the user is 2^exponents[j] times the scaled one, `[1 + I]`.
        magnitudes: the largest entry of each scaled signal, `[1 + I]`; 1 for a signal that is 0.
        limit: more than any value, even where rows sum to a little more than 1.
    """

    def __init__(self, cmdp: CMDP) -> None:
        """Divide each signal by the power of two above its largest entry."""
        of_constraints = np.abs(cmdp.constraint_rewards).max(axis=(1, 2, 3), initial=0.0)
        largest = np.concatenate([[np.abs(cmdp.rewards).max()], of_constraints])
        magnitudes, exponents = np.frexp(np.where(largest > 0, largest, 0.5))
        self.exponents = exponents.astype(np.int64)
        self.magnitudes = np.where(largest > 0, magnitudes, 1.0)
        self.limit = (cmdp.horizon + 1) * (1 + ROW_SUM_TOLERANCE) ** cmdp.horizon
        self.cmdp = cmdp.with_arrays(thresholds=self.clipped(cmdp.thresholds))
        if self.exponents.any():
            factors = np.ldexp(1.0, -self.exponents)  # exact up to the 1e±140 of `validate`
            constraint_rewards = factors[1:, None, None, None] * cmdp.constraint_rewards
            self.cmdp = self.cmdp.with_arrays(
                rewards=factors[0] * cmdp.rewards, constraint_rewards=constraint_rewards
            )

    def thresholds(self, thresholds: np.ndarray) -> np.ndarray:
        """Thresholds in the scaled units, exactly."""
        return np.ldexp(thresholds, -self.exponents[1:])

    def clipped(self, thresholds: np.ndarray) -> np.ndarray:
        """The same, clipped to the range from what every policy meets to what none does."""
        return np.clip(self.thresholds(thresholds), -self.limit, self.limit)

    def to_user(self, values: np.ndarray) -> np.ndarray:
        """(V_r, V_u), `[…, 1 + I]`, in the user's units."""
        return np.ldexp(values, self.exponents)

    def number(self, value: float, signal: int = 0) -> float:
        """One value of a signal in the user's units."""
        return float(np.ldexp(value, self.exponents[signal]))

    def smallest_units(self) -> tuple[int, np.ndarray]:
        """The exponent of the smallest unit, and that unit as a fraction e_i of each constraint's.

        A slack of t such units is e_i t in scaled units.
        """
        smallest = int(self.exponents[1:].min())
        return smallest, np.ldexp(1.0, smallest - self.exponents[1:])

    def user_multipliers(self, multipliers: np.ndarray) -> np.ndarray:
        """λ as units of reward per unit of each constraint."""
        return np.ldexp(multipliers, self.exponents[0] - self.exponents[1:])
