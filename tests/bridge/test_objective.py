"""Rewards that are vectors, as mo-gymnasium returns them."""

from typing import Any

import numpy as np
import pytest

import cmdpax
from cmdpax.gymnasium import interact
from cmdpax.gymnasium.stepping import Objective

VECTOR = np.array([2.0, -1.0, 0.5], dtype=np.float32)


class Vectors:
    """Two places; every step returns the vector that `rewards` has for the action."""

    def __init__(self, *rewards: Any, ends: int = 100, info: dict[str, Any] | None = None) -> None:
        self.rewards, self.ends, self.info = rewards, ends, info or {}

    def reset(self) -> tuple[int, dict[str, Any]]:
        self.steps = 0
        return 0, {}

    def step(self, action: int) -> tuple[int, Any, bool, bool, dict[str, Any]]:
        self.steps += 1
        reward = self.rewards[action % len(self.rewards)]
        return action, reward, self.steps == self.ends, False, dict(self.info)


def agent(senses: Any = "at least", **changes: Any) -> cmdpax.Agent:
    """Two states and actions, three steps; signals between -5 and 5."""
    arguments: dict[str, Any] = {"thresholds": [-3.0, 1.0], "reward_range": (-9, 9)}
    arguments |= {"constraint_ranges": (-5, 5), "senses": senses, "seed": 0}
    sizes = {"num_states": 2, "num_actions": 2, "horizon": 3, "initial": 0}
    return cmdpax.Agent("vanilla-dual", **(sizes | arguments | changes))


@pytest.mark.parametrize(
    ("objective", "reward", "others"),
    [
        (0, 2.0, [-1.0, 0.5]),
        (np.int64(1), -1.0, [2.0, 0.5]),
        ([0, 0, 2], 1.0, [2.0, -1.0]),
        ((1.0, 1.0, 0.0), 1.0, [0.5]),
        (np.array([1.0, 1.0, 1.0]), 1.5, []),
        (lambda vector: vector.max() - vector.min(), 3.0, None),
    ],
)
def test_what_is_maximised_and_what_is_left(objective: Any, reward: float, others: Any) -> None:
    found, left, vector = Objective(objective).split(VECTOR)
    assert found == reward
    assert left is others is None or left.tolist() == others
    assert vector.tolist() == VECTOR.tolist()


def test_the_other_components_are_the_constraints_signals() -> None:
    found = interact(Vectors(VECTOR), agent(), 2, objective=0)
    assert found.rewards.tolist() == [6.0, 6.0]
    assert found.constraint_returns.tolist() == [[-3.0, 1.5]] * 2


def test_what_must_stay_at_most_is_a_cost() -> None:
    found = interact(Vectors(VECTOR), agent(["at most", "at least"]), 1, objective=0)
    assert found.constraint_returns.tolist() == [[3.0, 1.5]]


def test_steps_after_the_end_have_nothing_of_anything() -> None:
    """Also where a range of (0, 1) would be 1 - cost."""
    half = [1.0, 0.25]
    player = agent(thresholds=[0.1], constraint_ranges=(0, 1), num_states=3)
    found = interact(Vectors(half, ends=2), player, 1, objective=0, end_state=2)
    assert found.steps.tolist() == [2]
    assert found.constraint_returns.tolist() == [[0.5]]


def test_components_can_be_named() -> None:
    player = agent(thresholds=[-3.0])
    env = Vectors(VECTOR, info={"cost": 9.0})
    found = interact(env, player, 1, objective=2, signals="vector_reward.1")
    assert (found.rewards.tolist(), found.constraint_returns.tolist()) == ([1.5], [[-3.0]])
    both = interact(env, agent(), 1, objective=[1, 1, 0], signals=lambda i: i["vector_reward"][:2])
    assert both.rewards.tolist() == [3.0]
    assert both.constraint_returns.tolist() == [[6.0, -3.0]]


def test_without_components_left_costs_come_from_info() -> None:
    env = Vectors(VECTOR, info={"cost": 2.0})
    player = agent("at most", thresholds=[4.0])
    assert interact(env, player, 1, objective=[1, 1, 1]).constraint_returns.tolist() == [[6.0]]


def test_without_constraints_the_other_components_are_not_needed() -> None:
    assert interact(Vectors(VECTOR), agent(thresholds=[]), 1, objective=1).rewards.tolist() == [-3]


@pytest.mark.parametrize("reward", [np.float32(0.5), [0.5], np.array(0.5), np.array([0.5])])
def test_one_number_in_any_wrapping_is_a_reward(reward: Any) -> None:
    assert interact(Vectors(reward), agent(thresholds=[]), 1).rewards.tolist() == [1.5]


@pytest.mark.parametrize(
    ("reward", "arguments", "sentence"),
    [
        (
            VECTOR,
            {},
            r"the reward is \[2.0, -1.0, 0.5\], 3 numbers; say with objective= which of them is "
            "maximised, such as objective=0, and the others are for the constraints",
        ),
        (VECTOR, {"objective": 3}, "objective is 3, but the reward has the components 0 … 2"),
        (VECTOR, {"objective": -1}, "objective is -1, but the reward has the components 0 … 2"),
        (VECTOR, {"objective": [1, 0]}, "objective has 2 weights, but the reward has 3 component"),
        (VECTOR, {"objective": "first"}, "objective is 'first'; it must be the index of a compon"),
        (VECTOR, {"objective": [[1], [1, 2]]}, "it must be the index of a component"),
        (VECTOR, {"objective": True}, "objective is True; it must be the index"),
        (VECTOR, {"objective": [1, np.nan, 0]}, "it must be the index of a component"),
        (
            VECTOR,
            {"objective": [1, 1, 0]},
            "has 1 components beside the objective, the agent has 2 thresholds; .*vector_reward.1",
        ),
        (VECTOR, {"objective": lambda v: None}, "the reward is None; it must be a number"),
        (VECTOR, {"objective": min}, "info has neither 'costs' nor 'cost'"),
        (0.5, {"objective": 0}, "the reward is 0.5, a number, and has no components; leave out"),
        (None, {}, "the reward is None; it must be a number"),
        ("much", {}, "the reward is 'much'; it must be a number"),
        ([[1.0, 2.0]], {"objective": 0}, r"the reward is \[\[1.0, 2.0\]\]; it must be a number"),
        ([[1.0], [2.0, 3.0]], {}, "it must be a number"),
    ],
)
def test_sentences(reward: Any, arguments: Any, sentence: str) -> None:
    player = agent(["at most", "at most"], thresholds=[9.0, 9.0])
    with pytest.raises(cmdpax.ParameterError, match=sentence):
        interact(Vectors(reward), player, 1, **arguments)


def test_a_vector_of_one_is_a_vector_where_it_is_said_to_be() -> None:
    found = interact(Vectors(np.array([0.5])), agent(thresholds=[]), 1, objective=0)
    assert found.rewards.tolist() == [1.5]
