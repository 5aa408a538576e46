"""The page of a board in a browser: it computes what `board.leaderboard` computes."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from board_cases import LEARNERS, invent
from cmdpax.board import Board, leaderboard
from cmdpax.board.cells import Block, Cell
from cmdpax.board.scores import front, profiles, ratios
from cmdpax.reporting.board_page import write_board_page
from page_cases import HOSTILE, assert_close, eventually, ready, traces

Page = Any
Opener = Callable[..., Page]


@pytest.fixture(scope="module")
def found(program: str, tmp_path_factory: pytest.TempPathFactory) -> Board:
    return invent(tmp_path_factory.mktemp("board") / "b")


@pytest.fixture
def page(found: Board, open_page: Opener) -> Page:
    return ready(open_page(write_board_page(found)))


def _rows(page: Page) -> dict[str, dict[str, str]]:
    """The leaderboard's texts by learner and column, from top to bottom."""
    found = page.eval_on_selector_all(
        "#leaderboard tbody tr",
        """(rows) => rows.map((row) => [
          row.dataset.learner,
          Object.fromEntries([...row.querySelectorAll("td")].map(
            (cell) => [cell.dataset.column, cell.textContent])),
        ])""",
    )
    return dict(found)


def _keys(page: Page, column: str) -> list[Any]:
    rows = _rows(page).items()
    return [name if column == "name" else _number(row[column]) for name, row in rows]


def _number(text: str) -> float:
    if text in ("–", "∞"):
        return math.nan if text == "–" else math.inf
    return float(text.replace("−", "-").replace(",", "").removesuffix(" %"))


def _assert_leaderboard(page: Page, found: Board, **chosen: Any) -> None:
    by = chosen.pop("by", "strong")
    expected, ranked = leaderboard(found, by, **chosen)
    shown = _rows(page)
    assert list(shown) == [row.algorithm for row in expected]
    for row in expected:
        for column in ("ratio", "worst", "rank", "objective", "constraints", "weak", "last"):
            number = getattr(row, column)
            assert _number(shown[row.algorithm][column]) == pytest.approx(
                number, rel=6e-3, nan_ok=True
            ), column
        assert _number(shown[row.algorithm]["unsafe"]) == pytest.approx(100 * row.unsafe, rel=6e-2)
    status = page.inner_text("#leaderboard-status")
    assert f"Ranks are over {ranked.num_blocks} of these blocks" in status
    if math.isfinite(ranked.critical_difference):
        told = float(status.removesuffix(".").rsplit(" ", 1)[1])
        assert told == pytest.approx(ranked.critical_difference, rel=5e-3)


def test_the_leaderboard_is_that_of_python(page: Page, found: Board) -> None:
    _assert_leaderboard(page, found)
    for by in ("strong_constraints", "weak", "last"):
        page.select_option("#by", by)
        _assert_leaderboard(page, found, by=by)
    page.select_option("#setting", "published")
    _assert_leaderboard(page, found, by="last", setting="published")


def test_filters(page: Page, found: Board) -> None:
    page.select_option("#part", "K30")
    _assert_leaderboard(page, found, parts=["K30"])
    page.select_option("#family", "one")
    _assert_leaderboard(page, found, parts=["K30"], families=["one"])
    assert "too few for a test" in page.inner_text("#leaderboard-status")
    for name in ("#part", "#family"):
        page.select_option(name, "all")
    page.check("[data-trait=one_constraint]")
    _assert_leaderboard(page, found.only(LEARNERS[:2]))
    page.fill("#words", "crpo uopt")
    _assert_leaderboard(page, found.only(LEARNERS[:1]))


def test_every_column_sorts(page: Page) -> None:
    for column in ("rank", "unsafe", "name", "ratio"):
        page.click(f"#leaderboard th[data-column={column}] button")
        assert _keys(page, column) == sorted(_keys(page, column))
        page.click(f"#leaderboard th[data-column={column}] button")
        assert _keys(page, column) == sorted(_keys(page, column), reverse=True)


def test_a_cell_opens_its_curves(page: Page, found: Board, screenshot: Callable) -> None:
    place = next(i for i, block in enumerate(found.blocks) if block.family == "pair")
    selector = f"#cells tr[data-learner='{{}}'] td[data-block='{place}'] button"
    third = page.locator(selector.format(LEARNERS[2]))
    assert (third.inner_text(), third.is_disabled()) == ("–", True)
    assert "handles 1 constraint" in third.get_attribute("title")
    page.click(selector.format(LEARNERS[0]))

    def look() -> None:
        block = found.blocks[place]
        drawn = {trace["name"]: trace for trace in traces(page, "curves-chart")}
        assert list(drawn) == list(LEARNERS[:2])
        for name, trace in drawn.items():
            cell = found.cell(block, name, "tuned")
            assert trace["x"] == list(found.episodes[block.part])
            assert_close(trace["y"], cell.curves["strong_objective"])
        assert drawn[LEARNERS[0]]["line"]["width"] > drawn[LEARNERS[1]]["line"]["width"]

    eventually(page, look)
    assert page.input_value("#curves-block") == str(place)
    told = page.inner_text("#curves-chart-text")
    assert found.cell(found.blocks[place], LEARNERS[0], "tuned").configuration in told
    screenshot(page, "board")


def test_the_front_and_the_profiles_are_those_of_python(page: Page, found: Board) -> None:
    page.check("[data-trait=one_constraint]")
    kept = found.only(LEARNERS[:2])
    rows = {row.algorithm: row for row in leaderboard(kept)[0]}
    points = np.array([[rows[n].objective, rows[n].constraints] for n in kept.algorithms])
    best = front(points)
    found_ratios = ratios(kept, kept.blocks, "strong", "tuned")

    def look() -> None:
        drawn = traces(page, "tradeoff-chart")
        assert [trace["name"] for trace in drawn] == kept.algorithms
        assert_close([[*trace["x"], *trace["y"]] for trace in drawn], points)
        squares = [trace["marker"]["symbol"] == "square" for trace in drawn]
        assert squares == best.tolist()
        for place, trace in enumerate(traces(page, "profiles-chart")):
            reached = dict(zip(trace["x"], trace["y"], strict=True))  # the last of equal ones
            levels = np.array(list(reached)) * (1 + 1e-6)
            assert_close(list(reached.values()), profiles(found_ratios, levels)[place])

    eventually(page, look)


def test_names_from_files_are_text(program: str, open_page: Opener) -> None:
    cells = tuple(
        Cell("</script>", HOSTILE, name, setting, state, HOSTILE, HOSTILE, 1, {"strong": 1.0})
        for name, state in ((HOSTILE, "done"), ("'\"><b>", "failed"))
        for setting in ("tuned", "published")
    )
    block = Block("</script>", HOSTILE, 10, 1, (1, 1, 1), HOSTILE)
    traits = {name: {"summary": HOSTILE} for name in (HOSTILE, "'\"><b>")}
    hostile = Board(HOSTILE, "0" * 16, (block,), {"</script>": (1, 10)}, traits, cells)
    page = ready(open_page(write_board_page(hostile)))
    assert list(_rows(page)) == [HOSTILE, "'\"><b>"]
    assert [row["ratio"] for row in _rows(page).values()] == ["1", "∞"]


def test_a_narrow_page_has_no_sideways_scrolling(found: Board, open_page: Opener) -> None:
    page = ready(open_page(write_board_page(found), width=390, touch=True))
    widths = page.evaluate("() => [document.documentElement.scrollWidth, innerWidth]")
    assert widths[0] <= widths[1]


def test_the_page_is_one_file(found: Board, tmp_path: Path) -> None:
    text = write_board_page(found)
    assert "http://" not in text.split('id="plotly"')[0]
    assert found.digest in text
