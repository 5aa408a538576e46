"""`cmdpax algorithms`, and `cmdpax learn` with an algorithm of one's own."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import cmdpax
from cmdpax.learners import DEFAULT_ALGORITHM, Algorithm, Hyperparameters, as_algorithm, registered
from cmdpax.schemes.registry import as_scheme
from learning_cases import OURS
from sweep_cases import OWN, geared

FEW = ("--episodes", "30", "--seeds", "2")
LEARN = ("learn", "m.npz", "--algorithm", OWN, *FEW)
RANGES = {  # of the regularization, and its default
    "regularized-primal-dual": ("≥ 0", 0.02),
    "regularized-dual": ("> 0", 0.02),
    "vanilla-primal-dual": ("0", 0.0),
    "vanilla-dual": ("0", 0.0),
}
_SPACED = {
    "growth": ("g", "number", "0.05", "≥ 0"),
    "stretch": ("ρ", "number", "1", "> 0"),
}
_MARGIN = {"margin": ("", "schedule", "0", "")}
PLANNING = {
    "replanning": {
        **_SPACED,
        "exploration": ("", "choice", "posterior", "posterior, bernstein, count, none"),
        "pooling": ("", "choice", "steps", "steps, none"),
        "prior": ("", "number", "1", "≥ 1e-06"),
        "posterior_weight": ("w", "number", "0.35", "≥ 0"),
        "untried_weight": ("w'", "number", "0.05", "≥ 0"),
        "deviation_weight": ("a", "number", "0.5", "≥ 0"),
        "range_weight": ("b", "number", "0.2", "≥ 0"),
        "bonus_scale": ("", "number", "0.08", "≥ 0"),
        "pessimism": ("κ", "numbers", "0", ""),
        "multiplier_cap": ("", "number", "100", "> 0"),
        **_MARGIN,
        "random_visits": ("m", "number", "0", "≥ 0"),
        "doubt": ("", "number", "0", "≥ 0"),
    },
    "posterior-sampling": {
        **_SPACED,
        "pooling": ("", "choice", "none", "steps, none"),
        "prior": ("", "number", "1", "≥ 1e-06"),
        **_MARGIN,
    },
    "optimistic-planning": {
        **_SPACED,
        "pooling": ("", "choice", "none", "steps, none"),
        "bonus_scale": ("", "number", "0.08", "≥ 0"),
        **_MARGIN,
    },
}


def parameters(name: str) -> dict[str, tuple[str, str, str, str]]:
    """Symbol, kind, default and range of every parameter, in words."""
    if name in PLANNING:
        return PLANNING[name]
    bounds, tau = RANGES[name]
    return {
        "step_size": ("η", "schedule", "0.1", "> 0"),
        "regularization": ("τ", "schedule", f"{tau:g}", bounds),
        "max_multiplier": ("λ_max", "number", "6", "> 0"),
        "margin": ("", "schedule", "0", ""),
    }


class TestListing:
    def test_every_name_with_what_it_needs(self, run):
        code, out, err = run("algorithms")
        assert (code, err) == (0, "")
        lines = out.splitlines()
        assert max(map(len, lines)) <= 80
        assert len(lines) < 60  # three lines for each would be too long to look at
        rows = [[cell.strip() for cell in line.split("│")[1:3]] for line in lines if "│" in line]
        said: dict[str, str] = {}
        for name, text in rows:
            name = name or list(said)[-1]
            said[name] = f"{said[name]} {text}" if name in said else text
        assert said.pop(f"{DEFAULT_ALGORITHM} (default)") == as_algorithm(DEFAULT_ALGORITHM).summary
        assert [*said] == [name for name in cmdpax.algorithms() if name != DEFAULT_ALGORITHM]
        for name, text in said.items():
            known = as_algorithm(name)
            assert text.startswith(known.summary)
            needs = text[len(known.summary) :]
            found = ["K" in needs, "baseline" in needs, "I = 1" in needs]
            assert found == [not known.anytime, known.needs_baseline, known.max_constraints == 1]

    def test_every_algorithm_with_every_parameter(self, run):
        code, out, err = run("algorithms", *cmdpax.algorithms())
        assert (code, err) == (0, "")
        assert re.findall(r"^([\w-]+) \(default\): ", out, re.MULTILINE) == [DEFAULT_ALGORITHM]
        out = out.replace(" (default): ", ": ")
        heads = re.findall(r"^([\w-]+): (.*)$", out, re.MULTILINE)
        assert sorted([*RANGES, *PLANNING]) == sorted(OURS)
        assert [name for name, _ in heads] == cmdpax.algorithms()
        tables = re.split(r"^[\w-]+: .*\n", out, flags=re.MULTILINE)[1:]
        for (name, summary), table in zip(heads, tables, strict=True):
            known = registered(name)
            assert known is not None
            assert summary.startswith(known.summary)
            rows = [
                [cell.strip() for cell in line.strip("│").split("│")]
                for line in table.splitlines()
                if line.startswith("│")
            ]
            found = {row[0]: tuple(row[1:5]) for row in rows if row[0]}  # a meaning may be folded
            assert [*found] == [*known.names]
            if name not in OURS:
                continue
            expected = parameters(name)
            assert [*found] == [*expected]
            for each, (*whole, bounds) in expected.items():
                assert list(found[each][:3]) == whole
                assert bounds.startswith(found[each][3])  # the words of a choice may be folded
            for one in known.parameters:
                assert one.help.split()[0] in table

    def test_some_of_them(self, run):
        for command, names in (("algorithms", ["opse", "crpo"]), ("schemes", ["pid", "dual"])):
            _, out, _ = run(command, *names)
            assert re.findall(r"^([\w-]+): ", out, re.MULTILINE) == names
            _, out, _ = run(command, *names, "--json")
            assert [one["name"] for one in json.loads(out)[command]] == names
            code, out, err = run(command, names[0], "pide")
            assert (code, out) == (1, "")
            assert err.count("\n") == 1
            assert "'pide'" in err

    def test_an_algorithm_of_ones_own(self, run):
        _, out, _ = run("algorithms", OWN)
        assert out.startswith(f"{OWN}: ")
        assert "│ gain " in out

    def test_every_scheme(self, run):
        code, out, err = run("schemes")
        assert (code, err) == (0, "")
        assert re.findall(r"^│ ([\w-]+) ", out, re.MULTILINE) == cmdpax.scheme_names()

    def test_every_scheme_with_every_parameter(self, run):
        code, out, err = run("schemes", *cmdpax.scheme_names())
        assert (code, err) == (0, "")
        parts = re.split(r"^([\w-]+): ", out, flags=re.MULTILINE)
        assert parts[1::2] == cmdpax.scheme_names()
        for name, text in zip(parts[1::2], parts[2::2], strict=True):
            known = as_scheme(name)
            assert text.splitlines()[0] == known.summary
            for one in known.parameters:
                assert f"│ {one.name}" in text
                assert one.help.split()[0] in text

    def test_schemes_as_json(self, run):
        code, out, err = run("schemes", "--json")
        assert (code, err, out.count("\n")) == (0, "", 1)
        found = {one["name"]: one for one in json.loads(out)["schemes"]}
        assert list(found) == cmdpax.scheme_names()
        for name, one in found.items():
            assert set(one) == {"name", "summary", "source", "parameters"}
            assert all(one.values())
            assert [each["name"] for each in one["parameters"]] == list(as_scheme(name).names)
        assert found["augmented-lagrangian"]["parameters"][1]["kind"] == "whole number"
        assert found["reload"]["parameters"][0]["default"] == [0.1, 0.0, 0.0]

    def test_as_json(self, run):
        code, out, err = run("algorithms", "--json")
        assert (code, err, out.count("\n")) == (0, "", 1)
        found = json.loads(out)
        assert list(found) == ["algorithms"]
        assert [one["name"] for one in found["algorithms"]] == cmdpax.algorithms()
        for one in found["algorithms"]:
            assert set(one) == {
                "name",
                "summary",
                "default",
                "anytime",
                "replans",
                "needs_baseline",
                "max_constraints",
                "parameters",
            }
            assert one["default"] is (one["name"] == DEFAULT_ALGORITHM)
            assert one["anytime"] is registered(one["name"]).anytime
            assert one["replans"] is registered(one["name"]).replans
            assert one["needs_baseline"] is registered(one["name"]).needs_baseline
            assert one["max_constraints"] == registered(one["name"]).max_constraints
            assert one["summary"]
            for each in one["parameters"] if one["name"] in OURS else ():
                symbol, kind, default, bounds = parameters(one["name"])[each["name"]]
                assert (each["symbol"], each["kind"], each["range"]) == (symbol, kind, bounds)
                plain = [float(default), 0.0, 0.0] if kind == "schedule" else each["default"]
                assert each["default"] == plain
                assert f"{each['default']:g}" == default if kind == "number" else True
                words = bounds.split(", ") if kind == "choice" else []
                assert (each["choices"], bool(each["help"])) == (words, True)

    def test_defaults_are_what_is_learned_with(self, run, saved_bandit, monkeypatch, tmp_path):
        """As manifests say; a run is stopped when its checkpoint is opened, and not compiled."""

        class OpenedError(Exception):
            pass

        def stop(path: Path, manifest: dict[str, Any]) -> None:
            raise OpenedError(manifest)

        monkeypatch.setattr("cmdpax.learning.learn.Checkpoint", stop)
        _, out, _ = run("algorithms", "--json")
        for one in json.loads(out)["algorithms"]:
            with pytest.raises(OpenedError) as opened:
                cmdpax.learn(saved_bandit, one["name"], num_episodes=3, checkpoint=tmp_path / "c")
            (made,) = opened.value.args[0]["runs"]
            for each in one["parameters"]:
                assert made[each["name"]] == each["default"]

    def test_what_is_not_anytime_says_so(self, run, monkeypatch):
        class Chosen(NamedTuple):
            window: int = 20
            eager: bool = True

        def factory(knowledge: Any, chosen: Chosen) -> Any:
            raise NotImplementedError

        planned = Algorithm("planned", factory, Chosen, summary="It plans.", anytime=False)
        monkeypatch.setattr("cmdpax.algorithms", lambda: ["planned"])
        monkeypatch.setattr("cmdpax.cli.listings.as_algorithm", lambda name: planned)
        _, out, _ = run("algorithms", "planned")
        assert out.startswith("planned: It plans. It must know the number of episodes.\n")
        assert re.search(r"│ window +│ +│ whole number +│ 20 ", out)
        assert re.search(r"│ eager +│ +│ flag +│ True +│ true or false ", out)
        _, out, _ = run("algorithms", "--json")
        (found,) = json.loads(out)["algorithms"]
        assert found["anytime"] is False
        assert [one["default"] for one in found["parameters"]] == [20, True]


@pytest.mark.usefixtures("saved_bandit")
class TestLearning:
    def test_numbers_and_words(self, run, saved_bandit):
        chosen = ("-p", "gain=0.4", "-p", "mode=primal-dual")
        code, out, _ = run(*LEARN, *chosen, "--json", "--out", "run.npz")
        assert code == 0
        assert json.loads(out)["algorithm"] == OWN
        history = cmdpax.learn(
            saved_bandit, geared, num_episodes=30, seeds=2, gain=0.4, mode="primal-dual"
        )
        assert json.loads(out)["strong_objective"] == pytest.approx(
            history.summary()["strong_objective"], abs=1e-12
        )
        with np.load("run.npz") as content:
            runs = json.loads(str(content["manifest"]))["runs"]
        assert [(one["gain"], one["mode"]) for one in runs] == [(0.4, "primal-dual")] * 2
        other = json.loads(run(*LEARN, "--json")[1])  # the defaults
        assert other["strong_objective"] != json.loads(out)["strong_objective"]

    @pytest.mark.parametrize(
        ("given", "sentence"),
        [
            ("gian=0.4", f"{OWN} has no parameter 'gian'; did you mean 'gain'? known: gain, mode."),
            ("step_size=0.4", f"{OWN} has no parameter 'step_size'; known: gain, mode."),
            ("gain=much", "gain is 'much', it must be a number."),
            ("gain=-1", "gain is -1, it must not be negative."),
            ("gain=51", "gain is 51, it must not exceed 50."),
            ("gain=0.5*k^-1", "gain is '0.5*k^-1', it must be a number."),
            ("mode=duel", "mode is 'duel'; did you mean 'dual'? known: dual, primal-dual."),
            ("mode=2", "mode is 2; known: dual, primal-dual."),
        ],
    )
    def test_errors_are_one_sentence(self, run, given, sentence):
        code, out, err = run(*LEARN, "-p", given, "--out", "run.npz")
        assert (code, out, err) == (1, "", f"error: {sentence}\n")
        assert not Path("run.npz").exists()

    def test_what_cannot_be_imported(self, run):
        for name, part in (
            (
                "nowhere:factory",
                "cannot be imported (No module named 'nowhere'); put its module on",
            ),
            ("sweep_cases:absent", "cannot be imported"),
            ("sweep_cases:SMALL", "is not a factory: it must take knowledge and parameters."),
        ):
            code, out, err = run("learn", "m.npz", "--algorithm", name)
            assert (code, out, err.count("\n")) == (1, "", 1)
            assert f"algorithm '{name}' {part}" in err

    @pytest.mark.kills
    def test_in_a_process_with_its_module_on_the_path(self, tmp_path):
        folder = tmp_path / "modules"
        folder.mkdir()
        (folder / "my_own.py").write_text("from sweep_cases import geared as factory\n")
        path = os.pathsep.join((str(folder), str(Path(__file__).parents[1])))
        finished = subprocess.run(
            [
                *(sys.executable, "-m", "cmdpax", "learn", "m.npz", *FEW, "--json"),
                *("--algorithm", "my_own:factory", "-p", "gain=0.4"),
            ],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": path},
        )
        assert finished.returncode == 0, finished.stderr
        assert json.loads(finished.stdout)["algorithm"] == "my_own:factory"


def test_the_record_of_a_factory_without_one_is_the_papers(run, saved_bandit):
    assert as_algorithm("broken_learners:sound").record is Hyperparameters
    learn = ("learn", "m.npz", "--algorithm", "broken_learners:sound", *FEW, "--json")
    assert run(*learn, "-p", "step_size=0.3*k^-0.2", "-p", "margin=0.1")[0] == 0
    assert (
        "known: margin, max_multiplier, regularization, step_size."
        in run(*learn, "-p", "gain=1")[2]
    )
