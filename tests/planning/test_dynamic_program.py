from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cmdpax
import reference
import strategies
from cmdpax.planning.dynamic_program import greedy_plan, greedy_plans, greedy_values, soft_plan
from golden_files import Golden

pytestmark = pytest.mark.usefixtures("double_precision")


def plan_greedily(cmdp: cmdpax.CMDP, weights: np.ndarray) -> Any:
    """One greedy plan, (V_r, V_u) and actions, as NumPy arrays."""
    with jax.enable_x64(True):
        plans = greedy_plans(cmdp, jnp.asarray(weights)[None])
        return jax.tree.map(lambda leaf: np.asarray(leaf)[0], plans)


_soft_plan = jax.jit(soft_plan)


def plan_softly(cmdp: cmdpax.CMDP, weights: np.ndarray, temperature: float) -> Any:
    """One soft plan, the maximum, (V_r, V_u) and log π, as NumPy arrays."""
    with jax.enable_x64(True):
        plan = _soft_plan(cmdp, jnp.asarray(weights), jnp.asarray(temperature))
        return jax.tree.map(np.asarray, plan)


def weighted(model: reference.Dense, weights: np.ndarray) -> np.ndarray:
    """w_0 r + Σ_i w_i u_i."""
    return weights[0] * model.rewards + reference.lagrangian_reward(
        model._replace(rewards=np.zeros_like(model.rewards)), weights[1:]
    )


@given(cmdp=strategies.cmdps(), data=st.data(), reward_weight=st.sampled_from([0.0, 1.0]))
def test_greedy_plans_are_optimal_and_evaluate_themselves(
    cmdp: cmdpax.CMDP, data: st.DataObject, reward_weight: float
) -> None:
    model = reference.densify(cmdp)
    weights = np.insert(data.draw(strategies.multipliers(cmdp)), 0, reward_weight)
    signal_values, actions = plan_greedily(cmdp, weights)
    best = reference.best_value(model, weighted(model, weights))
    assert signal_values @ weights == pytest.approx(best, abs=1e-12)
    policy = np.eye(cmdp.num_actions)[actions]
    value, constraint_values, _ = reference.evaluate(model, policy)
    expected = np.insert(constraint_values, 0, value)
    np.testing.assert_allclose(signal_values, expected, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(greedy_values(cmdp, weights[None])[0], signal_values)


def test_ties_go_to_the_lowest_action() -> None:
    cmdp = cmdpax.CMDP(
        np.full((1, 2, 3, 2), 0.5), [[[0, 1, 1], [1, 1, 1]]], [], [], [0.5, 0.5], horizon=2
    )
    _, actions = plan_greedily(cmdp, np.ones(1))
    assert actions.tolist() == [[1, 0], [1, 0]]


def test_more_actions_than_a_byte_counts() -> None:
    rewards = np.zeros((1, 1, 300))
    rewards[0, 0, 299] = 1.0
    cmdp = cmdpax.CMDP(np.ones((1, 1, 300, 1)), rewards, [], [], [1.0])
    _, actions = plan_greedily(cmdp, np.ones(1))
    assert actions.tolist() == [[299]]
    assert cmdpax.solve(cmdp).policy[0, 0].argmax() == 299


def test_vmap_over_stacked_models_equals_one_by_one() -> None:
    models = [cmdpax.environments.make("random", seed=seed) for seed in range(3)]
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *models)
    assert stacked.rewards.shape == (3, 5, 5, 5)
    weights = jnp.asarray([1.0, 0.5])
    plan_all = jax.jit(jax.vmap(greedy_plan, in_axes=(0, None)))
    all_values, all_actions = plan_all(stacked, weights)
    for index, model in enumerate(models):
        values, actions = plan_greedily(model, np.asarray(weights))
        np.testing.assert_array_equal(all_actions[index], actions)
        np.testing.assert_allclose(all_values[index], values, rtol=0, atol=1e-13)


def test_vmap_over_stacked_successor_lists() -> None:
    models = [cmdpax.environments.make("gridworld", horizon=9, seed=seed) for seed in (1, 2)]
    assert models[0].sizes == models[1].sizes
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *models)
    temperature = jnp.asarray(0.1)
    weights = jnp.asarray([1.0, 0.5])
    _, _, together = jax.vmap(soft_plan, in_axes=(0, None, None))(stacked, weights, temperature)
    for index, model in enumerate(models):
        _, _, alone = plan_softly(model, np.asarray(weights), 0.1)
        np.testing.assert_allclose(together[index], alone, rtol=0, atol=1e-11)


# ------------------------------------------------------------------------------------ soft planning


@given(cmdp=strategies.cmdps(), data=st.data(), temperature=st.sampled_from([1e-3, 1e-2, 0.1, 1.0]))
def test_soft_plans_agree_with_the_definition(
    cmdp: cmdpax.CMDP, data: st.DataObject, temperature: float
) -> None:
    model = reference.densify(cmdp)
    weights = np.insert(data.draw(strategies.multipliers(cmdp)), 0, 1.0)
    best, signal_values, log_policy = plan_softly(cmdp, weights, temperature)
    value, policy = reference.soft_plan(model, weighted(model, weights), temperature)
    assert best == pytest.approx(value, abs=1e-11)
    np.testing.assert_allclose(np.exp(log_policy), policy, rtol=0, atol=1e-10)
    reached = reference.evaluate(model, policy)
    expected = np.insert(reached.constraint_values, 0, reached.value)
    np.testing.assert_allclose(signal_values, expected, rtol=0, atol=1e-10)
    entropy = reference.entropy(model, policy)
    assert best == pytest.approx(expected @ weights + temperature * entropy, abs=1e-10)


@given(cmdp=strategies.cmdps(), data=st.data(), temperature=st.sampled_from([0.01, 1.0]))
def test_soft_plans_beat_other_policies_with_their_entropy(
    cmdp: cmdpax.CMDP, data: st.DataObject, temperature: float
) -> None:
    model = reference.densify(cmdp)
    weights = np.insert(data.draw(strategies.multipliers(cmdp)), 0, 1.0)
    other = data.draw(strategies.policies(cmdp))
    reached = reference.evaluate(model, other)
    total = np.insert(reached.constraint_values, 0, reached.value) @ weights
    total += temperature * reference.entropy(model, other)
    best, _, _ = plan_softly(cmdp, weights, temperature)
    assert total <= best + 1e-10


@given(cmdp=strategies.cmdps(), temperature=st.sampled_from([1e-6, 1e-4, 1e-2]))
def test_soft_values_lie_just_above_greedy_ones(cmdp: cmdpax.CMDP, temperature: float) -> None:
    weights = np.ones(1 + cmdp.num_constraints)
    signal_values, _ = plan_greedily(cmdp, weights)
    greedy = signal_values @ weights
    soft, _, _ = plan_softly(cmdp, weights, temperature)
    most = temperature * cmdp.horizon * np.log(cmdp.num_actions)
    assert greedy - 1e-12 <= soft <= greedy + most + 1e-12


def test_soft_policies_become_greedy_as_the_temperature_falls(paper: Golden) -> None:
    weights = np.array([1.0, 0.4])
    _, actions = plan_greedily(paper.cmdp, weights)
    distances = []
    for temperature in (0.3, 0.03, 3e-3, 3e-4, 3e-5):
        _, _, log_policy = plan_softly(paper.cmdp, weights, temperature)
        distances.append(np.abs(np.exp(log_policy) - np.eye(5)[actions]).max())
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 1e-12


def test_log_policies_do_not_underflow() -> None:
    cmdp = cmdpax.CMDP(np.ones((1, 1, 2, 1)), [[[1.0, 0.0]]], [], [], [1.0])
    _, _, log_policy = plan_softly(cmdp, np.ones(1), 1e-4)
    assert log_policy.tolist() == [[[0.0, -10_000.0]]]
