"""`cmdpax learn` and `iterate`, driven as a user does."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import cmdpax
from cmdpax.learners import DEFAULT_ALGORITHM

PICTURE = b"\x89PNG\r\n"
LEARN = ("learn", "m.npz", "--algorithm", "regularized-primal-dual")
ITERATE = ("iterate", "m.npz", "--scheme", "primal-dual")
FEW = ("--episodes", "30", "--seeds", "2")


pytestmark = pytest.mark.usefixtures("saved_bandit")


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


class TestLearn:
    def test_table(self, run):
        code, out, err = run(*LEARN, *FEW)
        assert code == 0
        for part in (
            "m.npz: CMDP(S=1, A=3, H=1, I=1, dense), regularized-primal-dual",
            "strong objective",
            "strong constraints",
            "weak constraints",
            "last violation",
            "unsafe at 0.01",
            "± 95 %",
            "Multipliers",
            "optimal",
        ):
            assert part in out
        assert "2 runs of 30 episodes in" in err
        assert "episodes/s" in err

    def test_without_a_name_the_default_learns(self, run, saved_bandit):
        code, out, err = run("learn", "m.npz", *FEW)
        assert code == 0, err
        assert "m.npz: CMDP(S=1, A=3, H=1, I=1, dense), replanning" in out
        assert re.search(r"│ plans +│ +\d+ │", out)
        assert re.search(r"│ infeasible plans +│ +\d+ │", out)
        code, out, err = run("learn", "m.npz", *FEW, "--json")
        result = json.loads(out)
        assert (code, err, result["algorithm"]) == (0, "", DEFAULT_ALGORITHM)
        history = cmdpax.learn(saved_bandit, num_episodes=30, seeds=2)
        for name, values in history.summary().items():
            assert result[name] == pytest.approx(values, abs=1e-12)
        assert result["plans"] == (history.plans.episodes > 0).sum(axis=1).tolist()
        assert result["infeasible_plans"] == history.plans.infeasible.tolist()

    def test_parameters_of_the_default(self, run):
        code, out, err = run("learn", "m.npz", *FEW, "-p", "pessimism=1", "--json")
        assert (code, err) == (0, "")
        code, out, err = run("learn", "m.npz", "-p", "step_size=0.1")
        assert (code, out) == (1, "")
        assert err.startswith("error: replanning has no parameter 'step_size'; known: ")
        _, out, _ = run("learn", "--help")
        assert re.search(r"--algorithm.*\n.*\[default: replanning\]", out)

    def test_one_run_has_no_interval(self, run):
        code, out, _ = run(*LEARN, "--episodes", "30", "--seeds", "1")
        assert code == 0
        assert "one run" in out

    @pytest.mark.exact
    def test_accounts_that_are_not_numbers_are_an_error(self, run, tmp_path):
        cmdpax.save(cmdpax.environments.make("random"), tmp_path / "random.npz")
        before = files(tmp_path)
        code, out, err = run(
            *("learn", "random.npz", "--algorithm", "regularized-dual", *FEW),
            *("-p", "regularization=1e-100", "--out", "run.npz"),
        )
        assert (code, out) == (1, "")
        told = [line for line in err.splitlines() if line.startswith("error: ")]
        assert len(told) == 1
        assert told[0].startswith("error: regularized-dual returned a policy with entries that are")
        assert files(tmp_path) == before

    def test_a_checkpoint_needs_a_file_of_its_own(self, run, saved_bandit):
        code, out, err = run(*LEARN, "--checkpoint", "run.npz", "--out", "run.npz")
        assert (code, out) == (1, "")
        assert "run.npz is given twice; the checkpoint needs a file of its own." in err

    def test_json_holds_the_numbers_of_the_library(self, run, saved_bandit):
        parameters = ["-p", "step_size=0.3", "-p", "margin=0.01", "-p", "regularization=0.1"]
        code, out, err = run(*LEARN, "--episodes", "30", "--seeds", "4,9", *parameters, "--json")
        result = json.loads(out)
        assert (code, err) == (0, "")
        history = cmdpax.learn(
            saved_bandit,
            "regularized-primal-dual",
            num_episodes=30,
            seeds=[4, 9],
            step_size=0.3,
            margin=0.01,
            regularization=0.1,
        )
        assert (result["support"], result["stationary"]) == ("all states", False)
        assert set(result) == {
            "algorithm",
            "num_episodes",
            "optimum",
            "support",
            "stationary",
            "runs",
            *history.summary(),
            "growth_exponent_objective",
            "growth_exponent_constraints",
            "multipliers",
            "optimal_multipliers",
            "seconds",
        }
        for name, values in history.summary().items():
            assert result[name] == pytest.approx(values, abs=1e-12)
        np.testing.assert_allclose(result["multipliers"], history.multipliers[:, -1])
        assert result["optimum"] == pytest.approx(0.6)
        assert result["optimal_multipliers"] == pytest.approx([1.0])
        assert (result["runs"], result["num_episodes"]) == (2, 30)

    def test_out_and_plot(self, run, saved_bandit, tmp_path):
        extra = ["--optimism", "live", "--observations", "bernoulli"]
        code, _, err = run(*LEARN, *FEW, *extra, "--out", "run.npz", "--plot", "curve.png")
        assert code == 0
        assert "wrote run.npz" in err
        assert "wrote curve.png" in err
        history = cmdpax.learn(
            saved_bandit,
            "regularized-primal-dual",
            num_episodes=30,
            seeds=2,
            optimism="live",
            observations="bernoulli",
        )
        with np.load(tmp_path / "run.npz", allow_pickle=False) as archive:
            np.testing.assert_array_equal(archive["value"], history.value)
            np.testing.assert_array_equal(archive["strong_maximum"], history.strong_regret.maximum)
            manifest = json.loads(str(archive["manifest"]))
        assert manifest["runs"] == json.loads(json.dumps(history.manifest["runs"]))
        assert (tmp_path / "curve.png").read_bytes().startswith(PICTURE)
        assert files(tmp_path) == {"m.npz", "run.npz", "curve.png"}

    @pytest.mark.parametrize(
        ("text", "schedule"),
        [
            ("0.3*k^-0.2", cmdpax.schedules.power(0.3, 0.2)),
            ("0.3*(k+10)^-0.2", cmdpax.schedules.power(0.3, 0.2, offset=10)),
            ("0.3 * (k - 0.5)^-1", cmdpax.schedules.power(0.3, 1.0, offset=-0.5)),
            ("3e-1*k^-2e-1", cmdpax.schedules.power(0.3, 0.2)),
            ("0.01*k^0.5", cmdpax.schedules.power(0.01, -0.5)),
        ],
    )
    def test_schedules(self, run, tmp_path, text, schedule):
        code, _, err = run(*LEARN, *FEW, "-p", f"step_size={text}", "--out", "run.npz")
        assert code == 0, err
        with np.load(tmp_path / "run.npz") as archive:
            manifest = json.loads(str(archive["manifest"]))
        assert manifest["runs"][0]["step_size"] == pytest.approx(list(schedule))

    def test_warnings_are_lines_on_standard_error(self, run):
        code, out, err = run(*LEARN, *FEW, "-p", "max_multiplier=0.5", "--json")
        assert code == 0
        assert "warning: max_multiplier is 0.5, below H/Ξ = 2.5" in err
        assert json.loads(out)["runs"] == 2

    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            (
                ["-p", "step_sise=1"],
                "regularized-primal-dual has no parameter 'step_sise'; did you mean 'step_size'?",
            ),
            (["-p", "step_size"], "parameter 'step_size' has no value; write key=value."),
            (["-p", "step_size=fast"], "step_size is 'fast', it must be a number or a schedule"),
            (["-p", "step_size=0.3*k^-0.2.1"], "it must be a number or a schedule"),
            (["-p", "step_size=0.3*k^"], "it must be a number or a schedule"),
            (["-p", "step_size=0.3*(k-1)^-1"], "offset is -1.0, it must exceed -1"),
            (["-p", "step_size=[1]"], "step_size is [1], it must be a finite number"),
            (["-p", "step_size=true"], "step_size is True, it must be a finite number"),
            (["-p", "step_size=20", "-p", "regularization=0.1"], "is 2 at episode 1"),
            (["--algorithm", "vanila-dual"], "did you mean 'vanilla-dual'?"),
            (["--optimism", "lively"], "did you mean 'live'?"),
            (["--observations", "none"], "observations is 'none'; known: bernoulli, mean."),
            (["--precision", "half"], "precision is 'half'; known: double, single."),
            (["--seeds", "few"], "--seeds is 'few', it must be a number of runs or a list"),
            (["--seeds", "0"], "seeds is 0, it must be a whole number of at least 1"),
            (["--episodes", "0"], "num_episodes is 0, it must be a whole number of at least 1"),
            (["--out", "run.csv"], "run.csv has the ending '.csv'; results are .npz files."),
            (["--out", "none/run.npz"], "the folder none does not exist"),
            (["--plot", "curve.bmp"], "pictures are .png, .pdf, .svg files."),
            (["--plot", "none/curve.png"], "the folder none does not exist"),
        ],
    )
    def test_errors_are_one_sentence_and_write_nothing(self, run, tmp_path, arguments, sentence):
        code, out, err = run(*LEARN, *FEW, *["--out", "run.npz", "--plot", "curve.png"], *arguments)
        assert (code, out) == (1, "")
        assert err.startswith("error: ")
        assert sentence in err
        assert err.count("\n") == 1
        assert files(tmp_path) == {"m.npz"}

    def test_infeasible_models(self, run, saved_bandit, tmp_path):
        targets = ["--out", "run.npz", "--plot", "curve.png"]
        cmdpax.save(saved_bandit.replace(thresholds=[0.95]), tmp_path / "m.npz")
        code, _, err = run(*LEARN, *FEW, *targets)
        assert code == 1
        assert err.startswith("error: the CMDP is infeasible")
        assert files(tmp_path) == {"m.npz"}


class TestIterate:
    def test_table(self, run):
        code, out, err = run(*ITERATE, "--iterations", "40")
        assert (code, err) == (0, "")
        for part in ("m.npz: CMDP(S=1, A=3, H=1, I=1, dense), primal-dual", "last suboptimality"):
            assert part in out
        assert "mixture violation" in out

    def test_json_holds_the_numbers_of_the_library(self, run, saved_bandit):
        extra = ["--iterations", "40", "-p", "regularization=0.05", "-p", "step_size=0.5*k^-0.1"]
        code, out, err = run(*ITERATE, *extra, "--json")
        result = json.loads(out)
        assert (code, err) == (0, "")
        iterates = cmdpax.iterate(
            saved_bandit,
            "primal-dual",
            num_iterations=40,
            regularization=0.05,
            step_size=cmdpax.schedules.power(0.5, 0.1),
        )
        assert set(result) == {
            "optimal_value",
            "last_suboptimality",
            "last_violation",
            "mixture_suboptimality",
            "mixture_violation",
            "last_multipliers",
            "optimal_multipliers",
            "last_potential",
            "seconds",
        }
        assert result["last_suboptimality"] == pytest.approx(0.6 - iterates.value[-1], abs=1e-9)
        assert result["last_multipliers"] == pytest.approx(iterates.multipliers[-1])
        assert result["last_potential"] == pytest.approx(iterates.potential[-1])

    def test_out_and_plot(self, run, tmp_path):
        targets = ["--out", "run.npz", "--plot", "curve.png"]
        code, _, err = run(*ITERATE, "--iterations", "40", *targets)
        assert code == 0
        assert "wrote run.npz" in err
        with np.load(tmp_path / "run.npz", allow_pickle=False) as archive:
            expected = {"value", "constraint_values", "multipliers", "policy", "mixture"}
            assert set(archive.files) == expected  # no potential without regularization
            assert archive["multipliers"].shape == (40, 1)
        assert (tmp_path / "curve.png").read_bytes().startswith(PICTURE)

    def test_help_lists_the_schemes(self, run):
        code, out, _ = run("iterate", "--help")
        assert code == 0
        words = " ".join(re.sub("[│\n]", " ", out).split())
        assert f"One of: {', '.join(cmdpax.scheme_names())}." in words

    def test_a_scheme_of_the_field(self, run, saved_bandit):
        given = ("--iterations", "40", "-p", "penalty=2*k^0.5", "-p", "inner_steps=3", "--json")
        code, out, err = run("iterate", "m.npz", "--scheme", "augmented-lagrangian", *given)
        assert (code, err) == (0, "")
        found = cmdpax.iterate(
            saved_bandit,
            "augmented-lagrangian",
            num_iterations=40,
            penalty=cmdpax.schedules.power(2, -0.5),
            inner_steps=3,
        )
        assert json.loads(out)["last_multipliers"] == pytest.approx(found.multipliers[-1])

    def test_the_dual_scheme(self, run):
        code, out, _ = run("iterate", "m.npz", "--scheme", "dual", "--iterations", "40", "--json")
        assert code == 0
        assert json.loads(out)["last_potential"] is None

    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            (["--scheme", "primal"], "scheme is 'primal'; did you mean 'primal-dual'?"),
            (["-p", "policy_floor=2"], "policy_floor is 2, it must not exceed 1."),
            (["-p", "policy_floor=0.1*k^-1"], "policy_floor"),
            (
                ["--scheme", "dual", "-p", "policy_floor=0.1"],
                "dual has no parameter 'policy_floor'",
            ),
            (["-p", "margin=0.1"], "primal-dual has no parameter 'margin'"),
            (["--scheme", "pid", "-p", "integral=1"], "did you mean 'integral_gain'?"),
            (["--scheme", "pid", "-p", "integral_gain=-1"], "integral_gain is -1, it must not be"),
            (["--scheme", "accelerated-dual", "-p", "regularization=0"], "use dual."),
            (["--iterations", "0"], "num_iterations is 0, it must be a whole number"),
            (["--plot", "curve.txt"], "pictures are .png, .pdf, .svg files."),
        ],
    )
    def test_errors_are_one_sentence_and_write_nothing(self, run, tmp_path, arguments, sentence):
        code, out, err = run(*ITERATE, "--out", "run.npz", "--plot", "curve.png", *arguments)
        assert (code, out) == (1, "")
        assert err.startswith("error: ")
        assert sentence in err
        assert err.count("\n") == 1
        assert files(tmp_path) == {"m.npz"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["learn"],
        ["learn", "m.npz", "--algorithm", "vanilla-dual", "--episodes", "many"],
        ["iterate", "m.npz"],
        ["iterate", "m.npz", "--scheme", "dual", "--nonsense"],
        ["algorithms", "--extra"],
    ],
)
def test_wrong_usage_exits_with_2(run, arguments):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert "Usage" in err


class TestCompilationCache:
    def test_the_command_line_sets_it(self, run, cache_folder):
        jax.config.update("jax_compilation_cache_dir", None)  # the tests have set it, too
        run("algorithms")
        assert Path(jax.config.jax_compilation_cache_dir) == cache_folder / "cmdpax" / "jax"

    @pytest.mark.kills
    def test_a_process_writes_it_and_the_library_does_not(self, tmp_path):
        script = (
            "import jax, cmdpax; from cmdpax.cli import main; "
            "cmdpax.learn(cmdpax.load('m.npz'), 'vanilla-dual', num_episodes=3); "
            "print(jax.config.jax_compilation_cache_dir)"
        )
        environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
        command = ["learn", "m.npz", "--algorithm", "vanilla-dual", "--episodes", "3", "--json"]

        def python(*arguments: str) -> str:
            finished = subprocess.run(
                [sys.executable, *arguments],
                capture_output=True,
                text=True,
                cwd=tmp_path,
                env=environment,
            )
            assert finished.returncode == 0, finished.stderr
            return finished.stdout

        assert python("-c", script) == "None\n"
        assert files(tmp_path) == {"m.npz"}
        first = json.loads(python("-m", "cmdpax", *command))
        assert any((tmp_path / "cache" / "cmdpax" / "jax").iterdir())
        second = json.loads(python("-m", "cmdpax", *command))
        for result in (first, second):
            del result["seconds"]
        assert first == second
