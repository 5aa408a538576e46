import numpy as np
import pytest

import cmdpax
import reference


@pytest.fixture
def wide() -> cmdpax.CMDP:
    """Rewards in [-3, 7], a constraint in [0, 1], one in [-2, 0] and one that is 5 everywhere."""
    generator = np.random.default_rng(3)
    base = cmdpax.environments.make("random", num_states=3, num_actions=2, horizon=3)
    unit = generator.random((4, 3, 3, 2))
    constraints = np.stack([unit[1], 2 * unit[2] - 2, np.full_like(unit[3], 5.0)])
    cmdp = base.replace(
        rewards=10 * unit[0] - 3, constraint_rewards=constraints, thresholds=np.zeros(3)
    )
    policy = generator.dirichlet(np.ones(2), size=(3, 3))
    reached = reference.evaluate(reference.densify(cmdp), policy).constraint_values
    return cmdp.replace(thresholds=reached - 0.1)


def test_rewards_lie_in_the_unit_interval(wide: cmdpax.CMDP) -> None:
    scaled = cmdpax.rescale(wide).cmdp
    for signal in (scaled.rewards, *scaled.constraint_rewards):
        assert signal.min() >= 0
        assert signal.max() <= 1
    assert (scaled.rewards.min(), scaled.rewards.max()) == pytest.approx((0, 1))
    np.testing.assert_array_equal(scaled.constraint_rewards[0], wide.constraint_rewards[0])


def test_values_map_back_for_every_policy(wide: cmdpax.CMDP) -> None:
    rescaling = cmdpax.rescale(wide)
    for seed in range(3):
        policy = np.random.default_rng(seed).dirichlet(np.ones(2), size=(3, 3))
        original = cmdpax.evaluate(wide, policy)
        scaled = cmdpax.evaluate(rescaling.cmdp, policy)
        assert rescaling.value(scaled.value) == pytest.approx(original.value, abs=1e-12)
        found = rescaling.constraint_values(scaled.constraint_values)
        np.testing.assert_allclose(found, original.constraint_values, rtol=0, atol=1e-12)
        # Feasible there if and only if feasible here.
        slack = scaled.constraint_values - rescaling.cmdp.thresholds
        mapped = slack * rescaling.scale[1:]
        np.testing.assert_allclose(mapped, original.constraint_values - wide.thresholds, atol=1e-12)


def test_optimum_and_multipliers_map_back(wide: cmdpax.CMDP) -> None:
    rescaling = cmdpax.rescale(wide)
    solution, original = cmdpax.solve(rescaling.cmdp), cmdpax.solve(wide)
    assert rescaling.value(solution.value) == pytest.approx(original.value, abs=1e-8)
    multipliers = rescaling.multipliers(solution.multipliers)
    dual = reference.dual_value(reference.densify(wide), multipliers)
    assert dual == pytest.approx(original.value, abs=1e-8)


def test_what_learning_reports_maps_back(wide: cmdpax.CMDP) -> None:
    rescaling = cmdpax.rescale(wide)
    history = cmdpax.learn(
        rescaling.cmdp,
        "vanilla-primal-dual",
        num_episodes=5,
        seeds=2,
        max_multiplier=1e6,
    )
    for run in range(2):
        original = cmdpax.evaluate(wide, history.policy[run])
        assert rescaling.value(history.value[run, -1]) == pytest.approx(original.value)
        found = rescaling.constraint_values(history.constraint_values)[run, -1]
        np.testing.assert_allclose(found, original.constraint_values)


def test_models_that_fit_stay_as_they_are() -> None:
    cmdp = cmdpax.environments.make("bandit")
    rescaling = cmdpax.rescale(cmdp)
    assert rescaling.cmdp.fingerprint == cmdp.fingerprint
    assert float(rescaling.value(0.25)) == 0.25
