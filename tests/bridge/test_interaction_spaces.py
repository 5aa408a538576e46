"""`interact`: observations and actions of other kinds than 0 … n - 1."""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete

import cmdpax
from cmdpax.gymnasium import BoxEncoder, MultiDiscreteEncoder, interact, make_env
from live_cases import assert_same, make

PAPER = cmdpax.environments.make("random")


class Ring(gymnasium.Env[Any, Any]):
    """Three places in a ring; action 1 goes on, action 0 stays. How they are told is up to `show`.

    It does nothing but what the spaces say: an action that is not one of them is an error.
    """

    def __init__(
        self,
        observations: Any = None,
        actions: Any = None,
        show: Callable[[int], Any] = int,
        read: Callable[[Any], int] = int,
    ) -> None:
        self.observation_space = Discrete(3) if observations is None else observations
        self.action_space = Discrete(2) if actions is None else actions
        self.show, self.read = show, read
        self.given: list[Any] = []

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.place = 0
        return self.show(0), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert action in self.action_space
        self.given.append(action)
        self.place = (self.place + self.read(action)) % 3
        return self.show(self.place), self.place / 2, False, False, {"cost": self.place / 4}


def walker(**changes: Any) -> cmdpax.Agent:
    return make(initial=0, thresholds=[1.0], senses="at most", **changes)


@pytest.fixture(scope="module")
def plain() -> cmdpax.Agent:
    """The agent after 20 episodes in a ring that is told as it is."""
    agent = walker()
    interact(Ring(), agent, 20)
    assert (agent.visits > 0).any(axis=(0, 2)).all()
    return agent


def learner(num_states: int, initial: Any) -> cmdpax.Agent:
    return cmdpax.Agent(
        "regularized-primal-dual", num_states=num_states, num_actions=5, horizon=5, seed=3,
        thresholds=PAPER.thresholds, initial=initial,
    )  # fmt: skip


# ------------------------------------------------------------------------------------- observations


def test_the_state_of_a_pair_of_state_and_step() -> None:
    alone, pairs = learner(5, PAPER.initial), learner(5, PAPER.initial)
    interact(make_env(PAPER), alone, 15, seed=1)
    env = make_env(PAPER, observe_step=True)
    interact(env, pairs, 15, seed=1, encoder=lambda o: int(o[0]))
    assert_same(alone, pairs)


def test_a_state_for_every_pair_of_state_and_step() -> None:
    env = make_env(PAPER, observe_step=True)
    encoder = MultiDiscreteEncoder(env.observation_space.nvec)
    initial = np.zeros((5, 6))
    initial[:, 0] = PAPER.initial
    agent = learner(encoder.num_states, initial.ravel())
    found = interact(env, agent, 15, seed=1, encoder=encoder, log=True)
    np.testing.assert_array_equal(found.log.states % 6, [range(6)] * 15)
    states, actions = found.log.states[:, :-1] // 6, found.log.actions
    np.testing.assert_array_equal(found.log.rewards, PAPER.rewards[np.arange(5), states, actions])
    assert len(np.unique(states)) > 2


def test_boxes(plain: cmdpax.Agent) -> None:
    env = Ring(Box(-1.0, 1.0, (2,)), show=lambda place: np.float32([place - 0.9, 0.3]))
    agent = walker()
    interact(env, agent, 20, encoder=BoxEncoder([[-0.5, 0.5], []]))
    assert_same(agent, plain)


def test_discrete_observations_that_begin_elsewhere(plain: cmdpax.Agent) -> None:
    told: list[int] = []
    agent = walker()
    env = Ring(Discrete(3, start=-7), show=lambda place: np.int64(place - 7))
    interact(env, agent, 20, costs=lambda s, a, t: (told.append(s), t / 4)[1])
    assert_same(agent, plain)
    assert set(told) == {0, 1, 2}  # the agent's states


def test_the_extra_state_of_observations_that_begin_elsewhere() -> None:
    class Ending(Ring):
        def step(self, action: Any) -> Any:
            observation, reward, _, truncated, info = super().step(action)
            return observation, reward, self.place == 2, truncated, info

    env = Ending(Discrete(3, start=5), show=lambda place: place + 5)
    found = interact(env, walker(num_states=4), 20, log=True)
    assert set(np.unique(found.log.states)) == {0, 1, 3}
    assert found.terminated.tolist() == (found.log.states[:, -1] == 3).tolist()


def test_zero_dimensional_arrays_are_states(plain: cmdpax.Agent) -> None:
    agent = walker()
    interact(Ring(show=np.array), agent, 20)
    assert_same(agent, plain)


# ------------------------------------------------------------------------------------------ actions


@pytest.mark.parametrize(
    ("space", "decoder", "read"),
    [
        (Discrete(2, start=4), None, lambda action: int(action) - 4),
        (MultiDiscrete([2, 2]), lambda a: np.array([0, a]), lambda action: int(action[1])),
        (Box(-1.0, 1.0, (1,)), lambda a: np.float32([a - 0.5]), lambda action: int(action[0] > 0)),
        (Discrete(9), lambda a: 8 * a, lambda action: int(action == 8)),
        (Discrete(9), [0, 8], lambda action: int(action == 8)),
        (Discrete(9), np.array([0, 8]), lambda action: int(action == 8)),
        (
            Box(-1.0, 1.0, (1,)),
            [np.float32([-0.5]), np.float32([0.5])],
            lambda action: int(action[0] > 0),
        ),
    ],
)
def test_other_actions(plain: cmdpax.Agent, space: Any, decoder: Any, read: Any) -> None:
    agent, env = walker(), Ring(actions=space, read=read)
    interact(env, agent, 20, decoder=decoder)
    assert_same(agent, plain)
    assert len({str(action) for action in env.given}) == 2


# ------------------------------------------------------------------------------------- plain Python


class Bare:
    """Neither spaces nor a base class, and `reset` takes no seed."""

    def reset(self) -> tuple[int, dict[str, Any]]:
        self.place = 0
        return 0, {}

    def step(self, action: int) -> list[Any]:
        self.place = (self.place + action) % 3
        return [self.place, self.place / 2, 0, np.bool_(False), {"cost": self.place / 4}]


def test_a_plain_object(plain: cmdpax.Agent) -> None:
    agent = walker()
    found = interact(Bare(), agent, 20)
    assert_same(agent, plain)
    assert not found.terminated.any()


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ((3, 0.0, False, False, {}), r"next_state is 3, the states are 0 … 2"),
        ((-1, 0.0, False, False, {}), r"next_state is -1, the states are 0 … 2"),
        ((0, 1.5, False, False, {}), r"the reward is 1.5, outside its declared range \[0, 1\]"),
        ((0, np.nan, False, False, {}), r"the reward is not a number \(NaN\)"),
        ((0, 0.0, False, {}), r"step returns 4 values; it must return five \(Gymnasium\) or six"),
        ((0, 0.0, 0.0, False, False, {}, 1), r"step returns 7 values; it must return five"),
    ],
)
def test_what_a_step_may_not_be(answer: tuple[Any, ...], sentence: str) -> None:
    env, agent = Bare(), walker()
    env.step = lambda action: answer  # type: ignore[method-assign]
    with pytest.raises(cmdpax.ParameterError, match=sentence):
        interact(env, agent, 1, costs=lambda s, a, t: 0.5)
    assert agent.num_episodes == 0


def test_an_episode_that_begins_elsewhere() -> None:
    env = Bare()
    env.reset = lambda: (1, {})  # type: ignore[method-assign]
    with pytest.raises(cmdpax.ParameterError, match="first state is 1, which initial gives"):
        interact(env, walker(), 1)


def test_observations_that_are_no_whole_numbers_are_refused() -> None:
    env = Bare()
    env.step = lambda action: (1.7, 0.0, False, False, {"cost": 0.0})  # type: ignore[method-assign]
    with pytest.raises(cmdpax.ParameterError):
        interact(env, walker(), 1)


# ------------------------------------------------------------------------------------------ refused


@pytest.mark.parametrize(
    ("env", "arguments", "sentence"),
    [
        (Ring(Discrete(4)), {}, "has 4 states, the agent 3; make the agent with num_states=4"),
        (Ring(Discrete(1)), {}, r"has 1 states, the agent 3; .* num_states=1 \(or one more"),
        (Ring(Box(0, 1)), {}, r"observations are Box\(.*not Discrete; give encoder="),
        (Ring(MultiDiscrete([3, 2])), {}, r"observations are MultiDiscrete.*MultiDiscreteEncoder"),
        (
            Ring(actions=Discrete(3)),
            {},
            r"has 3 actions, the agent 2; make the agent with num_actions=3, or say with decoder= "
            r"which of them it may use, such as decoder=\[0, 1\]\.$",
        ),
        (Ring(actions=Discrete(1)), {}, r"has 1 actions, the agent 2; .* num_actions=1\.$"),
        (Ring(), {"decoder": [0, 1, 1]}, r"decoder has 3 actions, the agent 2; .* num_actions=3\."),
        (Ring(), {"decoder": [0, 7]}, r"decoder\[1\] is 7, which is no action of Discrete\(2\)"),
        (Ring(), {"decoder": []}, r"decoder is \[\]; it must be a list of the environment's act"),
        (Ring(), {"decoder": 2}, "decoder is 2; it must be a list"),
        (Ring(), {"decoder": "01"}, "decoder is '01'; it must be a list"),
        (Ring(actions=MultiBinary(1)), {}, r"actions are MultiBinary\(1\), not .* give decoder="),
        (Ring(), {"encoder": BoxEncoder([[]])}, "encoder has 1 states, the agent 3; make"),
        (Ring(), {"encoder": lambda o: 3}, "first state is 3, the states are 0 … 2"),
        (Ring(), {"encoder": lambda o: 0.0}, "first state is 0.0, it must be one of the states"),
        (Ring(), {"encoder": lambda o: None}, "first state is None, it must be one of the states"),
    ],
)
def test_sentences(env: Any, arguments: dict[str, Any], sentence: str) -> None:
    agent = walker()
    with pytest.raises(cmdpax.ParameterError, match=sentence):
        interact(env, agent, 2, **arguments)
    assert agent.expects == "start"
    assert env.given == []


def test_vector_environments() -> None:
    env = gymnasium.make_vec("FrozenLake-v1", num_envs=2, vectorization_mode="sync")
    with pytest.raises(cmdpax.ParameterError, match=r"vector environment.* a single environment"):
        interact(env, walker(), 1)
    env.close()
