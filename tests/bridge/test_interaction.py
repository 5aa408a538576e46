"""`interact`: what the agent is told is what happened in the environment."""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest

import cmdpax
from cmdpax.gymnasium import Interaction, SafetyGymnasium, interact, make_env
from live_cases import assert_same, make

PAPER = cmdpax.environments.make("random")


class Chain:
    """States 0, 1, 2: action 1 moves on, action 0 stays. State 2 may end the episode.

    No spaces, no base class. Every step costs what `told` says, a function of (s, a, s').
    """

    def __init__(
        self,
        told: Callable[[int, int, int], dict[str, Any]] = lambda s, a, t: {},
        *,
        ends: bool = False,
        length: int = 100,
        reward: float = 0.5,
        sixth: bool = False,
    ) -> None:
        self.told, self.ends, self.length = told, ends, length
        self.reward, self.sixth = reward, sixth

    def reset(self) -> tuple[int, dict[str, Any]]:
        self.state = self.steps = 0
        return 0, {}

    def step(self, action: int) -> tuple[Any, ...]:
        before, self.state = self.state, min(2, self.state + action)
        self.steps += 1
        info = self.told(before, action, self.state)
        over = self.ends and self.state == 2, self.steps == self.length
        if self.sixth:
            return self.state, self.reward, info.pop("sixth"), *over, info
        return self.state, self.reward, *over, info


def costly(num_constraints: int = 1, **changes: Any) -> cmdpax.Agent:
    """Three states, two actions, three steps, from state 0; costs up to 9, as they are."""
    thresholds = [4.0, 5.0][:num_constraints]
    system = {"initial": 0, "senses": "at most", "constraint_ranges": (0, 9)}
    return make(thresholds=thresholds, **(system | changes))


def learner(**changes: Any) -> cmdpax.Agent:
    """An agent for the CMDP of the paper."""
    arguments = {"thresholds": PAPER.thresholds, "initial": PAPER.initial, "seed": 3} | changes
    sizes = {"num_states": 5, "num_actions": 5, "horizon": 5}
    return cmdpax.Agent("regularized-primal-dual", **sizes, **arguments)


def play_by_hand(env: Any, agent: cmdpax.Agent, num_episodes: int, seed: int) -> cmdpax.Agent:
    for index in range(num_episodes):
        state, _ = env.reset(seed=seed) if index == 0 else env.reset()
        agent.start(state)
        while agent.expects == "act":
            state, reward, _, _, info = env.step(agent.act(state))
            agent.observe(reward, info["constraint_rewards"], state)
        agent.end()
    return agent


# ----------------------------------------------------------------------------- the agent that it is


def test_the_agent_is_the_one_driven_by_hand_and_the_one_fed_the_log() -> None:
    agent, fed = learner(), learner()
    found = interact(make_env(PAPER), agent, 40, seed=5, log=True)
    assert_same(agent, play_by_hand(make_env(PAPER), learner(), 40, 5))
    fed.feed(found.log, own=True)
    assert_same(agent, fed)
    assert agent.num_episodes == 40


def test_at_least_thresholds_and_at_most_limits_are_the_same() -> None:
    env = make_env(PAPER, observations="bernoulli")
    least, most = learner(), learner(thresholds=env.limits, senses="at most")
    one = interact(env, least, 150, seed=5)
    other = interact(env, most, 150, seed=5)
    np.testing.assert_allclose(least.policy, most.policy, rtol=0, atol=1e-9)
    assert least.multipliers == pytest.approx(most.multipliers, abs=1e-9)
    np.testing.assert_array_equal(one.rewards, other.rewards)
    np.testing.assert_allclose(one.constraint_returns, 5 - other.constraint_returns, atol=1e-9)
    assert one.account[0].missed == other.account[0].missed > 0
    assert one.account[0].verdict == other.account[0].verdict


def test_two_calls_go_on_as_one() -> None:
    whole, parts, env = learner(), learner(), make_env(PAPER)
    together = interact(make_env(PAPER), whole, 20, seed=1)
    halves = [interact(env, parts, 12, seed=1), interact(env, parts, 8)]
    assert_same(whole, parts)
    np.testing.assert_array_equal(
        together.multipliers, np.concatenate([half.multipliers for half in halves])
    )


def test_the_same_seeds_are_the_same_run_and_others_are_not() -> None:
    runs = [
        interact(make_env(PAPER), learner(seed=ours), 10, seed=theirs, log=True).log
        for ours, theirs in ((3, 0), (3, 0), (3, 1), (4, 0))
    ]
    for array, again in zip(runs[0], runs[1], strict=True):
        np.testing.assert_array_equal(array, again)
    assert (runs[0].states != runs[2].states).any()
    assert (runs[0].actions != runs[3].actions).any()


def test_what_is_returned() -> None:
    env = Chain(lambda s, a, t: {"costs": [s + a, 9 * t / 2]}, ends=True, reward=-4.0)
    agent = costly(2, reward_range=(-5, 5))
    found = interact(env, agent, 25, log=True)
    shapes = {"rewards": (25,), "constraint_returns": (25, 2), "multipliers": (25, 2)}
    for name, shape in shapes.items():
        array = getattr(found, name)
        assert (array.shape, array.dtype) == (shape, np.float64), name
    assert (found.steps.shape, found.steps.dtype.kind) == ((25,), "i")
    assert (found.terminated.shape, found.terminated.dtype) == ((25,), np.dtype(bool))
    np.testing.assert_array_equal(found.rewards, -4.0 * found.steps)
    np.testing.assert_array_equal(found.rewards, found.log.rewards.sum(axis=1))
    np.testing.assert_array_equal(
        found.constraint_returns, found.log.constraint_rewards.sum(axis=2)
    )
    np.testing.assert_array_equal(found.multipliers, agent.recent["multipliers"])
    np.testing.assert_array_equal(found.constraint_returns, agent.recent["constraint_returns"])
    assert str(found.account) == str(agent.account)
    assert [array.shape for array in found.log] == [(25, 4), (25, 3), (25, 3), (25, 2, 3)]
    assert found.log.states.dtype.kind == found.log.actions.dtype.kind == "i"
    assert (found.steps[found.terminated] <= 3).all()
    assert 0 < found.terminated.sum() < 25
    assert interact(env, agent, 1).log is None


# ---------------------------------------------------------------------------- where costs come from


def costs_of(found: Interaction) -> np.ndarray:
    """The price of every step, `[K, H]`, from the states and actions of a log."""
    states, actions = found.log.states, found.log.actions
    return (3 * states[:, :-1] + actions + states[:, 1:]).astype(float)


def price(s: int, a: int, t: int) -> float:
    return 3.0 * s + a + t


GIVEN = {
    "costs, a vector": ({}, lambda s, a, t: {"costs": np.array([price(s, a, t)])}),
    "costs, a number": ({}, lambda s, a, t: {"costs": price(s, a, t), "cost": -1.0}),
    "cost": ({}, lambda s, a, t: {"cost": price(s, a, t)}),
    "a name": ({"costs": "toll"}, lambda s, a, t: {"toll": price(s, a, t), "cost": -1.0}),
    "a function": ({"costs": price}, lambda s, a, t: {"cost": -1.0}),
    "a list of one": ({"costs": [price]}, lambda s, a, t: {"costs": [1.0, 2.0]}),
}


@pytest.mark.parametrize("name", GIVEN)
def test_costs_of_a_step(name: str) -> None:
    arguments, told = GIVEN[name]
    found = interact(Chain(told), costly(), 12, log=True, **arguments)
    np.testing.assert_array_equal(found.log.constraint_rewards[:, 0], costs_of(found))
    assert len(np.unique(costs_of(found))) > 3


@pytest.mark.parametrize("told", [{}, {"cost": -1.0, "costs": [-1.0]}])
def test_the_sixth_value_comes_first(told: dict[str, Any]) -> None:
    env = Chain(lambda s, a, t: {"sixth": price(s, a, t), **told}, sixth=True)
    found = interact(env, costly(), 12, log=True)
    np.testing.assert_array_equal(found.log.constraint_rewards[:, 0], costs_of(found))


def test_safety_gymnasium() -> None:
    plain, safe = learner(), learner()
    interact(make_env(PAPER), plain, 15, seed=2)
    interact(SafetyGymnasium(make_env(PAPER)), safe, 15, seed=2)
    assert_same(plain, safe)


def test_safety_gymnasium_with_two_constraints() -> None:
    env = gymnasium.make("cmdpax/queue-v0", capacity=2)
    cmdp = env.unwrapped.cmdp
    _, horizon, states, actions = cmdp.sizes
    sizes = {"num_states": states, "num_actions": actions, "horizon": horizon}
    agents = [
        cmdpax.Agent("regularized-dual", **sizes, thresholds=cmdp.thresholds, initial=cmdp.initial)
        for _ in range(2)
    ]
    interact(env, agents[0], 4, seed=2)
    interact(SafetyGymnasium(env), agents[1], 4, seed=2)
    assert_same(*agents)


def test_costs_from_arrays_and_a_list_for_two_constraints() -> None:
    by_state, by_pair = np.array([1, 0, 4]), np.array([[0.5, 1.0], [2.0, 3.0], [4.0, 5.5]])
    env = Chain(lambda s, a, t: {"toll": 9.0 * (t == 2)})
    readers: list[tuple[Any, Callable[[Any, Any, Any], Any]]] = [
        (by_state, lambda s, a, t: by_state[s]),
        (by_pair, lambda s, a, t: by_pair[s, a]),
        ("toll", lambda s, a, t: 9.0 * (t == 2)),
        (price, lambda s, a, t: 3.0 * s + a + t),
    ]
    for first, second in ((0, 1), (1, 0), (2, 3), (3, 1)):
        found = interact(
            env, costly(2), 12, costs=[readers[first][0], readers[second][0]], log=True
        )
        states, actions = found.log.states, found.log.actions
        for index, reader in enumerate((first, second)):
            expected = readers[reader][1](states[:, :-1], actions, states[:, 1:])
            np.testing.assert_array_equal(found.log.constraint_rewards[:, index], expected)


def test_one_array_alone_may_be_of_truth_values() -> None:
    marked = np.array([True, False, True])
    found = interact(Chain(), costly(), 12, costs=marked, log=True)
    np.testing.assert_array_equal(
        found.log.constraint_rewards[:, 0], marked[found.log.states[:, :-1]]
    )


@pytest.mark.parametrize(
    ("env", "arguments", "sentence"),
    [
        (
            Chain(lambda s, a, t: {"b": 1, "a": 2}),
            {},
            r"neither 'costs' nor 'cost' \(it has \['a', 'b'\]",
        ),
        (Chain(), {"costs": "toll"}, r"info has no 'toll', it has \[\]"),
        (Chain(lambda s, a, t: {"costs": [1, 2]}), {}, r"costs of shape \(2,\), the agent has 1"),
        (Chain(lambda s, a, t: {"costs": []}), {}, r"costs of shape \(0,\), the agent has 1 th"),
        (Chain(), {"costs": [price, price]}, r"costs of shape \(2,\), the agent has 1 threshold"),
        (
            Chain(),
            {"costs": lambda s, a, t: np.nan},
            r"signal of constraint 0 is not a number \(NaN\)",
        ),
        (Chain(), {"costs": lambda s, a, t: 9.5}, r"is 9.5, outside its declared range \[0, 9\]"),
        (Chain(), {"costs": 3.0}, "costs is 3.0; it must be a name in info, a function"),
        (Chain(), {"costs": np.zeros((3, 2, 3))}, "it must be a name in info, a function"),
        (Chain(), {"costs": [None, {}]}, "it must be a name in info, a function"),
    ],
)
def test_costs_that_cannot_be(env: Any, arguments: dict[str, Any], sentence: str) -> None:
    agent = costly()
    with pytest.raises(cmdpax.ParameterError, match=sentence):
        interact(env, agent, 3, **arguments)
    assert agent.num_episodes == 0
    interact(Chain(), agent, 1, costs=price)  # nothing of it is left
    assert (agent.num_episodes, agent.account.cut_short) == (1, 0)


@pytest.mark.parametrize("shape", [(2,), (2, 3)])
def test_cost_arrays_of_another_size_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(cmdpax.ParameterError, match="shape"):
        interact(Chain(), costly(), 20, costs=np.zeros(shape))


def test_cost_arrays_that_are_too_large_are_refused() -> None:
    with pytest.raises(cmdpax.ParameterError, match="shape"):
        interact(Chain(), costly(), 3, costs=np.zeros(5))


def test_a_list_of_numbers_is_an_array() -> None:
    found = interact(Chain(), costly(), 5, costs=[1.0, 0.0, 4.0], log=True)
    expected = np.array([1.0, 0.0, 4.0])[found.log.states[:, :-1]]
    np.testing.assert_array_equal(found.log.constraint_rewards[:, 0], expected)


def test_at_least_with_another_range_is_refused_with_the_fix() -> None:
    agent = costly(senses="at least", names=["comfort"])
    sentence = r"comfort must be at least .* range \[0, 9\].*give signals=.*senses='at most'"
    with pytest.raises(cmdpax.ParameterError, match=sentence):
        interact(Chain(), agent, 1, costs=price)
    assert agent.expects == "start"
    ranges, senses = [(0, 9), (0, 1)], ["at most", "at least"]
    one_of_two = make(thresholds=[4.0, 2.0], initial=0, senses=senses, constraint_ranges=ranges)
    halves = [lambda s, a, t: 8.0, lambda s, a, t: 0.25]
    found = interact(Chain(), one_of_two, 1, costs=halves)
    assert found.constraint_returns.tolist() == [[24.0, 2.25]]


@pytest.mark.parametrize("told", [{}, {"costs": [1, 2]}])
def test_without_constraints(told: dict[str, Any]) -> None:
    agent = costly(0)
    found = interact(Chain(lambda s, a, t: told), agent, 4, log=True)
    assert found.constraint_returns.shape == found.multipliers.shape == (4, 0)
    assert found.log.constraint_rewards.shape == (4, 0, 3)
    assert found.rewards.tolist() == [1.5] * 4
    assert len(found.account) == 0
    fed = costly(0)
    fed.feed(found.log, own=True)
    assert_same(fed, agent)
