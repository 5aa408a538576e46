"""A real browser for the tests of the page, and pages for it.

The pages are made once per process: a sweep is compiled for each.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import browsing
import page_cases

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="session")
def program() -> str:
    """The browser's program. Asked for first: without it nothing else needs to be made."""
    return browsing.browser_path()


@pytest.fixture(scope="module")
def browser(program: str) -> Iterator["Browser"]:
    """One browser for the tests of a file.

    Not for the session: as long as Playwright is there an event loop runs in this thread, and
    tests of other files that the same process runs could not start one.
    """
    with browsing.launched(program) as browser:
        yield browser


@pytest.fixture
def open_page(browser: "Browser", tmp_path: Path) -> Iterator[browsing.Pages]:
    """Open a page; fails at the end if a page complained or asked for anything but itself."""
    pages = browsing.Pages(browser, tmp_path)
    yield pages
    pages.close()


@pytest.fixture
def open_report(open_page: browsing.Pages) -> Callable[..., "Page"]:
    """Open the page of an example and wait until all of it is drawn."""

    def opened(example: page_cases.Example, **options: object) -> "Page":
        return page_cases.ready(open_page(example.path, **options))

    return opened


@pytest.fixture
def screenshot() -> Callable[["Page", str], Path]:
    """Keep a picture of a page, by name."""
    return browsing.screenshot


@pytest.fixture(scope="session")
def small(program: str, tmp_path_factory: pytest.TempPathFactory) -> page_cases.Example:
    return page_cases.small(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="session")
def two_constraint_sweep(
    program: str, tmp_path_factory: pytest.TempPathFactory
) -> page_cases.Example:
    return page_cases.two_constraints(tmp_path_factory.mktemp("two"))


@pytest.fixture(scope="session")
def unconstrained(program: str, tmp_path_factory: pytest.TempPathFactory) -> page_cases.Example:
    return page_cases.unconstrained(tmp_path_factory.mktemp("unconstrained"))


@pytest.fixture(scope="session")
def own_parameters(program: str, tmp_path_factory: pytest.TempPathFactory) -> page_cases.Example:
    return page_cases.own_parameters(tmp_path_factory.mktemp("own"))


@pytest.fixture(scope="session")
def planning(program: str, tmp_path_factory: pytest.TempPathFactory) -> page_cases.Example:
    return page_cases.planning(tmp_path_factory.mktemp("planning"))


@pytest.fixture(scope="session")
def long(program: str, tmp_path_factory: pytest.TempPathFactory) -> page_cases.Example:
    return page_cases.long(tmp_path_factory.mktemp("long"))


@pytest.fixture(scope="session")
def reproduction(program: str, tmp_path_factory: pytest.TempPathFactory) -> page_cases.Example:
    return page_cases.reproduction(tmp_path_factory.mktemp("reproduction"))


@pytest.fixture(scope="session")
def in_words(program: str, tmp_path_factory: pytest.TempPathFactory) -> page_cases.Example:
    return page_cases.in_words(tmp_path_factory.mktemp("words"))
