"""What the environments on grids share; the environments' own tests go cell by cell."""

import numpy as np
import pytest

import cmdpax
from cmdpax.environments.grid import neighbours, on_arrival, slipping


def test_neighbours_by_hand() -> None:
    walls = np.array([[False, True], [False, False]])  # cells 0 above 1, and 2 beside 1
    expected = [[0, 0, 1, 0], [0, 2, 1, 1], [2, 2, 2, 1]]  # up, right, down, left
    assert neighbours(walls).tolist() == expected
    ends = np.array([[False, False], [True, False]])
    assert neighbours(walls, ends).tolist() == [expected[0], [1, 1, 1, 1], expected[2]]


def test_moves_that_end_alike_share_a_slot() -> None:
    lists, chances = slipping(np.array([[0, 1, 0, 1], [1, 1, 1, 1]]), slip=0.4)
    assert lists.shape == chances.shape == (1, 2, 4, 4)
    assert chances[0, 0] == pytest.approx(
        np.array([[0.8, 0.2, 0, 0], [0.2, 0.8, 0, 0], [0.8, 0.2, 0, 0], [0.2, 0.8, 0, 0]])
    )
    assert chances[0, 1] == pytest.approx(np.array([[1.0, 0, 0, 0]] * 4))


@pytest.mark.parametrize("slip", [0.1, 0.18, 0.2, 0.45, 0.53])
def test_rounding_never_lifts_what_arrival_is_worth_over_one(slip: float) -> None:
    targets = np.array([[1, 2, 3, 4], *[[state] * 4 for state in range(1, 5)]])
    assert np.all(on_arrival(slipping(targets, slip), np.ones(5)) == 1.0)


@pytest.mark.parametrize(
    ("parameters", "fingerprint"),
    [
        ({}, "364c3a9f86132e179ac45aad68eeced140a23a31809f45fd5e5391a2818465d5"),
        (
            {"layout": "S.1#/.#2G/..1."},
            "b6e885a9cd62315c9c87605272f5b428b5f4742f9a905d68e18e58908b33e729",
        ),
        (
            {"uniform_start": True, "seed": 3, "slip": 1.0},
            "fa9717065b251516927d7d6e2acf32ccffe20b673c9113ba88940e09b0d4c8f7",
        ),
    ],
)
def test_the_gridworlds_stay_what_they_are(parameters: dict[str, object], fingerprint: str) -> None:
    cmdp = cmdpax.environments.make("gridworld", **parameters)
    assert cmdp.with_arrays().fingerprint == fingerprint  # without its senses
