import numpy as np
import pytest

import cmdpax

SERVICE = (0.2, 0.4, 0.6, 0.8)
FLOW = (0.4, 0.5, 0.6, 0.7)


@pytest.mark.parametrize(("last", "horizon"), [(5, 20), (2, 7)])
def test_the_model_case_by_case(last: int, horizon: int) -> None:
    if last == 5:
        cmdp = cmdpax.environments.make("queue")
    else:
        cmdp = cmdpax.environments.make("queue", capacity=last, horizon=horizon)
    assert cmdp.sizes == (2, horizon, last + 1, 16)
    for x in range(last + 1):
        for i, a in enumerate(SERVICE):
            for j, b in enumerate(FLOW):
                row = np.zeros(last + 1)
                if x == 0:
                    row[1] = b * (1 - a)
                elif x == last:
                    row[last - 1] = a
                else:
                    row[x - 1], row[x + 1] = a * (1 - b), (1 - a) * b
                row[x] = 1 - row.sum()
                action = 4 * i + j
                np.testing.assert_allclose(cmdp.transitions[0, x, action], row, rtol=0, atol=1e-15)
                assert cmdp.rewards[0, x, action] == pytest.approx((last - x) / last)
                # 6 - 10a ranges over [-2, 4], 2 - 8(1 - b)² over [-0.88, 1.28].
                assert cmdp.constraint_rewards[0, 0, x, action] == pytest.approx(
                    (6 - 10 * a + 2) / 6, abs=1e-12
                )
                assert cmdp.constraint_rewards[1, 0, x, action] == pytest.approx(
                    (2 - 8 * (1 - b) ** 2 + 0.88) / 2.16, abs=1e-12
                )
    # A sum of at least 0 before the shift is H times the shift after it.
    assert cmdp.thresholds == pytest.approx([horizon * 2 / 6, horizon * 0.88 / 2.16])
    assert cmdp.initial.tolist() == [1.0] + [0.0] * last


def test_both_constraints_bind() -> None:
    solution = cmdpax.solve(cmdpax.environments.make("queue"))
    assert np.all(solution.multipliers > 1e-3)
    assert solution.slater_gap > 0
