"""The trade-off plane, the problem and the story in a browser, against the tables of the sweep."""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars

import cmdpax
from page_cases import Example, assert_close, best_of, eventually, layout, settled, traces

Page = Any
Opener = Callable[..., Page]

BOTH = ("vanilla-primal-dual", "regularized-primal-dual")


def _runs(
    results: cmdpax.Results, configuration: str, cmdp: str, constraint: int
) -> tuple[np.ndarray, np.ndarray]:
    """Constraint values and values, `[seeds, episodes]`."""
    one = (polars.col("configuration") == configuration) & (polars.col("cmdp") == cmdp)
    curves = results.curves.filter(one).sort("seed", "episode").collect()
    seeds = curves["seed"].n_unique()
    safety = curves["constraint_values"].list.get(constraint).to_numpy().reshape(seeds, -1)
    return safety, curves["value"].to_numpy().reshape(seeds, -1)


def _assert_path(page: Page, side: int, safety: np.ndarray, value: np.ndarray, last: int) -> None:
    """The path up to an episode, the latest policy, and the average of all episodes."""
    found = {trace["name"]: trace for trace in traces(page, f"plane-chart-{side}")}
    path = found["path of the episodes"]
    assert_close(path["x"], safety[:last])
    assert_close(path["y"], value[:last])
    latest, average = found["latest"], found["average of all episodes"]
    assert_close([latest["x"][0], latest["y"][0]], [safety[last - 1], value[last - 1]])
    assert_close([average["x"][0], average["y"][0]], [safety.mean(), value.mean()])


def _side_of(page: Page, side: int, results: cmdpax.Results, cmdp: str) -> str:
    """The configuration that a side shows: its own, or the best of its algorithm."""
    kind, place = page.input_value(f"#plane-choice-{side}").split(":")
    sweep = page.evaluate(
        "() => ({ algorithms: cmdpax.sweep().algorithms, all: cmdpax.sweep().configurations })"
    )
    if kind == "configuration":
        return sweep["all"][int(place)]["id"]
    return best_of(results, cmdp=cmdp)[sweep["algorithms"][int(place)]]


def test_paths_are_the_runs_values(small: Example, open_report: Opener) -> None:
    page = open_report(small)
    results = small.results
    shown = [_side_of(page, side, results, next(iter(results.cmdps))) for side in (0, 1)]
    assert len(set(shown)) == 2, "a baseline against its counterpart"
    for value, cmdp in [("0", 0), ("1", 1), ("", 0)]:
        page.select_option("#cmdp", value)
        fingerprint = list(results.cmdps)[cmdp]
        for mode in ("first", "mean"):
            page.select_option("#plane-run", mode)

            def look(mode: str = mode, fingerprint: str = fingerprint) -> None:
                for side in (0, 1):
                    one = _side_of(page, side, results, fingerprint)
                    runs = _runs(results, one, fingerprint, 0)
                    rows = [part[0] if mode == "first" else part.mean(axis=0) for part in runs]
                    _assert_path(page, side, *rows, 60)

            eventually(page, look)


def test_any_configuration_on_either_side(small: Example, open_report: Opener) -> None:
    page = open_report(small)
    results, cmdp = small.results, next(iter(small.results.cmdps))
    for place in range(4):
        page.select_option("#plane-choice-1", f"configuration:{place}")

        def look() -> None:
            safety, value = _runs(results, _side_of(page, 1, results, cmdp), cmdp, 0)
            _assert_path(page, 1, safety[0], value[0], 60)

        eventually(page, look)


def test_the_slider_shows_the_path_until_then(small: Example, open_report: Opener) -> None:
    page = open_report(small)
    results, cmdp = small.results, next(iter(small.results.cmdps))
    safety, value = _runs(results, _side_of(page, 0, results, cmdp), cmdp, 0)
    for share in (0, 250, 500, 1000):
        page.locator("#plane-until").fill(str(share))

        def look() -> None:
            told = int(page.inner_text("#plane-until-value").removeprefix("episode "))
            _assert_path(page, 0, safety[0], value[0], told)

        eventually(page, look)
        assert abs(int(page.inner_text("#plane-until-value")[8:]) - 0.06 * share) <= 1


def test_the_path_plays_and_stops(small: Example, open_report: Opener) -> None:
    page = open_report(small)
    page.click("#plane-play")
    slider = page.locator("#plane-until")

    def begun() -> None:
        assert 5 <= int(slider.input_value()) < 1000

    eventually(page, begun)
    assert page.inner_text("#plane-play") == "Stop"
    page.click("#plane-play")
    stopped = slider.input_value()
    settled(page)
    assert slider.input_value() == stopped
    assert page.inner_text("#plane-play") == "Play"


def test_the_frontier_and_the_optimum_of_each_constraint(
    two_constraint_sweep: Example, open_report: Opener
) -> None:
    page = open_report(two_constraint_sweep)
    for constraint in (0, 1):
        page.select_option("#plane-constraint", str(constraint))
        _assert_frontier(page, two_constraint_sweep.results, constraint)
    page.check("#plane-whole")

    def whole() -> None:
        line = next(one for one in traces(page, "plane-chart-0") if one["name"] == "frontier")
        low, high = layout(page, "plane-chart-0", "xaxis", "range")
        assert low <= min(line["x"])
        assert high >= max(line["x"])

    eventually(page, whole)


def _assert_frontier(page: Page, results: cmdpax.Results, constraint: int) -> None:
    ((fingerprint, cmdp),) = results.cmdps.items()
    optimum = results.manifest["cmdps"][fingerprint]["optimum"]

    def look() -> None:
        for side in (0, 1):
            found = {trace["name"]: trace for trace in traces(page, f"plane-chart-{side}")}
            star, line = found["optimum"], found["frontier"]
            assert_close([star["x"][0], star["y"][0]], [cmdp.thresholds[constraint], optimum])
            assert len(line["x"]) > 10
            expected = cmdpax.frontier(cmdp, thresholds=line["x"][:-1:8], constraint=constraint)
            assert_close(line["y"][:-1:8], expected.value)
            one = _side_of(page, side, results, fingerprint)
            safety, value = _runs(results, one, fingerprint, constraint)
            _assert_path(page, side, safety[0], value[0], 40)

    eventually(page, look)


def test_both_sides_have_the_same_scale(small: Example, open_report: Opener) -> None:
    page = open_report(small)
    for axis in ("xaxis", "yaxis"):
        ranges = [layout(page, f"plane-chart-{side}", axis, "range") for side in (0, 1)]
        assert_close(ranges[0], ranges[1], 1e-9)


# ---------------------------------------------------------------------------- problem and story


def test_the_problem_in_numbers(small: Example, open_report: Opener) -> None:
    page = open_report(small)
    results = small.results
    for place, (fingerprint, cmdp) in enumerate(results.cmdps.items()):
        page.select_option("#cmdp", str(place))
        known = results.manifest["cmdps"][fingerprint]

        def look(known: Any = known, cmdp: Any = cmdp, fingerprint: str = fingerprint) -> None:
            names = page.locator("#problem-facts dt").all_inner_texts()
            facts = dict(
                zip(names, page.locator("#problem-facts dd").all_inner_texts(), strict=True)
            )
            assert facts["name"] == known["name"]
            assert fingerprint.startswith(facts["fingerprint"])
            assert_close(float(facts["optimal value V*, reward"]), known["optimum"], 1e-3)
            assert_close(float(facts["optimal multipliers λ*"]), known["multipliers"][0], 1e-3)
            assert facts["utility"].startswith("at least ")
            assert_close(float(facts["utility"][9:]), cmdp.thresholds[0], 1e-3)
            (gap,) = (text for name, text in facts.items() if name.startswith("Slater gap"))
            assert_close(float(gap), known["slater_gap"], 1e-3)
            (dots,) = traces(page, "problem-chart")
            assert_close(np.sort(dots["x"]), np.sort(cmdp.constraint_rewards.ravel()))
            assert_close(np.sort(dots["y"]), np.sort(cmdp.rewards.ravel()))

        eventually(page, look)


def test_the_story_is_a_run_of_each_kind(small: Example, open_report: Opener) -> None:
    """Best configurations on the first CMDP, first seed: its violations, and both accounts."""
    page = open_report(small)
    results, cmdp = small.results, next(iter(small.results.cmdps))
    best = best_of(results, cmdp=cmdp)
    for side, algorithm in enumerate(BOTH):
        final = (
            results.final.filter(configuration=best[algorithm], cmdp=cmdp)
            .sort("seed")
            .row(0, named=True)
        )
        safety, _ = _runs(results, best[algorithm], cmdp, 0)
        violation = results.cmdps[cmdp].thresholds[0] - safety[0]
        areas = traces(page, f"story-chart-{side}")
        assert_close(areas[2]["y"], violation)
        assert_close(areas[2]["x"], np.arange(1, 61))
        assert_close(max(areas[0]["y"]), violation.max())
        assert_close(min(areas[1]["y"]), min(0, violation.min()))
        heading = page.locator("#story h3").nth(side).inner_text()
        assert heading.startswith(algorithm)
        numbers = page.locator("#story .accounts").nth(side).locator("b").all_inner_texts()
        strong, spared, weak = (
            float(text.removeprefix("− ").removeprefix("= ").replace("−", "-")) for text in numbers
        )
        assert_close(strong, final["strong_constraints"], 1e-3)
        assert_close(weak, final["weak_constraints"], 1e-3)
        assert_close(spared, final["strong_constraints"] - final["weak_constraints"], 1e-3)
        unsafe = int((violation > 1e-9).sum())
        assert f"{unsafe} of 60 episodes" in page.inner_text(f"#story-chart-{side}-text")
    ranges = [layout(page, f"story-chart-{side}", "yaxis", "range") for side in (0, 1)]
    assert_close(ranges[0], ranges[1], 1e-9)
