import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cmdpax
import reference
import strategies
from checks import assert_distributions, assert_numpy_doubles, one_step
from golden_files import Golden

TEMPERATURES = (1e-3, 1e-2, 0.1, 1.0)


def assert_saddle(
    cmdp: cmdpax.CMDP, temperature: float, cap: float, policy_error: float = 1e-10
) -> cmdpax.RegularizedSolution:
    """The library's saddle point is the one of the extended-precision reference."""
    found = cmdpax.solve_regularized(cmdp, temperature, cap)
    exact = reference.saddle(reference.densify(cmdp), temperature, cap, found.multipliers)
    assert exact.residual < 1e-15  # by strong convexity, this is the saddle
    np.testing.assert_allclose(found.multipliers, exact.multipliers, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.policy, exact.policy, rtol=0, atol=policy_error)
    assert found.value == pytest.approx(float(exact.value), abs=1e-10)
    assert np.all(found.multipliers >= 0)
    assert np.all(found.multipliers <= cap)
    return found


@pytest.mark.parametrize("temperature", TEMPERATURES)
@pytest.mark.parametrize("num_constraints", [1, 2, 3])
@pytest.mark.parametrize("seed", [0, 1])
def test_policy_and_multipliers_to_1e_10(
    temperature: float, num_constraints: int, seed: int
) -> None:
    cmdp = cmdpax.environments.make(
        "random", num_states=3, num_actions=3, num_constraints=num_constraints, seed=seed
    )
    found = assert_saddle(cmdp, temperature, cap=6.0)
    assert found.residual < 1e-12


@given(
    cmdp=strategies.cmdps(kinds=strategies.CONSTRAINED),
    temperature=st.sampled_from(TEMPERATURES),
    cap=st.sampled_from([0.3, 6.0]),
)
def test_random_models(cmdp: cmdpax.CMDP, temperature: float, cap: float) -> None:
    assert_saddle(cmdp, temperature, cap)


def test_a_multiplier_just_below_its_bound() -> None:
    """L-BFGS-B ends 1e-9 below the bound, and a Newton step of both multipliers leads nowhere."""
    cmdp = cmdpax.CMDP(
        transitions=[[[[1, 0], [2 / 3, 1 / 3]], [[1 / 2, 1 / 2], [1 / 2, 1 / 2]]]],
        rewards=[[[0, -1], [1 / 2, -1 / 2]]],
        constraint_rewards=[[[[-1, 1], [0, -1]]], [[[-1 / 2, -1 / 2], [-1, 0]]]],
        thresholds=[-2.3805555555555555, -2.2569444444444438],
        initial=[2 / 3, 1 / 3],
        horizon=4,
    )
    found = assert_saddle(cmdp, 0.1, cap=0.3)
    assert found.residual < 1e-12


def test_bisection_finds_the_same_multiplier(bandit: Golden) -> None:
    # With I = 1 the gradient V_u - c + τλ is increasing: halve the interval where it changes sign.
    model = reference.densify(bandit.cmdp)
    for temperature in TEMPERATURES:
        low, high = 0.0, 6.0
        for _ in range(80):
            middle = (low + high) / 2
            signal = reference.lagrangian_reward(model, np.array([middle]))
            _, policy = reference.soft_plan(model, signal, temperature)
            reached = reference.evaluate(model, policy).constraint_values[0]
            if reached - model.thresholds[0] + temperature * middle < 0:
                low = middle
            else:
                high = middle
        found = cmdpax.solve_regularized(bandit.cmdp, temperature, 6.0)
        assert found.multipliers[0] == pytest.approx(low, abs=1e-12)


@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_a_slack_constraint_has_multiplier_zero(temperature: float) -> None:
    cmdp = one_step([1.0, 0.0], [[0.5, 1.0], [0.0, 1.0]], [0.1, 0.9])
    found = assert_saddle(cmdp, temperature, cap=6.0)
    assert found.multipliers[0] == 0.0
    assert found.multipliers[1] > 0.1


@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_an_infeasible_model_has_a_saddle_at_the_cap(temperature: float) -> None:
    cmdp = one_step([1.0, 0.0], [[0.0, 0.5]], [5.0])
    found = assert_saddle(cmdp, temperature, cap=2.5)
    assert found.multipliers.tolist() == [2.5]


@pytest.mark.parametrize("temperature", [1e-3, 0.1])
def test_one_multiplier_at_each_border_and_one_between(temperature: float) -> None:
    cmdp = one_step(
        [1.0, 0.5, 0.0],
        [[1.0, 1.0, 1.0], [0.0, 0.5, 0.5], [0.0, 0.0, 0.1]],
        [0.5, 0.3, 3.0],
    )
    found = assert_saddle(cmdp, temperature, cap=1.5)
    assert found.multipliers[0] == 0.0
    assert 0.0 < found.multipliers[1] < 1.5
    assert found.multipliers[2] == 1.5


@given(cmdp=strategies.cmdps(), temperature=st.sampled_from([0.01, 1.0]))
def test_the_value_is_that_of_the_regularized_lagrangian(
    cmdp: cmdpax.CMDP, temperature: float
) -> None:
    found = cmdpax.solve_regularized(cmdp, temperature, 6.0)
    model = reference.densify(cmdp)
    reached = reference.evaluate(model, found.policy)
    lagrangian = (
        reached.value
        + temperature * reference.entropy(model, found.policy)
        + found.multipliers @ (reached.constraint_values - model.thresholds)
        + temperature / 2 * found.multipliers @ found.multipliers
    )
    assert found.value == pytest.approx(lagrangian, abs=1e-10)
    np.testing.assert_allclose(
        found.constraint_values, reached.constraint_values, rtol=0, atol=1e-10
    )


@given(cmdp=strategies.cmdps(), data=st.data(), temperature=st.sampled_from([0.01, 1.0]))
def test_neither_player_gains_by_leaving_the_saddle(
    cmdp: cmdpax.CMDP, data: st.DataObject, temperature: float
) -> None:
    found = cmdpax.solve_regularized(cmdp, temperature, 7.5)
    model = reference.densify(cmdp)

    def lagrangian(policy: np.ndarray, multipliers: np.ndarray) -> float:
        reached = reference.evaluate(model, policy)
        value = reached.value + temperature * reference.entropy(model, policy)
        value += multipliers @ (reached.constraint_values - model.thresholds)
        return value + temperature / 2 * multipliers @ multipliers

    policy = data.draw(strategies.policies(cmdp))
    multipliers = data.draw(strategies.multipliers(cmdp))
    assert lagrangian(policy, found.multipliers) <= found.value + 1e-10
    assert lagrangian(found.policy, multipliers) >= found.value - 1e-10


def test_the_value_falls_to_the_optimum_with_the_temperature(two_constraints: Golden) -> None:
    cmdp, optimum = two_constraints.cmdp, float(two_constraints["optimum_value"])
    values = [cmdpax.solve_regularized(cmdp, tau, 6.0).value for tau in (1.0, 0.1, 1e-2, 1e-3)]
    # Entropy and ‖λ‖² only add: D_τ ≥ D, whose minimum is the optimum.
    assert values == sorted(values, reverse=True)
    assert optimum <= values[-1] <= optimum + 1e-3 * (6 * np.log(3) + 6.0**2)


@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_without_constraints_it_is_soft_planning(temperature: float) -> None:
    cmdp = cmdpax.environments.make("random", num_constraints=0, num_states=3, horizon=3)
    found = cmdpax.solve_regularized(cmdp, temperature, 6.0)
    model = reference.densify(cmdp)
    value, policy = reference.soft_plan(model, model.rewards, temperature)
    assert found.value == pytest.approx(value, abs=1e-12)
    np.testing.assert_allclose(found.policy, policy, rtol=0, atol=1e-11)
    assert found.multipliers.shape == found.constraint_values.shape == (0,)
    assert found.residual == 0.0


@pytest.mark.parametrize("scale", [1e4, 1e-4])
def test_scaling_rewards_constraints_and_temperature(scale: float, paper: Golden) -> None:
    # With r and τ scaled by s, u by 1 and λ by s, the square's weight must scale by 1/s² · s: so
    # scale u and c by s as well, and λ stays.
    cmdp = paper.cmdp.replace(
        rewards=scale * paper.cmdp.rewards,
        constraint_rewards=scale * paper.cmdp.constraint_rewards,
        thresholds=scale * paper.cmdp.thresholds,
    )
    found = cmdpax.solve_regularized(cmdp, 0.05 * scale, 6.0)
    assert found.multipliers == pytest.approx(paper["saddle_multipliers"], abs=1e-9)
    np.testing.assert_allclose(found.policy, paper["saddle_policy"], rtol=0, atol=1e-8)
    assert found.value == pytest.approx(scale * float(paper["saddle_value"]), rel=1e-9)


def test_permuting_constraints_permutes_the_multipliers(two_constraints: Golden) -> None:
    cmdp = two_constraints.cmdp
    swapped = cmdp.replace(
        constraint_rewards=cmdp.constraint_rewards[::-1], thresholds=cmdp.thresholds[::-1]
    )
    one = cmdpax.solve_regularized(cmdp, 0.01, 6.0)
    other = cmdpax.solve_regularized(swapped, 0.01, 6.0)
    assert other.multipliers == pytest.approx(one.multipliers[::-1], abs=1e-10)
    np.testing.assert_allclose(other.policy, one.policy, rtol=0, atol=1e-10)


def test_results_are_numpy_doubles(two_constraints: Golden) -> None:
    found = cmdpax.solve_regularized(two_constraints.cmdp, regularization=0.05, max_multiplier=6.0)
    assert_numpy_doubles(found.policy, found.log_policy, found.multipliers, found.constraint_values)
    assert_distributions(found.policy)
    assert type(found.value) is float
    np.testing.assert_allclose(np.exp(found.log_policy), found.policy, rtol=0, atol=1e-15)


@pytest.mark.parametrize("number", [0.0, -0.1, float("nan"), float("inf")])
def test_parameters_must_be_positive_numbers(number: float, bandit: Golden) -> None:
    with pytest.raises(cmdpax.ParameterError, match=f"regularization is {number}, it must be"):
        cmdpax.solve_regularized(bandit.cmdp, number, 6.0)
    with pytest.raises(cmdpax.ParameterError, match=f"max_multiplier is {number}, it must be"):
        cmdpax.solve_regularized(bandit.cmdp, 0.1, number)


def test_models_are_validated(bandit: Golden) -> None:
    with pytest.raises(cmdpax.ModelError, match=r"initial sums to 0\.5"):
        cmdpax.solve_regularized(bandit.cmdp.replace(initial=[0.5]), 0.1, 6.0)
