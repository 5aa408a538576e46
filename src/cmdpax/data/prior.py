"""Rows of probabilities, and what is believed about them after they were observed.

A row p (where a pair leads, or how often it shows each value of a signal) is drawn from one of
several Dirichlet distributions, which of them is not known:

    p ~ Dirichlet(α_m b_m) with probability π_m.

The weights α_m cover rows that are nearly certain and rows that are spread out; the bases b_m say
that everything is as likely, or that a row resembles other rows: those of the same state, or those
of the same state and action at other steps, since these lead to similar places. Counts N of a row
then have the probability

    Σ_m π_m Γ(α_m) / Γ(α_m + n) · Π_t Γ(α_m b_mt + N_t) / Γ(α_m b_mt),        n = Σ_t N_t,

but for a constant, and π are those that all counts of a log suggest: the mode of their posterior,
by expectation maximisation, with ten more rows, most of them spread out. A row that was seen thirty
times and always led to one place is believed to be certain, where other rows are.

A base that comes from n' observations of other rows is not known better than these tell, so that a
weight α counts as α n'/(α + n').
"""

from typing import NamedTuple

import numpy as np

WEIGHTS = np.geomspace(0.03, 3.0, 8)
"""α, in observations. Larger ones would draw rows to each other which differ in truth."""
SHARES = (0.5, 0.9, 0.99)
"""How much of a base is what other rows have shown that may be alike."""
_MORE_ROWS = 10.0
_ALIKE = 0.05  # of these, those like other rows: that is for the data to show
_NEVER = 1e-12  # a likelihood that is no likelihood
_STEPS = 200  # of expectation maximisation


class Rows(NamedTuple):
    """Rows that were observed, and what is believed about them.

    Attributes:
        counts: N, `[rows, T]`.
        bases: the different b, `[B, rows, T]`.
        numbers: the base of each component, `[M]`.
        weights: α of each component in each row, `[rows, M]`.
        likelihoods: how likely each component makes each row, `[rows, M]`; the largest is 1.
        support: how many rows are behind each component, `[M]`: their expected number, and its part
            of the ten more rows.
    """

    counts: np.ndarray
    bases: np.ndarray
    numbers: np.ndarray
    weights: np.ndarray
    likelihoods: np.ndarray
    support: np.ndarray

    @property
    def chances(self) -> np.ndarray:
        """The probability of each component after the observations, `[rows, M]`."""
        joint = self.likelihoods * self.support
        return np.asarray(joint / joint.sum(axis=1, keepdims=True))

    def mean(self) -> np.ndarray:
        """The expected rows, `[rows, T]`."""
        chances = self.chances
        each = chances / (self.counts.sum(axis=1, keepdims=True) + self.weights)
        total = self.counts * each.sum(axis=1, keepdims=True)
        for number, base in enumerate(self.bases):
            own = self.numbers == number
            total += base * (each * self.weights)[:, own].sum(axis=1, keepdims=True)
        return np.asarray(total)

    def sizes(self) -> np.ndarray:
        """n + α, about, `[rows]`: how many observations are behind each row."""
        return np.asarray(self.counts.sum(axis=1) + (self.chances * self.weights).sum(axis=1))

    def draw_mixing(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """π, drawn many times, `[count, M]`: it is not known either, and all rows share it."""
        return dirichlet(np.tile(self.support, (count, 1)), rng)

    def draw(self, rows: np.ndarray, mixing: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Rows, `[N, T]`.

        Args:
            rows: which ones, `[N]`, or one of them N times, `[1]`.
            mixing: π, `[N, M]`.
            rng: the generator.
        """
        likelihoods = self.likelihoods[rows]
        live = np.flatnonzero(likelihoods.max(axis=0) > _NEVER)
        joint = np.cumsum(likelihoods[:, live] * mixing[:, live], axis=1)
        which = (rng.random((len(mixing), 1)) * joint[:, -1:] >= joint).sum(axis=1)
        which = live[np.minimum(which, len(live) - 1)]
        bases = self.bases[self.numbers[which], rows]
        return dirichlet(self.counts[rows] + self.weights[rows, which][:, None] * bases, rng)


def dirichlet(concentrations: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rows from Dirichlet distributions, `[…, T]`; outcomes of weight 0 have chance 0."""
    drawn = rng.standard_gamma(concentrations)
    small = concentrations.sum(axis=-1) < 5
    if small.any():  # Γ(a) = Γ(a + 1) U^(1/a), which can be smaller than any number
        weights = concentrations[small]
        there = weights > 0
        logs = np.log(rng.standard_gamma(weights + 1))
        powers = np.log(rng.uniform(np.finfo(float).tiny, 1.0, weights.shape))
        logs = np.where(there, logs + powers / np.where(there, weights, 1), -np.inf)
        drawn[small] = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return np.asarray(drawn / drawn.sum(axis=-1, keepdims=True))


def learn_rows(
    counts: np.ndarray,
    common: list[np.ndarray],
    owners: np.ndarray,
    weight: float | None = None,
) -> Rows:
    """What is believed about rows after their counts.

    Args:
        counts: N, `[rows, T]`.
        common: bases for all rows, `[rows, T]` each; rows sum to 1, and no outcome with a count
            has 0. The last of them is mixed with what other rows have shown that may be alike.
        owners: rows with the same number resemble each other, `[rows]`; or several such groupings,
            `[G, rows]`, of which the log shows which one is right.
        weight: α, if it is known; the prior is then α times the first base.
    """
    if weight is not None:
        ones = np.ones((len(counts), 1))
        return Rows(counts, np.stack(common[:1]), np.zeros(1, int), weight * ones, ones, ones[0])
    every, sizes = list(common), [np.full(len(counts), np.inf)] * len(common)
    for grouping in np.atleast_2d(owners):
        others, known = _others(counts, common[-1], grouping)
        every += [(1 - share) * common[-1] + share * others for share in SHARES]
        sizes += [np.maximum(known, 1.0)] * len(SHARES)
    bases = np.stack(every)
    numbers = np.repeat(np.arange(len(bases)), len(WEIGHTS))
    weights = np.tile(WEIGHTS, (len(counts), len(bases)))
    weights /= 1 + weights / np.stack(sizes, axis=1)[:, numbers]
    log_likelihoods = _log_likelihoods(counts, bases, numbers, weights)
    likelihoods = np.exp(log_likelihoods - log_likelihoods.max(axis=1, keepdims=True))
    return Rows(counts, bases, numbers, weights, likelihoods, _support(likelihoods, len(common)))


def _others(
    counts: np.ndarray, common: np.ndarray, owners: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Frequencies in the other rows of a group, `[rows, T]`, and how many those are, `[rows]`."""
    totals = np.zeros((owners.max() + 1, counts.shape[1]))
    np.add.at(totals, owners, counts)
    rest = np.where(common > 0, totals[owners] - counts, 0.0)
    sums = rest.sum(axis=1)
    shares = rest / np.maximum(sums, 1)[:, None]
    return np.where(sums[:, None] > 0, shares, common), sums


def _log_likelihoods(
    counts: np.ndarray, bases: np.ndarray, numbers: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """log of the probability of each row's counts, `[rows, M]`, but for a constant."""
    from scipy.special import gammaln

    rows, outcomes = np.nonzero(counts)
    observed, sizes = counts[rows, outcomes], counts.sum(axis=1)
    found = []
    for number, weight in zip(numbers, weights.T, strict=True):
        prior = weight[rows] * bases[number, rows, outcomes]
        gained = gammaln(prior + observed) - gammaln(prior)
        total = np.bincount(rows, gained, len(counts))
        found.append(total + gammaln(weight) - gammaln(weight + sizes))
    return np.stack(found, axis=1)


def _support(likelihoods: np.ndarray, num_common: int) -> np.ndarray:
    """How many rows are behind each component, `[M]`, by expectation maximisation."""
    alike = likelihoods.shape[1] // len(WEIGHTS) - num_common
    shares = [(1 - _ALIKE) / num_common] * num_common + [_ALIKE / alike] * alike
    more = _MORE_ROWS * np.outer(shares, WEIGHTS / WEIGHTS.sum()).ravel()
    support = more
    told = likelihoods.min(axis=1) < 1 - 1e-9  # the others are as probable under all of them
    for _ in range(_STEPS):
        joint = likelihoods[told] * support
        following = (joint / joint.sum(axis=1, keepdims=True)).sum(axis=0) + more
        moved = np.abs(following - support).max()
        support = following
        if moved < 1e-4:
            break
    return support
