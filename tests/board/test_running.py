"""A board is run, resumed, added to, refused: nothing that was done is lost."""

import dataclasses
import re
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cmdpax
from board_cases import LEARNERS, TINY, fails, invent
from cmdpax import board
from cmdpax.board import Board, leaderboard, running
from cmdpax.experiments.folder import Folder
from cmdpax.experiments.tables import parameters_of_row
from cmdpax.intervals import half_width
from report_cases import invented
from storage_cases import contents
from sweep_cases import OWN

FIRST, SECOND, THIRD = LEARNERS


def numbers(found: Board) -> str:
    """All of a board but how long it took."""
    cells = [
        cell._replace(means={name: one for name, one in cell.means.items() if name != "seconds"})
        for cell in found.cells
    ]
    return dataclasses.replace(found, cells=tuple(cells)).to_json()


def states(found: Board, algorithm: str, setting: str = "tuned") -> dict[tuple[str, str], str]:
    return {
        (block.family, block.part): found.cell(block, algorithm, setting).state
        for block in found.blocks
    }


ALL_DONE = {("one", "K30"): "done", ("pair", "K30"): "done", ("one", "K50"): "done"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Board]:
    out = tmp_path_factory.mktemp("board") / "whole"
    return out, invent(out)


# ----------------------------------------------------------------------------------------- content


def test_every_cell_is_the_mean_of_its_runs(whole: tuple[Path, Board]) -> None:
    out, found = whole
    results = cmdpax.results(out / "sweeps" / "K30")
    for block in found.blocks:
        if block.part != "K30":
            continue
        for algorithm in (FIRST, SECOND):
            for setting in ("tuned", "published"):
                cell = found.cell(block, algorithm, setting)
                rows = [
                    row
                    for row in results.final.iter_rows(named=True)
                    if row["cmdp_name"] in TINY.family(block.family).names(training=False)
                    and words_of(results, row) == cell.configuration
                    and row["algorithm"] == algorithm
                ]
                assert len(rows) == cell.runs == (2 if block.family == "one" else 4)
                for name in ("strong_objective", "strong_constraints", "weak_objective"):
                    expected = np.mean([row[name] for row in rows])
                    assert cell.means[name] == pytest.approx(expected)
                    assert cell.curves[name][-1] == pytest.approx(expected)
                both = [row["strong_objective"] + row["strong_constraints"] for row in rows]
                assert cell.means["strong"] == pytest.approx(np.mean(both))
                last = [
                    max(row["last_suboptimality"], 0) + max(row["last_violation"], 0)
                    for row in rows
                ]
                assert cell.means["last"] == pytest.approx(np.mean(last))
                by_model = [
                    np.mean([row["strong_objective"] for row in rows if row["cmdp_name"] == name])
                    for name in TINY.family(block.family).names(training=False)
                ]
                half = half_width(np.array(by_model))
                assert cell.halves["strong_objective"] == pytest.approx(half)


def words_of(results: cmdpax.Results, row: dict[str, Any]) -> str:
    """The parameters of a row as a cell has them."""
    return ", ".join(f"{name} {value}" for name, value in parameters_of_row(row).items())


def test_tuned_is_the_best_on_the_models_for_training(whole: tuple[Path, Board]) -> None:
    out, found = whole
    block = found.blocks[0]
    for algorithm in LEARNERS:
        results = cmdpax.results(out / "sweeps" / block.part)
        training = [fp for fp, one in results.manifest["cmdps"].items() if one["name"] == "one-0"]
        rows = results.best("strong", training).to_dicts()
        best = next(row for row in rows if row["algorithm"] == algorithm)
        assert found.cell(block, algorithm, "tuned").configuration == words_of(results, best)


def test_the_published_configuration_is_the_first(whole: tuple[Path, Board]) -> None:
    cell = whole[1].cell(whole[1].blocks[0], THIRD, "published")
    assert "bonus_scale 1," in cell.configuration


def test_what_an_algorithm_cannot_do_is_said(whole: tuple[Path, Board]) -> None:
    found = whole[1]
    assert states(found, FIRST) == states(found, SECOND) == ALL_DONE
    assert states(found, THIRD) == ALL_DONE | {("pair", "K30"): "skipped"}
    pair = next(block for block in found.blocks if block.family == "pair")
    assert "handles 1 constraint, the CMDP has 2" in found.cell(pair, THIRD, "tuned").reason
    rows = {row.algorithm: row for row in leaderboard(found)[0]}
    assert (rows[THIRD].done, rows[THIRD].skipped) == (2, 1)


# ---------------------------------------------------------------------------------- again and more


def test_the_same_again_runs_nothing(whole: tuple[Path, Board]) -> None:
    out, found = whole
    before = contents(out)

    def never(*arguments: Any) -> Any:
        raise AssertionError("something is run")

    assert invent(out, run_batch=never).to_json() == found.to_json()
    assert contents(out) == before


def test_algorithms_and_parts_are_added(whole: tuple[Path, Board], tmp_path: Path) -> None:
    out = tmp_path / "board"
    begun = invent(out, [FIRST], parts=["K30"])
    assert begun.algorithms == [FIRST]
    assert {block.part for block in begun.blocks} == {"K30"}
    more = invent(out, [SECOND, THIRD])
    assert states(more, FIRST) == ALL_DONE | {("one", "K50"): "missing"}
    assert states(more, SECOND) == ALL_DONE
    complete = invent(out, [FIRST])
    assert numbers(complete) == numbers(whole[1])


def test_a_killed_run_goes_on(whole: tuple[Path, Board], tmp_path: Path) -> None:
    out, calls = tmp_path / "board", []

    def killed(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return invented(*arguments)

    with pytest.raises(KeyboardInterrupt):
        invent(out, run_batch=killed)
    (out / "models" / ".cmdpax-writing-0123456789ab-01234567").write_text("left behind")
    partly = board.read(out, suite=TINY)
    assert "missing" in {cell.state for cell in partly.cells}
    assert numbers(invent(out)) == numbers(whole[1])
    assert not list((out / "models").glob(".*"))


def test_failures_lose_their_own_cells_alone(whole: tuple[Path, Board], tmp_path: Path) -> None:
    out = tmp_path / "board"
    with pytest.warns(cmdpax.CmdpaxWarning, match="crpo .*: ValueError: no luck"):
        found = invent(out, run_batch=fails(FIRST, constraints=2))
    assert states(found, FIRST) == ALL_DONE | {("pair", "K30"): "failed"}
    assert states(found, SECOND) == ALL_DONE
    pair = next(block for block in found.blocks if block.family == "pair")
    assert "ValueError: no luck" in found.cell(pair, FIRST, "tuned").reason
    assert leaderboard(found)[0][-1].algorithm == FIRST
    again = invent(out)  # the same command tries them again
    assert numbers(again) == numbers(whole[1])


def test_an_algorithm_that_fails_in_training_has_its_default(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = invent(tmp_path / "b", [FIRST], run_batch=fails(FIRST, constraints=1))
    assert states(found, FIRST)["pair", "K30"] == "done"
    cell = found.cell(found.blocks[0], FIRST, "tuned")
    assert cell.state == "failed"
    assert "ValueError: no luck" in cell.reason
    assert cell.configuration == "step_size 4*k^-0.5, tolerance 0.5*k^-0.5"  # the second


def test_ones_own_is_never_imported_by_a_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "planted_learner.py"
    module.write_text("from sweep_cases import geared\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = invent(tmp_path / "board", ["planted_learner:geared"], parts=["K50"])
    assert states(found, "planted_learner:geared")["one", "K50"] == "done"
    sys.modules.pop("planted_learner")
    module.unlink()
    again = board.read(tmp_path / "board", suite=TINY)
    assert again.to_json() == found.to_json()
    assert "planted_learner" not in sys.modules


def test_a_cluster_is_the_sweeps_business(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def swept(specification: Any, out: Path, **options: Any) -> None:
        asked.append((Path(out).name, options["cluster"], options["progress"]))

    monkeypatch.setattr(running, "sweep", swept)
    found = invent(tmp_path / "b", cluster="head:6379", progress=lambda part: f"bar of {part}")
    assert set(asked) == {(one, "head:6379", f"bar of {one}") for one in ("K30", "K50")}
    assert not found.blocks


# ----------------------------------------------------------------------------------------- refused


@pytest.fixture
def small(whole: tuple[Path, Board], tmp_path: Path) -> Path:
    out = tmp_path / "board"
    shutil.copytree(whole[0], out)
    return out


def test_another_suite_or_version_is_refused(small: Path) -> None:
    before = contents(small)
    others = {
        "has results of the suite 'tiny', not 'quick'": board.SUITES["quick"],
        "another version of the suite 'tiny' .digest": TINY._replace(recorded=5),
    }
    for sentence, suite in others.items():
        with pytest.raises(cmdpax.ParameterError, match=sentence):
            board.run(suite, small, algorithms=[FIRST])
        with pytest.raises(cmdpax.ParameterError, match=sentence):
            board.read(small, suite=suite)
    with pytest.raises(cmdpax.ParameterError, match="unknown suite 'tiny'"):
        board.read(small)
    assert contents(small) == before


@pytest.mark.parametrize("number", ["NaN", "1e999"])
@pytest.mark.parametrize("place", [r'"strong": [\d.e-]+', r'"device": "\w+"'])
def test_numbers_that_are_not_finite_are_refused(place: str, number: str) -> None:
    name = place.partition(":")[0]
    damaged, count = re.subn(place, f"{name}: {number}", board.stored("quick").to_json(), count=1)
    assert count == 1
    with pytest.raises(
        cmdpax.FileError, match=r"holds no board \(it has numbers that are not finite\)"
    ):
        Board.from_json(damaged.encode(), "stored.json")


def test_other_configurations_are_refused(small: Path) -> None:
    before = contents(small)
    with pytest.raises(cmdpax.ParameterError, match="has crpo with other configurations"):
        invent(small, [{"name": FIRST, "step_size": 0.3}])
    assert contents(small) == before


def test_folders_that_hold_no_board(small: Path, tmp_path: Path) -> None:
    with pytest.raises(cmdpax.FileError, match="holds other files such as"):
        invent(small / "sweeps" / "K30")
    with pytest.raises(cmdpax.FileError, match="nowhere holds no board"):
        board.read(tmp_path / "nowhere")
    record = small / "board.json"
    text = record.read_text()
    for damaged in (text.replace('"crpo"', '"crpa"'), text[: len(text) // 2], "[]"):
        record.write_text(damaged)
        with pytest.raises(cmdpax.FileError, match=r"board.json is damaged .*use a new folder"):
            board.read(small, suite=TINY)
    record.write_text(text)
    table = next((small / "sweeps" / "K30" / "final").iterdir())
    table.write_bytes(b"nothing")
    with pytest.raises(cmdpax.FileError, match="is damaged; run the sweep again"):
        board.read(small, suite=TINY)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert states(invent(small), FIRST) == ALL_DONE


def test_batches_note_how_long_they_took(whole: tuple[Path, Board]) -> None:
    """A single batch has its compilation in it and says nothing; of several the fastest counts."""
    out, found = whole
    known = {cell.family: cell.means["seconds"] for cell in found.cells if "seconds" in cell.means}
    assert known.keys() == {"pair"}  # two models with eight runs each, and so two batches
    assert all(cell.algorithm != THIRD for cell in found.cells if "seconds" in cell.means)
    entries = [
        entry
        for entry in Folder(out / "sweeps" / "K30").entries().values()
        if len(entry["runs"]) == 8 and entry["seconds"] / 8 / 30 == known["pair"]
    ]
    assert len(entries) == 1


def test_ones_own_algorithm_is_an_object_or_an_address(tmp_path: Path) -> None:
    found = invent(tmp_path / "b", [{"name": OWN, "gain": [0.2, 0.4]}], parts=["K50"])
    assert found.algorithms == [OWN]
    assert found.cell(found.blocks[0], OWN, "published").configuration == "gain 0.2, mode dual"
