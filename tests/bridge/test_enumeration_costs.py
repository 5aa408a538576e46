"""`enumerate_env`: costs, and what is refused."""

import re
from typing import Any

import gymnasium
import numpy as np
import pytest

import cmdpax
from cmdpax.gymnasium import enumerate_env, interact, play
from enumeration_cases import Counter, Table, random_table, shown

RNG = np.random.default_rng(5)


@pytest.mark.parametrize(
    "costs",
    [
        "toll.paid",
        lambda info: info["toll"]["paid"],
        lambda s, a, t: -float(s[1]),
        [lambda s, a, t: 2.0 * s[0]],
    ],
)
def test_costs_know_states_by_what_is_observed(costs: Any) -> None:
    env = random_table(3, shown)
    found = enumerate_env(env, 5, costs=costs, limits=9.0)
    paid = found.cmdp.signals[0, 0, : len(found.states), 0].tolist()
    assert paid == [abs(float(state[1])) for state in found.states]
    # The same costs are paid by whoever plays, for whom states are numbers.
    uniform = np.full((5, found.cmdp.num_states, 3), 1 / 3)
    played = play(env, uniform, 600, seed=1, **found.arguments)
    exact = cmdpax.evaluate(found.cmdp, uniform)
    assert abs(played.value.mean - exact.value) < 4 * played.value.half
    assert played.constraint_values[0].half > 0
    paid = played.constraint_values[0]
    assert abs(paid.mean - exact.constraint_values[0]) < 4 * paid.half


def test_an_agent_plays_with_the_same_states_and_costs() -> None:
    env = random_table(3, shown)
    found = enumerate_env(env, 5, costs=lambda s, a, t: -float(s[1]), limits=9.0)
    _, horizon, num_states, num_actions = found.cmdp.sizes
    agent = cmdpax.Agent(
        "vanilla-dual", num_states=num_states, num_actions=num_actions, horizon=horizon,
        initial=0, thresholds=[9], senses="at most", constraint_ranges=(0, 9),
        reward_range=(-9, 9), seed=0,
    )  # fmt: skip
    seen = interact(env, agent, 20, log=True, **found.arguments).log
    for states, actions, rewards, costs in zip(*seen, strict=True):
        assert rewards.tolist() == found.cmdp.rewards[0, states[:-1], actions].tolist()
        assert costs[0].tolist() == found.cmdp.signals[0, 0, states[:-1], actions].tolist()


def test_arrays_of_costs_for_states_with_numbers() -> None:
    env = random_table(2)
    table = RNG.uniform(size=(7, 3))
    found = enumerate_env(env, 5, costs=[table, table[:, 0]], limits=[1.0, 2.0])
    alive = found.cmdp.rewards[0, :7].any(axis=1)
    assert alive.sum() > 3
    assert not found.cmdp.signals[:, 0, 7:].any()  # ended
    np.testing.assert_allclose(found.cmdp.signals[0, 0, :7][alive], table[alive], atol=1e-12)
    np.testing.assert_allclose(
        found.cmdp.signals[1, 0, :7][alive], np.repeat(table[alive, :1], 3, axis=1), atol=1e-12
    )


def test_the_components_of_a_vector_are_costs() -> None:
    class Vectors(Table):
        def step(self, action: Any) -> Any:
            observation, reward, *rest = super().step(action)
            return observation, np.array([-1.0, reward, -2.0 * action]), *rest

    env = Vectors([[0, 1], [1, 0]], [[0, 1], [2, 3]], [[0, 0], [0, 0]])
    found = enumerate_env(env, 3, objective=1, limits=[3.0, 5.0])
    assert found.cmdp.rewards[0].tolist() == [[0, 1], [2, 3]]
    assert found.cmdp.signals[:, 0].tolist() == [[[1, 1]] * 2, [[0, 2]] * 2]
    played = play(env, np.full((1, 2, 2), 0.5), 3, horizon=3, seed=0, **found.arguments)
    assert played.costs[:, 0].tolist() == [3.0] * 3
    with pytest.raises(cmdpax.ParameterError, match="3 numbers; say with objective="):
        enumerate_env(env, 3)


# ---------------------------------------------------------------------------------- refused


BARE = Table([[0]], [[0.0]], [[0]])


@pytest.mark.parametrize(
    ("env", "arguments", "sentence"),
    [
        (BARE, {"costs": "toll.paid"}, "costs came without limits"),
        (
            BARE,
            {"limits": 1.0},
            r"neither 'costs' nor 'cost' \(it has \['toll'\]\); say with costs",
        ),
        (BARE, {"costs": "toll", "limits": 1.0}, r"info\['toll'\] is a dict with \['paid'\]; name"),
        (BARE, {"costs": "toll.paid", "limits": [1, 2]}, r"shape \(1,\), there are 2 limits; give"),
        (BARE, {"costs": [[1.0, 2.0]], "limits": 1}, r"costs has shape \(2,\), expected \(1,\) or"),
        (
            random_table(0, shown),
            {"costs": [1.0, 2.0], "limits": 1},
            r"costs has shape \(2,\), but states have no numbers before they are found; give a fun",
        ),
        (BARE, {"costs": lambda i: np.nan, "limits": 1}, r"cost of action 0 .* state 0 is \[nan\]"),
        (Table([[0]], [[np.inf]], [[0]]), {}, "reward of action 0 in the state 0 is inf; it must"),
        (BARE, {"samples": 0}, "samples is 0, it must be a whole number of at least 1"),
        (BARE, {"resets": 0}, "resets is 0, it must be"),
        (BARE, {"seed": "first"}, "seed is 'first', it must be"),
        (BARE, {"costs": "toll.paid", "limits": [[1], [1, 2]]}, r"limits is .* cannot be read as"),
        (BARE, {"max_states": 1.5}, "max_states is 1.5, it must be"),
        (BARE, {"state_name": ["a"]}, "enumerate_env has no argument 'state_name'; did you mean"),
        (BARE, {"decoder": lambda a: a}, "the number of actions is not known; give decoder=, a l"),
        (BARE, {"decoder": [1]}, r"decoder\[0\] is 1, which is no action of Discrete\(1\)"),
        (BARE, {"states": [0, 3]}, r"states\[1\] is 3, which is no observation of Discrete\(1\)"),
        (BARE, {"states": [0], "set_state": "copy"}, "states cannot be given where a copy of the"),
        (BARE, {"set_state": "s"}, "set_state is 's'; it must be a function set_state.env, state."),
        (BARE, {"get_state": lambda e: 0}, "get_state is .* and set_state is None; both must be"),
        (BARE, {"encoder": lambda o: {1, 2}}, r"has \{1, 2\}, of the type set, which cannot be co"),
        (Counter(), {}, "the environment's reset takes no seed; give seed=None"),
    ],
)
def test_sentences(env: Any, arguments: Any, sentence: str) -> None:
    with pytest.raises(cmdpax.ParameterError, match=sentence):
        enumerate_env(env, 3, **arguments)


def test_vector_environments_are_refused() -> None:
    env = gymnasium.make_vec("FrozenLake-v1", num_envs=2, vectorization_mode="sync")
    with pytest.raises(cmdpax.ParameterError, match="vector environment, which cannot be tried"):
        enumerate_env(env, 5)
    env.close()


def test_an_observation_that_was_not_met() -> None:
    found = enumerate_env(random_table(1, shown), 4)
    sentence = "the observation array([3.5, 9. ]) was not met when the environment was tried out; "
    with pytest.raises(cmdpax.ParameterError, match=re.escape(sentence)):
        found.encoder(np.array([3.5, 9.0]))
    numbered = enumerate_env(random_table(1), 4)
    with pytest.raises(cmdpax.ParameterError, match=r"observation is 7, it must be one of 0 … 6"):
        numbered.encoder(7)


def test_it_prints_as_its_model() -> None:
    found = enumerate_env(random_table(1, shown), 4)
    assert repr(found) == f"EnumeratedEnv({found.cmdp!r})"
