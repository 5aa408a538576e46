import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cmdpax

NAMES = [
    "bandit",
    "box",
    "gridworld",
    "inventory",
    "mars-rover",
    "queue",
    "random",
    "ring",
    "streaming",
]

OTHER_PARAMETERS: dict[str, dict[str, Any]] = {
    "box": {"slip": 0.1},
    "gridworld": {"height": 5, "seed": 4},
    "inventory": {"budget": 2.0},
    "mars-rover": {"rock_reward": 0.5},
    "queue": {"capacity": 3},
    "random": {"num_constraints": 3, "seed": 9},
    "ring": {"num_states": 4},
    "streaming": {"slow": 0.2},
}


def test_names() -> None:
    assert cmdpax.environments.names() == NAMES
    cmdpax.environments.names().clear()
    assert cmdpax.environments.names() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_defaults_make_a_feasible_model_in_the_unit_interval(name: str) -> None:
    cmdp = cmdpax.environments.make(name)
    assert cmdpax.validate(cmdp) is cmdp
    for rewards in (cmdp.rewards, cmdp.constraint_rewards):
        assert rewards.min() >= 0
        assert rewards.max() <= 1
    solution = cmdpax.solve(cmdp)
    assert solution.gap <= 1e-9
    assert solution.slater_gap > 0
    assert solution.value == pytest.approx(cmdpax.solve(cmdp, "occupancy-lp").value, abs=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_name_and_parameters_give_the_same_fingerprint(name: str) -> None:
    first = cmdpax.environments.make(name)
    assert cmdpax.environments.make(name).fingerprint == first.fingerprint
    _, parameters = cmdpax.environments.describe(name)
    assert cmdpax.environments.make(name, **parameters).fingerprint == first.fingerprint
    if name in OTHER_PARAMETERS:
        others = [cmdpax.environments.make(name, **OTHER_PARAMETERS[name]) for _ in range(2)]
        assert others[0].fingerprint == others[1].fingerprint != first.fingerprint


@pytest.mark.kills
def test_another_process_and_the_global_generator_change_nothing(tmp_path: Path) -> None:
    np.random.seed(0)
    here = [cmdpax.environments.make(name).fingerprint for name in NAMES]
    np.random.seed(1)
    assert [cmdpax.environments.make(name).fingerprint for name in NAMES] == here
    script = (
        "import cmdpax; make = cmdpax.environments.make;"
        "print(*(make(name).fingerprint for name in cmdpax.environments.names()))"
    )
    completed = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert completed.stdout.split() == here


def test_each_family_is_also_a_function() -> None:
    for name in NAMES:
        family = getattr(cmdpax.environments, name.replace("-", "_"))
        assert family().fingerprint == cmdpax.environments.make(name).fingerprint
        assert "Source:" in family.__doc__


def test_descriptions() -> None:
    summary, parameters = cmdpax.environments.describe("ring")
    assert summary == "Stay for nothing, or move on around a ring for a reward and a cost."
    assert parameters["budget"] == 3.0
    assert cmdpax.environments.describe("bandit")[1] == {}


def test_an_unknown_name_comes_with_the_nearest() -> None:
    with pytest.raises(cmdpax.ParameterError) as raised:
        cmdpax.environments.make("gridwrld")
    assert str(raised.value) == (
        "unknown environment 'gridwrld'; did you mean 'gridworld'? known: " + ", ".join(NAMES) + "."
    )
    with pytest.raises(cmdpax.ParameterError, match="unknown environment 'zzz'; known: bandit"):
        cmdpax.environments.make("zzz")
    with pytest.raises(cmdpax.ParameterError, match="did you mean 'queue'"):
        cmdpax.environments.describe("queuee")


def test_an_unknown_parameter_comes_with_the_nearest() -> None:
    expected = "environment 'ring' has no parameter 'num_state'; did you mean 'num_states'?"
    with pytest.raises(cmdpax.ParameterError) as raised:
        cmdpax.environments.make("ring", num_state=4)
    assert str(raised.value).startswith(expected)
    with pytest.raises(cmdpax.ParameterError, match="'bandit' has no parameter 'arms'; known: non"):
        cmdpax.environments.make("bandit", arms=3)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("ring", {"num_states": 0}, "num_states is 0, it must be a whole number of at least 1"),
        ("ring", {"horizon": 2.5}, "horizon is 2.5, it must be a whole number of at least 1"),
        ("ring", {"horizon": "6"}, "horizon is '6', it must be a whole number of at least 1"),
        ("ring", {"horizon": True}, "horizon is True, it must be a whole number of at least 1"),
        ("ring", {"budget": -1}, "budget is -1, it must be a number between 0 and infinity"),
        ("ring", {"uniform_start": 1}, "uniform_start is 1, it must be true or false"),
        ("random", {"seed": -1}, "seed is -1, it must be a whole number of at least 0"),
        ("random", {"noise": float("nan")}, "noise is nan, it must be a number between 0 and inf"),
        ("streaming", {"fast": 1.5}, "fast is 1.5, it must be a number between 0 and 1"),
        ("streaming", {"slow": "x"}, "slow is 'x', it must be a number between 0 and 1"),
        ("queue", {"capacity": 0}, "capacity is 0, it must be a whole number of at least 1"),
        ("gridworld", {"slip": 2}, "slip is 2, it must be a number between 0 and 1"),
        ("gridworld", {"tightness": None}, "tightness is None, it must be a number between 0"),
    ],
)
def test_parameters_out_of_range(name: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(cmdpax.ParameterError) as raised:
        cmdpax.environments.make(name, **parameters)
    assert str(raised.value).startswith(message)
