import pytest

import cmdpax
from golden_files import Golden


def test_the_model_is_the_golden_one(bandit: Golden) -> None:
    cmdp = cmdpax.environments.make("bandit")
    assert cmdp.sizes == (1, 1, 1, 3)
    assert cmdp.rewards.tolist() == [[[1.0, 0.2, 0.6]]]
    assert cmdp.constraint_rewards.ravel() == pytest.approx([0.1, 0.9, 0.5], abs=1e-15)
    assert cmdp.thresholds.tolist() == [0.5]
    assert cmdp.fingerprint == bandit.cmdp.fingerprint


def test_its_optimum_by_hand() -> None:
    solution = cmdpax.solve(cmdpax.environments.make("bandit"))
    assert solution.value == pytest.approx(0.6, abs=1e-12)
    assert solution.multipliers == pytest.approx([1.0], abs=1e-12)


def test_the_two_ways_to_meet_the_budget() -> None:
    cmdp = cmdpax.environments.make("bandit")
    for policy in ([0.0, 0.0, 1.0], [0.5, 0.5, 0.0]):
        reached = cmdpax.evaluate(cmdp, [[policy]])
        assert reached.value == pytest.approx(0.6, abs=1e-12)
        assert reached.constraint_values == pytest.approx([0.5], abs=1e-12)
