"""Encoders: every observation has one state, and every state an observation."""

import itertools
from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cmdpax
from cmdpax.gymnasium import BoxEncoder, MultiDiscreteEncoder

sizes = st.lists(st.integers(1, 5), min_size=1, max_size=4)
numbers = st.floats(-100, 100, allow_nan=False).map(lambda number: round(number, 3))
edges = st.lists(st.lists(numbers, max_size=4, unique=True).map(sorted), min_size=1, max_size=3)


@given(sizes)
def test_combinations_are_states_in_order(sizes: list[int]) -> None:
    encoder = MultiDiscreteEncoder(sizes)
    combinations = itertools.product(*(range(size) for size in sizes))
    assert [encoder(entries) for entries in combinations] == list(range(encoder.num_states))
    assert encoder.num_states == np.prod(sizes)


@given(edges)
def test_cells_are_states_in_order(edges: list[list[float]]) -> None:
    """Between two edges, below the first and above the last."""
    inside = [
        [(low + high) / 2 for low, high in itertools.pairwise([-1e4, *inner, 1e4])]
        for inner in edges
    ]
    encoder = BoxEncoder(edges)
    cells = itertools.product(*inside)
    assert [encoder(entries) for entries in cells] == list(range(encoder.num_states))


@given(edges, st.data())
def test_a_cell_is_the_number_of_edges_that_were_reached(
    edges: list[list[float]], data: st.DataObject
) -> None:
    any_number = st.one_of(st.floats(allow_nan=False), st.sampled_from(sum(edges, [0.0])))
    entries = [data.draw(any_number) for _ in edges]
    state = 0
    for entry, inner in zip(entries, edges, strict=True):
        state = state * (len(inner) + 1) + sum(edge <= entry for edge in inner)
    found = BoxEncoder(edges)(np.array(entries))
    assert found == state
    assert type(found) is int


def test_what_environments_give() -> None:
    space = gymnasium.spaces.MultiDiscrete([[2, 3], [4, 5]])
    encoder = MultiDiscreteEncoder(space.nvec)
    assert encoder.num_states == 120
    found = encoder(space.sample())
    assert type(found) is int
    assert encoder(np.array([[1, 2], [3, 4]], dtype=np.int8)) == 119
    box = BoxEncoder((np.linspace(-1, 1, 9), [0.25]))
    assert box.num_states == 20
    assert box(np.float32([-np.inf, np.inf])) == 1
    assert box(np.float32([[1.0], [0.25]])) == 19


def test_the_sizes_are_the_encoders_own() -> None:
    sizes = np.array([2, 3])
    encoder = MultiDiscreteEncoder(sizes)
    sizes -= 1
    assert encoder([1, 2]) == 5


def test_the_edges_are_the_encoders_own() -> None:
    inner = np.array([0.0, 1.0])
    encoder = BoxEncoder([inner])
    inner += 5
    assert encoder([0.5]) == 1


@pytest.mark.parametrize("sizes", [[3, 0], [-1], [2.5], ["a"], None, [2**40]])
def test_sizes_that_cannot_be(sizes: Any) -> None:
    with pytest.raises(cmdpax.ParameterError, match=r"a size is .*it must be"):
        MultiDiscreteEncoder(sizes)


@pytest.mark.parametrize(
    "observation", [[3, 0], [0, 4], [-1, 0], [0], [0, 0, 0], 5, [], [np.nan, 0], [10**400, 0], None]
)
def test_observations_that_are_no_combination(observation: Any) -> None:
    with pytest.raises(cmdpax.ParameterError, match=r"the observation is .* sizes \(3, 4\)"):
        MultiDiscreteEncoder([3, 4])(observation)


@pytest.mark.parametrize(
    "edges", [[[1.0, 1.0]], [[0.0], [2.0, 1.0]], [[np.nan]], [[0.0, np.inf]], [[[1.0]]]]
)
def test_edges_that_cannot_be(edges: Any) -> None:
    place = len(edges) - 1
    with pytest.raises(cmdpax.ParameterError, match=rf"edges\[{place}\] is .*ascending numbers"):
        BoxEncoder(edges)


@pytest.mark.parametrize(
    "observation", [[0.0], [0.0, 1.0, 2.0], 5, [np.nan, 0.0], [10**400, 0], None]
)
def test_observations_that_are_no_place(observation: Any) -> None:
    with pytest.raises(cmdpax.ParameterError, match=r"observation is .*, expected 2 real numbers"):
        BoxEncoder([[0.0], [1.0]])(observation)


def test_fractions_are_no_combination() -> None:
    with pytest.raises(cmdpax.ParameterError):
        MultiDiscreteEncoder([3, 4])([1.7, 2])


@pytest.mark.parametrize(
    "encode",
    [
        lambda: MultiDiscreteEncoder([3, 4])(["a", "b"]),
        lambda: BoxEncoder([[0.0]])(["a"]),
        lambda: BoxEncoder([["a"]]),
        lambda: BoxEncoder(5),
    ],
)
def test_words_are_refused_in_a_sentence(encode: Any) -> None:
    with pytest.raises(cmdpax.ParameterError):
        encode()


@pytest.mark.parametrize("edges", [[5, 15, 25], 5, [], [None], [["a"]]])
def test_edges_are_a_list_of_lists(edges: Any) -> None:
    with pytest.raises(cmdpax.ParameterError, match=r"list of lists.*\[\[5, 15, 25\]\]"):
        BoxEncoder(edges)


def test_entries_that_do_not_begin_with_zero() -> None:
    encoder = MultiDiscreteEncoder([3, 4], start=[1, -2])
    assert [encoder([1, -2]), encoder([3, 1])] == [0, 11]
    with pytest.raises(cmdpax.ParameterError, match="the observation is"):
        encoder([0, 0])
    with pytest.raises(cmdpax.ParameterError, match="start has 1 entries, sizes has 2"):
        MultiDiscreteEncoder([3, 4], start=[1])


@pytest.mark.parametrize("edges", [[["a"]], [[10**400]], 3, [1.0], []])
def test_edges_that_are_no_lists_of_numbers(edges: Any) -> None:
    with pytest.raises(cmdpax.ParameterError, match=r"edges is .*, it must be a list of lists"):
        BoxEncoder(edges)
