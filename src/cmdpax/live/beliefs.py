"""What an agent's counts leave possible: beliefs about rows of transitions and means of signals.

Rows of transitions come from the mixtures of Dirichlet distributions that the counts themselves
suggest (`cmdpax.data.prior`). An agent keeps sums and not observations, so the mean of a signal at
a pair with n visits, the mean x̄ and the squared deviations q is drawn as

    σ² ~ (ν₀ σ₀² + q) / χ²(ν₀ + n - 1),        m ~ N((n x̄ + κ m̄)/(n + κ), σ²/(n + κ)), in [0, 1],

with ν₀ = 3. How much a signal varies depends on its mean: a meter has the same error everywhere, a
coin that always comes up heads has none. So σ₀² = φ m(1 - m) + ψ, with the φ and ψ that fit all
pairs (φ = 1 and ψ = 0 for coins), at an m that is shrunk towards m̄ by one observation: two heads in
two throws do not show a certain coin. The means of all pairs have the mean m̄ and a variance τ², and
κ = σ₀²/τ²: a few noisy observations are drawn towards the others, since a planner would find those
that had luck. Each pair counts as if it had also shown both ends of the range a tenth of a time, or
less if there are many pairs: what was never seen is possible.

Where every step has its own counts, a row is drawn around a common row of its pair, and a mean
around a common mean, as in `learners.pooling`: with n_h visits at step h,

    p_h ~ Dirichlet(N_h + α p),      m_h ~ N((n_h x̄_h + α m)/(n_h + α), σ²/(n_h + α)),

where α = 1/ρ - 1, and ρ is the share of the variance that lies between the steps. The common row
and mean are believed what Σ_h α/(n_h + α) of the counts say about them.
"""

from typing import NamedTuple

import numpy as np

from cmdpax.data.prior import Rows, learn_rows

PRIOR_VARIANCES = 3.0
"""ν₀."""
LEAST = 1e-24
"""A variance."""
_WITHIN, _BETWEEN = 1 / 6, 1 / 12  # σ₀² and τ² of coins whose chances are uniform
_PRIOR_PAIRS = 3.0  # so many pairs are behind these two
_UNSEEN = 0.1  # of an observation of each end of the range, at every pair
_OPEN, _DOUBTS = 0.5, 3.0  # ρ, and so many observations behind it


class Counts(NamedTuple):
    """What an agent has counted, its signals in [0, 1] and of the sense "at least".

    Attributes:
        transitions: how often each successor came, `[H or 1, S, A, T]`.
        support: the states of these places, `[H or 1, S, A, T]`, -1 for unused ones; None: T = S.
        sums: of the observed signals, `[H or 1, J, S, A]`; None where the signals are known.
        squares: of their squares, likewise.
        signals: the signals, `[H, J, S, A]`, where they are known.
        initial: μ, `[S]`.
    """

    transitions: np.ndarray
    support: np.ndarray | None
    sums: np.ndarray | None
    squares: np.ndarray | None
    signals: np.ndarray | None
    initial: np.ndarray

    @property
    def num_signals(self) -> int:
        """J."""
        told = self.sums if self.signals is None else self.signals
        assert told is not None
        return int(told.shape[1])

    @property
    def by_steps(self) -> np.ndarray:
        """`transitions` as `[steps, pairs, T]`: steps that have a pair in common say so about it.

        Where steps have lists of their own, every row is a pair of its own.
        """
        shape = self.transitions.shape
        apart = self.support is not None and self.support.shape[0] > 1
        return self.transitions.reshape(1 if apart else shape[0], -1, shape[-1])

    @property
    def places(self) -> np.ndarray:
        """The state of every place of every pair, `[pairs, T]`, -1 for unused ones."""
        _, pairs, num_places = self.by_steps.shape
        if self.support is None:
            return np.broadcast_to(np.arange(num_places), (pairs, num_places))
        return self.support.reshape(-1, num_places)[-pairs:]


class Signals(NamedTuple):
    """What is believed about the signals of pairs.

    Attributes:
        means: E m, `[pairs, J]`.
        spreads: ν₀ σ₀² + q, `[pairs, J]`.
        degrees: n - 1, `[pairs]`.
        worth: how many observations are behind the common mean, with κ, `[pairs, J]`.
        alike: α, `[J]`.
        tried: whether a pair was, `[pairs]`.
        usual: the mean observations of all pairs that were tried, `[tried, J]`.
    """

    means: np.ndarray
    spreads: np.ndarray
    degrees: np.ndarray
    worth: np.ndarray
    alike: np.ndarray
    tried: np.ndarray
    usual: np.ndarray


class Beliefs(NamedTuple):
    """What is believed about some pairs.

    Attributes:
        pairs: which ones, `[Q]`.
        transitions: what is believed about the common rows of all pairs.
        slots: the places of the successors that were seen, the most frequent ones first, `[Q, K]`.
        seen: how often each of them came, `[Q, K]`; 0 in unused slots.
        alike: α of the rows.
        signals: what is believed about signals; None where they are known.
    """

    pairs: np.ndarray
    transitions: Rows
    slots: np.ndarray
    seen: np.ndarray
    alike: float
    signals: Signals | None


def believe(counts: Counts, pairs: np.ndarray) -> Beliefs:
    """What is to be believed about some pairs after all counts."""
    every = counts.by_steps.astype(float)
    visits = every.sum(axis=-1)
    alike = float(_alike(visits[..., None], every / np.maximum(visits, 1)[..., None]))
    common = (
        np.einsum("hqt,hq->qt", every, alike / (visits + alike)) if len(every) > 1 else every[0]
    )
    valid = counts.places >= 0
    everything = valid / valid.sum(axis=1, keepdims=True)
    bases = [everything]
    if counts.support is None:  # states that followed others are more likely
        followed = common.sum(axis=0) > 0
        if followed.any() and not followed.all():
            bases.append(np.broadcast_to(followed / followed.sum(), common.shape))
    owners = np.arange(len(common)) // counts.transitions.shape[2]
    owners %= counts.transitions.shape[1]
    kept = common[pairs]
    most = max(1, int(np.count_nonzero(kept, axis=1).max(initial=0)))
    slots = np.argsort(-kept, axis=1, kind="stable")[:, :most]
    return Beliefs(
        pairs,
        learn_rows(common, bases, owners),
        slots,
        np.take_along_axis(kept, slots, axis=1),
        alike,
        _believe_signals(counts, visits, pairs),
    )


def _alike(visits: np.ndarray, means: np.ndarray, spread: np.ndarray | None = None) -> np.ndarray:
    """α, from how far the means of steps are apart (see `learners.pooling`).

    Args:
        visits: n_h, `[steps, pairs, 1]`.
        means: x̄_h, `[steps, pairs, T]`.
        spread: v, `[pairs, J]`, with one α for each signal; None: rows are observed, with one α.
    """
    total = np.maximum(visits.sum(axis=0), 1)
    overall = (visits * means).sum(axis=0) / total
    gaps = (means - overall) ** 2
    if spread is None:
        gaps = gaps.sum(axis=-1, keepdims=True)
        spread = 1 - (overall**2).sum(axis=-1, keepdims=True)
    share = visits / total
    within = (spread * (1 - share) * (visits > 0)).sum(axis=(0, 1))
    likeness = 1 - 2 * share + (share**2).sum(axis=0)
    between = (spread * visits * likeness).sum(axis=(0, 1))
    doubts = _DOUBTS * ((spread * total).sum(axis=0) / total.sum())
    excess = (visits * gaps).sum(axis=(0, 1)) - within + _OPEN * doubts
    room = np.maximum(between - within, 0.0) + doubts
    found = np.clip(excess / np.where(room > 0, room, 1.0), 1e-9, 0.5)
    return np.asarray((1 / found - 1).squeeze(-1) if len(found) == 1 else 1 / found - 1)


# ----------------------------------------------------------------------------------------- signals


def _believe_signals(counts: Counts, visits: np.ndarray, pairs: np.ndarray) -> Signals | None:
    """(n x̄ + κ m̄)/(n + κ), ν₀ σ₀² + q, and n + κ, with what was never seen."""
    if counts.sums is None or counts.squares is None:
        return None
    shape = (*visits.shape, counts.num_signals)
    every, squares = (
        np.moveaxis(array, 1, -1).reshape(shape) for array in (counts.sums, counts.squares)
    )
    number, sums = visits.sum(axis=0)[:, None], every.sum(axis=0)
    means = sums / np.maximum(number, 1)
    within = np.maximum(squares.sum(axis=0) - sums * means, 0.0)
    alike, evidence, told = _said(visits[..., None], every, within / np.maximum(number, 1))
    tried = number[:, 0] > 0
    overall = sums.sum(axis=0) / max(number.sum(), 1)
    usual = _usual_variances(number, means, within, overall)  # σ₀²
    centre = told / np.where(evidence > 0, evidence, 1)
    gaps = ((centre - overall) ** 2 - usual / np.maximum(evidence, LEAST))[tried]
    between = (gaps.sum(axis=0) + _PRIOR_PAIRS * _BETWEEN) / (_PRIOR_PAIRS + tried.sum())  # τ²
    strength = usual / np.maximum(between, LEAST)  # κ
    ends = _UNSEEN / (1 + tried.sum() / 10)  # how often 0 was seen, and 1
    more = evidence + 2 * ends
    drawn = (told + ends + strength * overall) / (more + strength)
    own = (sums + ends) / (number + 2 * ends)
    spread = np.maximum(squares.sum(axis=0) + ends - (number + 2 * ends) * own**2, 0.0)
    return Signals(
        drawn[pairs],
        (PRIOR_VARIANCES * usual + spread)[pairs],
        np.maximum(number[pairs, 0], 1) - 1,
        (np.maximum(evidence, LEAST) + strength)[pairs],
        alike,
        tried[pairs],
        means[tried],
    )


def _said(
    visits: np.ndarray, sums: np.ndarray, spread: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """α, `[J]`, and what all steps say about common means: how much, and its sum, `[pairs, J]`."""
    if len(visits) == 1:
        return np.zeros(sums.shape[-1]), np.broadcast_to(visits[0], sums[0].shape), sums[0]
    alike = np.atleast_1d(_alike(visits, sums / np.maximum(visits, 1), spread))
    said = alike / (visits + alike)
    return alike, (said * visits).sum(axis=0), (said * sums).sum(axis=0)


def _usual_variances(
    number: np.ndarray, means: np.ndarray, within: np.ndarray, overall: np.ndarray
) -> np.ndarray:
    """σ₀² = φ m(1 - m) + ψ of all pairs, `[pairs, J]`: least squares, neither of them negative.

    Args:
        number: n, `[pairs, 1]`.
        means: x̄, `[pairs, J]`.
        within: q, `[pairs, J]`.
        overall: m̄, `[J]`.
    """
    degrees = np.maximum(number - 1, 0)
    variances = within / np.maximum(degrees, 1)
    room = np.maximum(means * (1 - means) + variances / np.maximum(number, 1), 0.0)  # m(1 - m)
    weights = np.append(degrees, [[_PRIOR_PAIRS]], axis=0)  # and coins
    coin = np.full((1, means.shape[1]), _WITHIN)
    room, variances = np.append(room, coin, axis=0), np.append(variances, coin, axis=0)
    xx, x, one = (weights * room**2).sum(axis=0), (weights * room).sum(axis=0), weights.sum()
    xy, y = (weights * room * variances).sum(axis=0), (weights * variances).sum(axis=0)
    determinant = np.maximum(xx * one - x**2, LEAST)
    slope = (one * xy - x * y) / determinant
    level = (y - slope * x) / one
    slope = np.where(level < 0, xy / xx, slope)
    slope, level = np.where(slope < 0, 0, slope), np.where(slope < 0, y / one, np.maximum(level, 0))
    shrunk = (number * means + overall) / (number + 1)
    typical = shrunk * (1 - shrunk) * (number + 1) / (number + 2)
    return np.asarray(slope * typical + level)
