"""Two against each other in a browser: what `cmdpax.compare` finds."""

import math
import re
from collections.abc import Callable
from typing import Any

import cmdpax
from page_cases import Example, assert_close, eventually, traces

Page = Any
Opener = Callable[..., Page]


def _options(page: Page) -> dict[str, str]:
    """What can be compared: the names that the library knows, with the page's values."""
    return page.evaluate(
        """() => {
          const { algorithms, configurations } = cmdpax.payload.sweeps[0];
          return Object.fromEntries([
            ...algorithms.map((name, place) => [name, `algorithm:${place}`]),
            ...configurations.map(({ id }, place) => [id, `configuration:${place}`]),
          ]);
        }"""
    )


def _choose(page: Page, first: str, second: str, by: str) -> None:
    options = _options(page)
    page.select_option("#compare-first", options[first])
    page.select_option("#compare-second", options[second])
    page.select_option("#compare-measure", by)


def _shown(page: Page) -> list[str]:
    return page.locator("#compare-numbers td").all_inner_texts()


def _number(text: str) -> float:
    return float("nan") if text == "–" else float(text.replace("−", "-").replace(",", ""))


def _assert_compared(page: Page, expected: cmdpax.Comparison) -> None:
    """The numbers in the table, and the same in the chart."""
    first, second, ratio, difference, pairs, smaller = _shown(page)
    if math.isnan(expected.difference.mean):  # such as the growth of a regret that is 0
        assert difference == "–"
        assert "smaller, and" not in page.inner_text("#compare-chart-text")
        return
    units = expected.cmdps if expected.unit == "CMDPs" else expected.pairs
    assert (pairs, smaller.split(" of ")[1]) == (str(expected.pairs), str(units))
    assert_close(_number(first), expected.first_mean, 2e-3)
    assert_close(_number(second), expected.second_mean, 2e-3)
    if math.isnan(expected.ratio):
        assert ratio == "–"
    else:
        assert_close(_number(ratio), expected.ratio, 2e-3)
    mean, half = re.split(r"\s±\s", difference)
    assert_close(_number(mean), expected.difference.mean, 2e-3)
    assert_close(_number(half), expected.difference.half, 6e-2)
    if expected.unit == "CMDPs":
        assert smaller == f"{expected.first_smaller} of {units}"
    _assert_chart(page, expected, units)


def _assert_chart(page: Page, expected: cmdpax.Comparison, units: int) -> None:
    dots, middle = traces(page, "compare-chart")
    scale = max(abs(expected.first_mean), abs(expected.second_mean), 1e-9)
    assert len(dots["x"]) == units
    for found, wanted in [
        (sum(dots["x"]) / units, expected.difference.mean),
        (middle["x"][0], expected.difference.mean),
        (middle["error"][0], expected.difference.half),
    ]:
        assert abs(found - wanted) <= 1e-5 * scale


def test_algorithms_and_configurations_by_every_measure(
    small: Example, open_report: Opener
) -> None:
    page = open_report(small)
    results = small.results
    configurations = sorted(set(results.final["configuration"]))
    pairs = [
        ("regularized-primal-dual", "vanilla-primal-dual"),
        ("vanilla-primal-dual", configurations[0]),
        (configurations[1], configurations[2]),
    ]
    measures = page.eval_on_selector_all(
        "#compare-measure option", "(options) => options.map((option) => option.value)"
    )
    final = results.final.columns
    assert measures == ["strong", "weak", *final[final.index("strong_objective") :]]
    for first, second in pairs:
        for by in measures:
            _choose(page, first, second, by)
            expected = cmdpax.compare(results, first, second, by)
            eventually(page, lambda: _assert_compared(page, expected))  # noqa: B023


def test_on_one_cmdp_the_interval_is_over_seeds(reproduction: Example, open_report: Opener) -> None:
    page = open_report(reproduction)
    results = reproduction.results
    for by in ("strong", "weak_constraints", "last_violation"):
        _choose(page, "vanilla-primal-dual", "regularized-primal-dual", by)
        expected = cmdpax.compare(results, "vanilla-primal-dual", "regularized-primal-dual", by)
        assert expected.unit == "seeds"
        eventually(page, lambda: _assert_compared(page, expected))  # noqa: B023


def test_the_sentence_says_what_the_interval_says(small: Example, open_report: Opener) -> None:
    page = open_report(small)
    results = small.results
    for first, second in [
        ("regularized-primal-dual", "vanilla-primal-dual"),
        ("vanilla-primal-dual", "regularized-primal-dual"),
    ]:
        for by in ("strong", "weak_objective", "strong_constraints"):
            _choose(page, first, second, by)
            found = cmdpax.compare(results, first, second, by).difference
            holds_zero = abs(found.mean) <= found.half
            smaller = first if found.mean < 0 else second
            sentence = "no difference is established" if holds_zero else f"{smaller} is smaller"

            def look(sentence: str = sentence) -> None:
                assert sentence in page.inner_text("#compare-chart-text")

            eventually(page, look)


def test_one_run_says_nothing_about_chance(unconstrained: Example, open_report: Opener) -> None:
    page = open_report(unconstrained)
    assert "±" not in " ".join(_shown(page))
    assert "run more seeds" in page.inner_text("#compare-chart-text")
