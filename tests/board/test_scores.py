"""Scores by hand, and ranks of a textbook."""

import math

import numpy as np
import pytest

import cmdpax
from cmdpax.board import Board, leaderboard
from cmdpax.board.cells import MEASURES, Block, Cell
from cmdpax.board.scores import (
    critical_value,
    front,
    over_best,
    profiles,
    ranking,
    ranks,
)

# Demšar (2006), table 6: four classifiers on 14 data sets, from the ranks that are printed there.
TEXTBOOK = np.array(
    [
        [4, 3, 2, 1],
        [1, 2, 3, 4],
        [4, 1, 2, 3],
        [4, 1, 3, 2],
        [4, 2, 3, 1],
        [1, 2.5, 4, 2.5],
        [3, 2, 4, 1],
        [2.5, 2.5, 4, 1],
        [4, 3, 2, 1],
        [2.5, 2.5, 2.5, 2.5],
        [4, 2.5, 1, 2.5],
        [3, 2, 4, 1],
        [4, 1, 2, 3],
        [3, 1, 4, 2],
    ]
)


def test_the_textbooks_ranking() -> None:
    found = ranking(TEXTBOOK)
    np.testing.assert_allclose(found.mean_ranks, [3.143, 2.0, 2.893, 1.964], atol=5e-4)
    assert found.chi_square == pytest.approx(9.28, abs=0.005)
    assert found.critical_difference == pytest.approx(1.25, abs=0.005)
    statistic = 13 * found.chi_square / (14 * 3 - found.chi_square)
    assert statistic == pytest.approx(3.69, abs=0.005)
    assert 0.01 < found.p_value < 0.05  # F(3, 39) is 2.85 at 5 % and 4.33 at 1 %


def test_the_textbooks_critical_values() -> None:
    printed = [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]
    found = [critical_value(count) for count in range(2, 11)]
    np.testing.assert_allclose(found, printed, atol=1e-3)


def test_ties_share_ranks_and_failures_come_last() -> None:
    values = np.array([[2.0, 1.0, 2.0, np.inf, np.inf], [1.0, 1.0, 1.0, 1.0, 1.0]])
    np.testing.assert_array_equal(ranks(values), [[2.5, 1, 2.5, 4.5, 4.5], [3, 3, 3, 3, 3]])


def test_a_perfect_order_is_significant_and_one_block_says_nothing() -> None:
    always = ranking(np.tile([1.0, 2.0, 3.0], (6, 1)))
    assert (always.chi_square, always.p_value) == (pytest.approx(12), 0.0)
    alone = ranking(np.array([[1.0, 2.0]]))
    assert math.isnan(alone.p_value)
    assert alone.critical_difference == math.inf


def test_over_the_best() -> None:
    values = np.array([[1.0, 3.0, np.nan, np.inf], [0.0, 0.0, 1.0, -5.0], [np.inf] * 4])
    found = over_best(values, np.array([1.0, 0.5, 1.0]))
    expected = [[1.0, 2.0, np.nan, np.inf], [1.0, 1.0, 3.0, 1.0], [np.inf] * 4]
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(over_best(np.array([[0.0, 2.0]]), np.zeros(1)), [[1.0, np.inf]])


def test_profiles_count_what_is_not_there_as_lost() -> None:
    ratios = np.array([[1.0, 4.0], [2.0, 1.0], [np.nan, np.inf]])
    found = profiles(ratios, np.array([1.0, 2.0, 10.0]))
    np.testing.assert_allclose(found, [[1 / 3, 2 / 3, 2 / 3], [1 / 3, 1 / 3, 2 / 3]])


def test_the_front_has_those_that_nobody_beats_in_both() -> None:
    points = np.array([[1.0, 5.0], [2.0, 2.0], [2.0, 2.0], [3.0, 2.0], [5.0, 1.0], [np.nan, 0.0]])
    assert front(points).tolist() == [True, True, True, False, True, False]


# ----------------------------------------------------------------------------------- leaderboards


def cell(block: str, algorithm: str, strong: float | None, state: str = "done") -> Cell:
    regrets = ("strong", "strong_objective", "strong_constraints")
    means = {} if strong is None else dict.fromkeys(regrets, strong) | {"unsafe": 0.5}
    return Cell("K", block, algorithm, "tuned", state, means=means)


def board(*cells: Cell) -> Board:
    """100 episodes in every block."""
    families = dict.fromkeys(one.family for one in cells)
    blocks = tuple(Block("K", name, 100, 1, (1, 1, 1), "") for name in families)
    traits = {one.algorithm: {} for one in cells}
    return Board("tiny", "0" * 16, blocks, {"K": (1, 100)}, traits, cells)


FOUND = board(
    cell("a", "first", 9.9),
    cell("b", "first", 0.9),
    cell("c", "first", 4.9),
    cell("a", "second", 19.9),
    cell("b", "second", 7.9),
    cell("c", "second", None, "failed"),
    cell("a", "third", 4.9),
    cell("b", "third", 7.9),
    cell("c", "third", None, "skipped"),
)


def test_the_leaderboard_by_hand() -> None:
    """A thousandth per episode, 0.1 here, is added to every regret."""
    rows, ranked = leaderboard(FOUND)
    assert [row.algorithm for row in rows] == ["first", "third", "second"]
    first, third, second = rows
    assert first.ratio == pytest.approx(2 ** (1 / 3))
    assert (first.worst, first.done) == (pytest.approx(2), 3)
    assert third.ratio == pytest.approx(8**0.5)
    assert (third.done, third.skipped, third.failed) == (2, 1, 0)
    assert (second.ratio, second.worst, second.failed) == (math.inf, math.inf, 1)
    assert second.objective == pytest.approx((0.199 + 0.079) / 2)
    assert (first.unsafe, math.isnan(first.seconds)) == (0.5, True)
    assert ranked.num_blocks == 2  # those that all have: the third cannot do c
    np.testing.assert_array_equal(ranked.mean_ranks, [1.5, 2.75, 1.75])


def test_of_fewer_algorithms_more_blocks_are_ranked() -> None:
    """A failure is the last of its block."""
    rows, ranked = leaderboard(FOUND.only(["first", "second"]))
    assert ranked.num_blocks == 3
    assert [row.rank for row in rows] == [1, 2]


def test_some_blocks() -> None:
    rows, ranked = leaderboard(FOUND, families=["a"], parts=["K"])
    assert [(row.algorithm, row.ratio) for row in rows] == [
        ("third", 1),
        ("first", pytest.approx(2)),
        ("second", pytest.approx(4)),
    ]
    assert ranked.num_blocks == 1


def test_what_was_not_measured_comes_last_and_has_no_rank() -> None:
    rows, ranked = leaderboard(FOUND, "seconds")
    assert [row.ratio for row in rows[:1]] == [math.inf]  # it failed, by every account
    assert all(math.isnan(row.ratio) and math.isnan(row.rank) for row in rows[1:])
    assert ranked.num_blocks == 0
    published, _ = leaderboard(FOUND, setting="published")
    assert [row.missing for row in published] == [3, 3, 3]


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        ({"by": "strongest"}, "there is no account 'strongest'; did you mean 'strong'"),
        ({"setting": "tune"}, "there is no setting 'tune'; did you mean 'tuned'"),
        ({"families": ["d"]}, "the board has no family 'd'; known: a, b, c"),
        ({"parts": ["L"]}, "the board has no part 'L'; known: K"),
    ],
)
def test_what_there_is_not(chosen: dict, sentence: str) -> None:
    with pytest.raises(cmdpax.ParameterError, match=sentence):
        leaderboard(FOUND, **chosen)


def test_every_account_orders_the_learners() -> None:
    for by in MEASURES:
        assert len(leaderboard(FOUND, by)[0]) == 3


# --------------------------------------------------------------------------------------- together


def test_boards_beside_each_other() -> None:
    mine = board(cell("a", "own", 1.0), cell("a", "first", 2.0))
    both = mine.beside(FOUND)
    assert both.algorithms == ["first", "own", "second", "third"]
    known = {block.family: block for block in both.blocks}
    assert (
        both.cell(known["a"], "first", "tuned").means["strong"] == 2.0
    )  # what is first is believed
    assert both.cell(known["b"], "own", "tuned").state == "missing"
    other = board(cell("a", "own", 1.0))
    object.__setattr__(other, "digest", "1" * 16)
    with pytest.raises(cmdpax.ParameterError, match=r"cannot stand beside .*results of one suite"):
        mine.beside(other)


def test_stored_results_are_the_same_results() -> None:
    text = FOUND.to_json().encode()
    again = Board.from_json(text, "file")
    assert again.to_json().encode() == text
    assert leaderboard(again)[0][0] == leaderboard(FOUND)[0][0]
    changes = {
        b'"blocks"': b'"boxes"',
        b'"num_episodes": 100': b'"num_episodes": 0',
        b'"state": "done"': b'"state": "fine"',
        b'"algorithm": "third"': b'"algorithm": "fourth"',
        b'"strong": 9.9': b'"strong": NaN',
        b'"strong_objective": 9.9': b'"strong_objectiv": 9.9',
        b'"family": "a"': b'"family": "b"',
        b'"episodes": {"K"': b'"episodes": {"L"',
    }
    assert all(old in text for old in changes)
    changed = [text.replace(old, new) for old, new in changes.items()]
    for damaged in (b"", b"[]", text[:-20], b"{}", *changed):
        with pytest.raises(cmdpax.FileError, match="file holds no board"):
            Board.from_json(damaged, "file")
