"""Measures of runs: how much they oscillate."""

import numpy as np
import pytest

from cmdpax.experiments.measures import oscillation
from cmdpax.learning.history import Account, Regret


def accounts(episodes: np.ndarray, violation: np.ndarray) -> Account:
    """Runs with these violations, and suboptimalities twice as large; optima and c are 0."""
    regret = Regret.of(violation, violation[..., None])
    return Account(
        episodes=episodes,
        value=-2 * violation,
        constraint_values=-violation[..., None],
        strong_regret=regret,
        weak_regret=regret,
        unsafe=np.zeros((1, 0)),
        unsafe_at=(),
        optimum=0.0,
        thresholds=np.zeros(1),
    )


def test_oscillation_of_a_hand_made_sequence():
    """Violations over the second half: + - + + - (three changes in four steps)."""
    violation = np.array([[9.0, -9.0, 9.0, 9.0, -9.0, 1.0, -2.0, 3.0, 1.0, -1.0]])
    found = oscillation(accounts(np.arange(1, 11), violation))
    assert found["sign_changes"] == pytest.approx([750.0])
    mean = (1 - 2 + 3 + 1 - 1) / 5
    spread = np.sqrt(sum((x - mean) ** 2 for x in (1, -2, 3, 1, -1)) / 5)
    assert found["violation_std"] == pytest.approx([spread])
    assert found["suboptimality_std"] == pytest.approx([2 * spread])
    odd = oscillation(accounts(np.arange(1, 10), violation[:, 1:]))
    assert odd["sign_changes"] == pytest.approx([750.0])


def test_no_oscillation_without_numbers():
    found = oscillation(accounts(np.arange(1, 5), np.array([[1.0, 1.0, np.nan, 1.0]])))
    assert np.isnan(list(found.values())).all()


@pytest.mark.parametrize("episodes", [[1, 2, 3, 4, 6], [1], [1, 2]])
def test_no_oscillation_without_every_episode(episodes: list[int]):
    found = oscillation(accounts(np.array(episodes), np.ones((1, len(episodes)))))
    for measure in found.values():
        np.testing.assert_array_equal(measure, [np.nan])
