"""How much of every sweep goes into a page of bounded size."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

MOST_SHOWN = 5
FEWEST_EPISODES = 60
GOOD_EPISODES = 400  # with fewer an oscillation is hard to follow: single runs make room for it
_FIRST_SHARE = 0.75


class CurveGroup(NamedTuple):
    """What the size of a block depends on: one configuration on one CMDP, or on all of them.

    Attributes:
        cmdp: its place, or None for all.
        num_units: runs, or CMDPs.
        num_series: rows of which there is a mean.
    """

    cmdp: int | None
    num_units: int
    num_series: int


class Allotment(NamedTuple):
    """How much of a sweep is taken.

    Attributes:
        num_episodes: of every group, at most.
        num_shown: single runs of every group, at most.
        num_cmdps: how many CMDPs, the first ones, have groups of their own.
    """

    num_episodes: int
    num_shown: int
    num_cmdps: int


def num_rows(group: CurveGroup, num_shown: int) -> int:
    """Rows of a block: the episodes, then per series mean, half width and single runs."""
    shown = 1 + min(group.num_units, num_shown) if group.num_units > 1 else 0
    return 1 + group.num_series * (1 + shown)


def allot(
    sweeps: Sequence[Sequence[CurveGroup]], recorded: Sequence[int], budget: int
) -> list[Allotment]:
    """Share a budget of numbers among sweeps, given their groups and recorded episodes.

    The first sweep may take three quarters, and what the others do not need; they share the rest
    evenly, where those that need less leave it to the others.
    """
    needs = [
        _rows(groups, MOST_SHOWN, math.inf) * length
        for groups, length in zip(sweeps, recorded, strict=True)
    ]
    first = min(needs[0], max(int(_FIRST_SHARE * budget), budget - sum(needs[1:])))
    shares = [first, *_share(needs[1:], budget - first)]
    return [
        _fit(groups, length, share)
        for groups, length, share in zip(sweeps, recorded, shares, strict=True)
    ]


def _share(needs: Sequence[int], budget: int) -> list[int]:
    """To each what it needs, or an equal share of what those leave that need less."""
    shares = [0] * len(needs)
    for done, place in enumerate(sorted(range(len(needs)), key=lambda place: needs[place])):
        shares[place] = min(needs[place], budget // (len(needs) - done))
        budget -= shares[place]
    return shares


def _fit(groups: Sequence[CurveGroup], recorded: int, share: int) -> Allotment:
    """Fewer episodes, fewer single runs, still fewer episodes, fewer CMDPs; at last what fits.

    The groups over all CMDPs stay, and with one CMDP its groups.
    """
    fewest = min(FEWEST_EPISODES, recorded)
    cmdps = {group.cmdp for group in groups}
    own = len(cmdps - {None})
    num_cmdps = _largest(
        own, lambda count: _rows(groups, 1, count) * fewest <= share, 0 if None in cmdps else own
    )
    good = min(GOOD_EPISODES, recorded)
    num_shown = _largest(
        MOST_SHOWN, lambda shown: _rows(groups, shown, num_cmdps) * good <= share, 1
    )
    num_episodes = share // _rows(groups, num_shown, num_cmdps)
    return Allotment(min(recorded, max(num_episodes, 2)), num_shown, num_cmdps)


def _largest(start: int, fits: Callable[[int], bool], least: int) -> int:
    """The largest number from `least` to `start` that fits, as all below it do; or `least`."""
    if fits(start):
        return start
    fitting, too_many = least, start
    while too_many - fitting > 1:
        middle = (fitting + too_many) // 2
        fitting, too_many = (middle, too_many) if fits(middle) else (fitting, middle)
    return fitting


def _rows(groups: Sequence[CurveGroup], num_shown: int, num_cmdps: float) -> int:
    """Rows of all blocks, if only so many CMDPs have groups of their own."""
    chosen = [group for group in groups if group.cmdp is None or group.cmdp < num_cmdps]
    return sum(num_rows(group, num_shown) for group in chosen)
