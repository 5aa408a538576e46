"""`cmdpax frontier`, driven as a user does: output, files, error sentences, exit codes."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import cmdpax
from cmdpax.cli import frontier as command


@pytest.fixture
def bandit(tmp_path) -> str:
    cmdpax.save(cmdpax.environments.make("bandit"), tmp_path / "bandit.npz")
    return "bandit.npz"


@pytest.fixture
def queue(tmp_path) -> str:
    cmdpax.save(cmdpax.environments.make("queue"), tmp_path / "queue.npz")
    return "queue.npz"


class TestOutput:
    def test_table(self, run, bandit):
        code, out, err = run("frontier", bandit, "--from", "0", "--to", "1", "--points", "5")
        assert (code, err) == (0, "")
        rows = [line.replace("│", " ").split() for line in out.splitlines()]
        assert ["0", "1", "0", "yes"] in rows
        assert ["0.25", "0.85", "1", "yes"] in rows
        assert ["0.75", "0.35", "1", "yes"] in rows
        assert ["1", "no"] in rows
        assert "bandit.npz: CMDP(S=1, A=3, H=1, I=1, dense), unspent budget" in out
        assert ["unspent", "budget", "in", "the", "model", "at", "least", "0.5"] in rows
        assert ["largest", "that", "can", "be", "met", "0.9"] in rows

    def test_a_limit_by_its_name_and_in_its_sense(self, run, tmp_path):
        cmdpax.save(cmdpax.environments.make("ring"), tmp_path / "ring.npz")
        arguments = ("frontier", "ring.npz", "--constraint", "moves")
        code, out, err = run(*arguments, "--from", "0", "--to", "4", "--points", "3")
        assert (code, err) == (0, "")
        rows = [line.replace("│", " ").split() for line in out.splitlines()]
        assert ["moves", "in", "the", "model", "at", "most", "3"] in rows
        assert ["smallest", "that", "can", "be", "met", "0"] in rows
        assert ["2", "1.333333333", "0.6666666667", "yes"] in rows
        code, _, err = run("frontier", "ring.npz", "--constraint", "movs")
        assert code == 1
        assert "there is no constraint 'movs'; did you mean 'moves'?" in err

    def test_json_is_one_object_with_the_promised_keys(self, run, queue):
        code, out, err = run("frontier", queue, "--constraint", "1", "--points", "6", "--json")
        assert (code, err) == (0, "")
        result = json.loads(out)
        cmdp = cmdpax.load(queue)
        expected = cmdpax.frontier(cmdp, constraint=1, num_points=6)
        names = {"name", "sense", "own_threshold", "seconds"}
        assert set(result) == {*expected._fields, *names} - {"words"}
        assert (result["name"], result["sense"]) == ("admission", "at least")
        assert result["constraint"] == 1
        assert result["own_threshold"] == cmdp.thresholds[1]
        assert result["thresholds"] == expected.thresholds.tolist()
        assert result["feasible"] == [True] * 5 + [False]
        assert result["value"][:5] == pytest.approx(expected.value[:5], abs=1e-12)
        assert result["value"][5] is None
        assert result["multipliers"][5] == [None, None]
        assert np.shape(result["constraint_values"]) == (6, 2)
        assert result["seconds"] > 0

    def test_nothing_feasible_is_an_answer(self, run, bandit):
        arguments = ("frontier", bandit, "--from", "2", "--to", "3", "--points", "2")
        code, out, _ = run(*arguments)
        assert code == 0
        assert "nothing is feasible" in out
        code, out, _ = run(*arguments, "--json")
        assert code == 0
        assert json.loads(out)["feasible"] == [False, False]

    def test_other_constraints_infeasible(self, run, tmp_path):
        cmdp = cmdpax.environments.make("queue")
        cmdpax.save(cmdp.replace(thresholds=[5.0, 100.0]), tmp_path / "m.npz")
        code, out, _ = run("frontier", "m.npz", "--json", "--points", "4")
        assert code == 0
        assert json.loads(out)["largest_feasible"] is None  # minus infinity

    def test_progress_is_a_bar_on_terminals(self, run, bandit, monkeypatch, capsys):
        monkeypatch.setattr(command, "messages", Console(stderr=True, force_terminal=True))
        code, out, err = run("frontier", bandit, "--points", "7", "--json")
        assert code == 0
        json.loads(out)
        assert "frontier" in err
        assert "7/7" in err


class TestFiles:
    @pytest.mark.parametrize("ending", [".png", ".pdf", ".svg", ".PNG"])
    def test_pictures(self, run, bandit, tmp_path, ending):
        code, _, err = run("frontier", bandit, "--points", "5", "--out", f"picture{ending}")
        assert code == 0
        assert f"wrote picture{ending}" in err
        assert (tmp_path / f"picture{ending}").stat().st_size > 2000
        assert len(list(tmp_path.iterdir())) == 2

    def test_csv(self, run, queue):
        code, out, err = run("frontier", queue, "--points", "5", "--out", "f.csv", "--json")
        assert (code, err) == (0, "wrote f.csv\n")
        result = json.loads(out)
        with Path("f.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert list(rows[0]) == [
            "threshold",
            "feasible",
            "value",
            "gap",
            "multiplier_0",
            "multiplier_1",
            "constraint_value_0",
            "constraint_value_1",
        ]
        assert [float(row["threshold"]) for row in rows] == result["thresholds"]
        assert [row["feasible"] for row in rows] == ["true"] * 4 + ["false"]
        assert [float(row["value"]) for row in rows[:4]] == result["value"][:4]
        assert [float(row["multiplier_1"]) for row in rows[:4]] == [
            multipliers[1] for multipliers in result["multipliers"][:4]
        ]
        assert {rows[4][name] for name in list(rows[0])[2:]} == {""}

    def test_npz(self, run, queue):
        code, _, _ = run("frontier", queue, "--points", "5", "--out", "f.npz")
        assert code == 0
        cmdp = cmdpax.load(queue)
        expected = cmdpax.frontier(cmdp, num_points=5)
        with np.load("f.npz", allow_pickle=False) as content:
            assert set(content) == {*expected._fields, "fingerprint"} - {"words"}
            for name in ("thresholds", "value", "multipliers", "feasible", "largest_feasible"):
                np.testing.assert_array_equal(content[name], getattr(expected, name))
            assert str(content["fingerprint"]) == cmdp.fingerprint

    @pytest.mark.parametrize(
        ("out", "sentence"),
        [
            ("f.txt", "f.txt has the ending '.txt'; frontiers are .png, .pdf, .svg, .csv, .npz f"),
            ("f", "f has the ending ''; frontiers are"),
            ("none/f.png", "the folder none does not exist; create it first."),
            ("none/f.csv", "the folder none does not exist; create it first."),
        ],
    )
    def test_places_that_cannot_be_written_are_refused_first(
        self, run, bandit, tmp_path, monkeypatch, out, sentence
    ):
        def never(path):
            raise AssertionError("work was done")

        monkeypatch.setattr(cmdpax, "load", never)
        code, printed, err = run("frontier", bandit, "--out", out)
        assert (code, printed) == (1, "")
        assert sentence in err
        assert err.count("\n") == 1
        assert [path.name for path in tmp_path.iterdir()] == [bandit]


class TestErrors:
    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            (["nowhere.npz"], "nowhere.npz does not exist."),
            (["FILE", "--constraint", "1"], "constraint is 1, it must be 0, the only one."),
            (["FILE", "--points", "3"], "num_points is 3, it must be a whole number of at least 4"),
            (["FILE", "--from", "0", "--to", "1", "--points", "1"], "--points is 1, it must be at"),
            (["FILE", "--from", "nan", "--to", "1"], "thresholds[0] is nan; every threshold must"),
            (["FREE"], "the CMDP has no constraints, hence no frontier; cmdpax.solve finds"),
        ],
    )
    def test_sentences(self, run, bandit, tmp_path, arguments, sentence):
        free = cmdpax.environments.make("bandit").replace(constraint_rewards=[], thresholds=[])
        cmdpax.save(free, tmp_path / "free.npz")
        names = {"FILE": bandit, "FREE": "free.npz"}
        arguments = [names.get(argument, argument) for argument in arguments]
        code, out, err = run("frontier", *arguments, "--out", "f.png")
        assert (code, out) == (1, "")
        assert err.startswith("error: ")
        assert sentence in err
        assert err.count("\n") == 1
        assert not (tmp_path / "f.png").exists()

    @pytest.mark.parametrize(
        "arguments", [[], ["FILE", "--nonsense"], ["FILE", "--from", "1"], ["FILE", "--to", "1"]]
    )
    def test_wrong_usage_exits_with_2(self, run, bandit, arguments):
        arguments = [bandit if argument == "FILE" else argument for argument in arguments]
        code, out, err = run("frontier", *arguments)
        assert (code, out) == (2, "")
        assert "Usage" in err

    def test_an_open_gap_is_a_warning(self, run, queue, monkeypatch):
        whole = cmdpax.frontier
        monkeypatch.setattr(
            cmdpax, "frontier", lambda *a, **k: whole(*a, **k, max_columns=5), raising=False
        )
        code, out, err = run("frontier", queue, "--points", "5", "--json")
        assert code == 0
        assert max(gap for gap in json.loads(out)["gap"] if gap is not None) > 1e-10
        assert err.startswith("warning: column generation stopped at gaps of up to")
        assert err.count("\n") == 1
