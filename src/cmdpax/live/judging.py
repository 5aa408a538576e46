"""What a policy may be worth: its values in models that an agent's counts leave possible.

What is believed about every pair is in `beliefs`; here models are drawn, and policies evaluated in
all of them.

At pairs that were never visited the mean of a signal is one of those of the pairs that were, or,
as if ten more had been, anything in [0, 1]. It has the same rank for all of them in a drawn
model: what is not known may be bad everywhere, and must not average out.

A row has a place for each successor that was seen, and one more: what a draw leaves to all others
goes to one of them, as it does in rows of a small concentration.
"""

from typing import NamedTuple

import numpy as np

from cmdpax.live.beliefs import LEAST, PRIOR_VARIANCES, Beliefs, Counts, Signals, believe

_UNKNOWN = 10.0  # pairs that might have shown any mean, beside those that were visited
_DRAWS, _FEWEST = 400, 100  # models
_WORK = 4e8  # products of probabilities and values: where there are more, fewer models are drawn


def draw_values(counts: Counts, policies: list[np.ndarray], seed: int) -> np.ndarray:
    """The values of policies, `[H, S, A]` each, in drawn models, `[draws, policies, J]`.

    All policies are evaluated in the same models, and the same seed draws the same ones.
    """
    used = [_rows_of(counts, policy) for policy in policies]
    rows = np.unique(np.concatenate([at for each in used for at in each]))
    beliefs = _learn(counts, rows)
    work = sum(len(at) for each in used for at in each)
    work *= beliefs.seen.shape[1] * counts.num_signals
    count = int(np.clip(_WORK / max(work, 1), _FEWEST, _DRAWS))
    models = _draw(beliefs, counts, rows, count, np.random.default_rng(seed))
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


def _learn(counts: Counts, rows: np.ndarray) -> Beliefs:
    """What is believed about the pairs of some rows."""
    return believe(counts, np.unique(rows % counts.by_steps.shape[1]))


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


def _draw(
    beliefs: Beliefs, counts: Counts, rows: np.ndarray, count: int, rng: np.random.Generator
) -> _Models:
    every = counts.by_steps
    steps, places = rows // every.shape[1], np.searchsorted(beliefs.pairs, rows % every.shape[1])
    chances, rest = _draw_rows(beliefs, count, rng)
    states = np.maximum(counts.places[beliefs.pairs], 0)
    others = _draw_others(beliefs, states, count, rng)
    states = np.take_along_axis(states, beliefs.slots, axis=1)
    chances, rest = chances[:, places], rest[:, places]
    if len(every) > 1:  # a row around the common one
        own = every[steps, beliefs.pairs[places]]
        own = np.where(
            beliefs.seen[places] > 0, np.take_along_axis(own, beliefs.slots[places], axis=1), 0
        )
        chances = rng.standard_gamma(own + beliefs.alike * chances)
        rest = rng.standard_gamma(beliefs.alike * rest)
        total = np.maximum(chances.sum(axis=-1) + rest, LEAST)
        chances, rest = chances / total[..., None], rest / total
    signals = None
    if beliefs.signals is not None:
        signals = _draw_signals(beliefs.signals, count, rng)[..., places]
        if len(every) > 1:
            signals = _at_steps(beliefs, counts, (steps, places), signals, rng)
    return _Models(rows, states[places], chances, others[:, places], rest, signals)


def _draw_rows(
    beliefs: Beliefs, count: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Common rows: the chances of successors that were seen, `[count, Q, K]`, and of another."""
    pairs, learned = beliefs.pairs, beliefs.transitions
    joint = learned.likelihoods[pairs] * learned.draw_mixing(count, rng)[:, None]
    joint = np.cumsum(joint, axis=-1)
    which = (rng.random(joint.shape[:-1])[..., None] * joint[..., -1:] >= joint).sum(axis=-1)
    which = np.minimum(which, len(learned.numbers) - 1)  # [count, Q]
    places = np.arange(len(pairs))
    alpha = learned.weights[pairs, which]
    there = beliefs.seen > 0
    bases = np.take_along_axis(learned.bases[:, pairs], beliefs.slots[None], axis=-1) * there
    of_seen = bases[learned.numbers[which], places]  # [count, Q, K]
    shape = beliefs.seen + alpha[..., None] * of_seen
    mass = np.where(there, rng.standard_gamma(np.where(there, shape, 1.0)), 0.0)
    left = np.maximum(alpha * (1 - of_seen.sum(axis=-1)), 0.0)
    rest = np.where(there.any(axis=1), rng.standard_gamma(left), 1.0)  # 1: nothing was seen
    total = mass.sum(axis=-1) + rest
    return mass / total[..., None], rest / total


def _draw_others(
    beliefs: Beliefs, states: np.ndarray, count: int, rng: np.random.Generator
) -> np.ndarray:
    """For every pair a successor that was not seen, `[draws, Q]`."""
    learned, rows = beliefs.transitions, beliefs.pairs
    shares = np.zeros((len(rows), len(learned.bases)))
    np.add.at(shares.T, learned.numbers, (learned.chances[rows] * learned.weights[rows]).T)
    unseen = np.einsum("rb,brt->rt", shares, learned.bases[:, rows])
    np.put_along_axis(
        unseen,
        beliefs.slots,
        np.where(beliefs.seen > 0, 0.0, np.take_along_axis(unseen, beliefs.slots, axis=1)),
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


def _draw_signals(signals: Signals, count: int, rng: np.random.Generator) -> np.ndarray:
    """Common means of signals, `[draws, J, Q]`."""
    from scipy.special import ndtr, ndtri

    means = signals.means.T
    shape = (count, *means.shape)
    variances = signals.spreads.T / rng.chisquare(PRIOR_VARIANCES + signals.degrees, shape)
    scales = np.sqrt(np.maximum(variances / signals.worth.T, LEAST))
    low, high = ndtr(-means / scales), ndtr((1 - means) / scales)
    uniforms = rng.random(shape)
    drawn = means + scales * ndtri(low + uniforms * (high - low))
    unknown = _draw_unknown(signals.usual, count, rng)
    return np.where(signals.tried, np.clip(drawn, 0.0, 1.0), unknown[..., None])


def _draw_unknown(usual: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Means where nothing was tried, `[draws, J]`: like those that were, or like none of them."""
    number, num_signals = usual.shape
    anything = rng.random((count, num_signals))
    if not number:
        return anything
    of_tried = usual[rng.integers(number, size=anything.shape), np.arange(num_signals)]
    other = rng.random(anything.shape) * (number + _UNKNOWN) < _UNKNOWN
    return np.where(other, anything, of_tried)


def _at_steps(
    beliefs: Beliefs,
    counts: Counts,
    at: tuple[np.ndarray, np.ndarray],
    common: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Means at steps and places, `[draws, J, R]`, around common ones."""
    signals, (steps, places) = beliefs.signals, at
    assert signals is not None
    assert counts.sums is not None
    pairs = beliefs.pairs[places]
    every = counts.sums.reshape(*counts.sums.shape[:2], -1)
    sums, visits = every[steps, :, pairs].T, counts.by_steps.sum(axis=-1)[steps, pairs]
    alike = signals.alike[:, None]
    variances = (signals.spreads / (PRIOR_VARIANCES + signals.degrees)[:, None])[places].T
    scales = np.sqrt(variances / (visits + alike))
    means = (sums + alike * common) / (visits + alike)
    drawn = np.clip(means + scales * rng.standard_normal(means.shape), 0.0, 1.0)
    return np.where(signals.tried[places], drawn, common)


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
