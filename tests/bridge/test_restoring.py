"""Putting an environment back into a state in which it has been."""

import random
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Discrete

import cmdpax
from cmdpax.gymnasium import enumerate_env, interact, play
from cmdpax.gymnasium.restoring import restorer_of


class Game:
    """What an environment holds: a board, and a generator of its own."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.board = [0, 0]


class Board(gymnasium.Env[Any, Any]):
    """A game in an object of its own, which nothing but a copy restores."""

    observation_space, action_space = Discrete(4), Discrete(2)

    def __init__(self) -> None:
        self.game, self.dice = Game(7), random.Random(0)
        self.moves = {0: self.stay, 1: self.go}  # bound methods know the environment

    def stay(self) -> None:
        self.game.board[1] += 1

    def go(self) -> None:
        self.game.board[0] = min(3, self.game.board[0] + 1)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.game.board = [0, 0]
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.moves[action]()
        drawn = (self.np_random.random(), self.game.rng.random(), self.dice.random())
        return self.game.board[0], 0.0, False, False, {"drawn": drawn}


def wrapped(env: Any) -> Any:
    return gymnasium.wrappers.TimeLimit(gymnasium.wrappers.OrderEnforcing(env), 50)


def test_copies_restore_everything_but_random_numbers() -> None:
    env = wrapped(Board())
    base, space = env.unwrapped, env.action_space
    env.reset(seed=0)
    restorer = restorer_of(env, None, None)
    env.step(1)
    env.step(0)
    snapshot = restorer.save(None)
    drawn = []
    for _ in range(3):
        for action in (1, 1, 0):
            drawn.append(env.step(action)[-1]["drawn"])
        restorer.restore(snapshot)
        assert base.game.board == [1, 1]
        assert env._elapsed_steps == 2
        assert env.unwrapped is base
        assert env.action_space is space
    assert len({number for row in drawn for number in row}) == 3 * 9
    base.game.board[0] = 3  # what is played later does not change the snapshot
    restorer.restore(snapshot)
    assert base.game.board == [1, 1]


def test_a_generator_that_a_reset_replaces_does_not_repeat_itself() -> None:
    """Both that of the snapshot and the present one are shared, never copied."""
    env = wrapped(Board())
    env.reset(seed=0)
    restorer = restorer_of(env, None, None)
    early = restorer.save(None)
    env.reset(seed=1)  # another generator
    late = restorer.save(None)
    drawn = []
    for snapshot in (early, late, early, late, early):
        restorer.restore(snapshot)
        drawn.append(env.step(1)[-1]["drawn"][0])
    assert len(set(drawn)) == 5


def test_functions_that_hold_the_environment_see_the_copied_state() -> None:
    env = wrapped(Board())
    found = enumerate_env(env, 3, encoder=lambda _: tuple(env.unwrapped.game.board[:1]))
    assert found.states == ((0,), (1,), (2,), (3,))


@pytest.mark.parametrize(
    ("values", "means"),
    [
        ({"s": 3, "state": 4}, "env.unwrapped.s"),
        ({"state": np.array([1.0])}, "env.unwrapped.state"),
        ({"s": None, "state": (1, 2)}, "env.unwrapped.state"),
        ({"s": lambda: 3, "state": None}, "a copy of the environment"),
        ({}, "a copy of the environment"),
    ],
)
def test_what_is_taken_for_the_state(values: dict[str, Any], means: str) -> None:
    env = SimpleNamespace(**values, other=0)
    restorer = restorer_of(env, None, None)
    assert restorer.means == means
    snapshot = restorer.save(7)
    env.s = env.state = env.other = "changed"
    restorer.restore(snapshot)
    assert env.other == (0 if "copy" in means else "changed")
    assert restorer_of(env, "copy", None).means == "a copy of the environment"


def test_a_state_that_is_an_array_is_not_shared() -> None:
    env = SimpleNamespace(state=np.array([1.0, 2.0]))
    restorer = restorer_of(env, None, None)
    snapshot = restorer.save(None)
    for _ in range(2):
        env.state += 5
        restorer.restore(snapshot)
        assert env.state.tolist() == [1.0, 2.0]


def test_a_property_that_can_only_be_read_is_no_way_back() -> None:
    class Reading:
        def __init__(self) -> None:
            self.place = 0

        @property
        def state(self) -> int:
            return self.place

    assert restorer_of(Reading(), None, None).means == "a copy of the environment"


def test_functions_of_the_user() -> None:
    env = SimpleNamespace(deep=SimpleNamespace(place=2))

    def put(env: Any, state: Any) -> None:
        env.deep.place = state

    by_observation = restorer_of(env, put, None)
    by_observation.restore(by_observation.save(5))
    assert env.deep.place == 5
    by_state = restorer_of(env, put, lambda env: env.deep.place)
    snapshot = by_state.save(9)
    env.deep.place = 0
    by_state.restore(snapshot)
    assert env.deep.place == 5
    assert (by_observation.settable, by_state.settable) == (True, False)


class Slots:
    __slots__ = ("place",)


def test_environments_that_cannot_be_copied_say_what_to_do() -> None:
    held = SimpleNamespace(file=(entry for entry in []))
    for env, reason in (
        (held, "cannot be copied (cannot pickle 'generator' object)"),
        (Slots(), "keeps what it knows where it cannot be copied"),
    ):
        with pytest.raises(cmdpax.ParameterError) as raised:
            restorer_of(env, None, None).save(None)
        sentence = str(raised.value)
        assert reason in sentence
        assert "cannot be put into a state: it has neither s nor state" in sentence
        assert "interact(…, log=True) and take cmdpax.estimate of the log." in sentence


class Cart(gymnasium.Env[Any, Any]):
    """Continuous inside, cells outside; after an end it must be reset."""

    observation_space, action_space = Discrete(5), Discrete(2)

    def __init__(self) -> None:
        self.state: Any = None
        self.over = True

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.state, self.over = np.array([2.0]), False
        return 2, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        assert not self.over, "a step after the end"
        self.state += 2 * action - 1
        place = int(self.state[0])
        self.over = place in (0, 4)
        return place, float(place == 4), self.over, False, {}


def test_an_environment_is_reset_after_an_end() -> None:
    found = enumerate_env(Cart(), 2)
    assert cmdpax.solve(found.cmdp).value == 1.0
    assert found.cmdp.rewards[0].tolist() == [[0, 0]] * 3 + [[0, 1], [0, 0]]


def test_states_that_a_function_reaches_are_tried_too() -> None:
    class Rooms(Cart):
        """Room 1 leads to room 0, an end; from room 3 the way is to room 4."""

        def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
            _, info = super().reset(**options)
            self.room = self.state = np.array([1.0])
            return 1, info

    def put(env: Any, room: int) -> None:
        env.unwrapped.state = np.array([float(room)])

    env = wrapped(Rooms())
    assert enumerate_env(env, 3, set_state=put).cmdp.rewards[0].sum() == 1.0
    near = enumerate_env(env, 3, set_state=put, decoder=[0])
    assert near.cmdp.rewards.sum() == 0.0
    more = enumerate_env(env, 3, set_state=put, decoder=[0], states=[3])
    assert more.cmdp.transitions.successors[0, 3, 0, 0] == 2
    assert more.cmdp.initial.tolist() == [0, 1, 0, 0, 0]


class Sealed:
    """Two rooms, of which the second pays; nothing about it can be copied or set."""

    __slots__ = ("place",)

    def reset(self, seed: int | None = None) -> tuple[int, dict[str, Any]]:
        self.place = 0
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        reward, self.place = float(self.place), action
        return self.place, reward, False, False, {"cost": float(action)}


def test_what_the_sentence_advises_works() -> None:
    """An agent plays, and the log makes the model that trying could not."""
    sizes = {"num_states": 2, "num_actions": 2, "horizon": 4, "initial": 0}
    system = {"thresholds": [4.0], "senses": "at most", "seed": 0}
    agent = cmdpax.Agent("vanilla-dual", **sizes, **system)
    log = interact(Sealed(), agent, 60, log=True).log
    model = cmdpax.estimate(log, limits=2.0, stationary=True)
    plan = cmdpax.solve(model)
    assert (plan.value, plan.constraint_values[0]) == pytest.approx((2.0, 2.0))
    played = play(Sealed(), plan.policy, 200, seed=0)
    assert played.value.mean == pytest.approx(2.0, abs=0.2)
    assert played.constraint_values[0].mean == pytest.approx(2.0, abs=0.2)
