"""`reproduce` on a tiny scale: everything is run, judged, drawn and written."""

import json
import re
import warnings
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path

import numpy as np
import polars
import pytest

import cmdpax
from cmdpax.experiments.runs import make_runs
from cmdpax.paper.reproduction import claims, costs, experiment, reproducing, theory
from cmdpax.paper.reproduction.experiment import DUAL, PRIMAL_DUAL, cmdp_seeds, specifications
from cmdpax.paper.reproduction.measured import STRONG, Measured, total

pytestmark = pytest.mark.whole

TINY = {"num_episodes": 40, "num_runs": 2, "long_episodes": 60, "long_runs": 2}
LARGER = ({"num_states": 3, "num_actions": 2, "horizon": 3},)
FIGURES = ("iterates", "regret-primal-dual", "regret-dual", "multipliers", "long-run")
Made = tuple[Path, cmdpax.Reproduction]


@pytest.fixture(scope="module")
def tiny() -> Iterator[None]:
    """Everything small enough for a test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reproducing, "QUICK", TINY)
        patch.setattr(claims, "_EXACT_ITERATIONS", 50)
        patch.setattr(costs, "_REPEATS", 2)
        patch.setattr(costs, "_EPISODES", 20)
        patch.setattr(theory, "EPISODES", 50)
        patch.setattr(experiment, "LARGER", LARGER)
        patch.setattr(claims, "LARGER", LARGER)
        yield


@pytest.fixture(scope="module")
def made(tiny: None, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A whole reproduction, of two CMDPs."""
    folder = tmp_path_factory.mktemp("reproduction") / "out"
    return folder, reproduced(folder)


def reproduced(folder: Path) -> cmdpax.Reproduction:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cmdpax.CmdpaxWarning)  # λ_max, which is not the point here
        return cmdpax.reproduce(folder, quick=True, num_cmdps=2, theory=True)


def test_the_papers_experiment() -> None:
    """What is run by default, without running it."""
    paper = specifications(cmdp_seeds(1))["paper"]
    assert (paper.num_episodes, list(paper.seeds)) == (4000, [123, 124, 125, 126, 127])
    assert [entry.name for entry in paper.algorithms] == [*PRIMAL_DUAL, *DUAL]
    runs = make_runs(paper, ["its CMDP"])
    for entry in paper.algorithms:
        chosen = {run.configuration.parameters for run in runs if run.algorithm == entry.name}
        assert len({(one.step_size, one.regularization) for one in chosen}) == len(chosen) == 6
        assert {(one.max_multiplier, one.margin.initial) for one in chosen} == {(6.0, 0.0)}
    assert paper.optimism == "empirical"
    assert [entry.parameters["seed"] for entry in paper.cmdps] == [[123]]


def test_every_claim_is_judged_and_written(made: Made) -> None:
    folder, found = made
    assert [claim.number for claim in found.claims] == list(range(1, 13))
    for claim in found.claims:
        for quantity in claim.quantities:
            assert set(quantity.values) == {"123", "124"}, quantity.text
            assert all(len(values) for values in quantity.values.values()), quantity.text
    records = json.loads((folder / "verdict.json").read_text(encoding="utf-8"))
    assert [record["first_cmdp"] for record in records] == [c.on("123") for c in found.claims]
    text = (folder / "verdict.md").read_text(encoding="utf-8")
    for claim in found.claims:
        assert f"## {claim.number}. {claim.sentence}\n\n**{claim.on('123')}**" in text
    cells = [line.count("|") for line in text.splitlines() if line.startswith("|")]
    assert set(cells) == {6}  # five columns, everywhere


def test_every_figure_is_drawn_twice(made: Made) -> None:
    folder, found = made
    expected = {folder / "figures" / f"{name}{end}" for name in FIGURES for end in (".png", ".pdf")}
    assert set(found.figures) == expected
    for path in expected:
        start = {".png": b"\x89PNG", ".pdf": b"%PDF"}[path.suffix]
        assert path.read_bytes().startswith(start)


def test_the_page_has_the_claims_and_the_command(made: Made) -> None:
    folder, found = made
    assert found.page == folder / "report.html"
    text = found.page.read_text(encoding="utf-8")
    for claim in found.claims:
        assert f"{claim.on('123')}</span>{claim.number}. {escape(claim.sentence)}" in text
    assert "cmdpax reproduce --out again --quick --cmdps 2 --theory" in text
    labels = re.findall(r"<summary>Manifest: (.*?)</summary>", text)
    assert labels[0] == "The paper&#x27;s experiment"
    assert len(labels) == len(found.sweeps)


def test_every_configuration_is_in_the_table(made: Made) -> None:
    folder, found = made
    table = polars.read_csv(folder / "configurations.csv")
    assert len(table) == 24
    row = table.row(0, named=True)
    runs = found.sweeps["paper"].final.filter(
        (polars.col("algorithm") == row["algorithm"])
        & (polars.col("step_size") == row["step_size"])
        & (polars.col("regularization") == row["regularization"])
    )
    assert len(runs) == row["runs"] == 4
    text = (folder / "configurations.md").read_text(encoding="utf-8")
    assert text.count(f"| {row['algorithm']} |") == 6
    assert row["weak_objective"] == pytest.approx(runs["weak_objective"].to_numpy().mean())


def test_the_configuration_is_the_best_on_each_cmdp(made: Made) -> None:
    measured = Measured(made[1].sweeps["paper"], [123, 124])
    for cmdp in measured.cmdps:
        rows = measured.rows(cmdp, "vanilla-dual")
        sums = rows.group_by("configuration").agg(polars.sum_horizontal(*STRONG).mean().alias("s"))
        best = total(measured.best(cmdp, "vanilla-dual"), STRONG).mean()
        assert best == pytest.approx(sums["s"].to_numpy().min())


def test_differences_pair_the_seeds(made: Made) -> None:
    measured = Measured(made[1].sweeps["paper"], [123, 124])
    found = measured.difference("regularized-dual", "vanilla-dual", STRONG[:1])["124"]
    first, second = (measured.best("124", name) for name in ("regularized-dual", "vanilla-dual"))
    assert first["seed"].to_list() == second["seed"].to_list() == [123, 124]
    expected = first["strong_objective"].to_numpy() - second["strong_objective"].to_numpy()
    np.testing.assert_allclose(found, expected)


def test_theory_runs_have_the_theorems_parameters(made: Made) -> None:
    rows = made[1].sweeps["theory-124"].final
    preset = cmdpax.parameters.regret_theorem(
        cmdpax.environments.make("random", seed=124), theory.EPISODES
    )
    assert set(rows["optimism_bonus"]) == {"theory"}
    for name, value in preset._asdict().items():
        assert set(rows[name]) == {value}


def test_again_runs_nothing(made: Made) -> None:
    folder, found = made
    tables = {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}
    again = reproduced(folder)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")} == tables
    for first, second in zip(found.claims, again.claims, strict=True):
        if first.number != 8:  # its times are measured anew
            assert first.on("123") == second.on("123")
    assert again.compile_seconds <= again.seconds


def test_the_command_is_the_same(made: Made, run: Callable[..., tuple[int, str, str]]) -> None:
    folder, found = made
    tables = {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}
    options = ("--out", str(folder), "--quick", "--cmdps", "2", "--theory")
    code, out, err = run("reproduce", *options)
    assert code == 0, err
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")} == tables
    assert re.findall(r"│ (\d+)\. ", out) == [str(claim.number) for claim in found.claims]
    assert f"wrote {folder / 'report.html'}\n" in err


def test_a_smaller_family_in_a_larger_folder(made: Made) -> None:
    """What is judged depends on the call, not on what the folder has seen."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cmdpax.CmdpaxWarning)
        found = cmdpax.reproduce(made[0], quick=True, num_cmdps=1)
    assert found.cmdps == made[1].cmdps[:1]
    for claim in found.claims:
        assert all(set(quantity.values) == {"123"} for quantity in claim.quantities)
    assert (
        len(polars.read_csv(made[0] / "configurations.csv").filter(polars.col("runs") == 2)) == 24
    )
