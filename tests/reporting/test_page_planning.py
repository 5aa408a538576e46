"""The page of a sweep with a learner that plans: steps, plans, and no columns without content."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cmdpax
from cmdpax.reporting.content import content
from page_cases import Example, assert_close, best_of, eventually, traces
from sweep_cases import SMALL

Page = Any
Opener = Callable[..., Page]

CHART = "curves-chart"


def _lines(page: Page) -> dict[str, dict[str, Any]]:
    """The drawn lines by name, without bands and the optimum."""
    found = traces(page, CHART)
    return {
        trace["name"]: trace
        for trace in found
        if trace["name"] not in ("lower", "upper") and not trace["name"].startswith("λ*")
    }


def _shapes(page: Page) -> dict[str, str]:
    return page.evaluate(
        """() => Object.fromEntries(document.querySelector("#curves-chart").data
          .map(({ name, line }) => [name.split(",")[0], line.shape ?? "linear"]))"""
    )


def test_a_plan_is_a_step_and_a_sum_is_not(planning: Example, open_report: Opener) -> None:
    page = open_report(planning)
    for account, shape in (
        *(("strong", "linear"), ("weak", "linear")),
        *(("episode", "hv"), ("multipliers", "hv")),
    ):
        page.check(f"input[name=account][value={account}]")

        def look(shape: str = shape) -> None:
            shapes = _shapes(page)
            assert shapes["replanning"] == shape
            assert shapes["regularized-primal-dual"] == "linear"

        eventually(page, look)


def test_the_numbers_are_those_of_the_sweep(planning: Example, open_report: Opener) -> None:
    """At the recorded episodes, which are dense at the beginning: the axis shows them."""
    page = open_report(planning)
    assert page.is_checked("#curves-x-log")
    assert page.evaluate(f"() => document.querySelector('#{CHART}').layout.xaxis.type") == "log"
    page.check("input[name=account][value=multipliers]")
    (cmdp,) = planning.results.cmdps
    best = best_of(planning.results, cmdp=cmdp)["replanning"]
    rows = planning.results.curves.collect().filter(configuration=best).sort("seed", "episode")
    expected = np.array(rows["multipliers"].to_list()).reshape(3, -1).mean(axis=0)

    def look() -> None:
        (line,) = [one for name, one in _lines(page).items() if name.startswith("replanning")]
        assert line["x"] == [1, 2, 3, 5, 8, 13, 20, 35, 60, 100, 180, 300, 600]
        assert_close(line["y"], expected)

    eventually(page, look)


def test_the_table_has_the_plans_and_no_columns_of_constants(
    planning: Example, open_report: Opener
) -> None:
    page = open_report(planning)
    columns = page.eval_on_selector_all(
        "#table thead th", "(heads) => heads.map((head) => head.dataset.column)"
    )
    chosen = columns[: columns.index("runs")]
    assert chosen == ["algorithm", "step_size", "regularization", "pessimism"]
    assert "plans" in columns
    rows = page.eval_on_selector_all(
        "#table tbody tr",
        """(rows) => rows.map((row) => [
          row.dataset.configuration, [...row.cells].map((cell) => cell.textContent.trim())])""",
    )
    final = planning.results.final
    for configuration, cells in rows:
        plans = final.filter(configuration=configuration)["plans"]
        shown = cells[columns.index("plans")]
        if plans.is_nan().all():
            assert shown == "–"
        else:
            assert_close(float(shown.split("±")[0].replace(",", "")), plans.mean(), 2e-3)


def test_the_story_says_how_many_plans(
    planning: Example, open_report: Opener, screenshot: Callable[[Page, str], Path]
) -> None:
    page = open_report(planning)
    (cmdp,) = planning.results.cmdps
    best = best_of(planning.results, cmdp=cmdp)["replanning"]
    plans = planning.results.final.filter(configuration=best).sort("seed")["plans"][0]
    assert (
        f"It made {plans:.0f} plans, and played each unchanged until the next"
        in page.inner_text("#story")
    )
    story = page.inner_text("#story")
    assert "η is the step size; κ is the pessimism" in story
    assert "vanilla" not in story
    shapes = page.evaluate(
        """() => [0, 1].map((place) =>
          document.querySelector(`#story-chart-${place}`).data[0].line.shape ?? "linear")"""
    )
    assert sorted(shapes) == ["hv", "linear"]
    assert screenshot(page, "planning").stat().st_size > 10_000


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> cmdpax.Results:
    """More episodes than 32 bits count."""
    return cmdpax.sweep(
        {
            "num_episodes": 10**11,
            "seeds": 2,
            "record": [1, 10, 1000, 10**6, 10**9, 10**10],
            "cmdps": [{"environment": "random", "parameters": SMALL | {"seed": 1}}],
            "algorithms": [{"name": "replanning"}],
        },
        tmp_path_factory.mktemp("long") / "sweep",
    )


class TestContent:
    """What the page is given; without a browser."""

    def test_episodes_of_any_number(self, results: cmdpax.Results) -> None:
        payload, _ = content(results.path)
        (sweep,) = payload["sweeps"]
        (group,) = sweep["groups"]
        assert group["episodes"] == [1, 10, 1000, 10**6, 10**9, 10**10, 10**11]
        json.dumps(payload, allow_nan=False)

    def test_labels_and_what_plans(self, results: cmdpax.Results) -> None:
        payload, _ = content(results.path)
        (sweep,) = payload["sweeps"]
        assert (sweep["planning"], sweep["log_episodes"]) == ([0], True)
        (configuration,) = sweep["configurations"]
        assert configuration["label"] == "default parameters"
        measures = {one["name"]: one["label"] for one in sweep["measures"]}
        assert measures["plans"] == "plans made"
        assert measures["infeasible_plans"] == "plans without a feasible policy"
        assert all(100 < count < 2000 for count in sweep["runs"]["measures"]["plans"])

    def test_beside_another_algorithm(self, tmp_path: Path) -> None:
        """Each begins with its own parameters, and what is not at its default is told."""
        algorithms = [
            {"name": "replanning", "growth": 0.5},
            {"name": "vanilla-primal-dual"},
        ]
        results = cmdpax.sweep(
            {
                "num_episodes": 40,
                "seeds": 2,
                "cmdps": [{"environment": "bandit"}],
                "algorithms": algorithms,
            },
            tmp_path / "sweep",
        )
        payload, _ = content(results.path)
        (sweep,) = payload["sweeps"]
        labels = [
            (sweep["algorithms"][one["algorithm"]], one["label"]) for one in sweep["configurations"]
        ]
        assert labels == [("vanilla-primal-dual", "η = 0.1"), ("replanning", "g = 0.5")]
        assert (sweep["planning"], sweep["log_episodes"]) == ([1], False)
        plans = dict(zip(results.final["algorithm"], results.final["plans"], strict=True))
        assert np.isnan(plans["vanilla-primal-dual"])
        again = results.repeat(results.final.filter(algorithm="replanning")["run"][0])
        assert again.plans is not None
        assert plans["replanning"] == again.plans.made[0]
        best = results.best(by="plans").to_dicts()
        scores = {row["algorithm"]: row["score"] for row in best}
        assert scores["replanning"] == plans["replanning"]
        assert np.isnan(scores["vanilla-primal-dual"])
