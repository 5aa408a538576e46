"""Modules of one's own beside the TOML file that names an algorithm in them."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cmdpax
from cmdpax.experiments import read_specification
from sweep_cases import OWN, contents

MODULE = """
from typing import Annotated, NamedTuple

from cmdpax.learners import Hyperparameters, Parameter, as_algorithm
from cmdpax.schemes.schedules import constant


class Chosen(NamedTuple):
    gain: Annotated[float, Parameter("step size", at_least=0)] = 0.1
    mode: Annotated[str, Parameter("which", choices=("dual", "primal-dual"))] = "dual"


def factory(knowledge, chosen: Chosen):
    numbers = Hyperparameters(constant(chosen.gain), constant(0.0), 6.0, constant(0.0))
    return as_algorithm(f"vanilla-{chosen.mode}").factory(knowledge, numbers)
"""
TEXT = """
num_episodes = 30
seeds = 2
record = 5
cmdps = [{ environment = "bandit" }]

[[algorithms]]
name = "NAME"
gain = [0.2, 0.4]
mode = ["dual", "primal-dual"]

[[algorithms]]
name = "vanilla-dual"
step_size = 0.2
"""


def written(folder: Path, module: str, text: str = TEXT) -> Path:
    """A specification, and a module beside it."""
    folder.mkdir(exist_ok=True)
    (folder / f"{module}.py").write_text(MODULE)
    path = folder / "sweep.toml"
    path.write_text(text.replace("NAME", f"{module}:factory"))
    return path


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`cmdpax …` in a new process, whose working directory has no module of one's own."""
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, "-m", "cmdpax", *arguments],
        capture_output=True,
        text=True,
        cwd=elsewhere,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )


@pytest.mark.kills
def test_a_new_process_finds_them(tmp_path: Path) -> None:
    """Runs, resumes, draws, compares and reports; only the first two import the module."""
    path, out = written(tmp_path / "study", "my_learners_of_a_study"), str(tmp_path / "out")
    dry = command(tmp_path, "sweep", str(path), "--out", out, "--dry-run", "--json")
    assert dry.returncode == 0, dry.stderr
    assert json.loads(dry.stdout)["runs"] == 10
    for _ in range(2):
        done = command(tmp_path, "sweep", str(path), "--out", out, "--json")
        assert done.returncode == 0, done.stderr
    own, other = json.loads(done.stdout)["best"]
    assert "runs done" not in done.stderr
    assert own["algorithm"] == "my_learners_of_a_study:factory"
    assert own["gain"] in (0.2, 0.4)
    assert (other["gain"], other["mode"], own["step_size"]) == (None, None, None)
    (path.parent / "my_learners_of_a_study.py").unlink()
    before = contents(Path(out))
    for arguments in (
        ("compare", out, own["algorithm"], "vanilla-dual"),
        ("report", out, "--out", "page.html"),
        ("plot", out, "--kind", "regret", "--out", "regret.png"),
    ):
        finished = command(tmp_path, *arguments)
        assert finished.returncode == 0, finished.stderr
    assert contents(Path(out)) == before


@pytest.mark.kills
def test_without_them_one_sentence(tmp_path: Path) -> None:
    path = written(tmp_path / "study", "absent_learners")
    (path.parent / "absent_learners.py").rename(tmp_path / "absent_learners.py")
    finished = command(tmp_path, "sweep", str(path), "--out", "out")
    assert (finished.returncode, finished.stdout) == (1, "")
    sentence = (
        f"error: {path}: algorithms[0]: algorithm 'absent_learners:factory' cannot be imported "
        "(No module named 'absent_learners'); put its module"
    )
    assert finished.stderr.startswith(sentence)
    assert finished.stderr.count("\n") == 1


@pytest.mark.kills
def test_a_script_names_the_module_that_defines_the_algorithm(tmp_path: Path) -> None:
    """Not the script, which no other process could import it from."""
    written(tmp_path, "defining").write_text("")
    with (tmp_path / "defining.py").open("a") as file:
        file.write('from cmdpax.learners import Algorithm\nOWN = Algorithm("own", factory)\n')
    script = tmp_path / "script.py"
    script.write_text(
        "import cmdpax\nfrom cmdpax.learners import address_of\n"
        "from defining import OWN, factory\nprint(address_of(OWN), address_of(factory))\n"
    )
    finished = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert finished.stdout == "defining:OWN defining:factory\n", finished.stderr


@pytest.mark.filterwarnings("ignore:max_multiplier is 6, below")
class TestInThisProcess:
    @pytest.fixture(autouse=True)
    def forgotten(self) -> Iterator[None]:
        """Modules that a test imports are not those of the next one."""
        yield
        for name in [name for name in sys.modules if name.startswith("beside_")]:
            del sys.modules[name]

    def test_the_path_is_as_it_was(self, tmp_path: Path):
        before = list(sys.path)
        read_specification(written(tmp_path, "beside_one"))
        assert sys.path == before
        path = written(tmp_path, "beside_two", TEXT.replace("gain", "gian"))
        with pytest.raises(cmdpax.ParameterError, match=r"algorithms\[0\]: unknown key gian; did"):
            read_specification(path)
        assert sys.path == before

    def test_runs_are_those_of_any_other_address(self, tmp_path: Path):
        results = cmdpax.sweep(written(tmp_path / "study", "beside_three"), tmp_path / "out")
        own = results.final.filter(algorithm="beside_three:factory", mode="dual", gain=0.2)
        same = results.final.filter(algorithm="vanilla-dual")
        found, expected = (one.sort("seed")["strong_objective"].to_list() for one in (own, same))
        assert found == pytest.approx(expected, abs=1e-9)
        history = results.repeat(own["run"][0], algorithm="beside_three:factory")
        assert history.manifest["runs"][0]["gain"] == 0.2

    def test_a_relative_file_is_enough(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        path = written(tmp_path / "study", "beside_four")
        monkeypatch.chdir(path.parent)
        assert read_specification("sweep.toml") == read_specification(path)

    def test_what_is_elsewhere_must_be_on_the_path(self, tmp_path: Path):
        module = written(tmp_path / "modules", "beside_five").parent
        (tmp_path / "study").mkdir()
        content = TEXT.replace("NAME", "beside_five:factory")
        path = tmp_path / "study" / "sweep.toml"
        path.write_text(content)
        with pytest.raises(cmdpax.ParameterError, match="'beside_five:factory' cannot be imported"):
            read_specification(path)
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(module)
            assert read_specification(path).algorithms[0].name == "beside_five:factory"

    def test_two_of_one_name_are_not_mistaken_for_each_other(self, tmp_path: Path):
        """Python imports a module once: of two folders, the second would get the first's."""
        read_specification(written(tmp_path / "one", "beside_six"))
        second = written(tmp_path / "two", "beside_six")
        sentence = "rename one of them, or begin a new process."
        with pytest.raises(cmdpax.ParameterError, match=re.escape(sentence)) as caught:
            read_specification(second)
        assert str(second.parent / "beside_six.py") in str(caught.value)
        assert read_specification(tmp_path / "one" / "sweep.toml")


class TestCommandLine:
    """Of an algorithm that is on the path already."""

    @pytest.fixture
    def spec(self, tmp_path: Path) -> Path:
        path = tmp_path / "spec.toml"
        path.write_text(TEXT.replace("NAME", OWN))
        return path

    def test_the_table_has_a_column_for_every_parameter(self, run: Any, spec: Path):
        code, out, err = run("sweep", "spec.toml", "--out", "out")
        assert code == 0, err
        lines = [re.split("[│┃]", line)[1:-1] for line in out.splitlines() if line[0] in "│┃"]
        head, *rows = [[cell.strip() for cell in line] for line in lines]
        assert head == ["algorithm", "gain", "mode", "η", "τ", "λ_max", "runs", "mean regret"]
        best = {row["algorithm"]: row for row in cmdpax.results("out").best().to_dicts()}
        own, other = rows
        assert own[1:6] == [f"{best[OWN]['gain']:g}", best[OWN]["mode"], "", "", ""]
        assert other[1:6] == ["", "", "0.2", "0", "6"]

    def test_failed_runs_are_told_with_their_parameters(self, run: Any, spec: Path, monkeypatch):
        def fail(*arguments: Any) -> None:
            raise ZeroDivisionError("nothing left")

        monkeypatch.setattr("cmdpax.experiments.executing.run_batch", fail)
        code, _, err = run("sweep", "spec.toml", "--out", "out")
        assert code == 1
        assert f"{OWN} (gain 0.2, mode dual; gain 0.4, mode dual), 4 runs: ZeroDivision" in err
