"""`cmdpax audit`, driven as a user does."""

import json

import numpy as np
import pytest

import cmdpax

KEYS = {"name", "place", "left", "right", "slack", "verdict", "worst"}
AUDIT = ("audit", "m.npz", "--iterations", "20")


pytestmark = pytest.mark.usefixtures("saved_bandit")


def test_table(run):
    code, out, err = run(*AUDIT)
    assert code == 0
    for part in ("m.npz: CMDP(S=1, A=3, H=1, I=1, dense)", "three-point identity", "vacuous"):
        assert part in out
    assert "potential, closed form (Lemma 4.1): the bias term alone is" in err
    assert "three-point identity" not in err  # only what does not simply hold is explained


def test_json_has_the_rows_of_the_library(run, saved_bandit):
    code, out, err = run(*AUDIT, "--json")
    result = json.loads(out)
    assert (code, err) == (0, "")
    found = cmdpax.audit(saved_bandit, num_iterations=20)
    assert [row["name"] for row in result["rows"]] == [row.name for row in found.rows]
    for row, expected in zip(result["rows"], found.rows, strict=True):
        assert set(row) >= KEYS
        assert row["worst"] == expected.worst
        assert row["verdict"] == expected.verdict
        if np.isfinite(expected.slack):
            assert row["slack"] == pytest.approx(expected.slack, rel=1e-12)
    assert result["max_multiplier"] == 6.0
    assert result["slater_gap"] == pytest.approx(0.4)


def test_numbers_that_json_does_not_have_are_null(run):
    code, out, _ = run(*AUDIT, "--accuracy", "0.0001", "--json")
    rows = {row["name"]: row for row in json.loads(out)["rows"]}
    assert code == 0
    assert rows["last iterate"]["left"] is None


@pytest.mark.whole
def test_online_with_its_options(run):
    options = ("--online", "--episodes", "30", "--seeds", "6", "--json")
    code, out, _ = run(*AUDIT, *options)
    rows = {row["name"]: row for row in json.loads(out)["rows"]}
    assert code == 0
    assert rows["success event, rewards"]["verdict"] == "holds"
    assert "ε-safety, ε = 0.1" in rows


def test_premises_that_are_not_met_are_no_error(run):
    options = ("-p", "step_size=0.9", "-p", "regularization=0.3", "-p", "max_multiplier=1")
    code, out, err = run(*AUDIT, *options)
    assert code == 0
    assert "premise not met" in out
    assert "ητ = 0.27 exceeds 1/4; λ_max = 1 is below H/Ξ = 2.5" in err


def test_failures_are_no_error_either(run, monkeypatch):
    found = cmdpax.audit(cmdpax.environments.make("bandit"), num_iterations=20)
    rows = [row._replace(verdict="fails") for row in found.rows]
    monkeypatch.setattr("cmdpax.paper.audit.audit", lambda *_, **__: found._replace(rows=rows))
    code, out, err = run(*AUDIT)
    assert code == 0
    assert "fails" in out
    assert "worst at k = " in err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("audit", "none.npz"), "none.npz"),
        ((*AUDIT, "-p", "regularization=0"), "regularization > 0"),
        ((*AUDIT, "-p", "step_size=-1"), "step_size is -1, it must be a positive number"),
        ((*AUDIT, "-p", "step_size=small"), "step_size is 'small', it must be a positive number"),
        ((*AUDIT, "-p", "stepsize=1"), "no parameter 'stepsize'; did you mean 'step_size'?"),
        (("audit", "m.npz", "--iterations", "0"), "num_iterations is 0"),
        ((*AUDIT, "--accuracy", "0"), "accuracy is 0.0"),
        ((*AUDIT, "--online", "--episodes", "0"), "num_episodes is 0"),
        ((*AUDIT, "--online", "--seeds", "0"), "seeds is 0"),
    ],
)
def test_bad_input_is_one_line(run, arguments, sentence):
    code, out, err = run(*arguments)
    assert (code, out) == (1, "")
    assert sentence in err
    assert len(err.strip().splitlines()) == 1


def test_an_infeasible_model_is_one_line(run, saved_bandit, tmp_path):
    cmdpax.save(saved_bandit.replace(thresholds=np.array([0.95])), tmp_path / "m.npz")
    code, out, err = run(*AUDIT)
    assert (code, out) == (1, "")
    assert "infeasible" in err
    assert len(err.strip().splitlines()) == 1
