"""Budgets: how much of every sweep goes into a page."""

from hypothesis import given
from hypothesis import strategies as st

from cmdpax.reporting.budgets import (
    FEWEST_EPISODES,
    GOOD_EPISODES,
    Group,
    allot,
    num_rows,
)


def group(cmdp: int | None, num_units: int, num_series: int) -> Group:
    """A group whose runs and series nobody looks at."""
    return Group(cmdp, 0, ["a run"] * num_units, [[0]] * num_units, ("a series",) * num_series)


@st.composite
def sweeps(draw: st.DrawFn) -> list[Group]:
    """The groups of a sweep."""
    num_cmdps, num_configurations = draw(st.integers(1, 9)), draw(st.integers(1, 20))
    units, series = draw(st.integers(1, 12)), draw(st.sampled_from([3, 7, 18]))
    cmdps = [*range(num_cmdps), *([None] if num_cmdps > 1 else [])]
    return [
        group(cmdp, num_cmdps if cmdp is None else units, series)
        for _ in range(num_configurations)
        for cmdp in cmdps
    ]


def size(groups: list[Group], num_episodes: int, num_shown: int, num_cmdps: int) -> int:
    return sum(
        num_rows(one, num_shown) * num_episodes
        for one in groups
        if one.cmdp is None or one.cmdp < num_cmdps
    )


@given(
    st.lists(st.tuples(sweeps(), st.integers(1, 2000)), min_size=1, max_size=5),
    st.integers(100_000, 2_000_000),
)
def test_budgets_are_kept(given_sweeps: list[tuple[list[Group], int]], budget: int) -> None:
    all_groups, recorded = zip(*given_sweeps, strict=True)
    allotments = allot(all_groups, recorded, budget)
    sizes = [size(groups, *one) for groups, one in zip(all_groups, allotments, strict=True)]
    assert sum(sizes) <= budget
    for groups, length, one in zip(all_groups, recorded, allotments, strict=True):
        own = {each.cmdp for each in groups} - {None}
        num_episodes, num_shown, num_cmdps = one
        assert 1 <= num_shown <= 5
        assert 0 <= num_cmdps <= len(own)
        assert len(own) > 1 or num_cmdps == 1
        assert num_episodes <= length
        if len(all_groups) > 1:
            continue
        # Single runs are left out only where a good number of episodes was too many, CMDPs only
        # where even the fewest were.
        fewest, good = min(FEWEST_EPISODES, length), min(GOOD_EPISODES, length)
        if num_shown < 5:
            assert size(groups, good, num_shown + 1, num_cmdps) > budget
        if num_cmdps < len(own):
            assert size(groups, fewest, 1, num_cmdps + 1) > budget
    needs = [
        size(groups, length, 5, 9) for groups, length in zip(all_groups, recorded, strict=True)
    ]
    if sum(needs) <= budget:
        assert sizes == needs
    if needs[0] <= 0.75 * budget:
        assert sizes[0] == needs[0]


def test_who_needs_less_leaves_it_to_the_others() -> None:
    one = [group(0, 1, 9)]  # ten rows
    found = allot([one, one, one, one], [7000, 100, 5000, 5000], 10_000 * 10)
    assert [num_episodes for num_episodes, _, _ in found] == [7000, 100, 1450, 1450]
    found = allot([one, one], [9900, 100], 10_000 * 10)
    assert [num_episodes for num_episodes, _, _ in found] == [9900, 100]
    found = allot([one, one], [20_000, 20_000], 10_000 * 10)
    assert [num_episodes for num_episodes, _, _ in found] == [7500, 2500]


def test_first_episodes_then_runs_then_cmdps() -> None:
    groups = [*(group(cmdp, 6, 3) for cmdp in range(4)), group(None, 4, 3)]

    def found(numbers: int) -> tuple[int, int, int]:
        return allot([groups], [1000], numbers)[0]

    everything = 4 * (1 + 3 * 7) + (1 + 3 * 6)
    assert found(1000 * everything) == (1000, 5, 4)
    assert found(500 * everything) == (500, 5, 4)
    assert found(GOOD_EPISODES * everything) == (GOOD_EPISODES, 5, 4)
    four = 5 * (1 + 3 * 6)
    assert found(GOOD_EPISODES * everything - 1) == (400 * everything // four, 4, 4)
    least = 5 * (1 + 3 * 3)
    assert found(GOOD_EPISODES * least) == (GOOD_EPISODES, 1, 4)
    assert found(100 * least) == (100, 1, 4)
    assert found(FEWEST_EPISODES * least) == (60, 1, 4)
    assert found(FEWEST_EPISODES * (least - 10)) == (60, 1, 3)
    assert found(FEWEST_EPISODES * 10) == (60, 1, 0)
    assert found(FEWEST_EPISODES * 5) == (30, 1, 0)
