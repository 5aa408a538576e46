import jax.numpy as jnp
import numpy as np
import pytest

import cmdpax
import learning_reference
import reference
from cmdpax.schemes.potential import potential, saddle_of
from learning_cases import model


def test_zero_at_the_saddle_point_and_positive_elsewhere() -> None:
    cmdp = model(2)
    saddle = saddle_of(cmdp, 0.1, 6.0)
    assert float(potential(saddle, saddle.log_policy, saddle.multipliers)) == pytest.approx(0)
    uniform = jnp.full_like(saddle.log_policy, -np.log(2))
    assert float(potential(saddle, uniform, saddle.multipliers)) > 1e-3
    further = saddle.multipliers + np.array([0.3, 0.4])
    assert float(potential(saddle, saddle.log_policy, further)) == pytest.approx(0.125)


@pytest.mark.usefixtures("double_precision")
def test_the_sum_of_divergences_under_the_saddles_policy() -> None:
    cmdp = model(2)
    dense = reference.densify(cmdp)
    found = cmdpax.solve_regularized(cmdp, 0.1, 6.0)
    generator = np.random.default_rng(2)
    policies = generator.dirichlet(np.ones(2), size=(4, 3, 3))
    multipliers = generator.random((4, 2))
    seen = learning_reference.Seen(multipliers, multipliers, policies)
    expected = learning_reference.potential(dense, seen, found.policy, found.multipliers)
    saddle = saddle_of(cmdp, 0.1, 6.0)
    for k in range(4):
        distance = potential(saddle, jnp.log(policies[k]), jnp.asarray(multipliers[k]))
        assert float(distance) == pytest.approx(expected[k], abs=1e-9)


def test_states_that_are_never_reached_do_not_count() -> None:
    saddle = saddle_of(cmdpax.environments.make("bandit"), 0.1, 6.0)._replace(
        occupancy=np.array([[[1.0, 0.0], [0.0, 0.0]]]),
        log_policy=np.array([[[0.0, -np.inf], [-np.inf, 0.0]]]),
        multipliers=np.zeros(1),
    )
    log_policy = jnp.log(jnp.array([[[0.5, 0.5], [1.0, 0.0]]]))
    assert float(potential(saddle, log_policy, jnp.zeros(1))) == pytest.approx(np.log(2))


def test_a_margin_moves_the_saddle_point() -> None:
    cmdp = model(2)
    shifted = cmdp.replace(thresholds=cmdp.thresholds + 0.05)
    found, expected = saddle_of(cmdp, 0.1, 6.0, margin=0.05), saddle_of(shifted, 0.1, 6.0)
    np.testing.assert_allclose(found.multipliers, expected.multipliers, rtol=0, atol=1e-12)
    assert np.abs(found.multipliers - saddle_of(cmdp, 0.1, 6.0).multipliers).max() > 1e-4


def test_the_scheme_approaches_its_saddle_point() -> None:
    iterates = cmdpax.iterate(
        model(2), "primal-dual", num_iterations=3000, regularization=0.1, step_size=0.05
    )
    assert iterates.potential is not None
    assert iterates.potential[-1] < 1e-2 * iterates.potential[0]
