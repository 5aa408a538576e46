"""The curves of a page are those of the folder."""

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

import cmdpax
from cmdpax.experiments.tables import LATER
from cmdpax.intervals import half_width
from cmdpax.reporting.content import content
from report_cases import ALGORITHMS, decode, invent, random_cmdps
from sweep_cases import specification

LISTS = {
    "multipliers": "multipliers",
    "strong_constraints": "strong_by_constraint",
    "weak_constraints": "weak_by_constraint",
}
OBJECTIVE = ["suboptimality", "strong_objective", "weak_objective"]
CONSTRAINTS = ["violation", "strong_constraints", "weak_constraints"]
CASES: dict[str, dict[str, Any]] = {
    "several CMDPs, algorithms and schedules": {
        "cmdps": random_cmdps(seed=[1, 2]),
        "algorithms": ALGORITHMS,
        "seeds": 3,
    },
    "one run": {"cmdps": [{"environment": "bandit"}]},
    "no constraint": {"cmdps": random_cmdps(num_constraints=0), "seeds": 2},
    "two constraints": {"cmdps": random_cmdps(num_constraints=2, seed=[1, 2]), "seeds": 2},
    "one constraint, and two": {"cmdps": random_cmdps(num_constraints=[1, 2])},
    "no constraint, and two": {"cmdps": random_cmdps(num_constraints=[0, 2])},
    "seven seeds": {"cmdps": [{"environment": "bandit"}], "seeds": 7, "record": [1, 2, 30]},
}


@pytest.fixture(scope="module", params=CASES)
def made(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[cmdpax.Results, tuple[dict[str, Any], list[str]]]:
    plain = specification(seeds=1, record="all", algorithms=[{"name": "vanilla-primal-dual"}])
    results = invent(plain | CASES[request.param], tmp_path_factory.mktemp("sweep"))
    return results, content(results.path)


@functools.lru_cache
def frames(path: Path) -> dict[Any, polars.DataFrame]:
    """Every run's curves, by its identity."""
    return cmdpax.results(path).curves.sort("episode").collect().partition_by("run", as_dict=True)


def curve(results: cmdpax.Results, run: str, series: str) -> tuple[np.ndarray, np.ndarray]:
    """A series of one run, straight from the folder."""
    rows = frames(results.path)[(run,)]
    name, _, constraint = series.rstrip("]").partition("[")
    episodes = rows["episode"].to_numpy()
    if not constraint:
        return episodes, rows[name].to_numpy()
    if name == "violation":
        model = results.cmdps[rows["cmdp"][0]]
        reached = np.array(rows["constraint_values"].to_list())
        return episodes, -model.words.slack(reached, model.bounds)[:, int(constraint)]
    return episodes, np.array(rows[LISTS[name]].to_list())[:, int(constraint)]


def runs_of(results: cmdpax.Results, sweep: dict[str, Any], group: dict[str, Any]) -> list[Any]:
    """The runs of each unit of a group, as lists of identities."""
    chosen = results.final.filter(
        polars.col("configuration") == sweep["configurations"][group["configuration"]]["id"]
    )
    if group["cmdp"] is None:
        cmdps = [cmdp["fingerprint"] for cmdp in sweep["cmdps"]]
        return [chosen.filter(polars.col("cmdp") == cmdp)["run"].to_list() for cmdp in cmdps]
    fingerprint = sweep["cmdps"][group["cmdp"]]["fingerprint"]
    mine = chosen.filter(polars.col("cmdp") == fingerprint).sort("seed")
    return [[run] for run in mine["run"]]


def assert_group(
    results: cmdpax.Results, sweep: dict[str, Any], group: dict[str, Any], block: str
) -> None:
    episodes, rows = decode(group, block)
    units = runs_of(results, sweep, group)
    assert group["units"] == len(units)
    assert len(group["shown"]) == min(len(units), 5)
    for series, numbers in rows.items():
        curves = [[curve(results, run, series) for run in unit] for unit in units]
        recorded = curves[0][0][0]
        places = np.searchsorted(recorded, episodes)
        assert recorded[places].tolist() == episodes
        assert group["recorded"] == len(recorded)
        values = np.array([np.mean([one[1] for one in unit], axis=0) for unit in curves])[:, places]
        close = {"rtol": 2**-16, "atol": 1e-30, "err_msg": series}
        np.testing.assert_allclose(numbers[0], values.mean(axis=0), **close)
        if len(units) > 1:
            np.testing.assert_allclose(numbers[1], half_width(values), rtol=2**-10, atol=1e-30)
            np.testing.assert_allclose(numbers[2:], values[:5], **close)


def test_every_curve_comes_back(made) -> None:
    results, (payload, blocks) = made
    (sweep,) = payload["sweeps"]
    assert [group["block"] for group in sweep["groups"]] == list(range(len(blocks)))
    for group in sweep["groups"]:
        assert group["kept"] == group["recorded"]
        assert_group(results, sweep, group, blocks[group["block"]])


def test_there_is_a_group_for_everything(made) -> None:
    results, (payload, _) = made
    (sweep,) = payload["sweeps"]
    several = len(sweep["cmdps"]) > 1
    wanted = {
        (cmdp, configuration)
        for cmdp in [*range(len(sweep["cmdps"])), *([None] if several else [])]
        for configuration in range(len(sweep["configurations"]))
    }
    assert {(one["cmdp"], one["configuration"]) for one in sweep["groups"]} == wanted
    assert len(sweep["groups"]) == len(wanted)
    assert sweep["with_curves"] == len(sweep["cmdps"]) == len(results.cmdps)


def test_series(made) -> None:
    _, (payload, _) = made
    (sweep,) = payload["sweeps"]
    for group in sweep["groups"]:
        sizes = {
            cmdp["sizes"]["num_constraints"]
            for place, cmdp in enumerate(sweep["cmdps"])
            if group["cmdp"] in (None, place)
        }
        expected = OBJECTIVE + (CONSTRAINTS if 0 not in sizes else [])
        single = [name for name in group["series"] if "[" in name]
        assert [name for name in group["series"] if "[" not in name] == expected
        if sizes == {1}:
            assert single == ["multipliers[0]"]
        elif sizes == {2}:
            lists = ["multipliers", "violation", "strong_constraints", "weak_constraints"]
            assert single == [f"{name}[{i}]" for name in lists for i in (0, 1)]
        else:
            assert single == []


def test_units_are_named(made) -> None:
    results, (payload, _) = made
    (sweep,) = payload["sweeps"]
    for group in sweep["groups"]:
        if group["cmdp"] is None:
            assert group["unit"] == "CMDPs"
            assert group["shown"] == [cmdp["name"] for cmdp in sweep["cmdps"]][:5]
        else:
            assert group["unit"] == "runs"
            seeds = sorted(set(results.final["seed"]))[:5]
            assert group["shown"] == [f"seed {seed}" for seed in seeds]


def test_it_is_json(made) -> None:
    results, (payload, blocks) = made
    assert json.loads(json.dumps(payload, allow_nan=False)) == payload
    assert all(block.isascii() and block.isprintable() for block in blocks)
    assert payload["kind"] == "sweep"
    assert payload["folder"] == results.path.name
    assert payload["claims"] is None
    assert payload["playground"]["multiplier"] == pytest.approx(1)
    assert payload["playground"]["optimum"] == pytest.approx(0.6)
    assert payload["student"][:3] == [None, None, pytest.approx(12.7062, abs=1e-4)]
    assert len(payload["student"]) == 61
    assert set(payload["palette"]) == {"light", "dark", "dashes"}


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> cmdpax.Results:
    """Six CMDPs, twelve configurations, seven seeds, 400 episodes."""
    wanted = {
        "num_episodes": 400,
        "record": "all",
        "seeds": 7,
        "cmdps": random_cmdps(seed=list(range(1, 7))),
        "algorithms": [{"name": "vanilla-dual", "step_size": [0.1 * i for i in range(1, 13)]}],
    }
    return invent(wanted, tmp_path_factory.mktemp("large"))


class TestBudget:
    @pytest.mark.parametrize("budget", [2_000_000, 400_000, 150_000, 50_000, 20_000, 10_000])
    def test_is_respected(self, large: cmdpax.Results, budget: int) -> None:
        payload, blocks = content(large.path, budget=budget)
        (sweep,) = payload["sweeps"]
        sizes = [
            group["kept"] * (1 + len(group["series"]) * (2 + len(group["shown"])))
            for group in sweep["groups"]
        ]
        assert 0.5 * min(budget, 1_600_000) < sum(sizes) <= budget
        assert len(blocks) == len(sweep["groups"]) == 12 * (sweep["with_curves"] + 1)
        assert len(sweep["cmdps"]) == 6
        assert len({len(group["shown"]) for group in sweep["groups"]}) == 1
        if budget >= 20_000:
            assert min(group["kept"] for group in sweep["groups"]) > 30
        for place, cmdp in enumerate(sweep["cmdps"]):
            has_pictures = place < max(sweep["with_curves"], 1)
            assert (cmdp["rewards"] is not None) == has_pictures

    def test_no_extreme_of_a_shown_run_is_lost(self, large: cmdpax.Results) -> None:
        payload, blocks = content(large.path, budget=300_000)
        (sweep,) = payload["sweeps"]
        group = sweep["groups"][3]
        assert group["kept"] < group["recorded"] == 400
        _, rows = decode(group, blocks[group["block"]])
        for unit, shown in zip(runs_of(large, sweep, group), rows["violation"][2:], strict=False):
            _, values = curve(large, unit[0], "violation")
            assert shown.max() == pytest.approx(values.max(), rel=2**-16)
            assert shown.min() == pytest.approx(values.min(), rel=2**-16)


def test_a_folder_of_an_earlier_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regrets of single constraints are left out where some run does not have them."""
    wanted = specification(cmdps=random_cmdps(num_constraints=2, seed=1), record="all")
    results = invent(wanted, tmp_path)
    absent = polars.lit(None, dtype=polars.List(polars.Float64))
    run = results.final["run"][0]
    without = results.curves.with_columns(
        polars.when(polars.col("run") == run).then(absent).otherwise(polars.col(name)).alias(name)
        for name in LATER
    )
    monkeypatch.setattr(cmdpax.Results, "curves", without)
    payload, _ = content(tmp_path)
    (sweep,) = payload["sweeps"]
    whole = ["strong_constraints[1]" in group["series"] for group in sweep["groups"]]
    assert sorted(whole) == [False, True]
    assert all("violation[1]" in group["series"] for group in sweep["groups"])


def test_runs_that_went_to_infinity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = invent(specification(record="all"), tmp_path)
    lost = polars.when(polars.col("episode") > 20).then(float("inf")).otherwise("violation")
    curves = results.curves.with_columns(violation=lost)
    monkeypatch.setattr(cmdpax.Results, "curves", curves)
    payload, blocks = content(tmp_path)
    group = payload["sweeps"][0]["groups"][0]
    _, rows = decode(group, blocks[group["block"]])
    assert np.isfinite(rows["violation"]).all()
    assert (rows["violation"][0, 20:] > 1e38).all()


def test_many_rows_are_read_in_portions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = specification(algorithms=ALGORITHMS)
    path = invent(wanted, tmp_path).path
    at_once = content(path)
    for rows in (1, 45):
        monkeypatch.setattr("cmdpax.reporting.curves._ROWS_AT_ONCE", rows)
        assert content(path) == at_once
