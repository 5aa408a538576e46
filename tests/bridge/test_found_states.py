"""States that are told apart by what is observed."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Discrete
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import cmdpax
from cmdpax.gymnasium import BoxEncoder, MultiDiscreteEncoder
from cmdpax.gymnasium.found_states import FoundStates, frozen

ALIKE: list[list[Any]] = [
    [3, np.int64(3), 3.0, np.float32(3), np.array(3), np.uint8(3)],
    [True, np.True_, 1],
    [0.0, -0.0, np.float64(-0.0), False],
    [(1, 2), [1, 2], np.array([1, 2]), np.array([1.0, 2.0], np.float32), (np.int8(1), 2)],
    [np.arange(99), np.arange(99, dtype=np.uint8)],
    [np.full((9, 9), -0.0), np.zeros((9, 9), np.float32)],
    [{"b": 2, "a": [1]}, {"a": (1,), "b": 2.0}],
    [{1: 2, "a": 3}, {"a": 3, 1: 2}],
    ["text", np.str_("text")],
    [None],
]


@pytest.mark.parametrize("alike", ALIKE, ids=str)
def test_equal_observations_have_equal_keys(alike: list[Any]) -> None:
    assert len({frozen(value) for value in alike}) == 1


def test_other_observations_have_other_keys() -> None:
    values = [row[0] for row in ALIKE]
    values += [[3], [[3]], "3", np.zeros((3, 27)), np.zeros((27, 3)), {"a": 1}, [("a", 2)], 3.5]
    assert len({frozen(value) for value in values}) == len(values)


NUMBERS = arrays.arrays(
    st.sampled_from([np.int64, np.float64, np.uint8]),
    arrays.array_shapes(max_dims=3, max_side=5),
    elements=st.integers(0, 3),
)


@given(NUMBERS, NUMBERS)
def test_keys_are_equal_where_arrays_are(first: np.ndarray, second: np.ndarray) -> None:
    assert (frozen(first) == frozen(second)) == np.array_equal(first, second)
    assert frozen(first.copy()) == frozen(first)


@pytest.mark.parametrize(
    ("env", "encoder", "observations", "states"),
    [
        (SimpleNamespace(observation_space=Discrete(4, start=2)), None, [5, np.int64(2)], [3, 0]),
        (None, MultiDiscreteEncoder([2, 3]), [[1, 2], [0, 0]], [5, 0]),
        (None, BoxEncoder([[0.5]]), [[0.2], [0.7]], [0, 1]),
    ],
)
def test_states_that_have_numbers_keep_them(
    env: Any, encoder: Any, observations: list[Any], states: list[int]
) -> None:
    found = FoundStates(env, encoder, 100)
    assert found.numbered
    assert [found.find(one) for one in observations] == states
    assert [found(one) for one in observations] == states
    assert found.states == list(range(found.num_states))
    assert found.names() is None


def test_many_numbers_are_taken_as_they_come() -> None:
    found = FoundStates(SimpleNamespace(observation_space=Discrete(10**9)), None, 100)
    assert (found.numbered, found.num_states) == (False, 0)
    assert [found.find(one) for one in (7, 10**8, 7)] == [0, 1, 0]
    assert found.names() == ["7", "100000000"]


@pytest.mark.parametrize(
    ("observations", "names"),
    [
        ([np.array([0, 3]), np.array([1, 3])], ["(0, 3)", "(1, 3)"]),
        (["left", "right"], ["left", "right"]),
        ([(0.5, "key"), (1.5, "door")], ["(0.5, 'key')", "(1.5, 'door')"]),
        ([{"a": 1}], None),
        ([np.zeros(9)], None),
        ([np.zeros((7, 7, 3))], None),
        ([" "], None),
        ([1, "1"], None),
        ([()], None),
        ([None], None),
    ],
)
def test_short_states_are_names(observations: list[Any], names: Any) -> None:
    found = FoundStates(None, None, 10)
    for one in observations:
        found.find(one)
    assert found.names() == names


def test_an_observation_that_changes_later_stays_what_it_was() -> None:
    found, shown = FoundStates(None, None, 10), np.array([0, 1])
    found.find(shown)
    shown += 1
    assert found.find(shown) == 1
    assert [state.tolist() for state in found.states] == [[0, 1], [1, 2]]


class Wrong(BoxEncoder):
    def __call__(self, observation: Any) -> int:
        return 9


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(
        cmdpax.ParameterError, match=r"has \{1\}, of the type set, which .*encoder="
    ):
        FoundStates(None, None, 5).find({"a": [{1}]})
    with pytest.raises(cmdpax.ParameterError, match="a state is 9, it must be one of 0 … 1"):
        FoundStates(None, Wrong([[0.5]]), 5).find([0.0])
