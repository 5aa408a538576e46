"""Rows of probabilities, and what is believed about them after they were observed.

A row p (where a pair leads, or how often it shows each value of a signal) is drawn from one of
several Dirichlet distributions, which of them is not known:

    p ~ Dirichlet(α_m b_m) with probability π_m.

The weights α_m cover rows that are nearly certain and rows that are spread out; the bases b_m say
that everything is as likely, or that a row resembles the other rows of the same state: other
actions and other steps lead to similar places. Counts N of a row then have the probability

    Σ_m π_m Γ(α_m) / Γ(α_m + n) · Π_t Γ(α_m b_mt + N_t) / Γ(α_m b_mt),        n = Σ_t N_t,

but for a constant, and π are those that all counts of a log suggest: the mode of their posterior,
by expectation maximisation, with ten more rows that are like none in particular. A row that was
seen thirty times and always led to one place is believed to be certain, where other rows are.
"""

from typing import NamedTuple

import numpy as np

WEIGHTS = np.geomspace(0.03, 300.0, 13)
"""α, in observations."""
SHARES = (0.5, 0.9, 0.99)
"""How much of a base is what the other rows of the same state have shown."""
_MORE_ROWS = 10.0
_STEPS = 200  # of expectation maximisation
_NEVER = 1e-6  # a component of less probability is left out of a row


class Rows(NamedTuple):
    """Rows that were observed, and what is believed about them.

    Attributes:
        counts: N, `[rows, T]`.
        bases: the different b, `[B, rows, T]`.
        components: (the number of its base, α) of each component, `[M, 2]`.
        chances: of each component after the observations, `[rows, M]`; small ones are 0.
    """

    counts: np.ndarray
    bases: np.ndarray
    components: np.ndarray
    chances: np.ndarray

    def mean(self) -> np.ndarray:
        """The expected rows, `[rows, T]`."""
        weights = self.components[:, 1]
        each = self.chances / (self.counts.sum(axis=1, keepdims=True) + weights)
        total = self.counts * each.sum(axis=1, keepdims=True)
        for number, base in enumerate(self.bases):
            own = self.components[:, 0] == number
            total += base * (each[:, own] @ weights[own])[:, None]
        return np.asarray(total)

    def weights(self) -> np.ndarray:
        """n + α, about, `[rows]`: how many observations are behind each row."""
        return np.asarray(self.counts.sum(axis=1) + self.chances @ self.components[:, 1])

    def draw(self, row: int, count: int, rng: np.random.Generator) -> np.ndarray:
        """One row, drawn many times, `[count, T]`."""
        return self._drawn(np.full(count, row), rng)

    def draw_all(self, rng: np.random.Generator) -> np.ndarray:
        """Every row once, `[rows, T]`."""
        return self._drawn(np.arange(len(self.counts)), rng)

    def _drawn(self, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        cumulated = np.cumsum(self.chances[rows], axis=1)
        cumulated /= cumulated[:, -1:]
        which = (rng.random((len(rows), 1)) >= cumulated).sum(axis=1)
        numbers, weights = self.components[which].T
        bases = self.bases[numbers.astype(int), rows]
        return dirichlet(self.counts[rows] + weights[:, None] * bases, rng)


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
            has 0. The last of them is mixed with what other rows of the same state have shown.
        owners: the state of each row, `[rows]`.
        weight: α, if it is known; the prior is then α times the first base.
    """
    if weight is not None:
        components, chances = np.array([[0.0, weight]]), np.ones((len(counts), 1))
        return Rows(counts, np.stack(common[:1]), components, chances)
    others = _others(counts, common[-1], owners)
    mixed = [(1 - share) * common[-1] + share * others for share in SHARES]
    bases = np.stack([*common, *mixed])
    components = np.array([[number, alpha] for number in range(len(bases)) for alpha in WEIGHTS])
    likelihoods = _log_likelihoods(counts, bases, components)
    return Rows(counts, bases, components, _chances(likelihoods))


def _others(counts: np.ndarray, common: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """Frequencies in the other rows of the same state, `[rows, T]`, where the base allows them."""
    totals = np.zeros((owners.max() + 1, counts.shape[1]))
    np.add.at(totals, owners, counts)
    rest = np.where(common > 0, totals[owners] - counts, 0.0)
    sums = rest.sum(axis=1, keepdims=True)
    return np.where(sums > 0, rest / np.maximum(sums, 1), common)


def _log_likelihoods(counts: np.ndarray, bases: np.ndarray, components: np.ndarray) -> np.ndarray:
    """log of the probability of each row's counts, `[rows, M]`, but for a constant."""
    from scipy.special import gammaln

    rows, outcomes = np.nonzero(counts)
    observed, sizes = counts[rows, outcomes], counts.sum(axis=1)
    found = []
    for number, weight in components:
        prior = weight * bases[int(number), rows, outcomes]
        gained = gammaln(prior + observed) - gammaln(prior)
        total = np.bincount(rows, gained, len(counts))
        found.append(total + gammaln(weight) - gammaln(weight + sizes))
    return np.stack(found, axis=1)


def _chances(log_likelihoods: np.ndarray) -> np.ndarray:
    """The chances of the components, row by row, by expectation maximisation."""
    count = log_likelihoods.shape[1]
    likelihoods = np.exp(log_likelihoods - log_likelihoods.max(axis=1, keepdims=True))
    common = np.full(count, 1 / count)
    told = likelihoods.min(axis=1) < 1 - 1e-9  # the others are as probable under all of them
    for _ in range(_STEPS):
        joint = likelihoods[told] * common
        shares = (joint / joint.sum(axis=1, keepdims=True)).sum(axis=0)
        following = (shares + _MORE_ROWS / count) / (told.sum() + _MORE_ROWS)
        moved = np.abs(following - common).max()
        common = following
        if moved < 1e-6:
            break
    chances = likelihoods * common
    chances /= chances.sum(axis=1, keepdims=True)
    chances[chances < _NEVER] = 0.0
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))
