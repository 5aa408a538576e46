"""The page without a mouse: every control is reached, in order, and works."""

from collections.abc import Callable
from typing import Any

from page_cases import Example, eventually, layout, traces

Page = Any
Opener = Callable[..., Page]

# What a reader can see and use; of radio buttons with one name Tab visits one.
_CONTROLS = """() => {
  const usable = "a[href], button, input, select, summary, textarea, [tabindex='0']";
  const seen = [...document.querySelectorAll(usable)].filter((one) =>
    one.checkVisibility({ visibilityProperty: true }) && !one.disabled
    && (one.type !== "radio" || one.checked));
  window.numbered = new Map(seen.map((one, place) => [one, place]));
  return seen.map((one) => one.outerHTML.slice(0, 90));
}"""
_FOCUSED = "() => window.numbered.get(document.activeElement) ?? null"
_OUTLINE = """() => {
  const style = getComputedStyle(document.activeElement);
  return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
}"""


def test_tab_reaches_every_control_in_order(small: Example, open_report: Opener) -> None:
    page = open_report(small)
    for summary in page.locator("summary:visible").all():
        summary.click()
    page.click("h1")  # from where Tab goes on
    controls = page.evaluate(_CONTROLS)
    assert len(controls) > 40
    visited = []
    page.keyboard.press("Shift+Tab")  # to the link above it, with which the page begins
    for _ in range(len(controls) + 5):
        place = page.evaluate(_FOCUSED)
        if place is not None:
            visited.append(place)
            assert page.evaluate(_OUTLINE), f"no outline: {controls[place]}"
        page.keyboard.press("Tab")
        if visited and page.evaluate(_FOCUSED) in (None, visited[0]):
            break
    missed = [controls[place] for place in range(len(controls)) if place not in visited]
    assert not missed
    assert visited == sorted(visited), "the order of the page"


def test_every_control_has_a_name(reproduction: Example, open_report: Opener) -> None:
    page = open_report(reproduction)
    page.evaluate(_CONTROLS)
    unnamed = page.evaluate(
        """() => [...window.numbered.keys()].filter((one) =>
          !one.textContent.trim() && !one.ariaLabel && !one.labels?.length
          || one.tagName === "SELECT" && !one.labels.length
        ).map((one) => one.outerHTML.slice(0, 90))"""
    )
    assert unnamed == []


def test_controls_work_by_keys(small: Example, open_report: Opener) -> None:
    page = open_report(small)
    page.focus("input[name=account][value=strong]")
    page.keyboard.press("ArrowRight")
    eventually(page, lambda: _assert_title(page, "weak regret"))
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    eventually(page, lambda: _assert_title(page, "multiplier"))
    page.focus("#curves-y-log")
    page.keyboard.press("Space")
    eventually(page, lambda: _assert_type(page, "log"))
    page.focus("#curves-lines")
    page.keyboard.press("ArrowDown")
    eventually(page, lambda: _assert_without_bands(page))
    page.focus("#plane-until")
    page.keyboard.press("Home")
    eventually(page, lambda: _assert_text(page, "#plane-until-value", "episode 1"))
    page.focus("#cmdp")
    page.keyboard.press("ArrowDown")
    eventually(page, lambda: _assert_text(page, "#problem-facts", "seed=2"))


def _assert_title(page: Page, text: str) -> None:
    assert layout(page, "curves-chart", "yaxis", "title", "text").startswith(text)


def _assert_type(page: Page, kind: str) -> None:
    assert layout(page, "curves-chart", "yaxis", "type") == kind


def _assert_without_bands(page: Page) -> None:
    assert all(trace["fill"] != "tonexty" for trace in traces(page, "curves-chart"))


def _assert_text(page: Page, selector: str, text: str) -> None:
    assert text in page.inner_text(selector)


def test_the_skip_link_comes_first(small: Example, open_report: Opener) -> None:
    page = open_report(small)
    page.keyboard.press("Tab")
    focused = page.locator(":focus")
    assert focused.get_attribute("class") == "skip"
    box = focused.bounding_box()
    assert box["x"] >= 0
    assert box["y"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("() => location.hash") == "#main"


def test_every_chart_answers_keys(small: Example, open_report: Opener) -> None:
    """Those that can be zoomed: + narrows what is seen, 0 shows all again."""
    page = open_report(small)
    for chart in ("curves-chart", "plane-chart-0", "problem-chart", "compare-chart"):
        page.focus(f"#{chart}")
        low, high = layout(page, chart, "xaxis", "range")
        page.keyboard.press("+")
        eventually(page, lambda: _assert_width(page, chart, (high - low) / 2))  # noqa: B023
        page.keyboard.press("0")
        eventually(page, lambda: _assert_wider(page, chart, 0.9 * (high - low)))  # noqa: B023


def _assert_width(page: Page, chart: str, width: float) -> None:
    low, high = layout(page, chart, "xaxis", "range")
    assert abs(high - low - width) < 1e-6 * width


def _assert_wider(page: Page, chart: str, width: float) -> None:
    low, high = layout(page, chart, "xaxis", "range")
    assert high - low >= width
