import numpy as np
import pytest

import cmdpax


def buffer_model(last: int, arrivals: tuple[float, float], playout: float) -> np.ndarray:
    """p(t | s, a) case by case."""
    transitions = np.zeros((last + 1, 2, last + 1))
    for s in range(last + 1):
        for a, arrival in enumerate(arrivals):
            up, down = arrival * (1 - playout), (1 - arrival) * playout
            stay = 1 - up - down
            if s == 0:
                stay += down
            else:
                transitions[s, a, s - 1] = down
            if s == last:
                stay += up
            else:
                transitions[s, a, s + 1] = up
            transitions[s, a, s] = stay
    return transitions


def test_the_default_model() -> None:
    cmdp = cmdpax.environments.make("streaming")
    assert cmdp.sizes == (1, 10, 10, 2)
    expected = buffer_model(9, (0.9, 0.1), 0.8)
    np.testing.assert_allclose(cmdp.transitions[0], expected, rtol=0, atol=1e-15)
    for s in range(10):
        # Cost 1 of an empty buffer, as a reward; cost 1 of the fast link, as a constraint reward.
        assert cmdp.rewards[0, s].tolist() == ([0.0, 0.0] if s == 0 else [1.0, 1.0])
        assert cmdp.constraint_rewards[0, 0, s].tolist() == [0.0, 1.0]
    assert cmdp.thresholds.tolist() == [10.0 - 5.0]
    assert cmdp.initial.tolist() == [1.0] + [0.0] * 9


def test_other_parameters() -> None:
    cmdp = cmdpax.environments.make(
        "streaming", buffer=2, horizon=4, fast=0.7, slow=0.3, playout=0.25, budget=1.0
    )
    expected = buffer_model(2, (0.7, 0.3), 0.25)
    np.testing.assert_allclose(cmdp.transitions[0], expected, rtol=0, atol=1e-15)
    assert cmdp.thresholds.tolist() == [3.0]


@pytest.mark.parametrize("budget", [0.0, 5.0])
def test_the_fast_link_is_rationed(budget: float) -> None:
    cmdp = cmdpax.environments.make("streaming", budget=budget)
    solution = cmdpax.solve(cmdp)
    assert solution.occupancy[:, :, 0].sum() <= budget + 1e-9
