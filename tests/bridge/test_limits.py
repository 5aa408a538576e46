"""Environments that cut episodes before the horizon: said before anything is planned or played."""

import re
import warnings
from types import SimpleNamespace
from typing import Any

import gymnasium
import pytest
from gymnasium.wrappers import TimeLimit

import cmdpax
from cmdpax.gymnasium import from_env
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
        "the environment cuts every episode after 20 steps, and the horizon is 60: what is "
        "promised for later steps never comes; take 20 as the horizon, or make the environment "
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
