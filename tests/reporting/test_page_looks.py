"""How the page looks: light and dark, on a phone, on paper; with pictures to look at."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from page_cases import Example, eventually, layout, settled, traces

Page = Any
Opener = Callable[..., Page]
Camera = Callable[[Page, str], Path]

_BACKGROUND = "() => getComputedStyle(document.documentElement).backgroundColor"
_INK = "() => getComputedStyle(document.body).color"

# What sticks out to the right: not inside a part that scrolls by itself.
_STICKING_OUT = """() => {
  const scrolls = (one) => one.closest(".scroll, pre, svg, select, #configurations fieldset");
  return [...document.querySelectorAll("body *")]
    .filter((one) => one.checkVisibility() && !scrolls(one) && !one.closest(".skip"))
    .filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
    .map((one) => one.outerHTML.slice(0, 90));
}"""


# Charts that are higher or wider than the room they have: they would cover their captions.
_TOO_LARGE = """() => [...document.querySelectorAll(".chart")].filter((chart) => {
  const drawing = chart.querySelector("svg.main-svg");
  if (!drawing || !chart.checkVisibility()) return false;
  const [inner, outer] = [drawing, chart].map((one) => one.getBoundingClientRect());
  return inner.bottom > outer.bottom + 1 || inner.right > outer.right + 1;
}).map((chart) => chart.id)"""


def _lightness(colour: str) -> float:
    """From 0, black, to 1, white."""
    numbers = colour[colour.index("(") + 1 : -1].split(",")[:3]
    return sum(float(number) for number in numbers) / 3 / 255


def _colours(page: Page) -> tuple[float, float, float, str]:
    """Background, text and the charts' text as lightness, and the colour of the first line."""
    line = next(one for one in traces(page, "curves-chart") if one["fill"] is None)
    return (
        _lightness(page.evaluate(_BACKGROUND)),
        _lightness(page.evaluate(_INK)),
        _lightness(layout(page, "curves-chart", "font", "color")),
        line["line"]["color"],
    )


def _assert_colours(page: Page, dark: bool) -> None:
    background, ink, chart, _ = _colours(page)
    if dark:
        assert background < 0.2 < 0.8 < min(ink, chart)
    else:
        assert background > 0.9 > 0.3 > max(ink, chart)


def test_light_and_dark_as_the_system_likes(small: Example, open_report: Opener) -> None:
    page = open_report(small)
    _assert_colours(page, dark=False)
    light = _colours(page)[3]
    page.emulate_media(color_scheme="dark")
    eventually(page, lambda: _assert_colours(page, dark=True))
    assert _colours(page)[3] != light, "a line for white paper is hard to see on black"
    page.emulate_media(color_scheme="light")
    eventually(page, lambda: _assert_colours(page, dark=False))
    assert _colours(page)[3] == light


def test_the_reader_chooses_colours(small: Example, open_report: Opener) -> None:
    page = open_report(small, dark=True)
    button = page.locator("#theme")
    for system in (True, False):
        page.emulate_media(color_scheme="dark" if system else "light")
        for theme, dark in [("light", False), ("dark", True), ("system", system)]:
            button.click()
            assert button.inner_text() == f"Colours: {theme}"
            eventually(page, lambda: _assert_colours(page, dark))  # noqa: B023


@pytest.mark.parametrize("name", ["small", "two_constraint_sweep", "unconstrained", "reproduction"])
def test_on_a_phone_nothing_sticks_out(
    name: str, request: pytest.FixtureRequest, open_report: Opener
) -> None:
    page = open_report(request.getfixturevalue(name), width=390, height=800, touch=True)
    for summary in page.locator("summary:visible").all():
        summary.click()
    page.check("#table-all")
    for width in (390, 320):
        page.set_viewport_size({"width": width, "height": 800})
        settled(page)
        assert page.evaluate(_STICKING_OUT) == []
        assert page.evaluate("() => document.scrollingElement.scrollWidth") <= width


def test_turning_the_phone_redraws_the_charts(small: Example, open_report: Opener) -> None:
    page = open_report(small, width=390, height=844)

    def look() -> None:
        for chart in ("curves-chart", "plane-chart-1", "story-chart-0"):
            width = page.locator(f"#{chart}").bounding_box()["width"]
            assert abs(layout(page, chart, "width") - width) <= 1

    eventually(page, look)
    page.set_viewport_size({"width": 844, "height": 390})
    eventually(page, look)
    assert page.evaluate(_STICKING_OUT) == []


@pytest.mark.parametrize(
    ("name", "width", "dark"),
    [
        ("desktop-light", 1280, False),
        ("desktop-dark", 1280, True),
        ("phone-light", 390, False),
        ("phone-dark", 390, True),
    ],
)
def test_pictures(
    name: str, width: int, dark: bool, small: Example, open_report: Opener, screenshot: Camera
) -> None:
    page = open_report(small, width=width, height=900, dark=dark)
    settled(page)
    assert page.evaluate(_TOO_LARGE) == []
    picture = screenshot(page, name)
    assert int.from_bytes(picture.read_bytes()[16:20], "big") == width


@pytest.mark.parametrize("dark", [False, True])
def test_on_paper(
    dark: bool, small: Example, open_report: Opener, screenshot: Camera, tmp_path: Path
) -> None:
    page = open_report(small, width=794, height=1123, dark=dark)  # A4 at 96 pixels per inch
    page.emulate_media(media="print")
    settled(page)
    assert _lightness(page.evaluate(_BACKGROUND)) > 0.9, "ink is dear"
    assert page.is_hidden("nav")
    assert page.locator("input:visible").count() == 0
    assert page.locator("button:visible").count() == page.locator("#table thead button").count()
    assert page.locator(".chart svg.main-svg:visible").count() >= 9
    content, window = page.evaluate("() => [document.scrollingElement.scrollWidth, innerWidth]")
    screenshot(page, "print-dark" if dark else "print")
    assert content <= window, "a printer would shrink all of it"
    assert page.evaluate(_TOO_LARGE) == []
    page.emulate_media(media="screen")
    paper = page.pdf(format="A4", print_background=True, path=tmp_path / "report.pdf")
    assert paper.startswith(b"%PDF")
    assert 3 <= paper.count(b"/Type /Page\n") + paper.count(b"/Type /Page ") <= 20
