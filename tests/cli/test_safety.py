"""`cmdpax solve-safely` and `cmdpax uncertainty`."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import cmdpax
from data_cases import logged, random_model, uniform

Run = Callable[..., tuple[int, str, str]]
BOUND = ("--at-most", "energy=1.4")


@pytest.fixture
def log(tmp_path: Path) -> cmdpax.Log:
    """`log.csv`, in the folder where the commands run: three states with names, one constraint."""
    cmdp = random_model(1).replace(
        state_names=["cold", "warm", "hot"],
        action_names=["wait", "heat"],
        constraint_names="energy",
    )
    made = cmdpax.Log(*logged(cmdp, uniform(cmdp), 150, 1), words=cmdp.words)
    made.save(tmp_path / "log.csv")
    return cmdpax.load_log(tmp_path / "log.csv")


def test_writes_the_plan_of_the_library(run: Run, log: cmdpax.Log) -> None:
    code, out, err = run("solve-safely", "log.csv", *BOUND, "--out", "p.json", "--seed", "3")
    assert (code, err) == (0, "wrote p.json\n")
    plan = cmdpax.solve_safely(log, limits=1.4, seed=3)
    np.testing.assert_allclose(cmdpax.load_policy("p.json"), plan.policy)
    assert f"{plan.probability_met:.4g} │" in out
    assert "at most" in out
    assert f"{plan.margins[0]:.3g}" in out
    assert "…" not in out  # nothing is cut in 80 columns


def test_tells_programs_the_same(run: Run, log: cmdpax.Log) -> None:
    code, out, err = run("solve-safely", "log.csv", *BOUND, "--json", "--confidence", "0.8")
    plan = cmdpax.solve_safely(log, limits=1.4, confidence=0.8)
    told = json.loads(out)
    assert (code, err) == (0, "")
    assert told["certified"] is True
    assert told["confidence"] == 0.8
    assert told["probability_met"] == {
        "joint": plan.probability_met,
        "each": [plan.probability_met],
    }
    np.testing.assert_allclose(told["expected"], plan.uncertainty.expected)
    np.testing.assert_allclose(told["margins"], plan.margins)
    np.testing.assert_allclose(told["correction"], plan.correction)
    assert told["senses"] == ["at most"]


def test_a_refusal_is_a_sentence_and_writes_nothing(run: Run, log: cmdpax.Log) -> None:
    code, out, err = run(
        "solve-safely", "log.csv", "--at-most", "energy=-1", "--out", "p.csv", "--json"
    )
    told = json.loads(out)
    assert code == 1
    assert err.startswith("error: the log supports no policy that meets the constraints with")
    assert err.count("\n") == 1
    assert not Path("p.csv").exists()
    assert told["certified"] is False
    assert told["episodes_needed"] is None
    assert 1 <= len(told["pairs_needed"]) <= 5


@pytest.mark.parametrize("ending", [".csv", ".json", ".npz"])
def test_judges_policies_of_every_kind_of_file(run: Run, log: cmdpax.Log, ending: str) -> None:
    plan = cmdpax.solve_safely(log, limits=1.4)
    plan.policy.save(f"p{ending}")
    code, out, _ = run("uncertainty", "log.csv", f"p{ending}", *BOUND, "--json")
    told = json.loads(out)
    expected = cmdpax.uncertainty(log, plan.policy, limits=1.4)
    assert code == 0
    np.testing.assert_allclose(told["value"], expected.value)
    np.testing.assert_allclose(told["constraint_values"], expected.constraint_values)
    assert told["probability_met"]["joint"] == expected.probability_met.joint


def test_names_decide_which_state_is_which(run: Run, log: cmdpax.Log) -> None:
    """The table of a policy may have a state that was never logged."""
    rows = ["step,state,action,probability"]
    rows += [f"{h},{state},wait,1.0" for h in range(3) for state in ("warm", "hot", "cold", "ice")]
    Path("p.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    code, out, _ = run("uncertainty", "log.csv", "p.csv", *BOUND, "--json")
    waits = np.zeros((3, 3, 2))
    waits[..., log.words.action_names.index("wait")] = 1
    expected = cmdpax.uncertainty(log, waits, limits=1.4)
    assert code == 0
    np.testing.assert_allclose(json.loads(out)["expected"], expected.expected, atol=0.05)


def test_the_robust_bound_says_what_it_does_not_show(run: Run, log: cmdpax.Log) -> None:
    cmdpax.solve_safely(log, limits=1.4).policy.save("p.npz")
    ranges = ("--range", "reward=0:1", "--range", "energy=0:1")
    code, out, _ = run("uncertainty", "log.csv", "p.npz", *BOUND, "--method", "robust", *ranges)
    assert code == 0
    assert "not shown" in out


@pytest.mark.parametrize(
    ("ranges", "missing"),
    [((), "reward"), (("reward=0:1",), "energy"), (("energy=0:1",), "reward")],
)
def test_the_robust_bound_needs_every_range(
    run: Run, log: cmdpax.Log, ranges: tuple[str, ...], missing: str
) -> None:
    cmdpax.solve_safely(log, limits=1.4).policy.save("p.npz")
    given = [part for text in ranges for part in ("--range", text)]
    code, out, err = run("uncertainty", "log.csv", "p.npz", *BOUND, "--method", "robust", *given)
    assert (code, out) == (1, "")
    assert err.startswith(f"error: the range of '{missing}' is not declared")
    assert err.endswith(f"give --range {missing}=LOW:HIGH, or --method posterior.\n")


def test_constraints_without_names_have_ranges(run: Run, log: cmdpax.Log) -> None:
    """Their columns are constraint_0 and so on, also in a .npz, which has no columns."""
    cmdpax.Log(*log).save("plain.npz")
    cmdpax.solve_safely(log, limits=1.4).policy.save("p.npz")
    ranges = ("--range", "reward=0:1", "--range", "constraint_0=0:1")
    bound = ("--at-most", "constraint_0=1.4")
    code, out, err = run("uncertainty", "plain.npz", "p.npz", *bound, *ranges, "--json")
    expected = cmdpax.uncertainty(
        log, cmdpax.load_policy("p.npz"), limits=1.4, reward_range=(0, 1), constraint_ranges=(0, 1)
    )
    assert (code, err) == (0, "")
    np.testing.assert_allclose(json.loads(out)["value"], expected.value)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--range", "reward"), "--range is 'reward'; write NAME=LOW:HIGH, such as reward=0:1."),
        (("--range", "energy=1:0"), "--range is 'energy=1:0'; write NAME=LOW:HIGH"),
        (("--range", "enrgy=0:1"), "--range names 'enrgy'; did you mean 'energy'?"),
        (("--range", "energy=0:1", "--range", "energy=0:2"), "--range names 'energy' twice"),
        (("--range", "energy=0:0.1"), "the log has the observation"),
        (("--confidence", "1.5"), "confidence is 1.5, it must be between 0 and 1"),
        (("--samples", "7"), "samples is 7"),
        (("--out", "p.txt"), "p.txt has the ending '.txt'"),
        (("--initial", "ice"), "initial is 'ice'"),
    ],
)
def test_wrong_options_get_a_sentence(
    run: Run, log: cmdpax.Log, arguments: tuple[str, ...], sentence: str
) -> None:
    code, out, err = run("solve-safely", "log.csv", *BOUND, *arguments)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(f"error: {sentence}")
