"""What a policy may be worth: its values in models that an agent's counts leave possible.

Rows of transitions come from the mixtures of Dirichlet distributions that the counts themselves
suggest (`cmdpax.data.prior`). An agent keeps sums and not observations, so the mean of a signal at
a pair with n visits, the mean x̄ and the squared deviations q is drawn as

    σ² ~ (ν₀ σ₀² + q) / χ²(ν₀ + n - 1),        m ~ N((n x̄ + κ m̄)/(n + κ), σ²/(n + κ)), in [0, 1],

where σ₀² is the pooled variance and ν₀ = 3. The means of all pairs have the mean m̄ and a variance
τ², and κ = σ₀²/τ²: a few noisy observations are drawn towards the others, since a planner would
find those that had luck. Each pair counts as if it had also shown both ends of the range a tenth of
a time, or less if there are many pairs: what was never seen is possible.

At pairs that were never visited m is uniform, and the same for all of them in a drawn model: what
is not known may be bad everywhere, and must not average out.

A row has a place for each successor that was seen, and one more: what a draw leaves to all others
goes to one of them, as it does in rows of a small concentration.
"""

from typing import NamedTuple

import numpy as np

from cmdpax.data.prior import Rows, learn_rows

_PRIOR_VARIANCES = 3.0  # ν₀
_WITHIN, _BETWEEN = 1 / 6, 1 / 12  # σ₀² and τ² of coins whose chances are uniform
_PRIOR_PAIRS = 3.0  # so many pairs are behind these two
_LEAST = 1e-24  # a variance
_UNSEEN = 0.1  # of an observation of each end of the range, at every pair
_DRAWS, _FEWEST = 400, 100  # models
_WORK = 4e8  # products of probabilities and values: where there are more, fewer models are drawn


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
    def places(self) -> np.ndarray:
        """The state of every place of every row, `[rows, T]`, -1 for unused ones."""
        shape = self.transitions.shape
        told = np.arange(shape[-1]) if self.support is None else self.support
        return np.broadcast_to(told, shape).reshape(-1, shape[-1])


def draw_values(counts: Counts, policies: list[np.ndarray], seed: int) -> np.ndarray:
    """The values of policies, `[H, S, A]` each, in drawn models, `[draws, policies, J]`.

    All policies are evaluated in the same models, and the same seed draws the same ones.
    """
    used = [_rows_of(counts, policy) for policy in policies]
    rows = np.unique(np.concatenate([at for each in used for at in each]))
    posterior = _learn(counts, rows)
    work = sum(len(at) for each in used for at in each)
    work *= posterior.seen.shape[1] * counts.num_signals
    count = int(np.clip(_WORK / max(work, 1), _FEWEST, _DRAWS))
    models = _draw(posterior, counts, count, np.random.default_rng(seed))
    values = [
        _evaluate(models, counts, policy, each) for policy, each in zip(policies, used, strict=True)
    ]
    return np.stack(values, axis=1)


def _rows_of(counts: Counts, policy: np.ndarray) -> list[np.ndarray]:
    """The rows that a policy plays, step by step."""
    steps, num_states, num_actions, _ = counts.transitions.shape
    size = num_states * num_actions
    return [
        (step % steps) * size + np.flatnonzero(decision) for step, decision in enumerate(policy)
    ]


# --------------------------------------------------------------------------------------- posterior


class _Posterior(NamedTuple):
    """What is believed about the rows that some policies use.

    Attributes:
        rows: which ones, `[R]`.
        transitions: what is believed about all rows.
        slots: the places of the successors that were seen, the most frequent ones first, `[R, K]`.
        seen: how often each of them came, `[R, K]`; 0 in unused slots.
        means: (n x̄ + κ m̄)/(n + κ) of the signals, `[R, J]`.
        spreads: ν₀ σ₀² + q of the signals, `[R, J]`.
        visits: n, `[R]`.
        strength: κ of the signals, `[J]`.
    """

    rows: np.ndarray
    transitions: Rows
    slots: np.ndarray
    seen: np.ndarray
    means: np.ndarray
    spreads: np.ndarray
    visits: np.ndarray
    strength: np.ndarray


def _learn(counts: Counts, rows: np.ndarray) -> _Posterior:
    *_, num_states, num_actions, num_places = shape = counts.transitions.shape
    every = counts.transitions.reshape(-1, num_places).astype(float)
    valid = counts.places >= 0
    everything = valid / valid.sum(axis=1, keepdims=True)
    bases = [everything]
    if counts.support is None:  # states that followed others at this step are more likely
        followed = every.reshape(shape[0], -1, num_places).sum(axis=1) > 0
        followed |= ~followed.any(axis=1, keepdims=True)
        common = followed / followed.sum(axis=1, keepdims=True)
        bases = [everything, np.repeat(common, num_states * num_actions, axis=0)]
        bases = bases[1:] if followed.all() else bases
    owners = np.tile(np.repeat(np.arange(num_states), num_actions), shape[0])
    kept = every[rows]
    most = max(1, int(np.count_nonzero(kept, axis=1).max(initial=0)))
    slots = np.argsort(-kept, axis=1, kind="stable")[:, :most]
    return _Posterior(
        rows,
        learn_rows(every, bases, owners),
        slots,
        np.take_along_axis(kept, slots, axis=1),
        *_signals_of(counts, every.sum(axis=1), rows),
    )


def _signals_of(
    counts: Counts, visits: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(n x̄ + κ m̄)/(n + κ), ν₀ σ₀² + q, n and κ, with what was never seen."""
    if counts.sums is None or counts.squares is None:
        nothing = np.zeros((len(rows), counts.num_signals))
        return nothing, nothing, visits[rows], np.zeros(counts.num_signals)
    sums, squares = (
        np.moveaxis(array, 1, -1).reshape(len(visits), -1)
        for array in (counts.sums, counts.squares)
    )
    counted = np.maximum(visits, 1)[:, None]
    means = sums / counted
    within = np.maximum(squares - sums * means, 0.0)
    degrees = _PRIOR_PAIRS + np.maximum(visits - 1, 0).sum()
    pooled = (within.sum(axis=0) + _PRIOR_PAIRS * _WITHIN) / degrees  # σ₀²
    tried = visits > 0
    overall = sums.sum(axis=0) / max(visits.sum(), 1)
    gaps = (means[tried] - overall) ** 2 - pooled / counted[tried]
    between = (gaps.sum(axis=0) + _PRIOR_PAIRS * _BETWEEN) / (_PRIOR_PAIRS + tried.sum())  # τ²
    strength = pooled / np.maximum(between, _LEAST)  # κ
    ends = _UNSEEN / (1 + np.count_nonzero(visits) / 10)  # how often 0 was seen, and 1
    number = visits[rows, None] + 2 * ends
    own = (sums[rows] + ends) / number
    spread = np.maximum(squares[rows] + ends - number * own**2, 0.0)
    drawn = (number * own + strength * overall) / (number + strength)
    return drawn, _PRIOR_VARIANCES * pooled + spread, visits[rows], strength


# ------------------------------------------------------------------------------------------ models


class _Models(NamedTuple):
    """Drawn models.

    Attributes:
        rows: the rows that were drawn, `[R]`.
        states: the successors that were seen, `[R, K]`.
        chances: of these, `[draws, R, K]`.
        others: another successor, `[draws, R]`.
        rest: its chance, `[draws, R]`.
        signals: their means, `[draws, J, R]`; None where they are known.
    """

    rows: np.ndarray
    states: np.ndarray
    chances: np.ndarray
    others: np.ndarray
    rest: np.ndarray
    signals: np.ndarray | None


def _draw(posterior: _Posterior, counts: Counts, count: int, rng: np.random.Generator) -> _Models:
    rows, learned = posterior.rows, posterior.transitions
    joint = learned.likelihoods[rows] * learned.draw_mixing(count, rng)[:, None]
    joint = np.cumsum(joint, axis=-1)
    which = (rng.random(joint.shape[:-1])[..., None] * joint[..., -1:] >= joint).sum(axis=-1)
    which = np.minimum(which, len(learned.numbers) - 1)  # [draws, R]
    places = np.arange(len(rows))
    alpha = learned.weights[rows, which]
    there = posterior.seen > 0
    bases = np.take_along_axis(learned.bases[:, rows], posterior.slots[None], axis=-1) * there
    of_seen = bases[learned.numbers[which], places]  # [draws, R, K]
    shape = posterior.seen + alpha[..., None] * of_seen
    mass = np.where(there, rng.standard_gamma(np.where(there, shape, 1.0)), 0.0)
    left = np.maximum(alpha * (1 - of_seen.sum(axis=-1)), 0.0)
    rest = np.where(there.any(axis=1), rng.standard_gamma(left), 1.0)  # 1: nothing was seen
    total = mass.sum(axis=-1) + rest
    states = np.maximum(counts.places[rows], 0)
    signals = None if counts.signals is not None else _draw_signals(posterior, count, rng)
    return _Models(
        rows,
        np.take_along_axis(states, posterior.slots, axis=1),
        mass / total[..., None],
        _draw_others(posterior, states, count, rng),
        rest / total,
        signals,
    )


def _draw_others(
    posterior: _Posterior, states: np.ndarray, count: int, rng: np.random.Generator
) -> np.ndarray:
    """For every row a successor that was not seen, `[draws, R]`."""
    learned, rows = posterior.transitions, posterior.rows
    shares = np.zeros((len(rows), len(learned.bases)))
    np.add.at(shares.T, learned.numbers, (learned.chances[rows] * learned.weights[rows]).T)
    unseen = np.einsum("rb,brt->rt", shares, learned.bases[:, rows])
    np.put_along_axis(
        unseen,
        posterior.slots,
        np.where(posterior.seen > 0, 0.0, np.take_along_axis(unseen, posterior.slots, axis=1)),
        axis=1,
    )
    return _categorical(unseen, states, count, rng)


def _categorical(
    weights: np.ndarray, states: np.ndarray, count: int, rng: np.random.Generator
) -> np.ndarray:
    """A state for every row, `[count, R]`, drawn with weights `[R, T]`."""
    cumulative = np.cumsum(weights, axis=1)
    found = np.empty((count, len(weights)), np.int64)
    uniforms = rng.random((count, len(weights))) * cumulative[:, -1]
    for row, ends in enumerate(cumulative):
        places = np.searchsorted(ends, uniforms[:, row], side="right")
        found[:, row] = states[row, np.minimum(places, len(ends) - 1)]
    return found


def _draw_signals(posterior: _Posterior, count: int, rng: np.random.Generator) -> np.ndarray:
    """Means of signals, `[draws, J, R]`."""
    from scipy.special import ndtr, ndtri

    visits, means = posterior.visits, posterior.means.T
    number = np.maximum(visits, 1)
    shape = (count, *means.shape)
    variances = posterior.spreads.T / rng.chisquare(_PRIOR_VARIANCES + number - 1, shape)
    worth = number + posterior.strength[:, None]
    scales = np.sqrt(np.maximum(variances / worth, _LEAST))
    low, high = ndtr(-means / scales), ndtr((1 - means) / scales)
    uniforms = rng.random(shape)
    drawn = means + scales * ndtri(low + uniforms * (high - low))
    unknown = rng.random((count, len(means), 1))
    return np.where(visits > 0, np.clip(drawn, 0.0, 1.0), unknown)


def _evaluate(
    models: _Models, counts: Counts, policy: np.ndarray, used: list[np.ndarray]
) -> np.ndarray:
    """The values of a policy in all models, `[draws, J]`, backward in time."""
    _, num_states, num_actions, _ = counts.transitions.shape
    size = num_states * num_actions
    values = np.zeros((len(models.rest), counts.num_signals, num_states))
    draws = np.arange(len(values))[:, None]
    for step in reversed(range(len(policy))):
        pairs = used[step] % size
        at = np.searchsorted(models.rows, used[step])
        expected = np.einsum(
            "mrk,mjrk->mjr", models.chances[:, at], values[:, :, models.states[at]]
        )
        others = values[draws, :, models.others[:, at]]  # [draws, r, J]
        expected += np.swapaxes(models.rest[:, at, None] * others, 1, 2)
        if models.signals is None:
            assert counts.signals is not None
            expected += counts.signals[step].reshape(-1, size)[:, pairs]
        else:
            expected += models.signals[:, :, at]
        expected *= policy[step].ravel()[pairs]
        firsts = np.searchsorted(pairs // num_actions, np.arange(num_states))
        values = np.add.reduceat(expected, firsts, axis=-1)
    return values @ counts.initial
