"""Models that a log leaves possible, drawn from their posterior.

Rows of transitions come from mixtures of Dirichlet distributions that the log itself suggests
(`prior`). The mean of a signal at a pair of a state and an action comes from one of these:

* a signal with few different values has a row of probabilities of these values, drawn likewise;
* for any other the observations of a pair are taken to be normal around its mean m with a variance
  σ² whose prior is the pooled one with ν₀ = 3 observations behind it,

      σ² ~ (ν₀ σ₀² + Σ_j (x_j - x̄)²) / χ²(ν₀ + n - 1),        m ~ N(x̄, σ²/n),

  cut to the declared range;
* at a pair without a visit m is uniform over the declared range, or over that of the observations.

What was never seen is possible, as far as it is known to exist. The ends of a declared range are
values like any other, as if each pair had shown them a tenth of a time, or less if there are many
pairs; and everything may lead to states that nothing was seen to lead to.

A row is drawn from its own generator, so that its draws do not depend on what else is drawn.
"""

from typing import NamedTuple

import numpy as np

from cmdpax.data.evidence import Evidence
from cmdpax.data.prior import Rows, dirichlet, learn_rows
from cmdpax.storage.limits import require_room

_FEW_VALUES = 20  # a signal with more of them is continuous
_PRIOR_VARIANCES = 3.0  # ν₀
_UNSEEN = 0.1  # of an observation of each end of a declared range, at every pair
_KEPT = 2**30  # bytes of rows that are kept for the next policy


class Signal(NamedTuple):
    """The posterior of the mean of a signal at each row.

    Attributes:
        low: the least value it can have.
        high: the largest.
        values: the different values, `[T]`; None if there are many.
        shares: how often each of them comes, row by row; None likewise.
        means: x̄, `[rows]`.
        spreads: ν₀ σ₀² + Σ_j (x_j - x̄)², `[rows]`.
        visits: n, `[rows]`.
    """

    low: float
    high: float
    values: np.ndarray | None
    shares: Rows | None
    means: np.ndarray
    spreads: np.ndarray
    visits: np.ndarray

    def expected(self) -> np.ndarray:
        """The posterior mean, `[rows]`."""
        middle = (self.low + self.high) / 2
        known = self.means if self.shares is None else self.shares.mean() @ self.values
        return np.where(self.visits > 0, known, middle)

    def variances(self) -> np.ndarray:
        """The posterior variance of the mean, about, `[rows]`."""
        flat = (self.high - self.low) ** 2 / 12
        if self.shares is None or self.values is None:
            degrees = np.maximum(_PRIOR_VARIANCES + self.visits - 3, 1.0)
            of_mean = self.spreads / degrees / np.maximum(self.visits, 1)
        else:
            rows = self.shares.mean()
            second = rows @ self.values**2 - (rows @ self.values) ** 2
            of_mean = np.maximum(second, 0.0) / (self.shares.sizes() + 1)
        return np.where(self.visits > 0, np.minimum(of_mean, flat), flat)

    def draw(self, row: int, mixing: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draws of the mean at a row, `[count]`, with π of the rows of values, `[count, M]`."""
        count = len(mixing)
        if not self.visits[row]:
            return rng.uniform(self.low, self.high, count)
        if self.shares is not None:
            return np.asarray(self.shares.draw(np.array([row]), mixing, rng) @ self.values)
        visits = self.visits[row]
        variances = self.spreads[row] / rng.chisquare(_PRIOR_VARIANCES + visits - 1, count)
        return self._cut_normal(self.means[row], np.sqrt(variances / visits), rng)

    def _cut_normal(
        self, mean: float, deviations: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Normal numbers within the range, by inversion."""
        from scipy.special import ndtr, ndtri

        if self.high == self.low:
            return np.full(len(deviations), self.low)
        scales = np.maximum(deviations, 1e-12 * (self.high - self.low))
        low, high = ndtr((self.low - mean) / scales), ndtr((self.high - mean) / scales)
        drawn = mean + scales * ndtri(low + rng.uniform(size=len(scales)) * (high - low))
        return np.clip(drawn, self.low, self.high)


class Posterior(NamedTuple):
    """What a log leaves possible.

    Attributes:
        evidence: the log and what was declared.
        transitions: the rows of next states.
        signals: the means of signals, one entry each.
        visits: n of each row, `[rows]`.
        start: Dirichlet concentrations of the first state, `[S]`; None if it is known.
    """

    evidence: Evidence
    transitions: Rows
    signals: tuple[Signal, ...]
    visits: np.ndarray
    start: np.ndarray | None

    @property
    def mean_start(self) -> np.ndarray:
        """The expected distribution of the first state, `[S]`."""
        if self.start is None:
            assert self.evidence.initial is not None
            return self.evidence.initial
        return self.start / self.start.sum()

    def mean_transitions(self) -> np.ndarray:
        """The expected rows, `[H or 1, S, A, S]`."""
        return self.transitions.mean().reshape(*self.evidence.found.shape, -1)

    def mean_signals(self) -> np.ndarray:
        """The expected signals, `[1 + I, H or 1, S, A]`."""
        means = np.stack([signal.expected() for signal in self.signals])
        return means.reshape(-1, *self.evidence.found.shape)


def learn_posterior(evidence: Evidence, weight: float | None = None) -> Posterior:
    """The posterior of all rows.

    Args:
        evidence: the log and what was declared.
        weight: α of the prior of transitions; None lets the log suggest it.
    """
    found = evidence.found
    counts = found.counts().astype(float)
    owners = _owners(found.shape)
    seen = _possible(counts, found.shape)
    everything = np.full(counts.shape, 1 / counts.shape[1])
    bases = [seen] if (seen > 0).all() or weight is not None else [everything, seen]
    transitions = learn_rows(counts, bases, owners, weight)
    signals = tuple(
        _signal(found.rows, signal, owners, tuple(bounds))
        for signal, bounds in zip(found.signals, evidence.ranges, strict=True)
    )
    start = found.first.astype(float) if evidence.initial is None else None
    return Posterior(evidence, transitions, signals, found.visits(), start)


def _owners(shape: tuple[int, int, int]) -> np.ndarray:
    """Which rows may resemble each other, `[G, rows]`: those of a state, and of a pair."""
    steps, num_states, num_actions = shape
    pairs = np.tile(np.arange(num_states * num_actions), steps)
    states = pairs // num_actions
    return np.stack([states, pairs] if steps > 1 and num_actions > 1 else [states])


def _possible(counts: np.ndarray, shape: tuple[int, int, int]) -> np.ndarray:
    """A base, `[rows, S]`: every state that was seen to follow at that step is as likely."""
    steps, num_states, num_actions = shape
    seen = counts.reshape(steps, -1, num_states).sum(axis=1) > 0
    anywhere = seen.any(axis=0) | ~seen.any()
    seen = np.where(seen.any(axis=1, keepdims=True), seen, anywhere)
    common = seen / seen.sum(axis=1, keepdims=True)
    return np.repeat(common, num_states * num_actions, axis=0)


def _signal(
    rows: np.ndarray, signal: np.ndarray, owners: np.ndarray, bounds: tuple[float, float]
) -> Signal:
    """The posterior of the mean of one signal at every row."""
    num_rows = owners.shape[-1]
    visits = np.bincount(rows, minlength=num_rows).astype(float)
    counted = np.maximum(visits, 1)
    means = np.bincount(rows, signal, num_rows) / counted
    squares = np.bincount(rows, (signal - means[rows]) ** 2, num_rows)
    declared = not np.isnan(bounds).any()
    low, high = bounds if declared else (signal.min(), signal.max())
    # One more observation, with the variance of the whole range or signal: nothing is certain yet.
    degrees = np.maximum(visits - 1, 0).sum() + 1
    more = (high - low) ** 2 / 12 if declared else signal.var()
    pooled = (squares.sum() + more) / degrees
    # What was never seen, and may be: the ends of a declared range.
    values, which = np.unique(np.append(signal, [low, high]), return_inverse=True)
    which = which[: len(signal)]
    few = 1 < len(values) <= max(2, min(_FEW_VALUES, len(signal) // 5))
    shares = None
    if few:
        flat = np.bincount(rows * len(values) + which, minlength=num_rows * len(values))
        counts = flat.reshape(num_rows, -1).astype(float)
        if declared:  # the more rows never showed its ends, the less they count
            counts[:, [0, -1]] += _UNSEEN / (1 + np.count_nonzero(visits) / 10)
        even = np.full(counts.shape, 1 / len(values))
        pooled_counts = counts.sum(axis=0) + 1 / len(values)
        pooled_shares = np.broadcast_to(pooled_counts / pooled_counts.sum(), counts.shape)
        shares = learn_rows(counts, [even, pooled_shares], owners)
    return Signal(
        float(low),
        float(high),
        values if few else None,
        shares,
        means,
        _PRIOR_VARIANCES * pooled + squares,
        visits,
    )


class Draws:
    """Models drawn from a posterior; each row is drawn when a policy first uses it.

    The same seed gives the same draws, whatever was evaluated before.
    """

    def __init__(
        self, posterior: Posterior, count: int, seed: int, fix: str = "ask for fewer samples"
    ) -> None:
        """Draw nothing yet but the first states; `fix` is what helps if models are too large."""
        steps, num_states, num_actions = posterior.evidence.found.shape
        step = 8 * count * num_states * num_actions * (num_states + len(posterior.signals))
        require_room(f"{count} models of {num_states} states", step, fix)
        self._keeps = steps == 1 or steps * step <= _KEPT
        self.posterior, self.count, self._seed = posterior, count, seed
        self._transitions: dict[int, np.ndarray] = {}
        self._signals: dict[int, np.ndarray] = {}
        rng = np.random.default_rng([seed, posterior.visits.size])
        self._mixing = posterior.transitions.draw_mixing(count, rng)
        self._mixings = [
            np.ones((count, 1)) if signal.shares is None else signal.shares.draw_mixing(count, rng)
            for signal in posterior.signals
        ]
        if posterior.start is None:
            self._start = np.repeat(posterior.mean_start[None], count, axis=0)
        else:
            self._start = dirichlet(np.tile(posterior.start, (count, 1)), rng)

    def values(self, policy: np.ndarray) -> np.ndarray:
        """The values of a policy, `[H, S, A]`, in every drawn model, `[count, 1 + I]`."""
        shape = self.posterior.evidence.found.shape
        steps, num_states, num_actions = shape
        mass, total = self._start, np.zeros((self.count, len(self.posterior.signals)))
        for step, decision in enumerate(policy):
            states, actions = np.nonzero(decision)
            used = mass.max(axis=0)[states] > 0
            states, actions = states[used], actions[used]
            first = (step % steps) * num_states * num_actions
            rows = (first + states * num_actions + actions).tolist()
            self._draw(rows)
            weights = mass[:, states] * decision[states, actions]
            signals = np.stack([self._signals[row] for row in rows])  # [L, J, count]
            total += np.einsum("bl,ljb->bj", weights, signals)
            if step + 1 < len(policy):
                mass = self._push(rows, weights)
            if not self._keeps:
                self._transitions.clear()
                self._signals.clear()
        return total

    def _push(self, rows: list[int], weights: np.ndarray) -> np.ndarray:
        mass = np.zeros_like(self._start)
        for place, row in enumerate(rows):
            mass += weights[:, place, None] * self._transitions[row]
        return mass

    def _draw(self, rows: list[int]) -> None:
        posterior = self.posterior
        for row in rows:
            if row not in self._transitions:
                rng = np.random.default_rng([self._seed, row])
                one = np.array([row])
                self._transitions[row] = posterior.transitions.draw(one, self._mixing, rng)
                self._signals[row] = np.stack(
                    [
                        signal.draw(row, mixing, rng)
                        for signal, mixing in zip(posterior.signals, self._mixings, strict=True)
                    ]
                )
