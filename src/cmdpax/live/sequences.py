"""Confidence sequences: intervals for a mean that may be looked at after every episode.

Student's interval is right with probability 95 % at one look. Whoever looks every day, and stops at
the first verdict, errs far more often. A confidence sequence is right at *all* times at once:

    P(for every n: (1/n) Σ_{k≤n} μ_k is in the interval after n episodes) ≥ 95 %

where μ_k = E[X_k | all before] is the mean return of the policy that was played in episode k. These
policies change, so the μ_k drift; nothing is assumed of them, nor of independence.

*Returns with a declared range [a, b].* In units of the range, with a prediction X̂_k of X_k that is
made before it, and V_n = Σ_{k≤n} (X_k - X̂_k)², Fan's inequality makes

    exp(λ Σ (X_k - μ_k) - ψ(λ) V_n),        ψ(λ) = -log(1 - λ) - λ,  0 ≤ λ < 1,

a supermartingale (Howard, Ramdas, McAuliffe and Sekhon, Annals of Statistics 49, 2021, theorem 4).
Its mixture over λ with the density ∝ (1 - λ)^(ρ-1) e^(-ρ(1-λ)) has a closed form (their proposition
9), and where it reaches 1/α, by Ville's inequality, is the bound. Both sides have α = 2.5 %. The
guarantee is exact, and a return that hardly varies gives a narrow interval.

*Returns without one.* Nothing can be guaranteed: the next return may outweigh all before. What
remains is asymptotic (Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, Annals of Statistics 52,
2024): with σ̂² the variance of the returns so far, half of the interval is

    σ̂ √( 2 (n ρ² + 1) / (n ρ)² · log(√(n ρ² + 1) / α) ),        α = 5 %,

right at all times with about 95 %, the better the later one begins to look. Where returns are
skewed, such as those of a rare cost, that is late: nothing is said before 30 episodes, nor while a
single return makes up more than a tenth of the variance.
"""

from typing import Any, NamedTuple

import numpy as np

CONFIDENCE = 0.95
"""The probability that an interval is right at all times."""

FEWEST = 30
"""With fewer episodes an asymptotic interval says nothing."""

LARGEST_SHARE = 0.1
"""Nor does it while a single return makes up more than this share of the variance."""

_MOST = 10**6  # episodes that a verdict may still take; beyond, nothing is estimated
_EXACT_RHO = 0.5  # ρ: the exact interval is tightest where V is about 5 times the squared range
_ASYMPTOTIC_RHO = 0.2  # ρ: the asymptotic one is tightest after about 200 episodes
_GRID = 64  # numbers of episodes that are tried at once
_ROUNDS = 100  # of Newton's method, which takes some ten


class Sequence(NamedTuple):
    """Running sums of returns, of any shape, of which an interval is made at any time.

    A sequence can begin anew at any time, `Sequence.empty`; it then is about the episodes since.
    """

    size: np.ndarray  # n, the number of episodes
    mean: np.ndarray
    squares: np.ndarray  # Σ of squared distances from the mean
    distances: np.ndarray  # V: Σ of squared distances from what was predicted
    largest: np.ndarray  # what a single return added to `squares` at most

    @classmethod
    def empty(cls, shape: tuple[int, ...]) -> "Sequence":
        """Before the first episode."""
        return cls(*np.zeros((len(cls._fields), *shape)))

    def after(self, returns: Any, centre: Any, counted: Any = True) -> "Sequence":
        """The sums after one more episode.

        Args:
            returns: X_n, in the units of the user.
            centre: the prediction of the first return, the middle of the declared range; those of
                later ones are the mean of it and of all returns so far.
            counted: False leaves a sequence as it is.
        """
        predicted = (centre + self.size * self.mean) / (self.size + 1)
        before = np.where(counted, returns - self.mean, 0.0)
        size = self.size + counted
        mean = self.mean + before / np.maximum(size, 1)
        added = np.maximum(before * np.where(counted, returns - mean, 0.0), 0.0)
        return Sequence(
            size,
            mean,
            self.squares + added,
            self.distances + np.where(counted, returns - predicted, 0.0) ** 2,
            np.maximum(self.largest, added),
        )

    def is_possible(self, num_episodes: int) -> bool:
        """Whether these can be sums of at most so many episodes."""
        sums = np.array([self.squares, self.distances, self.largest])
        sizes = (self.size >= 0) & (self.size <= num_episodes) & (self.size % 1 == 0)
        return bool(sizes.all() and (sums >= 0).all())

    def later(self, size: Any) -> "Sequence":
        """The sums after `size` episodes if the mean and the variance stay."""
        per_episode = self.squares / np.maximum(self.size, 1)
        more = (size - self.size) * per_episode
        return self._replace(
            size=size, squares=self.squares + more, distances=self.distances + more
        )

    def radius(self, scale: Any, declared: Any) -> np.ndarray:
        """Half of the interval.

        Args:
            scale: the width of the range of a return, where it is declared.
            declared: flags; where False, the interval is asymptotic.
        """
        shape = np.broadcast_shapes(np.shape(self.size), np.shape(scale), np.shape(declared))
        declared, found = np.broadcast_to(declared, shape), np.full(shape, np.inf)
        if declared.any():
            width = np.where(declared, scale, 1.0)
            exact = width * _exact_sum(self.distances / width**2) / np.maximum(self.size, 1)
            found = np.where(declared & (self.size > 0), exact, found)
        if not declared.all():
            found = np.where(declared, found, self._asymptotic_radius())
        return found

    def _asymptotic_radius(self) -> np.ndarray:
        """Half of the asymptotic interval, infinite where it says nothing; see `LARGEST_SHARE`."""
        size = np.maximum(self.size, 2)
        variance = self.squares / (size - 1)
        information = size * _ASYMPTOTIC_RHO**2
        level = np.log(np.sqrt(information + 1) / (1 - CONFIDENCE))
        found = np.sqrt(2 * variance * (information + 1) / (size * information) * level)
        enough = (self.size >= FEWEST) & (self.squares > 0)
        enough &= self.largest <= LARGEST_SHARE * self.squares
        return np.asarray(np.where(enough, found, np.inf))


def _exact_sum(intrinsic: np.ndarray) -> np.ndarray:
    """What Σ (X_k - μ_k) stays below, in units of the range, at all times; V is `intrinsic`.

    The logarithm of the mixture is convex in the sum s and grows with it, so that Newton's method
    comes down on its root from the right.
    """
    from scipy.special import gammainc, gammaln  # SciPy takes long to import

    rho = _EXACT_RHO
    level = np.log(2 / (1 - CONFIDENCE))
    shape = intrinsic + rho
    log_gamma = gammaln(shape)
    constant = rho * np.log(rho) - gammaln(rho) - np.log(gammainc(rho, rho)) + log_gamma - level
    total = np.sqrt(4 * level * intrinsic) + 4 * level
    for _ in range(_ROUNDS):
        place = total + shape
        log_place, share = np.log(place), gammainc(shape, place)
        excess = constant + total + intrinsic + np.log(share) - shape * log_place
        density = np.exp((shape - 1) * log_place - place - log_gamma) / share
        step = excess / (1 + density - shape / place)
        total = np.maximum(total - step, 0.0)
        if np.all(np.abs(step) <= 1e-9 * (1 + total)):
            break
    return np.asarray(total)


class Band(NamedTuple):
    """An interval that is right at all times, so that it may be looked at every day.

    Attributes:
        low: its lower end.
        high: its upper end.
        size: how many episodes it is about.
        exact: whether its 95 % are guaranteed; False: no range was declared, and they are
            asymptotic.
    """

    low: float = -np.inf
    high: float = np.inf
    size: int = 0
    exact: bool = False

    def verdict(self, sense: str, threshold: float, rounding: float = 0.0) -> str:
        """What it shows: "met", "missed" or "open"."""
        least, most = self.low - threshold, self.high - threshold
        if sense == "at least":
            least, most = -most, -least
        if most <= rounding:
            return "met"
        return "missed" if least > rounding else "open"

    def __str__(self) -> str:
        """For people: 1.5 to 1.9; a tilde where it is asymptotic."""
        if not (np.isfinite(self.low) and np.isfinite(self.high)):
            return "not defined"
        return f"{'' if self.exact else '~ '}{self.low:.4g} to {self.high:.4g}"


def make_bands(
    sequence: Sequence, low: np.ndarray, high: np.ndarray, declared: np.ndarray
) -> list[Band]:
    """The bands of J signals.

    Args:
        sequence: of shape `[2, J]`: the missing steps of episodes that were cut short brought the
            least in row 0, and the most in row 1.
        low: the least possible return, `[J]`, where it is declared.
        high: the largest.
        declared: whether the range is declared, `[J]`.
    """
    radius = sequence.radius(np.where(declared, high - low, 1.0), declared)
    lower, upper = sequence.mean[0] - radius[0], sequence.mean[1] + radius[1]
    lower = np.where(declared, np.maximum(lower, low), lower)
    upper = np.where(declared, np.minimum(upper, high), upper)
    ends = zip(lower.tolist(), upper.tolist(), sequence.size[0], declared, strict=True)
    return [Band(least, most, int(size), bool(exact)) for least, most, size, exact in ends]


def episodes_left(sequence: Sequence, distance: float, scale: float, declared: bool) -> int | None:
    """How many more episodes until half of the interval is below a distance, about.

    Args:
        sequence: of one signal, without axes.
        distance: of the mean from its threshold, at least 0.
        scale: the width of the range of a return, where it is declared.
        declared: whether it is.

    Returns:
        The number, if the mean and the variance stay as they are; None where they tell nothing yet
        or it is more than a million.
    """
    if sequence.size < 2 or distance <= 0:
        return None
    first, last = 1.0, float(_MOST)
    for _ in range(3):  # each divides the bracket by 64, on a logarithmic scale
        grid = np.geomspace(first, last, _GRID)
        small = sequence.later(sequence.size + grid).radius(scale, declared) <= distance
        if not small.any():
            return None
        found = int(np.argmax(small))
        if found == 0:
            return 1
        first, last = grid[found - 1], grid[found]
    return int(np.ceil(last))
