"""Opening a page in a browser: whole, quiet, still, and safe whatever names are in it."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from browsing import Pages
from page_cases import HOSTILE, Example, eventually, ready, settled, traces

Page = Any
Opener = Callable[..., Page]
Camera = Callable[[Page, str], Path]

EXAMPLES = ("small", "two_constraint_sweep", "unconstrained", "long", "reproduction")

_SHIFTS = """() => new Promise((done) => {
  let sum = 0;
  new PerformanceObserver((list) => {
    for (const shift of list.getEntries()) if (!shift.hadRecentInput) sum += shift.value;
  }).observe({ type: "layout-shift", buffered: true });
  setTimeout(() => done(sum), 300);
})"""
_ON_TOP = """(heading) => {
  const { left, top, height } = heading.getBoundingClientRect();
  const there = document.elementFromPoint(left + 5, top + height / 2);
  return there !== null && heading.contains(there);
}"""


@pytest.mark.parametrize("name", EXAMPLES)
def test_everything_is_drawn_and_nothing_is_asked_for(
    name: str, request: pytest.FixtureRequest, open_page: Pages, screenshot: Camera
) -> None:
    page = ready(open_page(request.getfixturevalue(name).path))
    settled(page)
    screenshot(page, f"example-{name.replace('_', '-')}")
    assert open_page.noticed(page) == []
    assert page.is_hidden("#failure")
    _assert_charts(page)
    _assert_links(page)
    text = page.inner_text("body")
    for wrong in ("undefined", "NaN", "[object", "null", "Infinity"):
        assert not re.search(rf"\b{re.escape(wrong)}", text), wrong


def _assert_charts(page: Page) -> None:
    """All drawn, each with its text alternative."""
    for chart in page.locator(".chart:visible").all():
        assert chart.locator("svg.main-svg").count() > 0, chart.get_attribute("id")
        assert chart.get_attribute("data-drawn"), chart.get_attribute("id")
    for caption in page.locator("figcaption:visible").all():
        assert len(caption.inner_text()) > 20, caption.get_attribute("id")


def _assert_links(page: Page) -> None:
    """They lead to what can be seen, and to one place each."""
    for link in page.locator("nav a:visible").all():
        target = link.get_attribute("href")
        assert target.startswith("#")
        assert page.locator(target).is_visible(), target
    identities = page.eval_on_selector_all("[id]", "(all) => all.map((one) => one.id)")
    assert len(identities) == len(set(identities))


def test_a_link_shows_the_heading_of_its_section(small: Example, open_report: Opener) -> None:
    """Not behind what stays at the top while one scrolls."""
    page = open_report(small, reduced_motion=True)
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        settled(page)
        for link in page.locator("nav a:visible").all():
            target = link.get_attribute("href")
            link.evaluate("(link) => link.click()")
            assert page.locator(f"{target} h2").first.evaluate(_ON_TOP), target


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_moves_while_the_page_loads_and_one_reads(
    small: Example, open_report: Opener, width: int
) -> None:
    page = open_report(small, width=width, height=844, reduced_motion=True)
    settled(page)
    assert page.evaluate(_SHIFTS) < 0.05
    for place in ("curves", "plane", "table", "replay"):
        page.evaluate("(id) => document.getElementById(id).scrollIntoView()", place)
        settled(page)
    assert page.evaluate(_SHIFTS) < 0.05


def test_without_javascript_the_text_is_there(small: Example, open_page: Pages) -> None:
    page = open_page(small.path, javascript=False)
    assert "JavaScript, which is switched off" in page.inner_text("body")
    assert "cmdpax sweep specification.toml" in page.inner_text("#replay")
    assert "strong regret" in page.inner_text("#story").lower()


# ---------------------------------------------------------------------------------------- escaping


def _assert_harmless(page: Page) -> None:
    """The name did not become an element anywhere; an alert would be noticed at the end."""
    assert page.locator("img").count() == 0
    assert page.locator("[onerror]").count() == 0
    assert page.evaluate("() => document.querySelectorAll('svg image[href^=\"x\"]').length") == 0


def test_names_stay_text(two_constraint_sweep: Example, open_report: Opener) -> None:
    page = open_report(two_constraint_sweep)
    _assert_harmless(page)
    assert HOSTILE in page.title()
    assert page.inner_text("h1") == f"Sweep {HOSTILE}"
    assert HOSTILE in page.inner_text("#problem-facts")
    assert HOSTILE in page.inner_text("#table-status")
    assert HOSTILE in page.inner_text("#specification")
    for summary in page.locator("summary:visible").all():
        summary.click()
    assert HOSTILE in page.inner_text("#replay details")
    _assert_harmless(page)
    _hover_over_differences(page)
    _assert_harmless(page)


def _hover_over_differences(page: Page) -> None:
    """Plotly writes the CMDP's name beside a point, and reads some HTML: here it must not."""
    chart = page.locator("#compare-chart")
    chart.scroll_into_view_if_needed()
    assert len(traces(page, "compare-chart")[0]["x"]) == 2
    page.evaluate("() => Plotly.Fx.hover('compare-chart', [{ curveNumber: 0, pointNumber: 0 }])")

    def look() -> None:
        assert HOSTILE in "".join(chart.locator(".hoverlayer text").all_text_contents())

    eventually(page, look)


def test_claims_stay_text(reproduction: Example, open_report: Opener) -> None:
    page = open_report(reproduction)
    page.click("#claims summary")
    assert HOSTILE in page.inner_text("#claims summary")
    assert "a ratio <b>" in page.inner_text("#claims table")
    assert page.locator("#claims table b").count() == 0
    _assert_harmless(page)


def test_the_policy_stops_scripts_that_are_not_ours(small: Example, open_page: Pages) -> None:
    """Should a name ever be written without escaping: it would still not run."""
    content = small.path.read_text(encoding="utf-8")
    evil = f"<main id=\"main\">{HOSTILE}<script>document.title = 'taken'</script>"
    page = open_page(content.replace('<main id="main">', evil, 1))
    ready(page)
    assert page.title() != "taken"
    noticed = open_page.noticed(page)
    assert noticed
    assert not any(one.startswith("dialog") for one in noticed)
    assert any("Content Security Policy" in one for one in noticed)
