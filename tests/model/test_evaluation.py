import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cmdpax
import reference
import strategies
from checks import assert_numpy_doubles, one_step
from cmdpax.jax_context import cast
from cmdpax.model.evaluation import policy_values, signals_of


@given(cmdp=strategies.cmdps(), data=st.data())
def test_evaluation_agrees_with_the_definition(cmdp: cmdpax.CMDP, data: st.DataObject) -> None:
    policy = data.draw(strategies.policies(cmdp))
    expected = reference.evaluate(reference.densify(cmdp), policy)
    found = cmdpax.evaluate(cmdp, policy)
    assert found.value == pytest.approx(expected.value, abs=1e-13)
    np.testing.assert_allclose(
        found.constraint_values, expected.constraint_values, rtol=0, atol=1e-13
    )
    np.testing.assert_allclose(found.occupancy, expected.occupancy, rtol=0, atol=1e-14)


@given(cmdp=strategies.cmdps(), data=st.data())
def test_occupancies_are_distributions_that_flow(cmdp: cmdpax.CMDP, data: st.DataObject) -> None:
    found = cmdpax.evaluate(cmdp, data.draw(strategies.policies(cmdp)))
    model = reference.densify(cmdp)
    mass = found.occupancy
    assert mass.shape == (cmdp.horizon, cmdp.num_states, cmdp.num_actions)
    assert np.all(mass >= 0)
    np.testing.assert_allclose(mass.sum(axis=(1, 2)), 1.0, rtol=0, atol=1e-13)
    np.testing.assert_allclose(mass[0].sum(axis=1), cmdp.initial, rtol=0, atol=1e-14)
    for h in range(cmdp.horizon - 1):
        arriving = np.einsum("sa,sat->t", mass[h], model.transitions[h])
        np.testing.assert_allclose(mass[h + 1].sum(axis=1), arriving, rtol=0, atol=1e-13)
    assert found.value == pytest.approx(np.sum(mass * model.rewards), abs=1e-12)


@given(cmdp=strategies.cmdps(), data=st.data())
def test_the_policy_comes_back_from_its_occupancy(cmdp: cmdpax.CMDP, data: st.DataObject) -> None:
    policy = data.draw(strategies.policies(cmdp))
    mass = cmdpax.evaluate(cmdp, policy).occupancy
    total = np.broadcast_to(mass.sum(axis=2, keepdims=True), mass.shape)
    reached = total > 0
    np.testing.assert_allclose(mass[reached] / total[reached], policy[reached], rtol=1e-9, atol=0)


@given(cmdp=strategies.cmdps(), data=st.data())
def test_values_are_linear_in_the_rewards(cmdp: cmdpax.CMDP, data: st.DataObject) -> None:
    policy = data.draw(strategies.policies(cmdp))
    other = np.random.default_rng(0).standard_normal(cmdp.rewards.shape)
    values = [
        cmdpax.evaluate(cmdp.replace(rewards=rewards), policy).value
        for rewards in (cmdp.rewards, other, 2 * cmdp.rewards - 3 * other)
    ]
    assert values[2] == pytest.approx(2 * values[0] - 3 * values[1], abs=1e-12)


@given(cmdp=strategies.cmdps(kinds=strategies.CONSTRAINED), data=st.data())
def test_permuting_constraints_permutes_their_values(
    cmdp: cmdpax.CMDP, data: st.DataObject
) -> None:
    policy = data.draw(strategies.policies(cmdp))
    order = data.draw(st.permutations(range(cmdp.num_constraints)))
    permuted = cmdp.replace(
        constraint_rewards=cmdp.constraint_rewards[order], thresholds=cmdp.thresholds[order]
    )
    one, other = cmdpax.evaluate(cmdp, policy), cmdpax.evaluate(permuted, policy)
    np.testing.assert_allclose(
        other.constraint_values, one.constraint_values[order], rtol=0, atol=1e-14
    )
    assert other.value == one.value


def test_a_coin_that_is_thrown_twice() -> None:
    # State 1 is heads; each step the coin is thrown anew, and heads earns 1 from the second on.
    cmdp = cmdpax.CMDP(
        transitions=np.full((1, 2, 1, 2), 0.5),
        rewards=[[[0.0], [1.0]]],
        constraint_rewards=[[[[1.0], [0.0]]]],
        thresholds=[0.0],
        initial=[1.0, 0.0],
        horizon=3,
    )
    found = cmdpax.evaluate(cmdp, np.ones((1, 2, 1)))
    assert found.value == 1.0
    assert found.constraint_values.tolist() == [2.0]
    assert found.occupancy.tolist() == [[[1.0], [0.0]], [[0.5], [0.5]], [[0.5], [0.5]]]


def test_results_are_numpy_doubles() -> None:
    found = cmdpax.evaluate(one_step([1.0, 0.5], [[0.2, 0.4]], [0.0]), [[[0.5, 0.5]]])
    assert_numpy_doubles(found.constraint_values, found.occupancy)
    assert type(found.value) is float


def test_values_have_double_precision() -> None:
    found = cmdpax.evaluate(one_step([1.0, 1.0 + 1e-12], [], []), [[[0.0, 1.0]]])
    assert found.value - 1.0 == pytest.approx(1e-12, rel=1e-3)


def test_models_are_validated() -> None:
    with pytest.raises(cmdpax.ModelError, match=r"rewards\[0, 0, 1\] is nan"):
        cmdpax.evaluate(one_step([1.0, float("nan")], [], []), [[[0.5, 0.5]]])


@pytest.mark.parametrize("environment", ["gridworld", "random"])
def test_many_policies_at_once_are_each_one_alone(environment: str) -> None:
    """Along the first axis, the last, or both; lists as their matrix."""
    parameters = {
        "gridworld": {"layout": "S1G", "horizon": 3, "slip": 0.2},
        "random": {"num_states": 3, "num_actions": 2, "horizon": 3, "num_constraints": 2},
    }
    cmdp = cmdpax.environments.make(environment, **parameters[environment]).with_arrays()
    policies = np.random.default_rng(0).dirichlet(np.ones(cmdp.num_actions), (4, 3, 3))
    reached = [cmdpax.evaluate(cmdp, policy) for policy in policies]
    expected = np.array([[one.value, *one.constraint_values] for one in reached])
    dense = cmdp.replace(transitions=reference.densify(cmdp).transitions)
    with jax.enable_x64(True):
        for model in (cast(cmdp, float), cast(dense, float)):
            for shape in ((4, 1), (1, 4), (2, 2)):
                given = policies.reshape(*shape, *policies.shape[1:])
                found = jax.jit(policy_values)(model, jnp.asarray(np.moveaxis(given, 1, -1)))
                values = np.moveaxis(np.asarray(found), -1, 1).reshape(4, -1)
                np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12)


@given(cmdp=strategies.cmdps())
def test_signals_of_a_pair_are_what_plain_indexing_gives(cmdp: cmdpax.CMDP) -> None:
    dense = reference.densify(cmdp)
    with jax.enable_x64(True):
        for step, state, action in np.ndindex(dense.rewards.shape):
            at = (step, state, action)
            found = signals_of(cmdp, step, jnp.asarray(state), jnp.asarray(action))
            expected = [dense.rewards[at], *dense.constraint_rewards[:, *at]]
            np.testing.assert_array_equal(found, expected)
