"""MiniGrid's rooms: seven actions of which three are of use, and nothing to set a state by."""

from typing import Any

import gymnasium
import minigrid  # noqa: F401, registers them
import numpy as np
import pytest
from gymnasium.wrappers import TransformReward
from minigrid.wrappers import FullyObsWrapper, ReseedWrapper

import cmdpax
from cmdpax.gymnasium import enumerate_env, interact, play

TURN_AND_GO = [0, 1, 2]  # left, right, forward
MOVES = [(1, 0), (0, 1), (-1, 0), (0, -1)]  # of the directions 0 … 3


def place(observation: Any) -> tuple[int, int, int]:
    """Column, row and direction, in an image of the whole room."""
    (column,), (row,) = np.nonzero(observation["image"][:, :, 0] == 10)
    return int(column), int(row), int(observation["direction"])


def room(name: str = "MiniGrid-DistShift1-v0") -> Any:
    """One whose goal is worth 1, whenever it is reached."""
    env = FullyObsWrapper(gymnasium.make(name))
    return TransformReward(env, lambda reward: float(reward > 0))


def shortest(env: Any) -> int:
    """Steps to the goal, by breadth-first search on the map."""
    grid, base = env.unwrapped.grid, env.unwrapped
    front = {(*base.agent_pos, base.agent_dir)}
    seen, steps = set(front), 0
    while True:
        following = set()
        for column, row, facing in front:
            if grid.get(column, row) is not None and grid.get(column, row).type == "goal":
                return steps
            ahead = column + MOVES[facing][0], row + MOVES[facing][1]
            free = grid.get(*ahead) is None or grid.get(*ahead).type == "goal"
            following |= {(column, row, (facing + 1) % 4), (column, row, (facing - 1) % 4)}
            following |= {(*ahead, facing)} if free else set()
        front, steps = following - seen, steps + 1
        seen |= front


@pytest.mark.parametrize("encoder", [place, None])
def test_the_room_is_solved_in_as_many_steps_as_it_takes(encoder: Any) -> None:
    env = room()
    env.reset(seed=0)
    steps = shortest(env)
    found = enumerate_env(env, steps, decoder=TURN_AND_GO, encoder=encoder)
    plan = cmdpax.solve(found.cmdp)
    assert plan.value == pytest.approx(1.0)
    assert found.cmdp.num_actions == 3
    played = play(env, plan.policy, 3, seed=0, **found.arguments)
    assert (played.rewards.tolist(), played.steps.tolist()) == ([1.0] * 3, [steps] * 3)
    assert cmdpax.solve(found.cmdp.replace(horizon=steps - 1)).value == 0.0
    named = found.cmdp.words.state_names
    assert (None if named is None else named[0]) == ("(1, 1, 0)" if encoder else None)


def test_lava_is_a_cost() -> None:
    """No way is as short as the one that burns: with a goal behind it, that costs."""
    env = room()
    env.reset(seed=0)
    lava = {
        (column, row)
        for column in range(9)
        for row in range(7)
        if (cell := env.unwrapped.grid.get(column, row)) is not None and cell.type == "lava"
    }
    found = enumerate_env(
        env, 12, decoder=TURN_AND_GO, encoder=place,
        costs=lambda s, a, t: t[:2] in lava, limits=0.0,
    )  # fmt: skip
    entered = found.cmdp.signals[0, 0]
    for state, (column, row, facing) in enumerate(found.states):
        ahead = column + MOVES[facing][0], row + MOVES[facing][1]
        burns = ahead in lava and (column, row) not in lava
        assert entered[state].tolist() == [0.0, 0.0, float(burns)]
    assert entered.sum() > 5


def test_a_reward_that_falls_with_time_is_found_out() -> None:
    env = FullyObsWrapper(gymnasium.make("MiniGrid-Empty-5x5-v0"))
    with pytest.raises(
        cmdpax.ParameterError, match=r"the end, with the reward 0\.9\d+ at first.*0.9"
    ):
        enumerate_env(env, 20, decoder=TURN_AND_GO, encoder=place)


def test_what_only_the_next_cells_show_is_found_out() -> None:
    """In the middle of a large room every place looks alike."""
    env = TransformReward(gymnasium.make("MiniGrid-Empty-16x16-v0"), lambda r: float(r > 0))
    with pytest.raises(cmdpax.ParameterError, match="what is observed is not the whole state"):
        enumerate_env(env, 20, decoder=TURN_AND_GO)


def test_keys_and_doors_are_part_of_what_is_observed() -> None:
    """Five actions; every map is another one, so that of one seed is taken."""
    env = ReseedWrapper(room("MiniGrid-DoorKey-5x5-v0"), seeds=[3])
    found = enumerate_env(
        env, 30, decoder=[0, 1, 2, 3, 5], seed=None,
        encoder=lambda o: (o["image"], env.unwrapped.carrying is not None),
    )  # fmt: skip
    plan = cmdpax.solve(found.cmdp)
    assert plan.value == pytest.approx(1.0)
    assert found.cmdp.num_states > 50
    played = play(env, plan.policy, 2, **found.arguments)
    assert played.terminated.all()
    without = enumerate_env(env, 30, decoder=TURN_AND_GO, seed=None, encoder=place)
    assert cmdpax.solve(without.cmdp).value == 0.0


def test_an_agent_uses_the_actions_that_it_is_given() -> None:
    env = room("MiniGrid-Empty-5x5-v0")
    found = enumerate_env(env, 9, decoder=TURN_AND_GO, encoder=place)
    num_states = found.cmdp.num_states
    agent = cmdpax.Agent(
        "vanilla-dual", num_states=num_states, num_actions=3, horizon=9, initial=0, thresholds=[],
        seed=0,
    )  # fmt: skip
    seen = interact(env, agent, 15, seed=0, log=True, **found.arguments)
    assert seen.log.actions.max() == 2
    lists = found.cmdp.transitions.successors[0]
    for states, actions in zip(seen.log.states, seen.log.actions, strict=True):
        np.testing.assert_array_equal(states[1:], lists[states[:-1], actions, 0])
    few = cmdpax.Agent(
        "vanilla-dual", num_states=num_states, num_actions=3, horizon=9, initial=0, thresholds=[]
    )
    with pytest.raises(cmdpax.ParameterError, match=r"has 7 actions, the agent 3; .*=\[0, 1, 2\]"):
        interact(env, few, 1, encoder=found.encoder)


def test_the_limit_of_a_room_is_warned_of() -> None:
    env = room("MiniGrid-Empty-5x5-v0")
    with pytest.warns(
        cmdpax.CmdpaxWarning, match="after 100 steps, but the horizon is 101, .*max_s"
    ):
        enumerate_env(env, 101, decoder=TURN_AND_GO, encoder=place)
