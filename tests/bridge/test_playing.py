"""`play`: what a policy earns and pays in the environment itself."""

from typing import Any

import gymnasium
import numpy as np
import pytest

import cmdpax
from cmdpax.gymnasium import SafetyGymnasium, from_env, make_env, play

PAPER = cmdpax.environments.make("random")
UNIFORM = np.full((5, 5, 5), 0.2)
HOLES = (5, 7, 11, 12)


def falls(state: int, action: int, following: int) -> bool:
    return following in HOLES


def test_means_are_the_exact_values() -> None:
    plan = cmdpax.solve(PAPER)
    env = make_env(PAPER)
    played = play(env, plan.policy, 4000, costs=lambda i: i["constraint_rewards"], seed=0)
    exact = cmdpax.evaluate(PAPER, plan.policy)
    means = [played.value, *played.constraint_values]
    truths = [exact.value, *exact.constraint_values]
    for mean, truth in zip(means, truths, strict=True):
        assert 0 < mean.half < 0.1
        assert abs(mean.mean - truth) < 2.5 * mean.half
    assert (played.steps == 5).all()
    assert not played.terminated.any()


def test_ends_are_ends() -> None:
    lake = gymnasium.make("FrozenLake-v1")
    cmdp = from_env(lake, 40, costs=falls, limits=0.2)
    plan = cmdpax.solve(cmdp)
    played = play(lake, plan.policy, 1500, costs=falls, seed=3)
    assert abs(played.value.mean - plan.value) < 2 * played.value.half
    assert abs(played.constraint_values[0].mean - 0.2) < 2 * played.constraint_values[0].half
    ended = (played.rewards > 0) | (played.costs[:, 0] > 0)
    np.testing.assert_array_equal(played.terminated, ended)
    assert (played.steps[~ended] == 40).all()
    assert (played.steps <= 40).all()


def test_the_same_seed_is_the_same_play() -> None:
    env = make_env(PAPER)
    first, again, other = (play(env, UNIFORM, 5, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.rewards, again.rewards)
    assert (first.rewards != other.rewards).any()


class Guess(gymnasium.Env[Any, Any]):
    """A coin is thrown in every step; the action guesses it."""

    observation_space, action_space = gymnasium.spaces.Discrete(1), gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        return 0, float((self.np_random.random() >= 0.5) == action), False, False, {}


@pytest.mark.parametrize("seed", [0, 1, None])
def test_the_policy_does_not_draw_the_numbers_of_the_environment(seed: Any) -> None:
    """With the same generator, every guess would be right."""
    played = play(Guess(), np.full((20, 1, 2), 0.5), 200, seed=seed)
    assert played.value.mean == pytest.approx(10, abs=0.9)


def test_a_policy_that_is_the_same_at_every_step() -> None:
    env = make_env(PAPER)
    long, short = play(env, UNIFORM, 6, seed=1), play(env, UNIFORM[:1], 6, horizon=5, seed=1)
    np.testing.assert_array_equal(long.rewards, short.rewards)
    assert play(env, UNIFORM[:1], 2, horizon=3).steps.tolist() == [3, 3]


def test_costs_that_the_environment_gives() -> None:
    env = make_env(PAPER)
    plain = play(env, UNIFORM, 6, seed=1)
    safe = play(SafetyGymnasium(env), UNIFORM, 6, seed=1)
    by_name = play(env, UNIFORM, 6, seed=1, costs="cost")
    assert plain.costs.shape == (6, 1)
    np.testing.assert_array_equal(plain.costs, safe.costs)
    np.testing.assert_array_equal(plain.costs, by_name.costs)
    lake = gymnasium.make("FrozenLake-v1")
    assert play(lake, np.full((3, 16, 4), 0.25), 4).costs.shape == (4, 0)


class Later(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Tells a cost only where there is one: not at the first step, or only there."""

    def __init__(self, env: Any, first: bool) -> None:
        super().__init__(env)
        self.first, self.steps = first, 0

    def step(self, action: Any) -> Any:
        *values, _ = super().step(action)
        self.steps += 1
        return *values, {"cost": 1.0} if (self.steps == 1) == self.first else {}


@pytest.mark.parametrize(
    ("first", "sentence"),
    [
        (False, "gives a cost at some steps, but gave none at the first one; say with costs= what"),
        (True, "info has neither 'costs' nor 'cost'"),
    ],
)
def test_costs_that_come_only_sometimes_are_not_dropped(first: bool, sentence: str) -> None:
    lake = gymnasium.make("FrozenLake-v1", is_slippery=False)
    still = np.tile(np.eye(4)[0], (5, 16, 1))  # into the wall
    with pytest.raises(cmdpax.ParameterError, match=sentence):
        play(Later(lake, first), still, 2, seed=0)
    told = play(Later(lake, first), still, 2, seed=0, costs=lambda info: info.get("cost", 0.0))
    assert told.costs.sum() == (1.0 if first else 9.0)


def test_it_prints_as_a_line() -> None:
    lake = gymnasium.make("FrozenLake-v1", is_slippery=False)
    right = np.zeros((1, 16, 4))
    right[..., 2] = 1
    played = play(lake, right, 3, horizon=4, costs=[falls, np.ones(16)], seed=0)
    assert str(played) == (
        "3 episodes: reward 0 ± 0, cost 0 0 ± 0, cost 1 4 ± 0; 0 terminated, 4 steps on average"
    )
    assert str(play(lake, right, 1, horizon=4)) == (
        "1 episodes: reward 0; 0 terminated, 4 steps on average"
    )


@pytest.mark.parametrize(
    ("policy", "arguments", "sentence"),
    [
        (UNIFORM[:1], {}, "the policy has one step; give horizon="),
        (UNIFORM, {"horizon": 7}, "horizon is 7, but the policy has 5 steps; leave out"),
        (UNIFORM[0], {}, r"policy has shape \(5, 5\), expected \(H, S, A\)"),
        (np.full((2, 4, 5), 0.2), {}, "has 5 states, the policy 4; give a policy of the environm"),
        (np.full((2, 7, 5), 0.2), {}, "has 5 states, the policy 7"),
        (np.full((2, 5, 4), 0.25), {}, "environment has 5 actions, the policy 4; give the decoder"),
        (UNIFORM, {"decoder": [0, 1]}, "decoder has 2 actions, the policy 5"),
        (UNIFORM, {"encoder": lambda o: o + 9}, r"the observation \d is the state \d+, the policy"),
        (UNIFORM, {"encoder": lambda o: None}, "is the state None, the policy has the states 0 …"),
        (UNIFORM, {"num_episodes": 0}, "num_episodes is 0"),
        (UNIFORM, {"seed": -1}, "seed is -1, it must be a whole number of at least 0"),
        (UNIFORM, {"costs": "tolls"}, "info has no 'tolls'"),
    ],
)
def test_sentences(policy: Any, arguments: Any, sentence: str) -> None:
    arguments = {"num_episodes": 1} | arguments
    with pytest.raises((cmdpax.ParameterError, cmdpax.ModelError), match=sentence):
        play(make_env(PAPER), policy, **arguments)


def test_a_horizon_beyond_the_limit_is_warned_of() -> None:
    lake = gymnasium.make("FrozenLake-v1", max_episode_steps=5)
    plan = cmdpax.solve(from_env(lake.unwrapped, 30))
    with pytest.warns(cmdpax.CmdpaxWarning, match="cuts every episode after 5 steps, but the hori"):
        played = play(lake, plan.policy, 50, seed=0)
    assert played.value.mean < plan.value
    assert played.steps.max() == 5
