"""How much of every sweep goes into a page of bounded size."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

MOST_SHOWN = 5
FEWEST_EPISODES = 60
GOOD_EPISODES = 400  # with fewer, an oscillation is hard to follow: drop single runs first
_FIRST_SHARE = 0.75


class Group(NamedTuple):
    """The runs of a configuration on one CMDP or on all of them: a block of curves.

    Attributes:
        cmdp: its place in the sweep, or None for all.
        configuration: its place in the sweep.
        names: what the means are over: "seed 123" for every run, or the CMDPs' names.
        units: the places of the runs behind each name; one run unless the group is over all CMDPs.
        series: the curves that every run has.
    """

    cmdp: int | None
    configuration: int
    names: list[str]
    units: list[list[int]]
    series: tuple[str, ...]


def num_rows(group: Group, num_shown: int) -> int:
    """Count the rows of a block: episodes, then mean, half width and single runs per series."""
    count = len(group.units)
    return 1 + len(group.series) * (2 + min(count, num_shown) if count > 1 else 1)


def allot(
    sweeps: Sequence[Sequence[Group]], recorded: Sequence[int], budget: int
) -> list[tuple[int, int, int]]:
    """Share a budget of numbers among sweeps, given their groups and recorded episodes.

    Every sweep is given the most episodes and the most single runs that a group may have, and how
    many CMDPs, the first ones, have groups of their own.

    The first sweep may take three quarters of it, and whatever the others do not need. The others
    share the rest evenly; what one of them does not need goes to the others.
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
    """Give each sweep what it needs, or an equal share of what the smaller ones leave."""
    shares = [0] * len(needs)
    for done, place in enumerate(sorted(range(len(needs)), key=lambda place: needs[place])):
        shares[place] = min(needs[place], budget // (len(needs) - done))
        budget -= shares[place]
    return shares


def _fit(groups: Sequence[Group], recorded: int, share: int) -> tuple[int, int, int]:
    """Take fewer episodes, then fewer single runs, still fewer episodes, and fewer CMDPs.

    Groups over all CMDPs always stay, and so do the groups of a single CMDP.
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
    return min(recorded, max(num_episodes, 2)), num_shown, num_cmdps


def _largest(start: int, fits: Callable[[int], bool], least: int) -> int:
    """Find the largest number from `least` to `start` that fits; `least` if none does."""
    if fits(start):
        return start
    fitting, too_many = least, start
    while too_many - fitting > 1:
        middle = (fitting + too_many) // 2
        fitting, too_many = (middle, too_many) if fits(middle) else (fitting, middle)
    return fitting


def _rows(groups: Sequence[Group], num_shown: int, num_cmdps: float) -> int:
    """Count the rows of all blocks if only `num_cmdps` CMDPs have groups of their own."""
    chosen = [group for group in groups if group.cmdp is None or group.cmdp < num_cmdps]
    return sum(num_rows(group, num_shown) for group in chosen)
