"""Folders of earlier versions: what their curves do not say is null, and nothing is signed.

Their specifications name the paper's four hyperparameters for every algorithm, null where the
default was left to it.
"""

import json
from pathlib import Path
from typing import Any

import polars
import pytest

import cmdpax
from cmdpax.experiments import executing, read_specification
from cmdpax.experiments.folder import Folder
from cmdpax.experiments.runs import make_models, make_runs
from cmdpax.experiments.tables import LATER
from cmdpax.reporting.content import content
from sweep_cases import OWN, SMALL, contents, specification

TWO = {"environment": "random", "parameters": SMALL | {"num_constraints": 2, "seed": 1}}
FIRST = specification(cmdps=[TWO], algorithms=[{"name": "vanilla-primal-dual"}])
MORE = FIRST | {"seeds": 3}
EARLIER_TABLE: dict[str, Any] = {
    "name": "vanilla-primal-dual",
    "step_size": [0.1],
    "regularization": None,
    "max_multiplier": [6.0],
    "margin": [0.0],
    "optimism": None,
}
EARLIER_RUNS = {  # identities and configurations as version 0.1 wrote them
    ("vanilla-primal-dual", 0.1, "known"): ("95d7c42eea07ede5", "c45358e7"),
    ("regularized-dual", 0.2, "known"): ("887aa5dd47c30862", "298822d4"),
    ("regularized-dual", 0.2, "estimated"): ("54c79dd720842aed", "795c4f31"),
    ("regularized-dual", 0.3, "known"): ("2a0454328e12d886", "40b2f62c"),
    ("regularized-dual", 0.3, "estimated"): ("768d5afe8f7d4cb4", "583e0958"),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> cmdpax.Results:
    return cmdpax.sweep(MORE, tmp_path_factory.mktemp("whole"))


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """A folder as an earlier version wrote it."""
    path = tmp_path / "odd [names] *"
    cmdpax.sweep(FIRST, path)
    make_earlier(path)
    return path


def make_earlier(path: Path) -> None:
    """Rewrite all batches without the columns that came later, and take signature and seal away."""
    folder = Folder(path)
    manifest = json.loads(folder.manifest_path.read_bytes())
    del manifest["seal"]
    manifest["specification"]["algorithms"] = [EARLIER_TABLE]
    folder.manifest_path.write_text(json.dumps(manifest))
    (path / ".lock").write_bytes(b"")
    for batch, context in folder.entries().items():
        tables = {
            name: polars.read_parquet(folder.table_path(name, batch), glob=False)
            for name in ("final", "curves")
        }
        tables["curves"] = tables["curves"].drop(LATER)
        folder.write_part(batch, tables, {name: context[name] for name in ("shared", "cmdps")})


def test_what_is_not_there_is_null(earlier: Path, whole: cmdpax.Results) -> None:
    curves = cmdpax.results(earlier).curves.collect()
    assert curves.schema == whole.curves.collect_schema()
    for name in LATER:
        assert curves[name].null_count() == len(curves) == 2 * 5


def test_a_folder_can_be_of_both_kinds(earlier: Path, whole: cmdpax.Results) -> None:
    results = cmdpax.sweep(MORE, earlier)
    order = ("seed", "episode")
    found, expected = (one.curves.sort(*order).collect() for one in (results, whole))
    assert found.schema == expected.schema
    assert found["run"].equals(expected["run"])
    assert found["violation"].to_list() == pytest.approx(expected["violation"].to_list(), abs=1e-9)
    for name in LATER:
        assert found[name].is_null().to_list() == (found["seed"] < 2).to_list()
        new = [frame.filter(seed=2)[name].explode().to_list() for frame in (found, expected)]
        assert len(new[0]) == 5 * 2
        assert new[0] == pytest.approx(new[1], abs=1e-9)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The configurations that are run."""
    found: list[Any] = []
    run_batch = executing.run_batch

    def watched(task: Any, configurations: Any, *others: Any) -> Any:
        found.extend(configurations)
        return run_batch(task, configurations, *others)

    monkeypatch.setattr(executing, "run_batch", watched)
    return found


class TestSpecifications:
    """A specification is the same, whether it says the default, null or nothing."""

    def test_ask_for_the_runs_that_are_there(self, earlier: Path, made: list[Any]):
        made.clear()
        before = contents(earlier)
        stored = cmdpax.results(earlier).manifest["specification"]
        assert stored["algorithms"] == [EARLIER_TABLE]
        for wanted in (FIRST, stored, json.loads(json.dumps(stored))):
            cmdpax.sweep(wanted, earlier)
        assert made == []
        assert contents(earlier)["manifest.json"] == before["manifest.json"]

    def test_are_asked_for_more(self, earlier: Path, made: list[Any], whole: cmdpax.Results):
        made.clear()
        stored = cmdpax.results(earlier).manifest["specification"]
        results = cmdpax.sweep(stored | {"seeds": 3}, earlier)
        assert [configuration.seed for configuration in made] == [2]
        assert results.final["run"].equals(whole.final["run"])

    def test_get_algorithms_with_parameters_of_their_own(self, earlier: Path):
        own = {"name": OWN, "gain": 0.3}
        results = cmdpax.sweep(FIRST | {"algorithms": [EARLIER_TABLE, own]}, earlier)
        assert results.final.select("algorithm", "step_size", "gain").unique().sort(
            "algorithm"
        ).rows() == [(OWN, None, 0.3), ("vanilla-primal-dual", 0.1, None)]

    def test_are_equal_without_their_nulls(self):
        said = {name: value for name, value in EARLIER_TABLE.items() if value is not None}
        found, expected = (
            read_specification(FIRST | {"algorithms": [table]}) for table in (EARLIER_TABLE, said)
        )
        assert found == expected
        assert found.model_dump(mode="json") == expected.model_dump(mode="json")


@pytest.mark.filterwarnings("ignore:max_multiplier is 6, below")
def test_runs_are_made_again(earlier: Path) -> None:
    results = cmdpax.results(earlier)
    for row in results.final.rows(named=True):
        history = results.repeat(row["run"])
        found = history.strong_regret.objective[0, -1]
        assert found == pytest.approx(row["strong_objective"], abs=1e-9)
        (run,) = history.manifest["runs"]
        assert (run["seed"], run["step_size"]) == (row["seed"], [0.1, 0.0, 0.0])


def test_pages_say_what_was_asked_for(earlier: Path) -> None:
    payload, _ = content(earlier)
    (sweep,) = payload["sweeps"]
    assert [one["label"] for one in sweep["configurations"]] == ["η = 0.1"]
    assert "vanilla-primal-dual" in json.dumps(payload["replay"])
    assert "null" not in json.dumps(payload["replay"])


def test_identities_are_those_of_earlier_versions() -> None:
    """Others would make all runs of a folder anew."""
    dual = {
        **{"name": "regularized-dual", "step_size": [0.2, "0.3*(k+1)^-0.2"], "margin": 0.01},
        "optimism": ["empirical", "live"],
    }
    wanted = read_specification(FIRST | {"algorithms": [EARLIER_TABLE, dual], "seeds": 1})
    found = {
        (
            run.algorithm,
            run.configuration.parameters.step_size.initial,
            run.configuration.optimism.rewards,
        ): (run.identity, run.configuration_name)
        for run in make_runs(wanted, make_models(wanted))
    }
    assert found == EARLIER_RUNS
