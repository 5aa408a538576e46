"""The command line, driven as a user does: output, error sentences, exit codes."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cmdpax


@pytest.fixture
def bandit(tmp_path) -> Path:
    path = tmp_path / "bandit.npz"
    cmdpax.save(cmdpax.environments.make("bandit"), path)
    return path


def save_arrays(path: Path, **changes: object) -> Path:
    """The bandit's arrays with some changed (None: left out), unchecked."""
    arrays = {**cmdpax.environments.make("bandit").named_arrays(), **changes}
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    return path


class TestEnv:
    def test_list_names_every_environment_with_its_parameters(self, run):
        code, out, _ = run("env", "list")
        assert code == 0
        for name in cmdpax.environments.names():
            assert name in out
        assert "num_states=5" in out

    def test_make_writes_the_model_of_the_library(self, run):
        code, out, err = run("env", "make", "random", "-p", "seed=7", "--out", "m.npz")
        assert (code, out) == (0, "")
        assert "wrote m.npz: CMDP(S=5, A=5, H=5, I=1, dense)" in err
        expected = cmdpax.environments.make("random", seed=7)
        assert cmdpax.load("m.npz").fingerprint == expected.fingerprint

    def test_parameters_are_read_as_json_or_as_text(self, run):
        parameters = ["-p", "layout=S.1/..G", "-p", "uniform_start=true", "-p", "slip=0"]
        code, _, _ = run("env", "make", "gridworld", *parameters, "--out", "m.json")
        assert code == 0
        expected = cmdpax.environments.make(
            "gridworld", layout="S.1/..G", uniform_start=True, slip=0
        )
        assert cmdpax.load("m.json").fingerprint == expected.fingerprint

    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            (["sreaming"], "unknown environment 'sreaming'; did you mean 'streaming'?"),
            (["ring", "-p", "horizn=3"], "no parameter 'horizn'; did you mean 'horizon'?"),
            (["ring", "-p", "horizon"], "parameter 'horizon' has no value; write key=value."),
            (["ring", "-p", "horizon=0"], "horizon is 0, it must be a whole number of at least 1"),
            (["ring", "-p", "horizon=two"], "horizon is 'two', it must be a whole number"),
            (["random", "-p", "noise=NaN"], "noise is nan, it must be a number between"),
            (["random", "-p", "seed=-1"], "seed is -1, it must be a whole number of at least 0"),
        ],
    )
    def test_wrong_names_and_values(self, run, tmp_path, arguments, sentence):
        code, out, err = run("env", "make", *arguments, "--out", "m.npz")
        assert (code, out) == (1, "")
        assert sentence in err
        assert err.count("\n") == 1
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        ("out", "sentence"),
        [
            ("none/m.npz", "the folder none does not exist; create it first."),
            ("m.mat", "m.mat has the ending '.mat'; models are .npz or .json files."),
        ],
    )
    def test_places_that_cannot_be_written(self, run, tmp_path, out, sentence):
        code, _, err = run("env", "make", "ring", "--out", out)
        assert code == 1
        assert sentence in err
        assert list(tmp_path.iterdir()) == []


class TestInspect:
    def test_tells_sizes_sparsity_ranges_and_feasibility(self, run, bandit):
        code, out, _ = run("inspect", str(bandit))
        assert code == 0
        for part in ("num states", "reward range", "0.2, 1", "feasible", "yes", "slater gap"):
            assert part in out

    def test_json(self, run):
        run("env", "make", "gridworld", "--out", "g.npz")
        code, out, _ = run("inspect", "g.npz", "--json")
        facts = json.loads(out)
        cmdp = cmdpax.load("g.npz")
        assert code == 0
        assert facts["num_states"] == cmdp.num_states
        assert facts["storage"] == "successors"
        assert facts["stationary_transitions"] is True
        assert facts["feasible"] is True
        assert facts["fingerprint"] == cmdp.fingerprint
        assert facts["slater_gap"] == pytest.approx(cmdpax.slater_gap(cmdp).gap)

    def test_an_infeasible_model_is_described(self, run, tmp_path):
        path = save_arrays(tmp_path / "m.npz", thresholds=np.array([2.0]))
        code, out, _ = run("inspect", str(path), "--json")
        assert code == 0
        assert json.loads(out)["feasible"] is False
        assert json.loads(out)["slater_gap"] == pytest.approx(-1.1)


class TestSolve:
    @pytest.mark.parametrize("method", ["column-generation", "occupancy-lp"])
    def test_json_is_one_object_with_the_promised_keys(self, run, bandit, method):
        code, out, err = run("solve", str(bandit), "--method", method, "--json")
        result = json.loads(out)
        assert (code, err) == (0, "")
        assert set(result) == {
            "feasible",
            "value",
            "objective",
            "constraints",
            "constraint_values",
            "thresholds",
            "senses",
            "slack",
            "multipliers",
            "slater_gap",
            "gap",
            "num_columns",
            "method",
            "seconds",
        }
        assert result["feasible"] is True
        assert result["method"] == method
        assert result["value"] == pytest.approx(0.6, abs=1e-9)
        assert result["multipliers"] == pytest.approx([1.0], abs=1e-9)
        assert result["constraint_values"] == pytest.approx([0.5], abs=1e-9)
        assert result["slater_gap"] == pytest.approx(0.4, abs=1e-9)
        assert 0 <= result["gap"] < 1e-9

    def test_table(self, run, bandit):
        code, out, _ = run("solve", str(bandit))
        assert code == 0
        assert "CMDP(S=1, A=3, H=1, I=1, dense)" in out
        for part in (
            "optimal reward",
            "unspent budget",
            "at least 0.5",
            "0.6",
            "certified gap",
            "multiplier",
            "threshold",
        ):
            assert part in out

    def test_without_constraints_the_slater_gap_is_null(self, run, tmp_path):
        path = save_arrays(
            tmp_path / "m.npz",
            constraint_rewards=np.zeros((0, 1, 1, 3)),
            thresholds=np.zeros(0),
        )
        code, out, _ = run("solve", str(path), "--json")
        assert code == 0
        assert json.loads(out)["slater_gap"] is None
        assert json.loads(out)["multipliers"] == []
        code, out, _ = run("solve", str(path))
        assert code == 0
        assert "no constraints" in out

    def test_out_holds_the_policy(self, run, bandit):
        code, out, err = run("solve", str(bandit), "--json", "--out", "policy.npz")
        assert code == 0
        json.loads(out)
        assert "wrote policy.npz" in err
        cmdp = cmdpax.load(bandit)
        with np.load("policy.npz", allow_pickle=False) as content:
            result = cmdpax.evaluate(cmdp, content["policy"])
            assert result.value == pytest.approx(0.6)
            np.testing.assert_allclose(content["occupancy"], result.occupancy, atol=1e-12)
            assert str(content["fingerprint"]) == cmdp.fingerprint

    def test_infeasible(self, run, tmp_path):
        path = save_arrays(tmp_path / "m.npz", thresholds=np.array([2.0]))
        code, out, err = run("solve", str(path), "--out", "policy.npz")
        assert (code, out) == (1, "")
        assert "infeasible" in err
        assert "Slater gap -1.1" in err
        assert "constraint 0" in err
        assert err.count("\n") == 1
        assert not (tmp_path / "policy.npz").exists()

    @pytest.mark.parametrize("method", ["column-generation", "occupancy-lp"])
    def test_infeasible_json(self, run, tmp_path, method):
        path = save_arrays(tmp_path / "m.npz", thresholds=np.array([2.0]))
        code, out, err = run("solve", str(path), "--json", "--method", method)
        result = json.loads(out)
        assert code == 1
        assert result["feasible"] is False
        assert result["value"] is None
        assert result["slater_gap"] == pytest.approx(-1.1)
        assert "infeasible" in err

    @pytest.mark.parametrize(
        ("changes", "sentence"),
        [
            ({"transitions": np.full((1, 1, 3, 1), 0.5)}, "transitions[0, 0, 0] sums to 0.5"),
            ({"transitions": np.full((1, 1, 3, 1), -1.0)}, "probabilities cannot be negative"),
            ({"rewards": np.full((1, 1, 3), np.nan)}, "rewards[0, 0, 0] is nan"),
            ({"rewards": np.zeros((1, 2, 3))}, "(1, 2, 3), expected (H, S, A) = (1, 1, 3)"),
            ({"thresholds": np.zeros(2)}, "thresholds has length 2, but constraint_rewards has 1"),
            ({"thresholds": None}, "lacks the array 'thresholds'"),
            ({"threshold": np.zeros(1)}, "has the unknown array 'threshold'; did you mean"),
            ({"rewards": np.array([[[object()] * 3]])}, "pickled objects, which are never loaded"),
            ({"horizon": np.array(2.5)}, "horizon must be a whole number"),
        ],
    )
    def test_bad_models(self, run, tmp_path, changes, sentence):
        path = save_arrays(tmp_path / "m.npz", **changes)
        before = list(tmp_path.iterdir())
        code, out, err = run("solve", str(path), "--out", "policy.npz", "--json")
        assert (code, out) == (1, "")
        assert sentence in err
        assert err.startswith("error: ")
        assert err.count("\n") == 1
        assert list(tmp_path.iterdir()) == before

    def test_a_truncated_file(self, run, bandit):
        bandit.write_bytes(bandit.read_bytes()[:300])
        code, _, err = run("solve", str(bandit))
        assert code == 1
        assert "is not a readable .npz file" in err

    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            (["nowhere.npz"], "nowhere.npz does not exist."),
            (["."], "models are .npz or .json files."),
            (["FILE", "--method", "simplex"], "method is 'simplex'"),
            (["FILE", "--out", "policy.txt"], "policies are .npz, .json or .csv files."),
            (["FILE", "--out", "none/policy.npz"], "the folder none does not exist"),
        ],
    )
    def test_bad_arguments(self, run, bandit, arguments, sentence):
        arguments = [str(bandit) if argument == "FILE" else argument for argument in arguments]
        code, out, err = run("solve", *arguments)
        assert (code, out) == (1, "")
        assert sentence in err

    def test_names_with_brackets_are_printed_as_they_are(self, run, tmp_path, bandit):
        odd = tmp_path / "a[red]b.npz"
        bandit.rename(odd)
        code, out, _ = run("solve", str(odd))
        assert code == 0
        assert "a[red]b.npz" in out


@pytest.mark.parametrize(
    "arguments", [["solve"], ["solve", "a.npz", "--nonsense"], ["dance"], ["env", "make", "ring"]]
)
def test_wrong_usage_exits_with_2(run, arguments):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert "Usage" in err


def test_version(run):
    assert run("--version") == (0, f"cmdpax {cmdpax.__version__}\n", "")


@pytest.mark.kills
def test_module_is_the_same_command(bandit):
    command = [sys.executable, "-m", "cmdpax", "solve", str(bandit), "--json"]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    assert json.loads(finished.stdout)["value"] == pytest.approx(0.6)
    assert finished.stderr == ""
