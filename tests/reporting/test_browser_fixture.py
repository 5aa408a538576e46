"""What the other tests of the page rely on: that a page's complaints and requests are noticed."""

from collections.abc import Callable
from pathlib import Path

import pytest

import browsing

_ADDRESS = "https://example.org/picture.png"


def _page(body: str) -> str:
    return f"<!doctype html><html lang=en><title>a page</title><body>{body}</body></html>"


def _script(code: str) -> str:
    return _page(f"<script>{code}</script>")


def test_a_quiet_page_passes(open_page: browsing.Pages) -> None:
    page = open_page(
        _page("<img src='data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA=' alt=''><p>hello")
    )
    page.evaluate("() => fetch(URL.createObjectURL(new Blob(['x'])))")
    page.evaluate("() => console.log('nothing that matters')")
    assert page.inner_text("p") == "hello"
    assert open_page.noticed(page) == []


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (_script("console.error('bad')"), "console error: bad"),
        (_script("console.warn('doubtful')"), "console warning: doubtful"),
        (_script("setTimeout(() => { throw new Error('thrown') })"), "error: thrown"),
        (_script("Promise.reject(new Error('rejected'))"), "error: rejected"),
        (_script("alert('look')"), "dialog: look"),
        (_page(f"<img src='{_ADDRESS}' alt=''>"), f"request: {_ADDRESS}"),
        (_script(f"fetch('{_ADDRESS}').catch(() => 0)"), f"request: {_ADDRESS}"),
        (_script(f"navigator.sendBeacon('{_ADDRESS}')"), f"request: {_ADDRESS}"),
        (_page("<img src='beside.png' alt=''>"), "request: file://"),
        (_script("new WebSocket('wss://example.org/')"), "request: wss://example.org/"),
    ],
)
def test_whatever_a_page_says_or_asks_for_is_noticed(
    open_page: browsing.Pages, content: str, expected: str
) -> None:
    noticed = open_page.noticed(open_page(content))
    assert any(one.startswith(expected) for one in noticed), noticed


def test_a_blocked_request_is_noticed(open_page: browsing.Pages) -> None:
    """A content security policy stops it; a page that tries is wrong all the same."""
    policy = "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'\">"
    page = open_page(_page(f"{policy}<img src='{_ADDRESS}' alt=''>"))
    assert any("Content Security Policy" in one for one in open_page.noticed(page))


def test_closing_fails_for_what_nobody_looked_at(browser: object, tmp_path: Path) -> None:
    pages = browsing.Pages(browser, tmp_path)
    pages(_page("<p>quiet"))
    pages(_script("console.error('bad')"))
    with pytest.raises(AssertionError, match="console error: bad"):
        pages.close()


def test_a_page_is_opened_as_the_reader_likes_it(open_page: browsing.Pages) -> None:
    page = open_page(
        _page("<p>hello"), width=390, height=800, dark=True, reduced_motion=True, fragment="here"
    )
    found = page.evaluate(
        """() => [innerWidth, innerHeight, matchMedia('(prefers-color-scheme: dark)').matches,
                  matchMedia('(prefers-reduced-motion: reduce)').matches, location.hash]"""
    )
    assert found == [390, 800, True, True, "#here"]


def test_without_javascript_nothing_runs(open_page: browsing.Pages) -> None:
    page = open_page(
        _page("<p>hello</p><noscript>plain</noscript><script>console.error('ran')</script>"),
        javascript=False,
    )
    assert page.inner_text("noscript") == "plain"


def test_a_missing_browser_skips_or_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CMDPAX_BROWSER", "no-such-browser")
    monkeypatch.delenv("CMDPAX_REQUIRE_BROWSER", raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"no browser.*apt-get install chromium"):
        browsing.browser_path()
    monkeypatch.setenv("CMDPAX_REQUIRE_BROWSER", "1")
    with pytest.raises(pytest.fail.Exception, match=r"no browser.*apt-get install chromium"):
        browsing.browser_path()


def test_a_screenshot_is_a_picture_of_the_whole_page(
    open_page: browsing.Pages,
    screenshot: Callable[[object, str], Path],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(browsing, "_SHOTS", tmp_path / "shots")
    page = open_page(_page("<div style='height: 1500px'>tall</div>"), width=400, height=300)
    content = screenshot(page, "tall").read_bytes()
    assert content.startswith(b"\x89PNG")
    assert int.from_bytes(content[16:20], "big") == 400
    assert int.from_bytes(content[20:24], "big") > 1500
