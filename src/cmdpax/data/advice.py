"""What data would help, where a log supports no policy that is safe enough."""

import math
from typing import NamedTuple

import numpy as np

from cmdpax.data.evidence import Evidence
from cmdpax.data.planning import Cut

_MOST_PAIRS = 5
_MOST_TIMES = 100.0  # beyond, an estimate of how many more episodes would do says nothing


class Need(NamedTuple):
    """A pair about which more should be known.

    Attributes:
        state: the state.
        action: the action.
        step: the step; None if all steps share one model.
        visits: how often the log has the pair.
        share: how much of the variance of the least certain constraint comes from it, 0 to 1.
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
        constraint: the constraint that is least certain to be met.
        pairs: those that leave most of it open, the worst first.
        episodes: roughly how many episodes of the same kind would be enough, those of the log
            included, at most 100 times as many; None if the policy that came nearest misses the
            constraint in the expected model, so that more of the same may not help.
        sentence: all that in words.
    """

    constraint: int
    pairs: tuple[Need, ...]
    episodes: int | None
    sentence: str


def advise(
    evidence: Evidence,
    cut: Cut,
    slack: np.ndarray,
    correction: np.ndarray,
    quantile: float,
    num_episodes: int,
) -> Advice:
    """What data would help.

    Args:
        evidence: the log and what must be met.
        cut: the uncertainty of the policy that was nearest to being safe.
        slack: how far its expected values are on the right side, `[I]`.
        correction: how much of that the data are thought to flatter it, `[I]`.
        quantile: how many standard deviations they would have to be.
        num_episodes: how many episodes the log has.
    """
    # Both deviations and correction shrink with the square root of the number of episodes.
    wanted = np.maximum(quantile * cut.deviations + correction, np.finfo(float).tiny)
    worst = int(np.argmin(slack / wanted))
    order = np.argsort(-cut.shares[worst])[:_MOST_PAIRS]
    visits = evidence.found.visits()
    pairs = tuple(
        _need(evidence, int(row), int(visits[row]), float(cut.shares[worst][row]))
        for row in order
        if cut.shares[worst][row] > 0
    )
    episodes = None
    if slack[worst] > 0:
        factor = float(wanted[worst] / slack[worst]) ** 2
        episodes = _rounded(num_episodes * min(max(factor, 1.5), _MOST_TIMES))
    return Advice(worst, pairs, episodes, _sentence(evidence, worst, pairs, episodes, slack))


def _need(evidence: Evidence, row: int, visits: int, share: float) -> Need:
    step, state, action = (int(i) for i in np.unravel_index(row, evidence.found.shape))
    shared = evidence.found.shape[0] == 1
    return Need(state, action, None if shared else step, visits, share, evidence.place(row))


def _times(visits: int) -> str:
    return "1 visit" if visits == 1 else f"{visits} visits"


def _rounded(number: float) -> int:
    """Rounded up to one digit, since it is only an order of magnitude."""
    unit = 10 ** math.floor(math.log10(number))
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
    listed = ", ".join(f"{need.text} ({_times(need.visits)})" for need in pairs[:3])
    if episodes is None:
        amounts = np.maximum(-slack, 0.0).tolist()
        missed = [
            f"{words.constraint(index)} by {words.amount(amount, 1 + index, 3)}"
            for index, amount in enumerate(amounts)
            if index == worst or amount
        ]
        bounds = "its bound" if len(missed) == 1 else "these bounds"
        more = f", or log {listed} more often" if pairs else ""
        return (
            f"in the expected model the policy that came nearest misses {' and '.join(missed)}; "
            f"relax {bounds}{more}"
        )
    more = f", or more of the pairs that leave {name} most uncertain: {listed}" if pairs else ""
    return f"log about {episodes:,} episodes in all{more}"
