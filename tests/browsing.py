"""Pages in a real browser: found, opened, and watched for what they say and ask for.

A page of results is one file for an offline reader: whatever it writes to the console as a warning
or an error, and whatever it requests besides itself, is a defect. So every page that a test opens
is watched, and closing it without having looked asserts that there was nothing.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Dialog, Page

NO_BROWSER = "no browser"
"""How the reason of every skipped test of the page begins: the summary counts them by it."""

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_SHOTS = Path(__file__).parents[1] / "build" / "screenshots"


def browser_path() -> str:
    """The browser's program; without one the test is skipped, or fails where one is required."""
    named = os.environ.get("CMDPAX_BROWSER")
    names = (named,) if named else _NAMES
    found = next(filter(None, map(shutil.which, names)), None)
    if found is not None:
        return found
    reason = (
        f"{NO_BROWSER}: none of {', '.join(names)} is there; "
        "`apt-get install chromium`, or name one in CMDPAX_BROWSER"
    )
    if os.environ.get("CMDPAX_REQUIRE_BROWSER"):
        pytest.fail(f"{reason}. CMDPAX_REQUIRE_BROWSER is set.", pytrace=False)
    pytest.skip(reason)


@contextmanager
def launched(program: str) -> Iterator["Browser"]:
    """A headless browser.

    Playwright starts it without the sandbox, which root and most containers could not have: the
    only pages it sees are ours.
    """
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        try:
            yield browser
        finally:
            browser.close()


class Pages:
    """The pages that a test opens: each alone in a context of its own, offline."""

    def __init__(self, browser: "Browser", folder: Path) -> None:
        """Pages given as text are written into the folder."""
        self._browser, self._folder = browser, folder
        self._contexts: list[BrowserContext] = []
        self._noticed: dict[Page, list[str]] = {}

    def __call__(
        self,
        source: Path | str,
        *,
        width: int = 1280,
        height: int = 900,
        dark: bool = False,
        javascript: bool = True,
        reduced_motion: bool = False,
        touch: bool = False,
        fragment: str = "",
    ) -> "Page":
        """Open a file, or a text as a file, and wait until it is loaded.

        Args:
            source: a file, or HTML.
            width: of the window, in CSS pixels.
            height: likewise.
            dark: what the reader prefers.
            javascript: False as with a blocker.
            reduced_motion: what the reader prefers.
            touch: a finger instead of a mouse.
            fragment: what follows the # of the address.
        """
        context = self._browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            java_script_enabled=javascript,
            reduced_motion="reduce" if reduced_motion else "no-preference",
            has_touch=touch,
            offline=True,  # a request is noticed before it fails; no test depends on a network
        )
        self._contexts.append(context)
        page = context.new_page()
        address = self._file(source).absolute().as_uri()
        self._watch(page, address)
        page.goto(address + (f"#{fragment}" if fragment else ""))
        return page

    def _file(self, source: Path | str) -> Path:
        if isinstance(source, Path):
            return source
        path = self._folder / f"page-{len(self._noticed)}.html"
        path.write_text(source, encoding="utf-8")
        return path

    def _watch(self, page: "Page", address: str) -> None:
        noticed = self._noticed[page] = []

        def request(sent: Any) -> None:
            if sent.url.split("#")[0] != address and not sent.url.startswith(("data:", "blob:")):
                noticed.append(f"request: {sent.url}")

        def console(message: Any) -> None:
            if message.type in ("error", "warning"):
                noticed.append(f"console {message.type}: {message.text}")

        def dialog(shown: "Dialog") -> None:
            noticed.append(f"dialog: {shown.message}")
            shown.dismiss()

        page.context.on("request", request)  # also those of workers and windows it opens
        page.on("console", console)
        page.on("pageerror", lambda error: noticed.append(f"error: {error}"))
        page.on("dialog", dialog)
        page.on("websocket", lambda socket: noticed.append(f"request: {socket.url}"))

    def noticed(self, page: "Page") -> list[str]:
        """What was noticed so far, for tests that look themselves; closing asserts the rest."""
        page.wait_for_timeout(100)  # events arrive while the page is waited for
        found = list(self._noticed[page])
        self._noticed[page].clear()
        return found

    def close(self) -> None:
        """Close all pages; what was noticed and not looked at is an error."""
        left = [one for page in self._noticed if not page.is_closed() for one in self.noticed(page)]
        for context in self._contexts:
            context.close()
        left += [one for noticed in self._noticed.values() for one in noticed]
        assert not left, "the page said or asked for:\n" + "\n".join(left)


def screenshot(page: "Page", name: str) -> Path:
    """A picture of the whole page, kept in `build/screenshots/` to be looked at."""
    _SHOTS.mkdir(parents=True, exist_ok=True)
    path = _SHOTS / f"{name}.png"
    page.screenshot(path=path, full_page=True)
    return path
