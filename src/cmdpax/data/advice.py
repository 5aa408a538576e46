"""What data would help, where a log supports no policy that is safe enough."""

import math
from typing import NamedTuple

import numpy as np

from cmdpax.data.evidence import Evidence
from cmdpax.data.planning import Cut

_MOST_PAIRS = 5
_MOST_EPISODES = 10**12


class Need(NamedTuple):
    """A pair about which more should be known.

    Attributes:
        state: the state.
        action: the action.
        step: the step; None if all steps share one model.
        visits: how often the log has the pair.
        share: of the variance of the constraint that is hardest to be sure of.
        text: the pair in words.
    """

    state: int
    action: int
    step: int | None
    visits: int
    share: float
    text: str


class Advice(NamedTuple):
    """What data would help.

    Attributes:
        constraint: the constraint that is hardest to be sure of.
        pairs: those that leave most of it open, the worst first.
        episodes: about how many episodes of the same kind would be enough, those of the log
            included; None if more of them would not help: in the model that the log suggests no
            policy keeps the constraint.
        sentence: all that in words.
    """

    constraint: int
    pairs: tuple[Need, ...]
    episodes: int | None
    sentence: str


def advise(
    evidence: Evidence, cut: Cut, slack: np.ndarray, quantile: float, num_episodes: int
) -> Advice:
    """What data would help.

    Args:
        evidence: the log and what must be met.
        cut: the uncertainty of the policy that was nearest to being safe.
        slack: how far its expected values are on the right side, `[I]`, corrected.
        quantile: how many standard deviations they would have to be.
        num_episodes: of the log.
    """
    deviations = np.maximum(cut.deviations, np.finfo(float).tiny)
    worst = int(np.argmin(slack / deviations))
    order = np.argsort(-cut.shares[worst])[:_MOST_PAIRS]
    visits = evidence.found.visits()
    pairs = tuple(
        _need(evidence, int(row), int(visits[row]), float(cut.shares[worst][row]))
        for row in order
        if cut.shares[worst][row] > 0
    )
    episodes = None
    if slack[worst] > 0:  # deviations shrink with the square root of the number of episodes
        factor = (quantile * deviations[worst] / slack[worst]) ** 2
        episodes = _rounded(max(num_episodes * factor, num_episodes + 1))
    return Advice(worst, pairs, episodes, _sentence(evidence, worst, pairs, episodes, slack))


def _need(evidence: Evidence, row: int, visits: int, share: float) -> Need:
    step, state, action = (int(i) for i in np.unravel_index(row, evidence.found.shape))
    shared = evidence.found.shape[0] == 1
    return Need(state, action, None if shared else step, visits, share, evidence.place(row))


def _rounded(number: float) -> int:
    """Up to two digits: it is an estimate."""
    number = min(number, _MOST_EPISODES)
    unit = 10 ** max(0, math.floor(math.log10(number)) - 1)
    return math.ceil(number / unit) * unit


def _sentence(
    evidence: Evidence,
    worst: int,
    pairs: tuple[Need, ...],
    episodes: int | None,
    slack: np.ndarray,
) -> str:
    words = evidence.words
    name = words.constraint(worst)
    listed = ", ".join(f"{need.text} ({need.visits} visits)" for need in pairs[:3])
    if episodes is None:
        missed = words.amount(max(-float(slack[worst]), 0.0), 1 + worst, 3)
        return (
            f"in the model that the log suggests, the safest policy that was found misses "
            f"{name} by {missed}; relax its bound, or log {listed} more often"
        )
    return (
        f"log about {episodes} episodes in all, or visit more often what leaves {name} open: "
        f"{listed}"
    )
