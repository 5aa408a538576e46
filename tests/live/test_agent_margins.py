"""Margins are in the user's units, one for all constraints or one for each."""

from typing import Any

import numpy as np
import pytest

import cmdpax
from lanes import quick_or_whole
from learning_cases import OURS
from live_cases import assert_sentence, make

UNITS: dict[str, Any] = {
    "algorithm": "replanning",
    "thresholds": [30.0, -0.5],
    "senses": ["at most", "at least"],
    "constraint_ranges": [(0, 20), (-1, 1)],
    "reward_range": (-3, 5),
    "names": ["energy", "comfort"],
    "units": {"energy": "kWh"},
}


def aims(**changes: Any) -> list[float]:
    """What the learner is told, in the user's units."""
    agent = make(**(UNITS | changes))
    inside = np.asarray(agent._now.inputs.thresholds)
    return agent.declaration.units.constraint_values(inside, 3).tolist()


@pytest.mark.parametrize(
    ("margin", "expected"),
    [
        (None, [30.0, -0.5]),
        (0, [30.0, -0.5]),
        (0.25, [29.75, -0.25]),
        ([5, 0.5], [25.0, 0.0]),
        ((30, 3.5), [0.0, 3.0]),  # the largest that are possible
        (np.array([0.5, 0]), [29.5, -0.5]),
        ([0.25], [29.75, -0.25]),
    ],
)
def test_thresholds_are_stricter_for_the_learner(margin: Any, expected: list[float]) -> None:
    assert aims(margin=margin) == pytest.approx(expected, abs=1e-12)


def test_the_account_keeps_to_the_thresholds() -> None:
    agent = make(**UNITS, margin=[5.0, 0.5])
    assert [one.threshold for one in agent.account] == [30.0, -0.5]
    np.testing.assert_array_equal(agent.declaration.margins, [5.0, 0.5])


@pytest.mark.parametrize(
    ("margin", "sentence"),
    [
        ([31, 0], "the margin of energy is 31 kWh, and at most 30 kWh is possible: its sums of 3 "),
        (
            [0, 4],
            "the margin of comfort is 4, and at most 3.5 is possible: its sums of 3 steps lie",
        ),
        (5, "the margin of comfort is 5, and at most 3.5 is possible"),
        (-1, "margin is -1, it must be one number, or one for each of 2 constraints, in their uni"),
        ([1, 2, 3], "margin is [1, 2, 3], it must be one number, or one for each of 2 constraints"),
        ([[1, 2]], "margin is [[1, 2]], it must be one number"),
        (np.nan, "margin is nan, it must be one number"),
        (np.inf, "margin is inf, it must be one number"),
        (1j, "margin is 1j, it must be one number"),
        (object, "margin is <class 'object'>, it must be one number"),
        ("much", "margin is 'much', it must be a number or a schedule"),
        ({"start": 1}, "margin has the unknown key 'start'"),
    ],
)
def test_wrong_ones_name_the_constraint_and_what_is_possible(margin: Any, sentence: str) -> None:
    with pytest.raises(cmdpax.ParameterError) as caught:
        make(**UNITS, margin=margin)
    assert_sentence(caught.value)
    assert sentence in str(caught.value)


def test_where_no_range_is_declared_any_margin_may_be_possible() -> None:
    free = {"constraint_ranges": [None, (-1, 1)], "margin": [31, 0]}
    assert aims(**free) == pytest.approx([-1.0, -0.5])
    with pytest.raises(cmdpax.ParameterError, match=r"margin is \[inf, 0\], it must"):
        make(**(UNITS | free | {"margin": [np.inf, 0]}))
    with pytest.raises(
        cmdpax.ParameterError, match=r"the margin of comfort is 4, and at most 3\.5"
    ):
        make(**(UNITS | free | {"margin": [31, 4]}))


def test_a_schedule_is_one_for_scaled_signals() -> None:
    for margin in (cmdpax.schedules.power(0.2, 0.5), "0.2*k^-0.5"):
        agent = make(**UNITS, margin=margin)
        assert agent.declaration.parameters["margin"] == [0.2, 0.5, 0.0]
        np.testing.assert_array_equal(agent.declaration.margins, [0, 0])
    with pytest.raises(cmdpax.ParameterError, match="must not be negative"):
        make(**UNITS, margin=cmdpax.schedules.power(-0.2, 0.5))


@pytest.mark.parametrize(
    "algorithm",
    [quick_or_whole(name, quick="dual" in name) for name in OURS],
)
def test_for_every_algorithm(algorithm: str) -> None:
    assert aims(algorithm=algorithm, margin=[5, 0.5]) == pytest.approx([25.0, 0.0])
