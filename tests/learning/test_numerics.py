"""Long runs, large steps, and single precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cmdpax
from cmdpax.learning.learn import learn_batch
from cmdpax.learning.loop import account_block, no_sums
from cmdpax.learning.settings import RunSettings
from configurations import configured
from learning_cases import NO_WARNING, every_algorithm, model

TINY = {"num_states": 2, "num_actions": 2, "horizon": 2}


def assert_sane(history: cmdpax.History) -> None:
    """Finite numbers, distributions, multipliers in their box, sums that grow."""
    for array in (history.value, history.constraint_values, history.multipliers, history.policy):
        assert np.all(np.isfinite(array))
    np.testing.assert_allclose(history.policy.sum(axis=-1), 1, rtol=0, atol=1e-5)
    assert np.all(history.multipliers >= 0)
    assert np.all(np.diff(history.strong_regret.objective, axis=1) >= 0)
    assert np.all(np.isfinite(history.weak_regret.maximum))


@pytest.mark.parametrize("precision", ["double", pytest.param("single", marks=pytest.mark.exact)])
@every_algorithm
def test_large_steps_stay_finite(algorithm: str, precision: str) -> None:
    """η up to 10 and ητ up to 1, in one batch."""
    pairs = [(10.0, 0.1), (1.0, 1.0), (0.1, 10.0), (10.0, 1e-4)]
    if algorithm.startswith("vanilla"):
        pairs = [(eta, 0.0) for eta, _ in pairs]
    elif algorithm == "regularized-primal-dual":
        pairs[2] = (10.0, 0.0)
    configurations = [
        configured(
            algorithm,
            seed,
            num_episodes=3000,
            step_size=eta,
            regularization=tau,
            max_multiplier=NO_WARNING,
        )
        for seed, (eta, tau) in enumerate(pairs)
    ]
    history = learn_batch(model(1, **TINY), configurations, RunSettings(3000, precision=precision))
    assert_sane(history)


@pytest.mark.whole
@pytest.mark.parametrize("precision", ["double", "single"])
def test_a_million_episodes(precision: str) -> None:
    history = cmdpax.learn(
        model(1, **TINY),
        "regularized-primal-dual",
        num_episodes=10**6,
        step_size=10.0,
        regularization=0.1,
        max_multiplier=NO_WARNING,
        record=[1, 10**3, 10**5],
        precision=precision,
    )
    assert history.episodes.tolist() == [1, 10**3, 10**5, 10**6]
    assert_sane(history)


@pytest.mark.whole
def test_single_precision_is_close_to_double() -> None:
    cmdp = model(1, **TINY)
    double, single = (
        cmdpax.learn(
            cmdp,
            "regularized-primal-dual",
            num_episodes=3000,
            seeds=8,
            max_multiplier=NO_WARNING,
            precision=precision,
        )
        for precision in ("double", "single")
    )
    assert single.value.dtype == np.float64  # as it is handed over
    assert np.array_equal(single.value, single.value.astype(np.float32))
    for name in ("strong_objective", "strong_constraints", "weak_objective", "weak_constraints"):
        one, other = single.summary()[name], double.summary()[name]
        error = np.hypot(one.std(ddof=1), other.std(ddof=1)) / np.sqrt(8)
        assert abs(one.mean() - other.mean()) <= 4 * error + 1e-3 * abs(other.mean()) + 1e-2, name


def test_sums_in_single_precision_are_compensated() -> None:
    """A million equal terms: naive sums in single precision lose a percent."""
    cmdp = cmdpax.environments.make("bandit")
    size, num_blocks = 1000, 1000
    term = np.float32(0.1)
    values = np.float32(0.6) - term  # V_r of a policy with suboptimality 0.1
    share = (float(values) - 0.2) / 0.8  # of the first option, else the second
    policies = jnp.asarray([share, 1 - share, 0.0], jnp.float32)
    block = jnp.broadcast_to(policies, (size, 1, 1, 1, 3))
    model_ = jax.tree.map(lambda array: jnp.asarray(array, jnp.float32), cmdp)
    sums = no_sums(1, 2, 1, jnp.float32)
    for _ in range(num_blocks):
        sums, entries = account_block(
            model_,
            jnp.asarray([0.6], jnp.float32),
            jnp.asarray([0.0], jnp.float32),
            block,
            jnp.int32(size),
            sums,
            False,
        )
    each = float(np.float32(0.6) - np.float32(entries.values[0, 0, 0]))
    assert each == pytest.approx(0.1, abs=1e-6)
    exact = each * size * num_blocks
    assert float(sums.strong[0, 0]) == pytest.approx(exact, rel=1e-6)
    naive = np.cumsum(np.full(size * num_blocks, each, np.float32))[-1]
    assert abs(naive - exact) > 1e-4 * exact  # what the compensation is for
    assert sums.unsafe.dtype == jnp.int32
    assert sums.strong.dtype == jnp.float32
