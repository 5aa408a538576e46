"""Bounds on a policy's values that hold for every model the log does not rule out.

No prior and no shape of noise is assumed, only that signals stay in their declared ranges, and that
what follows a pair depends on nothing but the pair (and the step). Three kinds of confidence sets
are used, all of which hold for all numbers of visits at once, so that the log may come from a
learner, and for every policy at once, so that it may have been chosen with the log:

* The row of transitions of a pair, with counts N and n = Σ_t N_t. The mixture m(N) of the
  probabilities of what was seen, over rows drawn from Dirichlet(1/2) and Dirichlet(1/S), is a
  martingale relative to that of the true row p, so that by Ville's inequality, with confidence 1-δ,

      n KL(p̂, p) ≤ log(1/δ) + Σ_t N_t log p̂_t - log m(N).

* The mean m of a signal in [a, b], from observations with the distribution p̂: betting against a
  mean of at least m, with a stake that is uniform over what one has, never wins 1/δ, so that

      n inf {KL(p̂, q) : q on [a, b] with mean at least m} ≤ log(1/δ) + log(1 + n),

  and likewise from the other side.
* The distribution of the first state, like a row.

δ is divided by the number of sets. The largest value Σ_t p_t V(t) in such a set has the form

    p_t ∝ p̂_t / (ν - V(t)),

with the rest of the mass, if any, at the best outcome that was not seen (Filippi, Cappé and
Garivier, 2010); ν is found by bisection. A robust dynamic program takes the best and the worst row
of every pair, step by step.
"""

from typing import NamedTuple

import numpy as np

from cmdpax.data.evidence import Evidence

_BISECTIONS = 60
_WIDEST, _NARROWEST = 30.0, -40.0  # of log (ν - max V) relative to the spread of V


class Bounds(NamedTuple):
    """The least and the largest values that a policy may have, `[1 + I]` each."""

    low: np.ndarray
    high: np.ndarray


class Outcomes(NamedTuple):
    """What was seen at several places: M different outcomes, each with its place.

    Attributes:
        places: the place of each outcome, ascending, `[M]`.
        shares: p̂, `[M]`; they sum to 1 at every place.
        radii: the largest KL(p̂, p), one for each place, `[places]`.
    """

    places: np.ndarray
    shares: np.ndarray
    radii: np.ndarray


def robust_bounds(evidence: Evidence, policy: np.ndarray, confidence: float) -> Bounds:
    """Bounds that hold at once with at least the given confidence.

    Args:
        evidence: a log with declared ranges.
        policy: `[H, S, A]`.
        confidence: 1 - δ.
    """
    found = evidence.found
    num_signals = len(found.signals)
    flags = found.available
    rows = found.num_rows if flags is None else int(_flags_of(flags, found.shape).sum())
    sets = rows * (1 + 2 * num_signals) + (evidence.initial is None)
    log_sets = float(np.log(sets / (1 - confidence)))  # log(1/δ) of one of them
    transitions, following = _rows_of_transitions(evidence, log_sets)
    ends = []
    for sign in (-1.0, 1.0):
        for index in range(num_signals):
            means = sign * _means(evidence, index, sign, log_sets)
            values = _induct(evidence, policy, sign, means, transitions, following)
            ends.append(sign * _at_start(evidence, values, log_sets))
    low, high = np.array(ends).reshape(2, num_signals)
    return Bounds(low, high)


def _flags_of(flags: np.ndarray, shape: tuple[int, int, int]) -> np.ndarray:
    there = flags.any(axis=0, keepdims=True) if shape[0] == 1 else flags
    return np.broadcast_to(there, shape)


def _rows_of_transitions(evidence: Evidence, log_sets: float) -> tuple[Outcomes, np.ndarray]:
    """The next states that were seen at each row, and what these are, `[M]`."""
    found = evidence.found
    num_states = found.shape[1]
    rows, following = found.followed()
    flat, counts = np.unique(rows * num_states + following, return_counts=True)
    places, states = np.divmod(flat, num_states)
    return _outcomes(places, counts, found.num_rows, num_states, log_sets), states


def _outcomes(
    places: np.ndarray, counts: np.ndarray, num_places: int, size: int, log_sets: float
) -> Outcomes:
    """Frequencies with the radii of their confidence sets, for rows of `size` outcomes."""
    from scipy.special import gammaln

    visits = np.bincount(places, counts, num_places)
    certain = np.maximum(visits, 1)
    shares = counts / certain[places]
    evidences = []
    for weight in (0.5, 1.0 / size):
        total = weight * size
        gained = gammaln(counts + weight) - gammaln(weight)
        mixed = np.bincount(places, gained, num_places)
        evidences.append(gammaln(total) - gammaln(visits + total) + mixed)
    log_mixture = np.logaddexp(*evidences) - np.log(2)
    log_best = np.bincount(places, counts * np.log(shares), num_places)
    return Outcomes(places, shares, np.maximum(log_sets + log_best - log_mixture, 0) / certain)


def _means(evidence: Evidence, index: int, sign: float, log_sets: float) -> np.ndarray:
    """The largest mean of a signal at each row, or the smallest if sign is -1, `[rows]`."""
    found = evidence.found
    low, high = sorted(sign * evidence.ranges[index])
    signal = np.clip(sign * found.signals[index], low, high)
    order = np.lexsort((signal, found.rows))
    rows, values = found.rows[order], signal[order]
    new = np.append(True, (np.diff(rows) > 0) | (np.diff(values) > 0))  # doubles count once
    counts = np.diff(np.append(np.flatnonzero(new), len(rows)))
    visits = found.visits()
    certain = np.maximum(visits, 1)
    radii = (log_sets + np.log1p(visits)) / certain
    outcomes = Outcomes(rows[new], counts / certain[rows[new]], radii)
    best = np.full(found.num_rows, high)
    largest = largest_means(outcomes, values[new], best)
    return sign * np.where(visits > 0, largest, high)


def _induct(
    evidence: Evidence,
    policy: np.ndarray,
    sign: float,
    means: np.ndarray,
    transitions: Outcomes,
    following: np.ndarray,
) -> np.ndarray:
    """The robust dynamic program: the largest values of sign times a signal, `[S]`."""
    steps, num_states, num_actions = evidence.found.shape
    size = num_states * num_actions
    values = np.zeros(num_states)
    for step in reversed(range(len(policy))):
        first = (step % steps) * size
        begin, end = np.searchsorted(transitions.places, (first, first + size))
        at = Outcomes(
            transitions.places[begin:end] - first,
            transitions.shares[begin:end],
            transitions.radii[first : first + size],
        )
        best = np.full(size, values.max())
        largest = largest_means(at, values[following[begin:end]], best)
        seen = np.bincount(at.places, minlength=size) > 0
        q_values = means[first : first + size] + np.where(seen, largest, best)
        chosen = np.where(policy[step] > 0, q_values.reshape(num_states, num_actions), 0.0)
        values = (policy[step] * chosen).sum(axis=1)
    return values


def _at_start(evidence: Evidence, values: np.ndarray, log_sets: float) -> float:
    """The largest mean of the values of the first state."""
    if evidence.initial is not None:
        return float(evidence.initial @ values)
    first = evidence.found.first
    states = np.flatnonzero(first)
    at = _outcomes(np.zeros(len(states), int), first[states], 1, len(first), log_sets)
    return float(largest_means(at, values[states], np.array([values.max()]))[0])


def largest_means(outcomes: Outcomes, values: np.ndarray, best: np.ndarray) -> np.ndarray:
    """max Σ_t p_t V_t over KL(p̂, p) ≤ radius, at every place, `[places]`.

    Args:
        outcomes: p̂ and the radii.
        values: V of each outcome, `[M]`.
        best: the largest value that p may have where p̂ has nothing, `[places]`; at least the
            largest of `values`.
    """
    places, shares, radii = outcomes
    count = len(radii)
    least = np.full(count, np.inf)
    np.minimum.at(least, places, values)
    spread = np.where(np.isfinite(least), best - least, 0.0)
    flat = spread <= 1e-300
    spread = np.where(flat, 1.0, spread)
    gaps = (best[places] - values) / spread[places]  # in [0, 1]

    def divergence(excess: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """KL(p̂, q) of q ∝ p̂ / (excess + gaps), and Z = Σ p̂ / (excess + gaps)."""
        distances = excess[places] + gaps
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.bincount(places, shares * np.log(distances), count)
            total = np.bincount(places, shares / distances, count)
            return logs + np.log(total), total

    low, high = np.full(count, _NARROWEST), np.full(count, _WIDEST)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        far = divergence(np.exp(middle))[0] > radii  # then ν must be larger
        low, high = np.where(far, middle, low), np.where(far, high, middle)
    excess = np.exp(high)
    reached, total = divergence(excess)
    weighted = np.bincount(places, shares * gaps / (excess[places] + gaps), count)
    below = weighted / np.where(total > 0, total, 1)  # the mean of the gaps under q
    # Mass that the radius leaves goes to the best outcome, though nobody saw it; see Filippi.
    rest = np.maximum(1 - np.exp(np.minimum(reached - radii, 0.0)), 0.0)
    return np.where(flat | ~np.isfinite(least), best, best - spread * (1 - rest) * below)
