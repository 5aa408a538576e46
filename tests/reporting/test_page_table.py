"""The table of configurations in a browser: sorted, filtered, and who is best."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import polars

import cmdpax
from cmdpax.intervals import interval
from page_cases import Example, assert_close, best_of, eventually

Page = Any
Opener = Callable[..., Page]

PARAMETERS = ("algorithm", "step_size", "regularization")


def _columns(page: Page) -> list[str]:
    return page.eval_on_selector_all(
        "#table thead th", "(heads) => heads.map((head) => head.dataset.column)"
    )


def _rows(page: Page) -> dict[str, list[str]]:
    """The cells' texts by configuration, from top to bottom."""
    found = page.eval_on_selector_all(
        "#table tbody tr",
        """(rows) => rows.map((row) => [
          row.dataset.configuration, [...row.cells].map((cell) => cell.textContent.trim())])""",
    )
    return dict(found)


def _scores(results: cmdpax.Results, by: str, cmdp: str | None) -> dict[str, np.ndarray]:
    """The measure of every run, by configuration."""
    scored = results.scored(by)
    if cmdp is not None:
        scored = scored.filter(polars.col("cmdp") == cmdp)
    parts = scored.partition_by("configuration", as_dict=True)
    return {key[0]: part["score"].to_numpy() for key, part in parts.items()}


def _number(text: str) -> float:
    return float("nan") if text == "–" else float(text.replace("−", "-").replace(",", ""))


def _sort_keys(results: cmdpax.Results, column: str, cmdp: str | None) -> dict[str, Any]:
    if column in PARAMETERS:
        return dict(zip(results.final["configuration"], results.final[column], strict=True))
    if column == "runs":
        return {one: len(values) for one, values in _scores(results, "strong", cmdp).items()}
    return {one: values.mean() for one, values in _scores(results, column, cmdp).items()}


def _assert_sorted(page: Page, results: cmdpax.Results, column: str, descending: bool) -> None:
    states = page.eval_on_selector_all(
        "#table thead th",
        "(heads) => heads.map((head) => [head.dataset.column, head.getAttribute('aria-sort')])",
    )
    way = "descending" if descending else "ascending"
    assert {name: state for name, state in states if state != "none"} == {column: way}
    keys = _sort_keys(results, column, next(iter(results.cmdps)))
    order = [keys[one] for one in _rows(page)]
    assert len(order) == len(keys)
    defined = [key for key in order if key == key]  # NaN is none, and comes last
    assert order[: len(defined)] == defined
    rounded = [key if isinstance(key, str) else float(f"{key:.6g}") for key in defined]
    assert rounded == sorted(rounded, reverse=descending)


def test_every_column_sorts_both_ways(small: Example, open_report: Opener) -> None:
    page = open_report(small)
    page.check("#table-all")
    final = small.results.final.columns
    measures = ["strong", "weak", *final[final.index("strong_objective") :]]
    eventually(page, lambda: _assert_columns(page, measures))
    _assert_sorted(page, small.results, "strong", False)
    for column in reversed(_columns(page)):  # so that "strong" does not come first
        button = page.locator(f"#table thead th[data-column='{column}'] button")
        button.click()
        eventually(page, lambda: _assert_sorted(page, small.results, column, False))  # noqa: B023
        button.click()
        eventually(page, lambda: _assert_sorted(page, small.results, column, True))  # noqa: B023
        assert button.evaluate("(button) => button === document.activeElement"), column


def _assert_columns(page: Page, measures: list[str]) -> None:
    columns = _columns(page)
    assert columns[: columns.index("runs") + 1] == [*PARAMETERS, "runs"]
    assert sorted(columns[columns.index("runs") + 1 :]) == sorted(measures)


def test_cells_are_means_with_intervals(small: Example, open_report: Opener) -> None:
    """Over all CMDPs the interval is that of the CMDPs' means, as everywhere in the library."""
    page = open_report(small)
    page.check("#table-all")
    place = {column: index for index, column in enumerate(_columns(page))}
    for value, cmdp in [("0", next(iter(small.results.cmdps))), ("", None)]:
        page.select_option("#cmdp", value)
        for column in ("strong", "weak_objective", "weak_constraints", "last_violation"):
            expected = _intervals(small.results, column, cmdp)

            def look(column: str = column, expected: dict[str, Any] = expected) -> None:
                for one, cells in _rows(page).items():
                    mean, half = map(_number, re.split(r"\s±\s", cells[place[column]]))
                    assert_close(mean, expected[one].mean, 2e-3)
                    assert_close(half, expected[one].half, 6e-2)

            eventually(page, look)


def _intervals(results: cmdpax.Results, by: str, cmdp: str | None) -> dict[str, Any]:
    if cmdp is not None:
        return {one: interval(values) for one, values in _scores(results, by, cmdp).items()}
    means = [_scores(results, by, one) for one in results.cmdps]
    return {one: interval([part[one].mean() for part in means]) for one in means[0]}


def test_the_filter(small: Example, open_report: Opener) -> None:
    page = open_report(small)
    final = small.results.final
    chosen = {
        "": set(final["configuration"]),
        "VANILLA": set(final.filter(algorithm="vanilla-primal-dual")["configuration"]),
        "dual 0.3": set(final.filter(step_size=0.3)["configuration"]),
        "regularized 0.1": set(
            final.filter(algorithm="regularized-primal-dual", step_size=0.1)["configuration"]
        ),
        "nothing has this": set(),
    }
    for text, expected in [*chosen.items(), ("", chosen[""])]:
        page.fill("#table-filter", text)

        def look(expected: set[str] = expected) -> None:
            assert set(_rows(page)) == expected
            assert page.inner_text("#table-status").startswith(f"{len(expected)} of 4 ")

        eventually(page, look)


def test_the_best_in_hindsight(small: Example, open_report: Opener) -> None:
    """By every measure, on every CMDP and over all: the rows that `Results.best` names."""
    page = open_report(small)
    results = small.results
    measures = page.eval_on_selector_all(
        "#table-best option", "(options) => options.map((option) => option.value)"
    )
    final = results.final.columns
    assert measures == ["strong", "weak", *final[final.index("strong_objective") :]]
    for value, cmdp in [*((str(i), one) for i, one in enumerate(results.cmdps)), ("", None)]:
        page.select_option("#cmdp", value)
        for by in measures:
            page.select_option("#table-best", by)
            expected = _defined_best(results, by, cmdp)
            eventually(page, lambda: _assert_best(page, expected, by))  # noqa: B023


def _defined_best(results: cmdpax.Results, by: str, cmdp: str | None) -> set[str]:
    """Without those whose measure is not defined: nothing is best there."""
    means = {one: values.mean() for one, values in _scores(results, by, cmdp).items()}
    return {one for one in best_of(results, by, cmdp).values() if means[one] == means[one]}


def _assert_best(page: Page, expected: set[str], by: str) -> None:
    marked = page.eval_on_selector_all(
        "#table tbody tr",
        """(rows) => rows.filter((row) => row.textContent.includes("★")).map(
          (row) => [row.dataset.configuration, row.classList.contains("best")])""",
    )
    assert {one for one, _ in marked} == expected, by
    assert all(classed for _, classed in marked)


def test_parameters_of_ones_own_have_columns(own_parameters: Example, open_report: Opener) -> None:
    """What an algorithm does not have is a dash, and comes last whichever way one sorts."""
    page = open_report(own_parameters)
    columns = _columns(page)
    heads = page.eval_on_selector_all("#table thead th", "(heads) => heads.map((h) => h.innerText)")
    named = dict(zip(columns, heads, strict=True))
    assert (named["gain"], named["mode"], named["step_size"]) == ("gain", "mode", "η")
    final = own_parameters.results.final.rows_by_key("configuration", named=True)
    for one, cells in _rows(page).items():
        chosen = final[one][0]
        for name in ("gain", "mode", "step_size"):
            text = chosen[name] if isinstance(chosen[name], str | None) else f"{chosen[name]:g}"
            assert cells[columns.index(name)] == (text or "–")
    for expected in (["0.2", "0.2", "0.4", "0.4"], ["0.4", "0.4", "0.2", "0.2"]):
        page.locator("#table thead th[data-column='gain'] button").click()
        eventually(page, lambda: _assert_cells(page, "gain", [*expected, "–", "–"]))  # noqa: B023


def _assert_cells(page: Page, column: str, expected: list[str]) -> None:
    place = _columns(page).index(column)
    assert [cells[place] for cells in _rows(page).values()] == expected


def test_the_table_without_constraints(unconstrained: Example, open_report: Opener) -> None:
    page = open_report(unconstrained)
    (cells,) = _rows(page).values()
    place = _columns(page).index("strong_objective")
    expected = unconstrained.results.final["strong_objective"][0]
    assert_close(_number(cells[place]), expected, 2e-3)
