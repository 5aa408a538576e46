"""The chart of curves in a browser: every control, against the tables of the sweep."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import cmdpax
from page_cases import (
    Example,
    assert_close,
    best_of,
    eventually,
    expected_curve,
    layout,
    settled,
    traces,
)

Page = Any
Opener = Callable[..., Page]

CHART = "curves-chart"
ONE_CONSTRAINT = [
    ("strong", "objective", "strong_objective"),
    ("strong", "0", "strong_constraints"),
    ("weak", "objective", "weak_objective"),
    ("weak", "0", "weak_constraints"),
    ("episode", "objective", "suboptimality"),
    ("episode", "0", "violation"),
    ("multipliers", "0", "multipliers[0]"),
]
TWO_CONSTRAINTS = [
    ("strong", "objective", "strong_objective"),
    ("weak", "largest", "weak_constraints"),
    ("strong", "largest", "strong_constraints"),
    ("episode", "largest", "violation"),
    *(
        (account, str(place), f"{series}[{place}]")
        for account, series in (
            ("strong", "strong_constraints"),
            ("weak", "weak_constraints"),
            ("episode", "violation"),
            ("multipliers", "multipliers"),
        )
        for place in (0, 1)
    ),
]


def _labels(page: Page) -> dict[str, str]:
    """What the page calls the configurations, by their names in the tables."""
    return page.evaluate(
        """() => {
          const { configurations, algorithms } = cmdpax.payload.sweeps[0];
          return Object.fromEntries(configurations.map(
            ({ id, algorithm, label }) => [id, `${algorithms[algorithm]}, ${label}`]));
        }"""
    )


def _boxes(page: Page) -> dict[str, Any]:
    """The check marks of the configurations, by their names in the tables."""
    ids = page.evaluate("() => cmdpax.payload.sweeps[0].configurations.map(({ id }) => id)")
    return {
        one: page.locator(f"#configurations input[value='{place}']")
        for place, one in enumerate(ids)
    }


def _show(page: Page, account: str, about: str) -> None:
    page.check(f"input[name=account][value={account}]")
    page.select_option("#curves-about", about)


def _lines(page: Page) -> dict[str, list[dict[str, Any]]]:
    """The drawn lines by name, each with its band if it has one."""
    found: dict[str, list[dict[str, Any]]] = {}
    low = high = None
    for trace in traces(page, CHART):
        if trace["name"] == "lower":
            low = trace
        elif trace["name"] == "upper":
            high = trace
        elif not trace["name"].startswith("λ*"):
            found.setdefault(trace["name"], []).append(trace | {"low": low, "high": high})
            low = high = None
    return found


def _assert_drawn(
    page: Page,
    results: cmdpax.Results,
    configurations: Sequence[str],
    series: str,
    cmdp: str | None,
) -> None:
    """Means and bands of these configurations and no others, at every recorded episode."""
    labels, lines = _labels(page), _lines(page)
    assert set(lines) == {labels[one] for one in configurations}
    for one in configurations:
        episodes, units, half = expected_curve(results, one, series, cmdp)
        (line,) = lines[labels[one]]
        assert line["x"] == episodes.tolist()
        mean = units.mean(axis=0)
        assert_close(line["y"], mean)
        if len(units) < 3:
            assert line["low"] is line["high"] is None, "the interval of two says nothing"
            continue
        low, high = (np.array(line[edge]["y"]) for edge in ("low", "high"))
        drawn = np.array(line["y"])
        assert_close(high - drawn, half, 1e-3)  # pages keep three digits of half widths
        cut = mean - half < 0 if series.startswith(("strong", "multipliers")) else mean < -np.inf
        assert_close((drawn - low)[~cut], half[~cut], 1e-3)
        assert not low[cut].any(), "what cannot be negative has no band below 0"
        assert line["high"]["fill"] == "tonexty"


def _assert_accounts(
    page: Page, results: cmdpax.Results, cmdp: str, asked: list[tuple[str, str, str]]
) -> None:
    best = list(best_of(results, cmdp=cmdp).values())
    for account, about, series in asked:
        _show(page, account, about)
        eventually(page, lambda: _assert_drawn(page, results, best, series, cmdp))  # noqa: B023


def test_every_account(small: Example, open_report: Opener) -> None:
    page = open_report(small)
    _assert_accounts(page, small.results, next(iter(small.results.cmdps)), ONE_CONSTRAINT)


def test_every_account_of_two_constraints(
    two_constraint_sweep: Example, open_report: Opener
) -> None:
    page = open_report(two_constraint_sweep)
    (cmdp,) = two_constraint_sweep.results.cmdps
    _assert_accounts(page, two_constraint_sweep.results, cmdp, TWO_CONSTRAINTS)


def test_without_constraints_there_is_the_objective_alone(
    unconstrained: Example, open_report: Opener
) -> None:
    page = open_report(unconstrained)
    assert page.is_disabled("input[name=account][value=multipliers]")
    assert page.locator("#curves-about option").all_inner_texts() == ["reward"]
    assert page.is_hidden("#plane")
    (configuration,) = best_of(unconstrained.results).values()
    (cmdp,) = unconstrained.results.cmdps
    for account, series in [
        ("strong", "strong_objective"),
        ("weak", "weak_objective"),
        ("episode", "suboptimality"),
    ]:
        page.check(f"input[name=account][value={account}]")
        _, units, _ = expected_curve(unconstrained.results, configuration, series, cmdp)

        def look(expected: np.ndarray = units[0]) -> None:
            ((line,),) = _lines(page).values()
            assert_close(line["y"], expected)
            assert line["low"] is None, "one run has no interval"

        eventually(page, look)


def test_every_cmdp_and_the_mean_of_all(small: Example, open_report: Opener) -> None:
    page = open_report(small)
    fingerprints = list(small.results.cmdps)
    for value, cmdp in [("1", fingerprints[1]), ("", None), ("0", fingerprints[0])]:
        page.select_option("#cmdp", value)
        for account, about, series in [ONE_CONSTRAINT[1], ONE_CONSTRAINT[6]]:
            _show(page, account, about)
            best = list(best_of(small.results, cmdp=cmdp).values())
            eventually(page, lambda: _assert_drawn(page, small.results, best, series, cmdp))  # noqa: B023


def test_the_optimal_multiplier(small: Example, open_report: Opener) -> None:
    page = open_report(small)
    optimal = [entry["multipliers"][0] for entry in small.results.manifest["cmdps"].values()]
    _show(page, "multipliers", "0")
    for value, expected in [("0", optimal[0]), ("", np.mean(optimal))]:
        page.select_option("#cmdp", value)

        def look(expected: float = expected) -> None:
            (line,) = (one for one in traces(page, CHART) if one["name"].startswith("λ*"))
            assert_close(line["y"], [expected, expected])

        eventually(page, look)


def test_configurations_are_chosen(small: Example, open_report: Opener) -> None:
    page = open_report(small)
    results, cmdp = small.results, next(iter(small.results.cmdps))
    page.click("#curves details.chooser summary")
    boxes = _boxes(page)
    best = set(best_of(results, cmdp=cmdp).values())
    assert {one for one, box in boxes.items() if box.is_checked()} == best

    def drawn(chosen: set[str]) -> None:
        series = "strong_constraints"
        eventually(page, lambda: _assert_drawn(page, results, sorted(chosen), series, cmdp))

    chosen = set(best)
    for one, box in boxes.items():
        box.click()
        chosen ^= {one}
        drawn(chosen)
    page.click("#choose-none")
    eventually(page, lambda: _assert_nothing(page))
    page.click("#choose-best")
    drawn(best)
    assert {one for one, box in boxes.items() if box.is_checked()} == best


def _assert_nothing(page: Page) -> None:
    assert _lines(page) == {}
    assert "Nothing is chosen" in page.inner_text(f"#{CHART}-text")


def test_single_runs_and_bands(small: Example, open_report: Opener) -> None:
    page = open_report(small)
    results, cmdp = small.results, next(iter(small.results.cmdps))
    _show(page, "episode", "0")
    expected = {
        label: expected_curve(results, one, "violation", cmdp)[1]
        for one, label in _labels(page).items()
        if one in best_of(results, cmdp=cmdp).values()
    }
    for lines, count in (("each", 3), ("first", 1)):
        page.select_option("#curves-lines", lines)

        def look(count: int = count) -> None:
            found = _lines(page)
            assert set(found) == set(expected)
            for label, units in expected.items():
                assert [line["low"] for line in found[label]] == [None] * count
                assert_close([line["y"] for line in found[label]], units[:count])

        eventually(page, look)
    page.select_option("#curves-lines", "mean")
    page.uncheck("#curves-bands")

    def without_bands() -> None:
        found = _lines(page)
        for label, units in expected.items():
            (line,) = found[label]
            assert line["low"] is line["high"] is None
            assert_close(line["y"], units.mean(axis=0))

    eventually(page, without_bands)


def test_logarithmic_axes(small: Example, open_report: Opener) -> None:
    page = open_report(small)
    results, cmdp = small.results, next(iter(small.results.cmdps))
    _show(page, "weak", "0")
    page.uncheck("#curves-bands")
    for axis in ("x", "y"):
        page.check(f"#curves-{axis}-log")
        eventually(page, lambda: _assert_axis(page, axis, "log"))  # noqa: B023
    settled(page)
    labels = _labels(page)
    for one in best_of(results, cmdp=cmdp).values():
        episodes, units, _ = expected_curve(results, one, "weak_constraints", cmdp)
        mean = units.mean(axis=0)
        (line,) = _lines(page)[labels[one]]
        drawn = {x: y for x, y in zip(line["x"], line["y"], strict=True) if y is not None}
        positive = mean > 0
        assert list(drawn) == episodes[positive].tolist()
        assert_close(list(drawn.values()), mean[positive])
    for axis in ("x", "y"):
        page.uncheck(f"#curves-{axis}-log")
        eventually(page, lambda: _assert_axis(page, axis, "linear"))  # noqa: B023
    low, high = layout(page, CHART, "xaxis", "range")
    assert low <= 1 < 60 <= high, "both ends are seen again"


def _assert_axis(page: Page, axis: str, kind: str) -> None:
    assert layout(page, CHART, f"{axis}axis", "type") == kind


def test_a_band_on_a_logarithmic_axis_stays_around_its_line(
    small: Example, open_report: Opener
) -> None:
    page = open_report(small)
    _show(page, "strong", "objective")
    page.check("#curves-y-log")
    eventually(page, lambda: _assert_axis(page, "y", "log"))
    settled(page)
    for (line,) in _lines(page).values():
        for low, middle, high in zip(line["low"]["y"], line["y"], line["high"]["y"], strict=True):
            if middle is None:
                assert low is None or low > 0
            else:
                assert 0 < low <= middle <= high


def test_the_same_as_numbers(small: Example, open_report: Opener) -> None:
    page = open_report(small)
    page.click("#curves-numbers summary")
    for value, cmdp in [("0", next(iter(small.results.cmdps))), ("", None)]:
        page.select_option("#cmdp", value)
        eventually(page, lambda: _assert_numbers(page, small.results, cmdp))  # noqa: B023


def _assert_numbers(page: Page, results: cmdpax.Results, cmdp: str | None) -> None:
    rows = page.eval_on_selector_all(
        "#curves-numbers tr",
        "(rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent))",
    )
    assert len(rows) == 3
    episodes = [int(text) for text in rows[0][1:]]
    assert episodes[-1] == 60
    labels = _labels(page)
    for one in best_of(results, cmdp=cmdp).values():
        _, units, half = expected_curve(results, one, "strong_constraints", cmdp)
        cells = next(row[1:] for row in rows if row[0] == labels[one])
        places = np.array(episodes) - 1
        found = np.array([[float(part) for part in re.split(r"\s±\s", cell)] for cell in cells])
        assert_close(found[:, 0], units.mean(axis=0)[places], 1e-3)
        assert_close(found[:, 1], half[places], 0.1)
