import numpy as np
import pytest

import cmdpax


def test_the_three_state_model() -> None:
    cmdp = cmdpax.environments.make("ring")
    assert cmdp.sizes == (1, 6, 3, 2)
    for s in range(3):
        for t in range(3):
            assert cmdp.transitions[0, s, 0, t] == (1.0 if t == s else 0.0)
            assert cmdp.transitions[0, s, 1, t] == (1.0 if t == (s + 1) % 3 else 0.0)
        assert cmdp.rewards[0, s, 0] == 0.0
        assert cmdp.rewards[0, s, 1] == pytest.approx((s + 1) / 3)
    # Cost 1 per move, at most 3 of 6: u = 1 - cost, c = 6 - 3.
    assert cmdp.constraint_rewards.tolist() == [[[[1.0, 0.0]] * 3]]
    assert cmdp.thresholds.tolist() == [3.0]
    assert cmdp.initial.tolist() == [1.0, 0.0, 0.0]


def test_its_optimum_by_hand() -> None:
    # Once around is three moves: (1 + 2 + 3)/3. Nothing pays more per move.
    solution = cmdpax.solve(cmdpax.environments.make("ring"))
    assert solution.value == pytest.approx(2.0, abs=1e-12)


def test_the_variant_with_raw_rewards_and_uniform_start() -> None:
    cmdp = cmdpax.environments.make("ring", scale_rewards=False, uniform_start=True)
    assert cmdp.rewards[0, :, 1].tolist() == [1.0, 2.0, 3.0]
    np.testing.assert_allclose(cmdp.initial, 1 / 3)


def test_longer_rings() -> None:
    cmdp = cmdpax.environments.make("ring", num_states=5, horizon=4, budget=1.5)
    assert cmdp.sizes == (1, 4, 5, 2)
    assert cmdp.thresholds.tolist() == [2.5]
    assert cmdp.transitions[0, 4, 1].tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]
    assert cmdp.rewards[0, 4, 1] == 1.0
