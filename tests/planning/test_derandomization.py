import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cmdpax
import reference
import strategies
from checks import assert_distributions, num_random_decisions
from cmdpax.planning.derandomization import derandomize
from golden_files import Golden

pytestmark = pytest.mark.usefixtures("double_precision")


def simplify(cmdp: cmdpax.CMDP, policy: np.ndarray) -> np.ndarray:
    import jax

    with jax.enable_x64(True):
        return derandomize(cmdp, policy)


def num_random_places(model: reference.Dense, policy: np.ndarray) -> int:
    mass = reference.evaluate(model, policy).occupancy
    return int(np.count_nonzero(np.count_nonzero(mass, axis=2) > 1))


@given(cmdp=strategies.cmdps(), data=st.data())
def test_any_policy_has_an_equal_with_at_most_i_random_decisions(
    cmdp: cmdpax.CMDP, data: st.DataObject
) -> None:
    model = reference.densify(cmdp)
    policy = data.draw(strategies.policies(cmdp))
    before = reference.evaluate(model, policy)
    simpler = simplify(cmdp, policy)
    after = reference.evaluate(model, simpler)
    assert_distributions(simpler)
    assert after.value >= before.value - 1e-10
    np.testing.assert_allclose(
        after.constraint_values, before.constraint_values, rtol=0, atol=1e-10
    )
    assert num_random_places(model, simpler) <= cmdp.num_constraints


def test_what_rounding_leaves_is_no_random_decision() -> None:
    """Models of few numbers are full of ties: several actions vanish at once, but for rounding."""
    for seed in range(200):
        generator = np.random.default_rng(seed)
        first = generator.choice([0.0, 1 / 3, 2 / 3, 1.0], (4, 2, 2))
        cmdp = cmdpax.CMDP(
            transitions=np.stack([first, 1 - first], axis=-1),
            rewards=generator.integers(0, 5, (4, 2, 2)) / 4,
            constraint_rewards=generator.integers(0, 5, (2, 4, 2, 2)) / 4,
            thresholds=np.zeros(2),
            initial=np.array([1.0, 0.0]),
        )
        simpler = simplify(cmdp, generator.dirichlet(np.ones(2), (4, 2)))
        assert num_random_places(reference.densify(cmdp), simpler) <= 2


def test_the_policy_given_is_left_alone(two_constraints: Golden) -> None:
    policy = np.full((6, 4, 3), 1 / 3)
    simpler = simplify(two_constraints.cmdp, policy)
    assert np.all(policy == 1 / 3)
    assert num_random_places(reference.densify(two_constraints.cmdp), simpler) <= 2


def test_a_deterministic_policy_stays_as_it_is(paper: Golden) -> None:
    policy = np.eye(5)[np.arange(25).reshape(5, 5) % 5]
    np.testing.assert_array_equal(simplify(paper.cmdp, policy), policy)


def test_gridworlds_full_of_ties_have_few_random_decisions() -> None:
    cmdp = cmdpax.environments.make("gridworld", num_constraints=2, uniform_start=True, seed=3)
    solution = cmdpax.solve(cmdp)
    assert num_random_decisions(solution) <= 2
    reached = cmdpax.evaluate(cmdp, solution.policy)
    assert reached.value == pytest.approx(solution.value, abs=1e-9)
    assert np.all(reached.constraint_values <= cmdp.bounds + 1e-9)


def bandit(gains: list[list[float]], base: list[float]) -> cmdpax.CMDP:
    """Two states of one step with two actions each, and the same mass on both."""
    return cmdpax.CMDP(
        transitions=np.full((1, 2, 2, 2), 0.5),
        rewards=np.array([[[base[0], base[0] + one[0]] for one in gains]]),
        constraint_rewards=np.array([[[[base[1], base[1] + one[1]] for one in gains]]]),
        thresholds=[0.0],
        initial=np.array([0.5, 0.5]),
    )


def test_the_constraint_stays_and_the_reward_rises() -> None:
    # Both alternatives give the constraint the same, and the second more reward.
    cmdp = bandit([[0.0, 1.0], [0.5, 1.0]], [0.1, 0.0])
    simpler = simplify(cmdp, np.array([[[0.6, 0.4], [0.8, 0.2]]]))
    np.testing.assert_allclose(simpler, [[[1.0, 0.0], [0.4, 0.6]]], atol=1e-15)


def test_an_alternative_takes_the_place_of_an_exhausted_base() -> None:
    # The second alternative would need 1.4 of a place that holds 1: it becomes certain there, and
    # the rest stays with the first.
    cmdp = bandit([[0.0, 1.0], [0.5, 1.0]], [0.1, 0.0])
    simpler = simplify(cmdp, np.array([[[0.2, 0.8], [0.4, 0.6]]]))
    np.testing.assert_allclose(simpler, [[[0.6, 0.4], [0.0, 1.0]]], atol=1e-15)


@pytest.mark.parametrize("num_constraints", [1, 2, 3, 5])
@pytest.mark.parametrize("storage", ["dense", "lists"])
def test_many_random_places_in_many_steps(num_constraints: int, storage: str) -> None:
    """Base actions are exhausted on the way, in this step and in earlier ones."""
    draw = np.random.default_rng(num_constraints)
    num_states, num_actions, horizon = 6, 4, 40
    transitions = draw.dirichlet(np.full(num_states, 0.2), (horizon, num_states, num_actions))
    if storage == "lists":
        num_states = 40
        shape = (horizon, num_states, num_actions, 3)
        successors = draw.integers(0, num_states, shape)
        transitions = cmdpax.Successors(successors, draw.dirichlet(np.ones(3), shape[:3]))
    pairs = (horizon, num_states, num_actions)
    cmdp = cmdpax.CMDP(
        transitions=transitions,
        rewards=draw.random(pairs),
        constraint_rewards=draw.random((num_constraints, *pairs)),
        thresholds=np.zeros(num_constraints),
        initial=draw.dirichlet(np.ones(num_states)),
    )
    policy = draw.dirichlet(np.full(num_actions, 0.5), pairs[:2])
    model = reference.densify(cmdp)
    before = reference.evaluate(model, policy)
    simpler = simplify(cmdp, policy)
    after = reference.evaluate(model, simpler)
    assert after.value >= before.value - 1e-12
    np.testing.assert_allclose(after.constraint_values, before.constraint_values, atol=1e-11)
    assert num_random_places(model, simpler) <= num_constraints
