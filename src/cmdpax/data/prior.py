"""Priors of rows of probabilities, with the weight that the data themselves suggest.

A row p (where a pair leads, or how often it shows each value of a signal) is drawn from

    p ~ Dirichlet(α b),        b = (1 - w) b̄ + w b̃,

where b̄ is the same for all rows, and b̃ is what the other rows of the same state have shown: other
actions and other steps lead to similar places. Counts N of a row then have the probability

    Γ(α) / Γ(α + n) · Π_t Γ(α b_t + N_t) / Γ(α b_t),        n = Σ_t N_t,

but for a constant, and (α, w) are those that make all counts of a log most probable (type II
maximum likelihood). Where rows are nearly certain α becomes small, and a few visits tell much;
where they are spread out α becomes large, and the unseen counts for more.
"""

from typing import NamedTuple

import numpy as np

_WEIGHTS = np.geomspace(0.01, 1000.0, 26)
_SHARES = (0.0, 0.5, 0.9, 0.99)
DEFAULT_WEIGHT = 1.0
"""α where no row was visited twice, so that the data suggest nothing."""


class Prior(NamedTuple):
    """What is believed about rows before they are observed.

    Attributes:
        weight: α, in observations.
        share: w, of what other rows of the same state have shown.
        base: α b, `[rows, T]`.
    """

    weight: float
    share: float
    base: np.ndarray


def fit_prior(
    counts: np.ndarray, common: np.ndarray, owners: np.ndarray, weight: float | None = None
) -> Prior:
    """The prior of rows under which their counts are most probable.

    Args:
        counts: N, `[rows, T]`.
        common: b̄, `[rows, T]`; rows sum to 1, and no outcome with a count has 0.
        owners: the state of each row, `[rows]`.
        weight: α, if it is known; the prior is then α b̄.
    """
    if weight is not None:
        return Prior(weight, 0.0, weight * common)
    others = _others(counts, common, owners)
    told = counts.sum(axis=1) > 1  # a single observation is as probable for every α
    if not told.any():
        return Prior(DEFAULT_WEIGHT, 0.0, DEFAULT_WEIGHT * common)
    best = max(
        (
            (_log_likelihood(counts[told], weight, _mix(common[told], others[told], share)), -i, j)
            for i, share in enumerate(_SHARES)
            for j, weight in enumerate(_WEIGHTS)
        ),
    )
    share, weight = _SHARES[-best[1]], float(_WEIGHTS[best[2]])
    return Prior(weight, share, weight * _mix(common, others, share))


def _mix(common: np.ndarray, others: np.ndarray, share: float) -> np.ndarray:
    return (1 - share) * common + share * others


def _others(counts: np.ndarray, common: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """b̃, `[rows, T]`: frequencies in the other rows of the same state, where b̄ allows them."""
    totals = np.zeros((owners.max() + 1, counts.shape[1]))
    np.add.at(totals, owners, counts)
    rest = np.where(common > 0, totals[owners] - counts, 0.0)
    sums = rest.sum(axis=1, keepdims=True)
    return np.where(sums > 0, rest / np.maximum(sums, 1), common)


def _log_likelihood(counts: np.ndarray, weight: float, base: np.ndarray) -> float:
    """log of the probability of the counts, but for a constant."""
    from scipy.special import gammaln

    seen = np.nonzero(counts)
    prior, observed = weight * base[seen], counts[seen]
    sizes = counts.sum(axis=1)
    rows = len(counts) * gammaln(weight) - gammaln(weight + sizes).sum()
    return float(rows + (gammaln(prior + observed) - gammaln(prior)).sum())
