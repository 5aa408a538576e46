"""mo-gymnasium's deep-sea treasure: a vector reward of a treasure and a time."""

from typing import Any

import mo_gymnasium
import numpy as np
import pytest

import cmdpax
from cmdpax.gymnasium import enumerate_env, interact, play

pytestmark = pytest.mark.filterwarnings("ignore:.*precision lowered by casting to float32")


def sea(name: str = "deep-sea-treasure-v0") -> Any:
    return mo_gymnasium.make(name)


@pytest.mark.parametrize(
    ("name", "certain"),
    [("deep-sea-treasure-v0", 10), ("deep-sea-treasure-concave-v0", 2)],
)
def test_its_own_front_is_found(name: str, certain: int) -> None:
    """Where the front is convex, treasures are the best that can be had; elsewhere lots are."""
    env = sea(name)
    front = np.array(env.unwrapped.pareto_front(gamma=1.0))
    found = enumerate_env(env, 20, objective=0, limits=19.0)
    times, treasures = -front[:, 1], front[:, 0]
    solved = cmdpax.frontier(found.cmdp, thresholds=times)
    hull = [best_lottery(times, treasures, budget) for budget in times]
    np.testing.assert_allclose(solved.value, hull, rtol=0, atol=1e-6)
    assert np.isclose(solved.value, treasures, rtol=0, atol=1e-6).sum() == certain


def best_lottery(times: np.ndarray, treasures: np.ndarray, budget: float) -> float:
    """The best mean of two treasures whose mean time is the budget, or less.

    Every episode takes at least a step, and one without a treasure takes all 20.
    """
    points = [*zip(times, treasures, strict=True), (20.0, 0.0)]
    best = 0.0
    for first_time, first in points:
        if first_time <= budget:
            best = max(best, first)
        for second_time, second in points:
            if first_time < budget < second_time:
                share = (budget - first_time) / (second_time - first_time)
                best = max(best, (1 - share) * first + share * second)
    return best


def test_the_plan_brings_what_it_promises() -> None:
    env = sea()
    found = enumerate_env(env, 20, objective=0, limits=10.0)
    plan = cmdpax.solve(found.cmdp)
    played = play(env, plan.policy, 600, seed=0, **found.arguments)
    assert abs(played.value.mean - plan.value) < 2 * played.value.half
    assert abs(played.constraint_values[0].mean - 10.0) < 2 * played.constraint_values[0].half
    np.testing.assert_array_equal(played.costs[:, 0], played.steps)


def test_an_agent_has_the_time_as_its_constraint() -> None:
    env = sea()
    found = enumerate_env(env, 20, objective=0, limits=10.0)
    system = {"num_states": found.cmdp.num_states, "num_actions": 4, "horizon": 20, "initial": 0}
    costs = {"thresholds": [10.0], "senses": "at most", "reward_range": (0, 24)}
    agent = cmdpax.Agent("vanilla-dual", **system, **costs, seed=0)
    seen = interact(env, agent, 10, seed=0, **found.arguments)
    np.testing.assert_array_equal(seen.constraint_returns[:, 0], seen.steps)
    least = {"thresholds": [-10.0], "constraint_ranges": (-1, 0), "reward_range": (0, 24)}
    agent = cmdpax.Agent("vanilla-dual", **system, **least, seed=0)
    seen = interact(env, agent, 10, seed=0, **found.arguments)
    np.testing.assert_array_equal(seen.constraint_returns[:, 0], -seen.steps)
    with pytest.raises(cmdpax.ParameterError, match=r"the reward is \[0.* say with objective="):
        interact(env, agent, 1, encoder=found.encoder)


def test_many_objectives() -> None:
    """Six fruits: one is wanted, and of the others enough."""
    env = sea("fruit-tree-v0")
    found = enumerate_env(env, 6, objective=2, limits=[-1.0] * 5)
    assert found.cmdp.num_constraints == 5
    assert found.cmdp.num_states == 2**7 - 1

    def put(env: Any, place: Any) -> None:
        env.unwrapped.current_state, env.unwrapped.terminal = np.array(place), False

    again = enumerate_env(env, 6, objective=2, limits=[-1.0] * 5, set_state=put)
    assert again.cmdp.fingerprint == found.cmdp.fingerprint
    best = max(cmdpax.solve(found.cmdp.replace(constraint_rewards=[], thresholds=[])).value, 0)
    plan = cmdpax.solve(found.cmdp)
    assert 0 < plan.value < best
    assert (plan.constraint_values <= -1.0 + 1e-8).all()
