"""`cmdpax sweep`, driven as a user does."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cmdpax
from sweep_cases import contents, specification, toml

TEXT = toml(step_size='[0.2, "0.4*(k+2)^-0.1"]')
SWEEP = ("sweep", "spec.toml", "--out", "out")


@pytest.fixture(autouse=True)
def spec(tmp_path: Path) -> Path:
    """The file `spec.toml`, in the folder where the commands run."""
    path = tmp_path / "spec.toml"
    path.write_text(TEXT)
    return path


def test_table_and_progress(run, tmp_path):
    code, out, err = run(*SWEEP)
    assert code == 0
    for part in ("out: best configurations by strong regret", "algorithm", "mean regret", "λ_max"):
        assert part in out
    best = cmdpax.results(tmp_path / "out").best().row(0, named=True)
    shown = "0.2" if best["step_size"] == 0.2 else "0.4*(k+2)^-0.1"
    row = next(line for line in out.splitlines() if "regularized-primal-dual" in line)
    assert shown in row
    assert f"{best['score']:.4g}" in row
    lines = err.splitlines()
    assert re.fullmatch(r"on cpu, \d+ cores?", lines[0])
    assert re.search(r"\b8 of 8 runs done, \d+\.\d s$", lines[1])
    assert re.fullmatch(r"8 runs in out, \d+\.\d s", lines[-1])


def test_json_holds_the_numbers_of_the_library(run, tmp_path):
    code, out, err = run(*SWEEP, "--json")
    result = json.loads(out)
    assert code == 0
    assert "8 of 8 runs done" in err
    assert set(result) == {"runs", "seconds", "best"}
    assert result["runs"] == 8
    assert result["best"] == cmdpax.results(tmp_path / "out").best().to_dicts()


def test_again_does_nothing(run, tmp_path):
    assert run(*SWEEP)[0] == 0
    before = contents(tmp_path / "out")
    code, _, err = run(*SWEEP)
    assert code == 0
    assert "runs done" not in err
    assert "8 runs in out" in err
    assert contents(tmp_path / "out") == before


def test_a_line_per_batch(run, monkeypatch):
    monkeypatch.setattr("cmdpax.experiments.runs._BATCH_RUNS", 4)
    _, _, err = run(*SWEEP)
    assert re.findall(r"(\d) of 8 runs done", err) == ["4", "8"]


class TestDryRun:
    def test_table(self, run, tmp_path):
        code, out, err = run(*SWEEP, "--dry-run")
        assert (code, err) == (0, "")
        for name, number in (("runs to do", 8), ("compiled batches", 1), ("episodes", 240)):
            assert re.search(rf"{name} +│ +{number} ", out)
        assert not (tmp_path / "out").exists()

    def test_json(self, run, tmp_path):
        assert run(*SWEEP)[0] == 0
        before = contents(tmp_path / "out")
        (tmp_path / "spec.toml").write_text(TEXT.replace("seeds = 2", "seeds = 3"))
        code, out, err = run(*SWEEP, "--dry-run", "--json")
        result = json.loads(out)
        assert (code, err) == (0, "")
        assert set(result) == {
            *("runs", "runs_done", "batches", "episodes"),
            *("num_bytes", "seconds", "compile_seconds", "workers", "cut"),
        }
        assert (result["workers"], result["cut"]) == (None, [])
        assert (result["runs"], result["runs_done"], result["episodes"]) == (4, 8, 120)
        assert contents(tmp_path / "out") == before


class TestErrors:
    @pytest.mark.parametrize(
        ("old", "new", "sentence"),
        [
            (
                "step_size",
                "stepsize",
                "spec.toml: algorithms[0]: unknown key stepsize; did you mean 'step_size'?",
            ),
            ("seeds = 2", "seeds = 0", "spec.toml: seeds is 0, it must be a whole number"),
            ("[0.2,", "[80,", "algorithms[0]: step_size times regularization is 1.6 at"),
            ("seeds = 2", "seeds = ", "spec.toml is not a TOML file"),
        ],
    )
    def test_a_bad_specification(self, run, spec, old: str, new: str, sentence: str):
        spec.write_text(TEXT.replace(old, new))
        for extra in ((), ("--dry-run",)):
            code, out, err = run(*SWEEP, *extra)
            assert (code, out) == (1, "")
            assert err.startswith(f"error: {sentence}")
            assert err.count("\n") == 1
            assert not (spec.parent / "out").exists()

    def test_another_folder_is_asked_for(self, run, spec):
        assert run(*SWEEP)[0] == 0
        spec.write_text(TEXT.replace("record = 5", "record = 6"))
        code, out, err = run(*SWEEP)
        assert (code, out) == (1, "")
        assert err == (
            "error: out holds runs with record = 5, the specification has 6; use another folder.\n"
        )

    def test_missing_things(self, run):
        code, _, err = run("sweep", "absent.toml", "--out", "out")
        assert (code, err) == (1, "error: absent.toml does not exist.\n")
        assert run("sweep", "spec.toml")[0] == 2  # usage: no --out

    def test_warnings_are_lines(self, run, spec, tmp_path):
        assert run(*SWEEP)[0] == 0
        (final,) = (tmp_path / "out" / "final").iterdir()
        final.write_bytes(b"")
        code, _, err = run(*SWEEP)
        assert code == 0
        name = final.relative_to(tmp_path)
        again = "those of its runs that the specification asks for are computed again"
        assert f"warning: {name} is damaged; {again}.\n" in err


@pytest.mark.kills
def test_as_a_process(tmp_path: Path) -> None:
    completed = subprocess.run(
        [sys.executable, "-m", "cmdpax", *SWEEP],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONWARNINGS": "error"},
    )
    assert completed.returncode == 0, completed.stderr
    assert "8 of 8 runs done" in completed.stderr
    found = cmdpax.results(tmp_path / "out")
    content = specification(
        algorithms=[
            {
                "name": "regularized-primal-dual",
                "step_size": [0.2, cmdpax.schedules.power(0.4, 0.1, 2)],
            }
        ]
    )
    expected = cmdpax.sweep(content, tmp_path / "expected")
    assert found.final["run"].equals(expected.final["run"])


def test_one_algorithm_that_fails_does_not_end_the_others(run, spec, tmp_path):
    """Its runs are listed with the error, on standard error, and the exit code is 1."""
    broken = '[[algorithms]]\nname = "broken_learners:logits"\nstep_size = 0.5\n\n'
    spec.write_text(TEXT.replace("[[algorithms]]", broken + "[[algorithms]]"))
    code, out, err = run(*SWEEP)
    assert (code, out) == (1, "")
    assert "error: 4 runs failed; everything else is in out, and the same command tries them" in err
    assert "broken_learners:logits (step_size 0.5, regularization 0, max_multiplier 6" in err
    assert "a policy with rows that do not sum to 1, first in episode 1 (seed 0); normalize" in err
    assert len(cmdpax.results(tmp_path / "out").final) == 8
