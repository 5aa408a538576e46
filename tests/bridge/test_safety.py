import numpy as np
import pytest
from gymnasium.envs.registration import make

import cmdpax
from cmdpax.gymnasium import SafetyGymnasium, make_env


def test_one_constraint_costs_a_number() -> None:
    cmdp = cmdpax.environments.make("random")
    plain, safe = make_env(cmdp), SafetyGymnasium(make_env(cmdp))
    assert plain.reset(seed=3)[0] == safe.reset(seed=3)[0]
    for action in (0, 4, 2, 1, 3):
        observation, reward, terminated, truncated, info = plain.step(action)
        six = safe.step(action)
        assert six[:5] == (observation, reward, info["cost"], terminated, truncated)
        assert type(six[2]) is float
        np.testing.assert_equal(six[5], info)
    assert six[4]


def test_several_constraints_cost_a_vector() -> None:
    env = SafetyGymnasium(make("cmdpax/queue-v0"))
    env.reset(seed=0)
    cost, info = env.step(3)[2], env.step(3)[5]
    np.testing.assert_array_equal(cost, info["costs"])  # they depend on the action alone
    assert cost.shape == (2,)


def test_the_wrapper_is_part_of_the_specification() -> None:
    env = SafetyGymnasium(make("cmdpax/bandit-v0"))
    again = env.spec.make()
    again.reset()
    assert len(again.step(0)) == 6


def test_an_environment_without_costs_is_refused() -> None:
    env = SafetyGymnasium(make("FrozenLake-v1"))
    env.reset()
    with pytest.raises(cmdpax.ParameterError, match='neither "cost" nor "costs" into info'):
        env.step(0)
