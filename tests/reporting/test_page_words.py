"""The page of a model in names, units and two senses: nothing is numbered or converted."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

from cmdpax.figures.colours import pens
from cmdpax.reporting.content import content
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
from report_cases import decode

Page = Any
Opener = Callable[..., Page]
TEXTS = ("energy [kWh], at most 24", "comfort [h], at least 3")


def test_what_the_page_is_told(in_words: Example) -> None:
    payload, blocks = content(in_words.results.path)
    (sweep,) = payload["sweeps"]
    (problem,) = sweep["cmdps"]
    assert problem["objective"] == {"name": "savings", "label": "savings [EUR]", "named": True}
    assert tuple(one["text"] for one in problem["constraints"]) == TEXTS
    assert [one["sign"] for one in problem["constraints"]] == [-1, 1]
    assert problem["thresholds"] == [24, 3]
    assert sorted(set(problem["rewards"]["u"][0])) == [0.2, 2, 5]
    energy = problem["frontier"][0]
    assert 24 in energy["thresholds"]
    assert min(energy["thresholds"]) >= energy["largest"]  # the least that can be met
    assert np.all(np.diff(energy["values"]) >= -1e-9)
    group = sweep["groups"][0]
    _, rows = decode(group, blocks[group["block"]])
    worst = np.maximum(rows["violation[0]"][2:], rows["violation[1]"][2:])
    np.testing.assert_allclose(rows["violation"][2:], worst, rtol=1e-4, atol=1e-6)


def test_no_number_or_converted_bound_is_shown(
    in_words: Example, open_report: Opener, screenshot: Callable[[Page, str], Path]
) -> None:
    page = open_report(in_words)
    settled(page)
    text = page.inner_text("main")
    assert "constraint 0" not in text
    assert "constraint 1" not in text
    names = page.locator("#problem-facts dt").all_inner_texts()
    facts = dict(zip(names, page.locator("#problem-facts dd").all_inner_texts(), strict=True))
    assert facts["energy [kWh]"] == "at most 24"
    assert facts["comfort [h]"] == "at least 3"
    assert "EUR per kWh" in facts["optimal multipliers λ*"]
    assert "optimal value V*, savings [EUR]" in facts
    options = page.locator("#curves-about option").all_inner_texts()
    assert options == ["savings [EUR]", "largest constraint", "energy [kWh]", "comfort [h]"]
    assert page.locator("#plane-constraint option").all_inner_texts() == list(TEXTS)
    assert layout(page, "story-chart-0", "yaxis", "title", "text") in (
        "violation, energy [kWh]",
        "violation, comfort [h]",
    )
    screenshot(page, "words")


@pytest.mark.parametrize("constraint", [0, 1])
def test_the_plane_is_in_the_sense_of_the_constraint(
    in_words: Example, open_report: Opener, constraint: int
) -> None:
    page = open_report(in_words)
    page.select_option("#plane-constraint", str(constraint))
    results = in_words.results
    cmdp = next(iter(results.cmdps))
    best = best_of(results, cmdp=cmdp)["vanilla-primal-dual"]
    rows = results.curves.filter(polars.col("configuration") == best).sort("seed", "episode")
    values = rows.collect()["constraint_values"].list.get(constraint).to_numpy().reshape(2, -1)
    bound = results.cmdps[cmdp].bounds[constraint]

    def look() -> None:
        found = {trace["name"]: trace for trace in traces(page, "plane-chart-0")}
        assert_close(found["path of the episodes"]["x"], values[0])
        assert_close(found["average of all episodes"]["x"], [values[0].mean()])
        assert found["optimum"]["x"] == [bound]
        title = layout(page, "plane-chart-0", "xaxis", "title", "text")
        assert title == TEXTS[constraint]
        assert layout(page, "plane-chart-0", "yaxis", "title", "text") == "savings [EUR]"
        shade = layout(page, "plane-chart-0", "shapes")[0]
        low, high = layout(page, "plane-chart-0", "xaxis", "range")
        expected = (bound, high) if constraint == 0 else (low, bound)
        assert_close([shade["x0"], shade["x1"]], expected)
        words = [one["text"] for one in layout(page, "plane-chart-0", "annotations")]
        assert words == (["← safe", "unsafe →"] if constraint == 0 else ["← unsafe", "safe →"])
        late = values[0, values.shape[1] // 2 :]
        missed = late > bound if constraint == 0 else late < bound
        said = page.inner_text("#plane-chart-0-text")
        assert f"unsafe in {round(100 * missed.mean())} %" in said
        assert ("at most 24" if constraint == 0 else "at least 3") in said

    eventually(page, look)


def test_curves_of_single_constraints(in_words: Example, open_report: Opener) -> None:
    page = open_report(in_words)
    results = in_words.results
    cmdp = next(iter(results.cmdps))
    best = best_of(results, cmdp=cmdp)
    titles = {
        ("episode", "0"): f"violation, {TEXTS[0]}",
        ("episode", "1"): f"violation, {TEXTS[1]}",
        ("strong", "0"): "strong regret, energy [kWh] (cumulative)",
        ("multipliers", "0"): "multiplier λ, energy [EUR per kWh]",
        ("episode", "objective"): "suboptimality, savings [EUR]",
    }
    for (account, about), title in titles.items():
        page.check(f"input[name=account][value={account}]")
        page.select_option("#curves-about", about)

        def look(account: str = account, about: str = about, title: str = title) -> None:
            assert layout(page, "curves-chart", "yaxis", "title", "text") == title
            if account != "episode" or about == "objective":
                return
            for trace in traces(page, "curves-chart"):
                algorithm = trace["name"].split(",")[0]
                series = f"violation[{about}]"
                _, units, _ = expected_curve(results, best[algorithm], series, cmdp)
                assert_close(trace["y"], units.mean(axis=0))

        eventually(page, look)


def test_two_runs_have_no_bands(in_words: Example, open_report: Opener) -> None:
    page = open_report(in_words)
    settled(page)
    assert {trace["fill"] for trace in traces(page, "curves-chart")} == {None}
    assert "bands need 3 runs" in page.inner_text("#curves-chart-text")


def test_three_runs_have_bands_that_end_at_zero(small: Example, open_report: Opener) -> None:
    page = open_report(small)
    settled(page)
    lower = [trace for trace in traces(page, "curves-chart") if trace["name"] == "lower"]
    assert lower
    assert min(min(trace["y"]) for trace in lower) >= 0


def test_lines_have_the_colours_of_pictures(in_words: Example, open_report: Opener) -> None:
    page = open_report(in_words)
    settled(page)
    drawn = pens(["vanilla-primal-dual", "regularized-primal-dual"])
    for trace in traces(page, "curves-chart"):
        assert trace["line"]["color"] == drawn[trace["name"].split(",")[0]].colour
