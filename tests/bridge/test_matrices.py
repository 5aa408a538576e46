"""`from_env`: transition matrices that environments give by a method."""

from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Discrete

import cmdpax
from cmdpax.gymnasium import from_env

LAKE = gymnasium.make("FrozenLake-v1", is_slippery=True)
LAYOUTS = {"s a t": (0, 1, 2), "a s t": (1, 0, 2), "s t a": (0, 2, 1), "t s a": (2, 0, 1)}
RNG = np.random.default_rng(3)
ROWS = RNG.dirichlet(np.ones(4), size=(4, 3))  # [S, A, S']
PAY = RNG.normal(size=(4, 3))


def env_of(**methods: Any) -> Any:
    """What the methods return, and nothing else; `sizes` gives spaces."""
    sizes = methods.pop("sizes", None)
    spaces = {}
    if sizes is not None:
        spaces = {"observation_space": Discrete(sizes[0]), "action_space": Discrete(sizes[1])}
    told = {name: (lambda answer=answer: answer) for name, answer in methods.items()}
    return SimpleNamespace(**told, **spaces)


def listed(rows: np.ndarray) -> tuple[dict[int, list[int]], dict[tuple[int, int], np.ndarray]]:
    """As MASA-Safe-RL has sparse models."""
    following = {s: np.flatnonzero(rows[s].any(axis=0)).tolist() for s in range(len(rows))}
    pairs = np.ndindex(rows.shape[:2])
    return following, {(s, a): rows[s, a, following[s]] for s, a in pairs}


def direct(horizon: int = 6) -> cmdpax.CMDP:
    return cmdpax.from_arrays(np.swapaxes(ROWS, 0, 1), PAY, initial=1, horizon=horizon)


@pytest.mark.parametrize("sizes", [None, (4, 3)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_read(layout: str, sizes: Any) -> None:
    matrix = ROWS.transpose(LAYOUTS[layout])
    env = env_of(get_transition_matrix=matrix, sizes=sizes)
    cmdp = from_env(env, 6, rewards=PAY, initial=1)
    expected = cmdpax.solve(direct())
    assert cmdpax.solve(cmdp).value == pytest.approx(expected.value, abs=1e-9)
    assert isinstance(cmdp.transitions, cmdpax.Successors)


def test_lists_of_successors_are_read() -> None:
    least = ROWS.min(axis=-1, keepdims=True)
    sparse = np.where(least == ROWS, 0, ROWS)
    sparse /= sparse.sum(axis=-1, keepdims=True)
    env = env_of(get_transition_matrix=None, get_successor_states_dict=listed(sparse))
    cmdp = from_env(env, 6, rewards=PAY, initial=1)
    there = cmdpax.from_arrays(np.swapaxes(sparse, 0, 1), PAY, initial=1, horizon=6)
    assert cmdpax.solve(cmdp).value == pytest.approx(cmdpax.solve(there).value, abs=1e-9)
    assert cmdp.row_length < 4


def test_the_lake_by_its_matrix_is_the_lake_by_its_table() -> None:
    """Ends are the one thing that a matrix does not say: here holes keep their episodes anyway."""
    table = LAKE.unwrapped.P
    matrix, holes = np.zeros((16, 16, 4)), {5, 7, 11, 12}
    for s, row in table.items():
        for a, outcomes in row.items():
            for chance, t, *_ in outcomes:
                matrix[t, s, a] += chance
    env = env_of(get_transition_matrix=matrix.astype(np.float32), sizes=(16, 4))

    def falls(s: int, a: int, t: int) -> bool:
        return t in holes and s not in holes

    def reaches(s: int, a: int, t: int) -> bool:
        return t == 15 and s != 15

    cmdp = from_env(env, 50, rewards=reaches, costs=falls, limits=0.1, initial=0)
    known = from_env(LAKE, 50, costs=falls, limits=0.1)
    assert cmdpax.solve(cmdp).value == pytest.approx(cmdpax.solve(known).value, abs=1e-6)


def test_rewards_of_every_kind() -> None:
    by_transition = RNG.normal(size=(4, 3, 4))
    expected = (ROWS * by_transition).sum(axis=-1)
    given: list[tuple[Any, Any, np.ndarray]] = [
        ({}, PAY[:, 0], np.repeat(PAY[:, :1], 3, axis=1)),
        ({}, PAY, PAY),
        ({}, by_transition, expected),
        ({}, lambda s, a, t: by_transition[s, a, t], expected),
        ({"get_reward_matrix": by_transition}, None, expected),
        ({"get_reward_matrix": PAY}, None, PAY),
        ({"get_reward_matrix": PAY}, 2 * PAY, 2 * PAY),
    ]
    for methods, rewards, means in given:
        env = env_of(get_transition_matrix=ROWS, **methods)
        cmdp = from_env(env, 6, rewards=rewards, initial=1)
        np.testing.assert_allclose(cmdp.rewards[0], means, rtol=0, atol=1e-12)


def test_rewards_in_place_of_those_in_a_table() -> None:
    goal = from_env(LAKE, 30, rewards=lambda s, a, t: t == 15)
    assert cmdpax.solve(goal).value == pytest.approx(cmdpax.solve(from_env(LAKE, 30)).value)
    doubled = from_env(LAKE, 30, rewards=np.ones(16))
    assert doubled.rewards[0, 5].tolist() == [0.0] * 4  # a hole: the episode is over
    assert doubled.rewards[0, 6].tolist() == [1.0] * 4


def test_costs_by_transition() -> None:
    costs = RNG.uniform(size=(4, 3, 4))
    cmdp = from_env(
        env_of(get_transition_matrix=ROWS), 3, rewards=PAY, costs=costs, limits=1, initial=0
    )
    means = 1 - cmdp.constraint_rewards[0, 0]
    np.testing.assert_allclose(means, (ROWS * costs).sum(axis=-1), rtol=0, atol=1e-12)


SHIFT = np.eye(3)[[1, 2, 0]]
TURNS = np.stack([np.eye(3), SHIFT], axis=1)  # [S, A, S']: stay, or move on in a ring


@pytest.mark.parametrize(
    ("methods", "arguments", "sentence"),
    [
        ({"get_transition_matrix": ROWS}, {}, "has a transition matrix and no rewards; give rewar"),
        (
            {"get_transition_matrix": TURNS.transpose(2, 0, 1)},
            {"rewards": np.zeros(3)},
            r"of shape \(3, 3, 2\), can be read as \[S, S', A\] and as \[S', S, A\]; build the mod",
        ),
        (
            {"get_transition_matrix": ROWS[:, :2], "sizes": (4, 3)},
            {"rewards": np.zeros(4)},
            r"of shape \(4, 2, 4\), which has rows .* for 4 states and 3 actions; build the model",
        ),
        (
            {"get_transition_matrix": 0.9 * ROWS},
            {"rewards": np.zeros(4)},
            r"sum to 1 in none of the layouts \[S, A, S'\], \[A, S, S'\], \[S, S', A\], \[S', S, ",
        ),
        ({"get_transition_matrix": np.eye(4)}, {"rewards": np.zeros(4)}, r"shape \(4, 4\), which"),
        ({"get_transition_matrix": "P"}, {"rewards": np.zeros(4)}, "cannot be read as an array"),
        (
            {"get_successor_states_dict": [1]},
            {"rewards": np.zeros(4)},
            "get_successor_states_dict.. returns cannot be read; it must be the states that follow",
        ),
        (
            {"get_successor_states_dict": ({0: [0, 1]}, {(0, 0): [0.5, 0.5]})},
            {"rewards": np.zeros(1)},
            "gives no distributions over the states 0 … 0; the sums are between 1 and 1",
        ),
        (
            {"get_successor_states_dict": ({0: [0]}, {(0, 0): [0.5]})},
            {"rewards": np.zeros(1)},
            "the sums are between 0.5 and 0.5",
        ),
        ({"get_transition_matrix": ROWS}, {"rewards": np.zeros(5)}, r"rewards has shape \(5,\), e"),
        (
            {"get_transition_matrix": ROWS},
            {"rewards": lambda s, a, t: np.nan},
            "rewards is nan for .*; every reward must be a finite number",
        ),
        ({}, {}, r"has no table P of transitions and no get_transition_matrix\(\).*enumerate_env"),
    ],
)
def test_sentences(methods: Any, arguments: Any, sentence: str) -> None:
    with pytest.raises((cmdpax.ModelError, cmdpax.ParameterError), match=sentence):
        from_env(env_of(**methods), 3, **({"initial": 0} | arguments))


def test_a_matrix_that_is_the_same_in_two_layouts_is_read() -> None:
    """Both readings are one model, so nothing needs to be told apart."""
    uniform = np.full((3, 3, 3), 1 / 3)
    cmdp = from_env(env_of(get_transition_matrix=uniform), 2, rewards=[0.0, 1.0, 2.0], initial=0)
    assert cmdpax.solve(cmdp).value == pytest.approx(1.0)
