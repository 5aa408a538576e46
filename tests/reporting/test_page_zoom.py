"""Zooming in a browser: the overview loses no peak, a window shows every recorded episode."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from page_cases import Example, assert_close, best_of, eventually, expected_curve, layout, traces

Page = Any
Opener = Callable[..., Page]

CHART = "curves-chart"
EPISODES = 100_000


def _expected(example: Example, series: str) -> np.ndarray:
    (configuration,) = best_of(example.results).values()
    (cmdp,) = example.results.cmdps
    return expected_curve(example.results, configuration, series, cmdp)[1][0]


def _line(page: Page) -> tuple[np.ndarray, np.ndarray]:
    (line,) = traces(page, CHART)
    return np.array(line["x"]), np.array(line["y"])


def _range(page: Page) -> tuple[float, float]:
    low, high = layout(page, CHART, "xaxis", "range")
    return low, high


def _drag(page: Page, start: float, stop: float) -> None:
    """Drag a window with the mouse, in shares of the chart's width."""
    page.locator(f"#{CHART}").scroll_into_view_if_needed()
    box = page.locator(f"#{CHART} .nsewdrag").first.bounding_box()
    height = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + start * box["width"], height)
    page.mouse.down()
    page.mouse.move(box["x"] + stop * box["width"], height, steps=4)
    page.mouse.up()


def _assert_whole(page: Page, expected: np.ndarray) -> None:
    low, high = _range(page)
    assert low <= 1
    assert high >= len(expected)
    x, _ = _line(page)
    assert (x[0], x[-1]) == (1, len(expected))


def _assert_window(page: Page, expected: np.ndarray, most: int) -> None:
    """Every recorded episode of the window is drawn."""
    low, high = _range(page)
    assert high - low < most
    x, y = _line(page)
    inside = (x >= low) & (x <= high)
    assert x[inside].tolist() == list(range(int(np.ceil(low)), int(np.floor(high)) + 1))
    assert_close(y, expected[x - 1])


def test_the_overview_keeps_every_extreme(long: Example, open_report: Opener) -> None:
    page = open_report(long)
    page.check("input[name=account][value=episode]")
    expected = _expected(long, "violation")

    def look() -> None:
        x, y = _line(page)
        assert len(x) < 5000, "more than a screen can show"
        assert_close(y, expected[x - 1])
        assert (x[0], x[-1]) == (1, EPISODES)
        assert_close([y.min(), y.max()], [expected.min(), expected.max()])
        # The curve swings: no stretch of a fiftieth looks calmer than it is.
        for first in range(0, EPISODES, EPISODES // 50):
            part = expected[first : first + EPISODES // 50]
            drawn = y[(x > first) & (x <= first + EPISODES // 50)]
            assert np.ptp(drawn) > 0.9 * np.ptp(part)

    eventually(page, look)
    assert "zoom in for every episode" in page.inner_text("#curves-resolution")


def test_the_mouse_zooms_to_every_episode_and_back(long: Example, open_report: Opener) -> None:
    page = open_report(long)
    page.check("input[name=account][value=episode]")
    expected = _expected(long, "violation")
    eventually(page, lambda: _assert_whole(page, expected))
    _drag(page, 0.50, 0.55)
    eventually(page, lambda: _assert_narrower(page, 8000))
    _drag(page, 0.30, 0.40)
    eventually(page, lambda: _assert_window(page, expected, 1000))
    eventually(page, lambda: _assert_resolution(page, "Every recorded episode is drawn."))
    page.locator(f"#{CHART} .nsewdrag").first.dblclick()
    eventually(page, lambda: _assert_whole(page, expected))
    _drag(page, 0.10, 0.20)
    eventually(page, lambda: _assert_narrower(page, 15_000))
    page.click("#curves-reset")
    eventually(page, lambda: _assert_whole(page, expected))
    eventually(page, lambda: _assert_resolution(page, "zoom in for every episode"))


def _assert_narrower(page: Page, most: float) -> None:
    low, high = _range(page)
    assert high - low < most


def _assert_resolution(page: Page, text: str) -> None:
    assert text in page.inner_text("#curves-resolution")


def test_keys_zoom_move_and_show_all(long: Example, open_report: Opener) -> None:
    page = open_report(long)
    expected = _expected(long, "strong_constraints")
    chart = page.locator(f"#{CHART}")
    chart.focus()
    low, high = _range(page)
    for _ in range(7):
        page.keyboard.press("+")
        middle, half = (low + high) / 2, (high - low) / 4
        low, high = middle - half, middle + half
        eventually(page, lambda: _assert_range(page, low, high))  # noqa: B023
    eventually(page, lambda: _assert_window(page, expected, 1000))
    for key, share in (("ArrowRight", 0.2), ("ArrowLeft", -0.2), ("ArrowLeft", -0.2)):
        page.keyboard.press(key)
        low, high = low + share * (high - low), high + share * (high - low)
        eventually(page, lambda: _assert_range(page, low, high))  # noqa: B023
        eventually(page, lambda: _assert_window(page, expected, 1000))
    page.keyboard.press("-")
    middle, half = (low + high) / 2, high - low
    eventually(page, lambda: _assert_range(page, middle - half, middle + half))
    assert chart.evaluate("(chart) => chart === document.activeElement")
    page.keyboard.press("0")
    eventually(page, lambda: _assert_whole(page, expected))


def _assert_range(page: Page, low: float, high: float) -> None:
    assert_close(_range(page), (low, high), 1e-6)


def test_keys_that_are_the_browsers_stay_so(small: Example, open_report: Opener) -> None:
    page = open_report(small)
    before = _range(page)
    page.locator(f"#{CHART}").focus()
    for key in ("Control++", "Alt+ArrowLeft", "PageDown"):
        page.keyboard.press(key)
    page.wait_for_timeout(200)
    assert _range(page) == pytest.approx(before)


def test_a_logarithmic_axis_zooms_too(long: Example, open_report: Opener) -> None:
    page = open_report(long)
    page.check("#curves-x-log")

    def logarithmic() -> None:
        assert layout(page, CHART, "xaxis", "type") == "log"
        assert_close(_range(page), (0, 5), 0.1)

    eventually(page, logarithmic)
    _drag(page, 0.2, 0.4)
    expected = _expected(long, "strong_constraints")

    def look() -> None:
        low, high = (10**end for end in _range(page))
        assert high < 200
        x, y = _line(page)
        inside = (x >= low) & (x <= high)
        assert x[inside].tolist() == list(range(int(np.ceil(low)), int(np.floor(high)) + 1))
        assert_close(y, expected[x - 1])

    eventually(page, look)


def test_after_zooming_every_choice_fills_the_axis(long: Example, open_report: Opener) -> None:
    """In the same window or as a whole: but no part of the axis without its curve."""
    page = open_report(long)
    for control, series in [
        ("input[name=account][value=multipliers]", "multipliers[0]"),
        ("#curves-y-log", "multipliers[0]"),
        ("input[name=account][value=strong]", "strong_constraints"),
    ]:
        for most in (8000, 1000):  # a window of a few pixels is no window
            _drag(page, 0.50, 0.55)
            eventually(page, lambda: _assert_narrower(page, most))  # noqa: B023
        page.check(control)
        expected = _expected(long, series)
        eventually(page, lambda: _assert_filled(page, expected))  # noqa: B023
        page.click("#curves-reset")

        def whole(expected: np.ndarray = expected) -> None:
            _assert_filled(page, expected)
            assert _range(page)[1] >= EPISODES

        eventually(page, whole)


def _assert_filled(page: Page, expected: np.ndarray) -> None:
    line = next(one for one in traces(page, CHART) if not one["name"].startswith("λ*"))
    drawn = [(x, y) for x, y in zip(line["x"], line["y"], strict=True) if y is not None]
    x, y = (np.array(row) for row in zip(*drawn, strict=True))
    assert_close(y, expected[x - 1])
    low, high = _range(page)
    room = 0.02 * (high - low)  # an overview need not draw the first and the last positive number
    assert x[0] <= max(1, low) + room
    assert x[-1] >= min(EPISODES, high) - room


def test_another_experiment_is_shown_whole(reproduction: Example, open_report: Opener) -> None:
    """A window of a long sweep may not even exist in a short one."""
    page = open_report(reproduction)
    page.locator(f"#{CHART}").scroll_into_view_if_needed()
    _drag(page, 0.8, 0.9)
    eventually(page, lambda: _assert_narrower(page, 60))
    page.select_option("#sweep", "1")

    def look() -> None:
        lines = [trace for trace in traces(page, CHART) if trace["mode"] == "lines"]
        assert len(lines) == 2, "two seeds have no bands"
        for line in lines:
            assert line["x"] == list(range(1, 31))
        low, high = _range(page)
        assert low <= 1
        assert 30 <= high < 60

    eventually(page, look)
