"""Who is who on a page, and the measures of runs."""

import json
from pathlib import Path
from typing import Any

import polars
import pytest

import cmdpax
from cmdpax.reporting import tables
from cmdpax.reporting.content import content
from report_cases import SCHEDULE, invent, random_cmdps
from sweep_cases import OWN, OWN_GRID, specification

BANDIT = [{"environment": "bandit"}]
PAPER = [
    ["step_size", "η"],
    ["regularization", "τ"],
    ["max_multiplier", "λ_max"],
    ["margin", "margin"],
]
MANY = specification(
    cmdps=random_cmdps(seed=[1, 2]),
    seeds=3,
    algorithms=[
        {"name": "regularized-dual", "step_size": [0.3, 0.1], "regularization": [0.02, SCHEDULE]},
        {"name": "vanilla-primal-dual", "max_multiplier": [12, 6.5]},
        {"name": "vanilla-dual", "margin": ["0.1*k^-0.5", 0], "optimism": ["live", "theory"]},
    ],
)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> cmdpax.Results:
    return invent(MANY, tmp_path_factory.mktemp("many"))


def sweep_of(path: Path) -> dict[str, Any]:
    payload, _ = content(path, budget=1000)
    (sweep,) = payload["sweeps"]
    return sweep


def test_names(many: cmdpax.Results) -> None:
    sweep = sweep_of(many.path)
    assert sweep["algorithms"] == ["vanilla-primal-dual", "vanilla-dual", "regularized-dual"]
    labels = [(entry["algorithm"], entry["label"]) for entry in sweep["configurations"]]
    live = "scale 0.3, rewards estimated (1 where unvisited)"
    theory = (
        "scale 1, the theory's bonuses (δ = 0.1, K = 30), rewards estimated, unvisited rows zero"
    )
    assert labels == [
        (0, "η = 0.1, λ_max = 6.5"),
        (0, "η = 0.1, λ_max = 12"),
        *(
            (1, f"η = 0.1, margin = {margin}, {optimism}")
            for margin in ("0", "0.1*k^-0.5")
            for optimism in sorted(
                (live, theory),
                key=lambda text: next(
                    entry["id"]
                    for entry in sweep["configurations"]
                    if entry["optimism"] == text and entry["parameters"]["margin"] == margin
                ),
            )
        ),
        (2, "η = 0.1, τ = 0.02"),
        (2, f"η = 0.1, τ = {SCHEDULE}"),
        (2, "η = 0.3, τ = 0.02"),
        (2, f"η = 0.3, τ = {SCHEDULE}"),
    ]
    first = sweep["configurations"][0]
    chosen = {"step_size": "0.1", "regularization": "0", "max_multiplier": "6.5", "margin": "0"}
    assert first["parameters"] == chosen
    assert sweep["parameters"] == PAPER
    assert first["optimism"] == "scale 0.08"
    assert {entry["id"] for entry in sweep["configurations"]} == set(many.final["configuration"])


def test_parameters_of_ones_own(tmp_path: Path) -> None:
    """They are named as they are called; what an algorithm does not have is not said of it."""
    both = [OWN_GRID, {"name": "vanilla-dual"}, {"name": OWN, "gain": 0.2, "optimism": "live"}]
    sweep = sweep_of(invent(specification(cmdps=BANDIT, algorithms=both), tmp_path).path)
    assert sweep["algorithms"] == ["vanilla-dual", OWN]  # baselines first
    paper, own = PAPER, [["gain", "gain"], ["mode", "mode"]]
    assert sweep["parameters"] == [*paper, *own]
    first, *others = sweep["configurations"]
    assert first["label"] == "η = 0.1"
    assert list(first["parameters"]) == [name for name, _ in paper]
    for entry in others:
        gain, mode = entry["parameters"]["gain"], entry["parameters"]["mode"]
        assert set(entry["parameters"]) == {"gain", "mode"}
        assert entry["label"] == f"gain = {gain}, mode = {mode}, {entry['optimism']}"
    chosen = [tuple(entry["parameters"].values()) for entry in others]
    assert sorted(set(chosen)) == [
        *(("0.2", "dual"), ("0.2", "primal-dual")),
        *(("0.4", "dual"), ("0.4", "primal-dual")),
    ]
    assert len(chosen) == 5
    assert sweep["manifest"]["specification"]["algorithms"][0]["gain"] == [0.2, 0.4]


def test_no_two_labels_are_alike(tmp_path: Path) -> None:
    alike = [{"name": "vanilla-dual", "step_size": [0.1, 0.10000001, 0.2]}]
    sweep = sweep_of(invent(specification(cmdps=BANDIT, algorithms=alike), tmp_path).path)
    labels = [entry["label"] for entry in sweep["configurations"]]
    ids = [entry["id"] for entry in sweep["configurations"]]
    assert labels == [f"η = 0.1 ({ids[0]})", f"η = 0.1 ({ids[1]})", "η = 0.2"]


def test_algorithms_of_earlier_specifications_come_last(tmp_path: Path) -> None:
    first = specification(cmdps=BANDIT, algorithms=[{"name": "regularized-dual"}])
    invent(first, tmp_path)
    invent(first | {"algorithms": [{"name": "regularized-primal-dual"}]}, tmp_path)
    expected = ["regularized-primal-dual", "regularized-dual"]
    assert sweep_of(tmp_path)["algorithms"] == expected


def test_cmdps_without_runs_are_left_out(many: cmdpax.Results, tmp_path: Path) -> None:
    folder = invent(specification(cmdps=random_cmdps(seed=[7, 8, 9]), seeds=8), tmp_path).path
    sixteen = cmdpax.results(folder)
    gone = sixteen.final["cmdp"][0]
    for part in (folder / "parts").iterdir():
        runs = json.loads(part.read_text())["runs"]
        if sixteen.final.filter(polars.col("run").is_in(runs))["cmdp"][0] == gone:
            part.unlink()
    sweep = sweep_of(folder)
    names = [entry["name"] for entry in sixteen.manifest["cmdps"].values()]
    assert len(names) == 3
    there = [entry["name"] for fp, entry in sixteen.manifest["cmdps"].items() if fp != gone]
    assert [cmdp["name"] for cmdp in sweep["cmdps"]] == there
    assert set(sweep["runs"]["cmdp"]) == {0, 1}


def test_measures(many: cmdpax.Results) -> None:
    sweep = sweep_of(many.path)
    runs, final = sweep["runs"], many.final.rows_by_key("run", named=True, unique=True)
    names = [measure["name"] for measure in sweep["measures"]]
    start = many.final.columns.index("strong_objective")
    assert names == ["strong", "weak", *many.final.columns[start:]]
    assert list(runs["measures"]) == names
    assert set(runs["run"]) == set(final)
    for place, run in enumerate(runs["run"]):
        row = final[run]
        cmdp, configuration = runs["cmdp"][place], runs["configuration"][place]
        assert sweep["cmdps"][cmdp]["fingerprint"] == row["cmdp"]
        assert sweep["configurations"][configuration]["id"] == row["configuration"]
        assert runs["seed"][place] == row["seed"]
        row |= {
            kind: row[f"{kind}_objective"] + row[f"{kind}_constraints"]
            for kind in ("strong", "weak")
        }
        for name in names:
            expected = pytest.approx(row[name], rel=1e-6) if row[name] == row[name] else None
            assert runs["measures"][name][place] == expected
    order = list(zip(runs["configuration"], runs["cmdp"], runs["seed"], strict=True))
    assert order == sorted(order)


def test_measures_in_words(many: cmdpax.Results) -> None:
    labels = {measure["name"]: measure["label"] for measure in sweep_of(many.path)["measures"]}
    assert labels["strong"] == "strong regret, sum"
    assert labels["last_violation"] == "violation of the last policy"
    assert labels["unsafe_at_1e-09"] == "share of unsafe episodes"
    assert labels["unsafe_at_0.01"] == "share of unsafe episodes (by ≥ 0.01)"
    assert labels["sign_changes"] == "sign changes of the violation per 1,000 episodes"
    assert not any("_" in label for label in labels.values())
    assert len(set(labels.values())) == len(labels)
    assert tables.measure_label("unsafe_at_-0.5") == "share of unsafe episodes (by ≥ -0.5)"


def test_very_many_runs_are_means(many: cmdpax.Results, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = sweep_of(many.path)["runs"]
    monkeypatch.setattr(tables, "_MOST_NAMED_RUNS", 10)
    unnamed = sweep_of(many.path)["runs"]
    assert unnamed["run"] is None
    assert unnamed == plain | {"run": None}
    monkeypatch.setattr(tables, "MOST_RUNS", len(many.final) - 1)
    runs = sweep_of(many.path)["runs"]
    pairs = list(zip(runs["configuration"], runs["cmdp"], strict=True))
    assert len(pairs) == len(set(pairs)) == len(many.final) / 3
    assert runs["seed"] == [None] * len(pairs)
    for place, pair in enumerate(pairs):
        values = [
            plain["measures"]["weak"][i]
            for i, one in enumerate(zip(plain["configuration"], plain["cmdp"], strict=True))
            if one == pair
        ]
        expected = pytest.approx(sum(values) / 3, rel=1e-5)
        assert runs["measures"]["weak"][place] == expected


def test_the_manifest_has_the_first_cmdps(tmp_path: Path) -> None:
    wanted = specification(cmdps=random_cmdps(seed=list(range(25))), seeds=1, num_episodes=2)
    results = invent(wanted, tmp_path)
    sweep = sweep_of(tmp_path)
    assert list(sweep["manifest"]["cmdps"]) == list(results.manifest["cmdps"])[:20]
    assert sweep["manifest"]["specification"] == results.manifest["specification"]
    assert len(sweep["cmdps"]) == 25
    assert sweep["num_episodes"] == 2
