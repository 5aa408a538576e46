"""The accounts: what a sequence of policies lost, measured in the true model.

Per episode k, with the true thresholds c,

    suboptimality_k = V_r^{π*} - V_r^{π_k},        violation_{k,i} = c_i - V_{u_i}^{π_k}.

*Strong* regrets sum the positive parts, so that an unsafe episode is never paid for by a safe one;
*weak* regrets sum the signed terms. Constraints are summed one by one, and the maximum over i is
taken at the end.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Integer


class Regret(NamedTuple):
    """Cumulative regrets after each recorded episode.

    Attributes:
        objective: `[…, T]`.
        constraints: `[…, T, I]`.
        maximum: `[…, T]`, the largest over the constraints; 0 without constraints.
    """

    objective: np.ndarray
    constraints: np.ndarray
    maximum: np.ndarray

    @classmethod
    def of(cls, objective: np.ndarray, constraints: np.ndarray) -> "Regret":
        """With the maximum over the constraints."""
        if constraints.shape[-1] == 0:
            return cls(objective, constraints, np.zeros_like(objective))
        return cls(objective, constraints, constraints.max(axis=-1))


def strong_regret(
    suboptimality: Float[np.ndarray, "*R T"], violation: Float[np.ndarray, "*R T I"]
) -> Regret:
    """Cumulative sums of the positive parts."""
    return weak_regret(np.maximum(suboptimality, 0.0), np.maximum(violation, 0.0))


def weak_regret(
    suboptimality: Float[np.ndarray, "*R T"], violation: Float[np.ndarray, "*R T I"]
) -> Regret:
    """Cumulative sums of the signed terms."""
    return Regret.of(np.cumsum(suboptimality, axis=-1), np.cumsum(violation, axis=-2))


def unsafe_share(
    violation: Float[np.ndarray, "*R T I"], levels: tuple[float, ...]
) -> Float[np.ndarray, "*R E"]:
    """Share of episodes with some violation ≥ ε, for each level ε."""
    worst = violation.max(axis=-1, initial=-np.inf)
    # A violation that is not a number is not below any level.
    return np.stack([(~(worst < level)).mean(axis=-1) for level in levels], axis=-1)


def growth_exponent(
    cumulative: Float[np.ndarray, "*R T"], episodes: Integer[np.ndarray, " T"]
) -> Float[np.ndarray, "*R"]:
    """Slope of log(cumulative regret) against log k over k ∈ [K/10, K]; NaN where it is 0."""
    last = episodes >= episodes[-1] / 10
    x = np.log(episodes[last].astype(float))
    part = cumulative[..., last]
    positive = np.asarray((part > 0).all(axis=-1))
    y = np.log(np.where(positive[..., None], part, 1.0))
    x = x - x.mean()
    spread = (x * x).sum()
    slope = (y * x).sum(axis=-1) / spread if spread > 0 else np.full(part.shape[:-1], np.nan)
    return np.where(positive, slope, np.nan)


def growth_exponents(regret: Regret, episodes: Integer[np.ndarray, " T"]) -> Regret:
    """The exponent of each of the regrets: the axis of episodes is gone."""
    by_constraint = np.moveaxis(regret.constraints, -1, -2)
    return Regret(
        growth_exponent(regret.objective, episodes),
        growth_exponent(by_constraint, episodes),
        growth_exponent(regret.maximum, episodes),
    )
