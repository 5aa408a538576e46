"""`sweep`: the numbers are those of `learn`, and what is there is not made again."""

import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

import cmdpax
from cmdpax.experiments import SweepProgress
from cmdpax.learners import as_algorithm
from lanes import quick_or_whole
from sweep_cases import SMALL, assert_same_results, contents, specification

LISTS = {
    "environment": "gridworld",
    "parameters": {"layout": "S.1/..G", "horizon": 4, "slip": [0.1, 0.3]},
}
GRID = {"step_size": [0.3, "0.5*(k+2)^-0.2"], "regularization": [0.02, 0.1]}
PRIMAL_DUAL = {"name": "regularized-primal-dual", **GRID}
CASES: dict[str, tuple[int, dict[str, Any]]] = {
    "stacked": (1, {"algorithms": [PRIMAL_DUAL | {"step_size": 0.3}], "record": [3, 17]}),
    "one CMDP per batch": (2, {"algorithms": [PRIMAL_DUAL], "record": "all"}),
    "successor lists": (1, {"cmdps": [LISTS], "unsafe_at": [-0.5, 0.0, 0.2]}),
    "no constraint, two constraints": (
        2,
        {
            "cmdps": [
                {
                    "environment": "random",
                    "parameters": SMALL | {"num_constraints": [0, 2], "seed": [1, 2]},
                }
            ],
            "algorithms": [PRIMAL_DUAL | {"max_multiplier": 0.3, "margin": 0.05}],
            "seeds": 1,
        },
    ),
    "estimated and known rewards": (
        2,
        {
            "algorithms": [
                {"name": "vanilla-dual", "optimism": ["live", "empirical", {"scale": 1}]}
            ],
            "observations": "bernoulli",
        },
    ),
    "single precision": (1, {"precision": "single", "cmdps": [{"environment": "bandit"}]}),
}


def own_factory(knowledge: Any, chosen: Any) -> Any:
    return as_algorithm("vanilla-dual").factory(knowledge, chosen)


def scheduled(row: dict[str, Any], name: str) -> cmdpax.schedules.Schedule:
    return cmdpax.schedules.Schedule(*(row[name + part] for part in ("", "_exponent", "_offset")))


def learned(results: cmdpax.Results, row: dict[str, Any]) -> cmdpax.History:
    """What `learn` makes of a row of `final`."""
    specified = results.manifest["specification"]
    optimism = {
        name.removeprefix("optimism_"): value
        for name, value in row.items()
        if name.startswith("optimism_")
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cmdpax.CmdpaxWarning)  # of small caps
        return cmdpax.learn(
            results.cmdps[row["cmdp"]],
            row["algorithm"],
            num_episodes=row["num_episodes"],
            seeds=[row["seed"]],
            step_size=scheduled(row, "step_size"),
            regularization=scheduled(row, "regularization"),
            margin=scheduled(row, "margin"),
            max_multiplier=row["max_multiplier"],
            optimism=cmdpax.Optimism(**optimism),
            **{name: specified[name] for name in ("observations", "precision", "unsafe_at")},
        )


def assert_final_row(row: dict[str, Any], history: cmdpax.History) -> None:
    exponents = history.growth_exponent()
    expected = {name: array[0] for name, array in history.summary().items()} | {
        "strong_objective": history.strong_regret.objective[0, -1],
        "strong_constraints": history.strong_regret.maximum[0, -1],
        "weak_objective": history.weak_regret.objective[0, -1],
        "weak_constraints": history.weak_regret.maximum[0, -1],
        "growth_objective": exponents.objective[0],
        "growth_constraints": exponents.maximum[0],
        "last_suboptimality": history.suboptimality[0, -1],
        "last_violation": history.violation[0, -1].max(initial=-np.inf),
        "suboptimality_std": history.suboptimality[0, row["num_episodes"] // 2 :].std(),
        "capped": (history.multipliers[0] >= row["max_multiplier"]).mean(axis=0).max(initial=0.0),
    }
    for level, share in zip(history.unsafe_at, history.unsafe[0], strict=True):
        expected[f"unsafe_at_{level:g}"] = share
    if history.thresholds.size == 0:
        expected["last_violation"] = 0.0
    for name, number in expected.items():
        np.testing.assert_allclose(row[name], number, rtol=0, atol=1e-9, err_msg=name)


def assert_curves(curves: polars.DataFrame, history: cmdpax.History) -> None:
    places = curves["episode"].to_numpy() - 1
    nothing = np.zeros(len(places))
    violation = history.violation[0, places]
    expected = {
        "value": history.value[0, places],
        "suboptimality": history.suboptimality[0, places],
        "violation": violation.max(axis=-1) if violation.shape[-1] else nothing,
        "strong_objective": history.strong_regret.objective[0, places],
        "strong_constraints": history.strong_regret.maximum[0, places],
        "weak_objective": history.weak_regret.objective[0, places],
        "weak_constraints": history.weak_regret.maximum[0, places],
        "constraint_values": history.constraint_values[0, places],
        "multipliers": history.multipliers[0, places],
        "strong_by_constraint": history.strong_regret.constraints[0, places],
        "weak_by_constraint": history.weak_regret.constraints[0, places],
    }
    assert set(curves.columns) == {
        *expected,
        *("run", "episode", "cmdp", "algorithm", "configuration", "seed"),
    }
    for name, array in expected.items():
        found = np.array(curves[name].to_list(), dtype=float)
        np.testing.assert_allclose(found, array, rtol=0, atol=1e-9, err_msg=name)


@pytest.mark.filterwarnings("ignore:in .* runs a multiplier was")
@pytest.mark.parametrize("case", [quick_or_whole(case, quick=case == "stacked") for case in CASES])
def test_every_row_is_what_learn_gives(case: str, tmp_path: Path) -> None:
    num_batches, changes = CASES[case]
    wanted = cmdpax.Specification(**specification(**changes))
    results = cmdpax.sweep(wanted, tmp_path)
    assert len(list((tmp_path / "parts").iterdir())) == num_batches
    curves = results.curves.collect().partition_by("run", as_dict=True)
    assert set(curves) == {(run,) for run in results.final["run"]}
    for row in results.final.iter_rows(named=True):
        history = learned(results, row)
        assert_final_row(row, history)
        mine = curves[(row["run"],)]
        assert mine["episode"].to_list() == wanted.settings.recorded.tolist()
        for name in ("cmdp", "algorithm", "configuration", "seed"):
            assert mine[name].unique().to_list() == [row[name]]
        assert_curves(mine, history)
    assert results.final["weak_objective"].n_unique() == len(results.final)  # runs differ


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[cmdpax.Results]:
    """Results to read; nobody adds to them."""
    folder = tmp_path_factory.mktemp("made")
    results = cmdpax.sweep(specification(), folder)
    before = contents(folder)
    yield results
    assert contents(folder) == before


class TestAgain:
    def test_nothing_is_done(self, made):
        before = contents(made.path)
        stands: list[SweepProgress] = []
        again = cmdpax.sweep(specification(), made.path, progress=stands.append)
        assert contents(made.path) == before
        assert stands == []
        assert again.final.equals(made.final)

    @pytest.mark.whole
    def test_a_larger_specification_adds_what_is_missing(self, tmp_path):
        first = cmdpax.sweep(specification(), tmp_path)
        before = contents(tmp_path)
        larger = specification(
            seeds=3,
            cmdps=[{"environment": "random", "parameters": SMALL | {"seed": [3, 2, 1]}}],
        )
        stands: list[SweepProgress] = []
        second = cmdpax.sweep(larger, tmp_path, progress=stands.append)
        assert (stands[0].runs, stands[0].total_runs) == (8, 18)
        assert stands[-1] == (18, 18, 540, 540, "done", "", None)
        after = contents(tmp_path)
        changed = {name for name in before if after[name] != before[name]}
        assert changed == {"manifest.json"}
        runs = [json.loads(text)["runs"] for name, (_, text) in after.items() if "parts/" in name]
        assert sorted(len(batch) for batch in runs) == [8, 10]
        assert second.final["run"].is_unique().all()
        kept = second.final.filter(polars.col("run").is_in(first.final["run"].to_list()))
        assert kept.equals(first.final)
        fresh = cmdpax.sweep(larger, tmp_path / "fresh")
        assert_same_results(second, fresh)
        assert list(second.cmdps) == list(first.cmdps) + [
            name for name in fresh.cmdps if name not in first.cmdps
        ]

    def test_a_smaller_specification_removes_nothing(self, tmp_path):
        cmdpax.sweep(specification(seeds=1), tmp_path)
        before = len(cmdpax.sweep(specification(seeds=2), tmp_path).final)
        assert len(cmdpax.sweep(specification(seeds=1), tmp_path).final) == before == 8

    @pytest.mark.parametrize(
        ("changes", "sentence"),
        [
            ({"num_episodes": 31}, "num_episodes = 30, the specification has 31"),
            ({"record": 6}, "record = 5, the specification has 6"),
            ({"record": [5]}, "record = 5, the specification has [5]"),
            ({"observations": "bernoulli"}, "observations = mean, the specification has bernoulli"),
            ({"precision": "single"}, "precision = double, the specification has single"),
            ({"unsafe_at": [0.1]}, "unsafe_at = [1e-09, 0.01, 0.02, 0.05, 0.1], the spec"),
        ],
    )
    def test_other_shared_settings_need_another_folder(
        self, made, changes: dict[str, Any], sentence: str
    ):
        before = contents(made.path)
        with pytest.raises(cmdpax.ParameterError, match=re.escape(sentence)) as caught:
            cmdpax.sweep(specification(**changes), made.path)
        assert str(made.path) in str(caught.value)
        assert "use another folder." in str(caught.value)
        assert contents(made.path) == before

    def test_results_open_it(self, made):
        for path in (made.path, str(made.path)):
            opened = cmdpax.results(path)
            assert opened.final.equals(made.final)
            assert opened.curves.collect().equals(made.curves.collect())
            assert opened.manifest == made.manifest
        assert repr(opened) == f"Results({str(made.path)!r}: 8 runs, 2 CMDPs)"

    def test_the_manifest_says_everything(self, made):
        written = made.manifest["specification"]
        assert cmdpax.Specification(**written) == cmdpax.Specification(**specification())
        for fingerprint, cmdp in made.cmdps.items():
            assert cmdp.fingerprint == fingerprint
            solution = cmdpax.solve(cmdp)
            described = made.manifest["cmdps"][fingerprint]
            assert described["optimum"] == solution.value
            assert described["slater_gap"] == solution.slater_gap
            assert described["multipliers"] == solution.multipliers.tolist()
            assert described["sizes"] == cmdp.sizes._asdict()
            assert described["source"]["environment"] == "random"
            assert described["source"]["parameters"]["seed"] in (1, 2)
        assert set(made.manifest["versions"]) == {"cmdpax", "jax", "numpy", "python"}
        with pytest.raises(KeyError):
            made.cmdps["nothing"]

    def test_tables_can_be_read_alone(self, made):
        final = polars.read_parquet(f"{made.path}/final/*.parquet")
        assert final.sort("run").equals(made.final.sort("run"))
        curves = polars.read_parquet(f"{made.path}/curves/*.parquet")
        assert curves.shape == (8 * 5, 13)
        assert curves["run"].unique().sort().equals(final["run"].sort())

    @pytest.mark.filterwarnings("ignore:max_multiplier is 6, below")
    def test_a_run_can_be_repeated(self, made):
        for row in made.final.iter_rows(named=True):
            history = made.repeat(row["run"])
            assert history.episodes.tolist() == list(range(1, 31))
            assert_final_row(row, history)
            assert_curves(made.curves.filter(polars.col("run") == row["run"]).collect(), history)
        with pytest.raises(cmdpax.ParameterError, match="there is no run 'nothing' in"):
            made.repeat("nothing")


class TestBest:
    def test_the_smallest_mean_over_runs_and_cmdps(self, tmp_path):
        results = cmdpax.sweep(
            specification(
                algorithms=[
                    {"name": "regularized-primal-dual", "step_size": [0.2, 0.4, 2.0]},
                    {"name": "vanilla-primal-dual", "step_size": [0.2, 1.0]},
                ]
            ),
            tmp_path,
        )
        for by, columns in (
            ("strong", ("strong_objective", "strong_constraints")),
            ("weak", ("weak_objective", "weak_constraints")),
            ("last_violation", ("last_violation",)),
        ):
            best = results.best(by)
            assert best["algorithm"].to_list() == ["regularized-primal-dual", "vanilla-primal-dual"]
            assert best["runs"].to_list() == [4, 4]
            for row in best.iter_rows(named=True):
                scores: dict[float, list[float]] = {}
                for run in results.final.iter_rows(named=True):
                    if run["algorithm"] == row["algorithm"]:
                        score = sum(run[name] for name in columns)
                        scores.setdefault(run["step_size"], []).append(score)
                means = {eta: np.mean(score) for eta, score in scores.items()}
                assert row["step_size"] == min(means, key=lambda eta: means[eta])
                assert row["score"] == pytest.approx(min(means.values()), abs=1e-12)
        assert results.best().equals(results.best("strong"))

    @pytest.mark.parametrize("by", ["strnog", "algorithm"])
    def test_what_is_no_measure(self, made, by: str):
        with pytest.raises(cmdpax.ParameterError, match=f"there is no measure '{by}'; .*weak"):
            made.best(by)


class TestSurroundings:
    def test_multipliers_at_their_cap_are_told(self, tmp_path):
        capped = specification(
            cmdps=[{"environment": "bandit"}],
            algorithms=[
                {"name": "vanilla-dual", "max_multiplier": [0.01, 1e6], "margin": 0.3},
            ],
        )
        message = "in 2 runs a multiplier was at max_multiplier in most episodes; raise"
        with pytest.warns(cmdpax.CmdpaxWarning, match=message) as caught:
            results = cmdpax.sweep(capped, tmp_path)
        assert [Path(warning.filename) for warning in caught] == [Path(__file__)]
        shares = dict(results.final.group_by("max_multiplier").agg(polars.max("capped")).rows())
        assert shares[0.01] > 0.5
        assert shares[1e6] == 0.0

    def test_a_factory_of_ones_own(self, tmp_path):
        results = cmdpax.sweep(
            specification(
                cmdps=[{"environment": "bandit"}],
                algorithms=[{"name": own_factory, "max_multiplier": 1e6}],
            ),
            tmp_path,
        )
        assert results.final["algorithm"].unique().to_list() == [f"{__name__}:own_factory"]
        row = results.final.row(0, named=True)
        history = cmdpax.learn(
            results.cmdps[row["cmdp"]],
            "vanilla-dual",
            num_episodes=30,
            seeds=[row["seed"]],
            max_multiplier=1e6,
        )
        assert_final_row(row, history)
        assert_final_row(row, results.repeat(row["run"], algorithm=own_factory))

    def test_an_infeasible_cmdp_is_named(self, tmp_path):
        cmdp = cmdpax.environments.make("bandit")
        cmdpax.save(cmdp.replace(thresholds=[2.0]), tmp_path / "strict.npz")
        content = specification(cmdps=[{"file": str(tmp_path / "strict.npz")}])
        with pytest.raises(cmdpax.ParameterError, match=r"strict: the CMDP is infeasible: .*1\.1"):
            cmdpax.sweep(content, tmp_path / "out")
        cmdpax.sweep(specification(), tmp_path / "out")  # the folder can still be used

    def test_progress_counts_runs_that_are_on_disk(self, tmp_path, monkeypatch):
        monkeypatch.setattr("cmdpax.experiments.runs._BATCH_RUNS", 4)
        seen: list[tuple[SweepProgress, int]] = []

        def report(stand: SweepProgress) -> None:
            parts = (tmp_path / "parts").glob("*.json")
            seen.append((stand, sum(len(json.loads(path.read_bytes())["runs"]) for path in parts)))

        cmdpax.sweep(specification(), tmp_path, progress=report)
        assert [stand.runs for stand, _ in seen if stand.batch == "done"] == [4, 8]
        for stand, on_disk in seen:
            assert stand.runs == on_disk
            assert (stand.total_runs, stand.total_episodes) == (8, 240)
            assert stand.runs * 30 <= stand.episodes <= 240

    def test_a_bar_or_lines_on_standard_error(self, tmp_path, capsys):
        cmdpax.sweep(specification(), tmp_path, progress=True)
        captured = capsys.readouterr()
        assert captured.out == ""
        assert "8 of 8 runs done" in captured.err
