"""How much of a plan may be played beside a baseline: the share of a mixture.

Before an episode a coin decides whether the plan or the baseline is played, with the share α of the
plan. The values of such an episode are those of the mixture, (1 - α) V^b + α V^π, so that

    P((1 - α) V_{u_i}^b + α V_{u_i}^π ≥ c_i for all i)

can be judged in models that are drawn from what is believed. The largest α for which this is at
least the confidence is played. Playing a plan rarely is a dear way to be safe if the baseline earns
little. So the next plan keeps margins: larger ones where this one's slack would have to be larger
for α = 1, smaller ones where it has more than it needs. They may become negative, since a learner
doubts what it has hardly tried, and may reduce its constraints by more than is needed. They change
by a part of the baseline's slack at most, since plans jump.

A plan looks better in the data from which it was made than it is: it is judged as if it were worse
by a standard deviation of its difference from the baseline. A baseline is trusted: where a drawn
model has it unsafe, it is taken to meet its constraints exactly, so that the plan must not be worse
there. What data say about the baseline counts for more than trust once it is unsafe in nearly all
models.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

ENOUGH = 30
"""Episodes of the baseline after which data may contradict it."""
_SHARES = np.unique(np.concatenate([[0.0], np.geomspace(1e-3, 0.1, 20), np.linspace(0.1, 1.0, 91)]))
_MOST, _LEAST = 0.7, -4.0  # of the slack that the baseline is expected to have: bounds of margins
_STEP = 0.2  # of that slack: by how much margins change at most from plan to plan
_CAUTION = 0.5
"""Of what may fail: what a posterior of few data gets wrong."""
_PROMISED = 1.0
"""Standard deviations: plans look better in the data from which they were made than they are."""


class Mixture(NamedTuple):
    """Which policy an episode is played with, and how safe that is.

    Attributes:
        share: α, the probability of playing the plan; otherwise the baseline is played.
        probability: of meeting all constraints with this mixture, as the data suggest.
        trusted: whether the data leave it possible that the baseline meets its constraints.
        slack: the expected slack of the baseline in each constraint, `[I]`, in the user's units.
        margins: by how much thresholds are stricter for the next plan, `[I]`, in the user's units;
            negative where they are less strict.
    """

    share: float
    probability: float
    trusted: bool
    slack: tuple[float, ...]
    margins: tuple[float, ...]

    def __str__(self) -> str:
        """In words."""
        return self.told([f"{slack:.4g}" for slack in self.slack])

    def told(self, slacks: Sequence[str]) -> str:
        """In words, with the slack of the baseline in each constraint, in words as well."""
        known = f"slack is believed to be {', '.join(slacks)}"
        if self.share == 0:
            found = f"the baseline is played in all episodes: its {known}, "
            return found + "and no share of the plan is safe enough"
        found = f"the plan is played in {100 * self.share:.3g} % of the episodes"
        found += "" if self.share == 1 else ", the baseline in the others"
        found += f"; all constraints are met with probability {self.probability:.3g}"
        doubts = "" if self.trusted else f"the data contradict the baseline, whose {known}; "
        return doubts + found


def mix(
    slacks: np.ndarray,
    margins: np.ndarray,
    confidence: float,
    episodes: int,
    kept: np.ndarray | float = 0.0,
) -> Mixture:
    """The largest share of the plan that is safe enough, and the margins of the next one.

    Args:
        slacks: V_u - c of the baseline and of the plan in drawn models, `[draws, 2, I]`, positive
            where a constraint is met, in the user's units.
        margins: those of the mixture with which the plan was made, `[I]`.
        confidence: what the joint probability must be.
        episodes: that were counted.
        kept: the margins that plans keep in any case, `[I]`.
    """
    of_baseline, of_plan = slacks[:, 0], slacks[:, 1]
    rounding = 1e-9 * np.maximum(1.0, np.abs(slacks).max(axis=(0, 1), initial=0.0))
    safe = (of_baseline >= -rounding).all(axis=1)
    trusted = episodes < ENOUGH or bool(safe.mean() >= 1 - confidence)
    expected = of_baseline.mean(axis=0)
    if trusted:
        of_baseline = np.maximum(of_baseline, 0.0)
    of_plan = of_plan - _PROMISED * (slacks[:, 1] - slacks[:, 0]).std(axis=0)
    shares = _SHARES[:, None, None]
    mixed = (1 - shares) * of_baseline + shares * of_plan  # [shares, draws, I]
    chances = (mixed >= -rounding).all(axis=2).mean(axis=1)
    wanted = 1 - _CAUTION * (1 - confidence)
    enough = np.flatnonzero(chances >= wanted)
    chosen = enough[-1] if len(enough) else int(np.argmax(chances))
    each = (1 - wanted) / max(1, slacks.shape[2])  # all constraints at once
    missing = kept - np.quantile(of_plan, each, axis=0) if len(expected) else expected
    spare = np.maximum(expected, 0.0)
    step = np.clip(missing, -_STEP * spare, _STEP * spare)
    following = np.clip(margins + step, _LEAST * spare, _MOST * spare)
    return Mixture(
        float(_SHARES[chosen]),
        float(chances[chosen]),
        trusted,
        tuple(expected.tolist()),
        tuple(following.tolist()),
    )
