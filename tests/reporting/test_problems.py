"""A CMDP in numbers."""

import warnings
from typing import Any

import numpy as np
import pytest

import cmdpax
from cmdpax.reporting import problems
from cmdpax.reporting.problems import describe_problem, find_frontiers
from sweep_cases import SMALL
from word_cases import office

DESCRIBED: dict[str, Any] = {
    "name": "a name",
    "optimum": 1.123456789,
    "multipliers": [0.5],
    "slater_gap": None,
}


def make(**parameters: Any) -> cmdpax.CMDP:
    return cmdpax.environments.make("random", **(SMALL | parameters))


def test_numbers() -> None:
    cmdp = make(seed=1)
    found = describe_problem(cmdp, DESCRIBED, rewards=True)
    rewards = found.pop("rewards")
    assert found == {
        "name": "a name",
        "fingerprint": cmdp.fingerprint,
        "sizes": {"num_constraints": 1, "horizon": 3, "num_states": 3, "num_actions": 2},
        "optimum": 1.123457,
        "multipliers": [0.5],
        "thresholds": pytest.approx(cmdp.thresholds.tolist(), rel=1e-6),
        "slater_gap": None,
        "frontier": None,
        "objective": {"name": "reward", "label": "reward", "named": True},
        "constraints": [
            {
                **{"name": "utility", "label": "utility", "named": True, "price": ""},
                **{"sense": "at least", "sign": 1},
                "bound": pytest.approx(cmdp.thresholds[0], rel=1e-6),
                "text": f"utility, at least {cmdp.thresholds[0]:.6g}",
            }
        ],
    }
    assert rewards["r"] == pytest.approx(cmdp.rewards.ravel().tolist(), rel=1e-6)
    assert rewards["u"] == [pytest.approx(cmdp.constraint_rewards.ravel().tolist(), rel=1e-6)]
    assert (rewards["total"], rewards["steps"]) == (3 * 3 * 2, 3)
    assert describe_problem(cmdp, DESCRIBED, rewards=False)["rewards"] is None


def test_rewards_that_are_the_same_at_every_step() -> None:
    cmdp = make(seed=1)
    same = cmdp.replace(rewards=cmdp.rewards[:1], constraint_rewards=cmdp.constraint_rewards[:, :1])
    found = describe_problem(same, DESCRIBED, rewards=True)["rewards"]
    assert (found["total"], found["steps"]) == (3 * 2, 1)
    half = cmdp.replace(rewards=cmdp.rewards[:1])
    found = describe_problem(half, DESCRIBED, rewards=True)["rewards"]
    assert (found["total"], found["steps"]) == (3 * 3 * 2, 3)
    assert found["r"] == found["r"][:6] * 3
    assert len(set(found["u"][0])) == 18


def test_a_selection_of_many_rewards() -> None:
    cmdp = make(num_states=40, num_actions=25, horizon=2, num_constraints=2)
    found = describe_problem(cmdp, DESCRIBED, rewards=True)["rewards"]
    assert found["total"] == 2000
    assert [len(row) for row in (found["r"], *found["u"])] == [1500] * 3
    assert found["r"][0] == pytest.approx(cmdp.rewards[0, 0, 0], rel=1e-6)
    assert found["u"][1][-1] == pytest.approx(cmdp.constraint_rewards[1, -1, -1, -1], rel=1e-6)


@pytest.mark.parametrize("cmdp", [cmdpax.environments.make("bandit"), make(num_constraints=2)])
def test_frontiers(cmdp: cmdpax.CMDP) -> None:
    optimum = cmdpax.solve(cmdp).value
    found = find_frontiers(cmdp, optimum)
    assert found is not None
    assert len(found) == cmdp.num_constraints
    for constraint, one in enumerate(found):
        assert one is not None
        thresholds, values = np.array(one["thresholds"]), np.array(one["values"])
        (place,) = np.flatnonzero(np.isclose(thresholds, cmdp.thresholds[constraint], rtol=1e-6))
        assert values[place] == pytest.approx(optimum, rel=1e-6)
        assert (np.diff(thresholds) > 0).all()
        assert (np.diff(values) <= 1e-6).all()
        assert values[0] == pytest.approx(values[1], abs=1e-6)  # the flat part
        assert thresholds[-1] < one["largest"]
        slopes = np.diff(values) / np.diff(thresholds)
        assert (np.diff(slopes) <= 1e-4).all()  # concave, but for the digits that are left out
        other = cmdp.thresholds.copy()
        other[constraint] = thresholds[12]
        expected = cmdpax.solve(cmdp.replace(thresholds=other)).value
        assert values[12] == pytest.approx(expected, rel=1e-5)


def test_no_frontiers(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_frontiers(make(num_constraints=0), 1.0) == []
    assert find_frontiers(make(num_constraints=5), 1.0) is None
    monkeypatch.setattr(problems, "_MOST_TRIPLES", 17)
    assert find_frontiers(make(), 1.0) is None


@pytest.mark.parametrize("error", [cmdpax.InfeasibleError(-0.1, 0), RuntimeError("HiGHS")])
def test_frontiers_that_fail(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any, **__: Any) -> None:
        warnings.warn("column generation stopped", cmdpax.CmdpaxWarning, stacklevel=2)
        raise error

    monkeypatch.setattr(problems, "frontier", failing)
    assert find_frontiers(make(num_constraints=2), 1.0) == [None, None]


def test_costs_stay_costs() -> None:
    """Signals, bounds and the frontier of an "at most" constraint are those that were given."""
    room = office()
    found = describe_problem(room, DESCRIBED, rewards=True)
    assert found["thresholds"] == [24, 3]
    assert sorted(set(found["rewards"]["u"][0])) == [0.2, 2, 5]
    assert [one["price"] for one in found["constraints"]] == ["EUR per kWh", "EUR per h"]
    assert [one["sign"] for one in found["constraints"]] == [-1, 1]
    frontiers = find_frontiers(room, 20.0)
    assert frontiers is not None
    energy, comfort = frontiers
    assert energy is not None
    assert comfort is not None
    assert 24 in energy["thresholds"]
    assert 3 in comfort["thresholds"]
    assert min(energy["thresholds"]) > energy["largest"]
    assert max(comfort["thresholds"]) < comfort["largest"]
