"""Environments that cut episodes before the horizon: said before anything is planned or played."""

import re
import warnings
from types import SimpleNamespace
from typing import Any

import gymnasium
import pytest
from gymnasium.wrappers import TimeLimit

import cmdpax
from cmdpax.gymnasium import from_env, interact
from cmdpax.gymnasium.limits import time_limit

FrozenLake = gymnasium.make("FrozenLake-v1").unwrapped.__class__


def lake(**options: Any) -> Any:
    return gymnasium.make("FrozenLake-v1", **options)


@pytest.mark.parametrize(
    ("env", "limit"),
    [
        (lake(), (100, "max_episode_steps")),
        (lake(max_episode_steps=30), (30, "max_episode_steps")),
        (lake(max_episode_steps=-1), None),
        (lake().unwrapped, None),
        (TimeLimit(TimeLimit(FrozenLake(), 12), 40), (12, "max_episode_steps")),
        (SimpleNamespace(spec=SimpleNamespace(max_episode_steps=7)), (7, "max_episode_steps")),
        (SimpleNamespace(max_steps=9, env=None), (9, "max_steps")),
        (SimpleNamespace(max_steps="many", _max_episode_steps=None), None),
        (SimpleNamespace(spec=None), None),
        (object(), None),
    ],
)
def test_the_shortest_limit_of_all_layers(env: Any, limit: Any) -> None:
    assert time_limit(env) == limit


def test_wrappers_in_a_circle_are_no_end() -> None:
    env = SimpleNamespace(max_steps=5)
    env.env = env
    assert time_limit(env) == (5, "max_steps")


def test_a_horizon_beyond_the_limit_is_warned_of() -> None:
    """What is promised does not come: the plan counts on steps that are never taken."""
    sentence = (
        "the environment cuts every episode after 20 steps, but the horizon is 60, so what is "
        "planned for later steps never comes; take 20 as the horizon, or make the environment "
        "with max_episode_steps=60."
    )
    with pytest.warns(cmdpax.CmdpaxWarning, match=f"^{re.escape(sentence)}$") as caught:
        long = from_env(lake(max_episode_steps=20), 60)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        short = from_env(lake(max_episode_steps=20), 20)
        from_env(lake(max_episode_steps=60), 60)
    promised, kept = cmdpax.solve(long).value, cmdpax.solve(short).value
    assert promised > 2 * kept  # 0.61 is promised, at most 0.20 comes


class Walk:
    """One state; episodes are cut after `length` steps, and maybe by a limit that is told."""

    def __init__(self, length: int, told: int | None = None) -> None:
        self.length, self.max_steps, self.resets = length, told, 0

    def reset(self) -> tuple[int, dict[str, Any]]:
        self.steps, self.resets = 0, self.resets + 1
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        return 0, 1.0, False, self.steps == self.length, {}


def walker(horizon: int = 6) -> cmdpax.Agent:
    sizes = {"num_states": 1, "num_actions": 2, "horizon": horizon}
    return cmdpax.Agent("vanilla-dual", **sizes, thresholds=[], initial=0)


def test_a_limit_is_warned_of_before_an_agent_plays() -> None:
    env = Walk(length=4, told=4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(cmdpax.CmdpaxWarning, match=r"after 4 steps, .* is 6, .*max_steps=6"):
            interact(env, walker(), 2)
    assert env.resets == 0


@pytest.mark.parametrize(
    ("length", "told", "sentences"),
    [
        (4, 4, ["cuts every episode after 4 steps"]),  # and not again, when it has happened
        (3, 4, ["cuts every episode after 4 steps", "truncated all 2 episodes .* after 3 steps"]),
        (4, None, ["truncated all 2 episodes before .* of 6, the longest after 4 steps"]),
        (6, 6, []),
        (9, 50, []),
    ],
)
def test_the_same_is_said_once(length: int, told: int | None, sentences: list[str]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        interact(Walk(length, told), walker(), 2)
    assert [bool(re.search(s, str(w.message))) for s, w in zip(sentences, caught, strict=True)] == [
        True
    ] * len(sentences)
    assert all(w.filename == __file__ for w in caught)
