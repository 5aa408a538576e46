"""Numbers as the page writes them for people, and what it computes itself, in a browser."""

from collections.abc import Callable
from typing import Any

import numpy as np

from cmdpax.intervals import interval, student
from page_cases import Example, assert_close

Page = Any
Opener = Callable[..., Page]


def _written(page: Page, values: list[float], digits: int) -> list[str]:
    return page.evaluate(
        "([values, digits]) => values.map((value) => cmdpax.number(value, digits))",
        [values, digits],
    )


def _read(text: str) -> float:
    return float(text.replace("−", "-").replace(",", ""))


def test_numbers_keep_their_significant_digits(small: Example, open_report: Opener) -> None:
    """Whatever their size: a regret of 0.0004 is not 0."""
    page = open_report(small)
    for powers, digits, error in [
        (range(-4, 7), 4, 6e-4),
        (range(-4, 7), 2, 6e-2),
        ([-12, -8, -5, 7, 9], 4, 6e-3),  # with an exponent three are enough
    ]:
        values = [sign * 1.23456 * 10.0**power for power in powers for sign in (1, -1)]
        found = [_read(text) for text in _written(page, values, digits)]
        np.testing.assert_allclose(found, values, rtol=error)


def test_special_numbers(small: Example, open_report: Opener) -> None:
    page = open_report(small)
    texts = _written(page, [0.0, -0.0, 1.0, -1.0, 0.5, 12345.678, 9.99996, 0.99999], 4)
    assert texts == ["0", "0", "1", "−1", "0.5", "12,346", "10", "1"]
    assert page.evaluate("() => [null, undefined, NaN].map((x) => cmdpax.number(x))") == ["–"] * 3


def test_intervals_are_those_of_the_library(small: Example, open_report: Opener) -> None:
    page = open_report(small)
    counts = [2, 3, 5, 10, 59, 60, 61, 62, 100, 1000]
    found = page.evaluate("(counts) => counts.map((count) => cmdpax.student(count))", counts)
    assert_close(found, [student(count) for count in counts], 1e-6)
    generator = np.random.default_rng(0)
    for count in (2, 7, 80):
        values = generator.normal(3.0, 2.0, count)
        mine = page.evaluate("(values) => cmdpax.interval(values)", values.tolist())
        expected = interval(values)
        assert_close([mine["mean"], mine["half"]], [expected.mean, expected.half], 1e-6)
    assert page.evaluate("() => cmdpax.interval([2])") == {"mean": 2, "half": None}
    assert page.evaluate("() => cmdpax.interval([2, null])") == {"mean": None, "half": None}
