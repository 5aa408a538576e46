"""`estimate`: how large a sweep is, with nothing run for good and nothing written."""

from pathlib import Path

import pytest

import cmdpax
from cmdpax.experiments import estimate, read_specification
from sweep_cases import contents, specification


def test_a_new_sweep(tmp_path: Path) -> None:
    found = estimate(specification(num_episodes=400))
    assert (found.runs, found.runs_done, found.batches, found.episodes) == (8, 0, 1, 8 * 400)
    assert found.num_bytes == 8 * int(5 * (9 + 4) * 8 * 0.65)
    assert 0 <= found.compile_seconds <= found.seconds
    assert found.seconds > 0


def test_what_is_done_is_left_out_and_nothing_is_written(tmp_path: Path) -> None:
    cmdpax.sweep(specification(), tmp_path / "sweep")
    before = contents(tmp_path)
    larger = specification(seeds=3)
    found = estimate(larger, tmp_path / "sweep")
    assert (found.runs, found.runs_done, found.batches, found.episodes) == (4, 8, 1, 120)
    nothing = estimate(read_specification(specification()), str(tmp_path / "sweep"))
    assert nothing == (0, 8, 0, 0, 0, 0.0, 0.0, None, ())
    assert contents(tmp_path) == before


def test_a_folder_that_does_not_exist_is_not_made(tmp_path: Path) -> None:
    found = estimate(specification(seeds=1), tmp_path / "absent")
    assert (found.runs, found.runs_done) == (4, 0)
    assert list(tmp_path.iterdir()) == []


def test_batches_of_several_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cmdpax.experiments.runs._BATCH_RUNS", 4)
    two = [{"name": "regularized-primal-dual", "optimism": ["empirical", "live"]}]
    found = estimate(specification(algorithms=two))
    assert (found.runs, found.batches) == (8, 2)


def test_bad_specifications_are_refused() -> None:
    with pytest.raises(cmdpax.ParameterError, match="num_episodes is missing"):
        estimate({})
