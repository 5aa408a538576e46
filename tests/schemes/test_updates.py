"""The updates: simplex, box, the restricted simplex against a convex solver."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st

import cmdpax
from checks import assert_distributions
from cmdpax.schemes.updates import dual_descent, lagrangian, mirror_ascent, raise_to_floor
from learning_cases import model
from strategies import SEEDS

pytestmark = pytest.mark.usefixtures("in_double")
STEPS = st.sampled_from([1e-3, 0.1, 1.0, 10.0])


@pytest.fixture(scope="module")
def in_double():
    """For the whole module: hypothesis wants no fixture per example."""
    import jax

    with jax.enable_x64(True):
        yield


def policies(seed: int, spread: float = 3.0) -> np.ndarray:
    weights = spread * np.random.default_rng(seed).normal(size=(2, 3, 4))
    return weights - np.log(np.exp(weights).sum(axis=-1, keepdims=True))


def numbers(seed: int, shape: tuple[int, ...], scale: float = 5.0) -> np.ndarray:
    return scale * np.random.default_rng(seed + 1).normal(size=shape)


def ascend(log_policy: np.ndarray, q: np.ndarray, eta: float) -> np.ndarray:
    return np.asarray(mirror_ascent(jnp.asarray(log_policy), jnp.asarray(q), jnp.asarray(eta)))


def descend(lam: np.ndarray, slack: np.ndarray, eta: float, tau: float, cap: float) -> np.ndarray:
    chosen = (jnp.asarray(float(number)) for number in (eta, tau, cap))
    return np.asarray(dual_descent(jnp.asarray(lam), jnp.asarray(slack), *chosen))


def floored(log_policy: np.ndarray, floor: float) -> np.ndarray:
    return np.exp(raise_to_floor(jnp.asarray(log_policy), jnp.asarray(floor)))


@given(seed=SEEDS, eta=STEPS)
def test_ascent_stays_on_the_simplex_and_is_the_formula(seed: int, eta: float) -> None:
    log_policy, q = policies(seed), numbers(seed, (2, 3, 4), 1.0)
    found = np.exp(ascend(log_policy, q, eta))
    assert_distributions(found)
    weights = np.exp(log_policy) * np.exp(eta * q)
    expected = weights / weights.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@given(seed=SEEDS, eta=STEPS)
def test_ascent_ignores_what_all_actions_share(seed: int, eta: float) -> None:
    log_policy, q = policies(seed), numbers(seed, (2, 3, 4))
    shifted = q + numbers(seed + 5, (2, 3, 1))
    np.testing.assert_allclose(
        ascend(log_policy, shifted, eta), ascend(log_policy, q, eta), rtol=0, atol=1e-10
    )


def test_ascent_keeps_tiny_probabilities() -> None:
    """log π far below what a probability could hold."""
    log_policy = np.log(np.full((1, 1, 2), 0.5))
    q = np.array([[[0.0, 10.0]]])
    for _ in range(50):
        log_policy = ascend(log_policy, q, 10.0)
    assert log_policy[0, 0, 0] == pytest.approx(-5000)
    for _ in range(50):
        log_policy = ascend(log_policy, q[..., ::-1], 10.0)
    np.testing.assert_allclose(log_policy, np.log(0.5), rtol=0, atol=1e-9)


@given(seed=SEEDS, eta=STEPS, tau=st.sampled_from([0.0, 0.02, 0.1]))
def test_descent_stays_in_the_box_and_does_not_expand(seed: int, eta: float, tau: float) -> None:
    one, other = (np.random.default_rng(seed + i).uniform(0, 6, 3) for i in (0, 1))
    slack = numbers(seed, (3,))
    first, second = (descend(lam, slack, eta, tau, 6.0) for lam in (one, other))
    for found in (first, second):
        assert np.all((found >= 0) & (found <= 6))
    distance = np.linalg.norm(first - second)
    assert distance <= (1 - eta * tau) * np.linalg.norm(one - other) + 1e-12
    expected = np.clip((1 - eta * tau) * one - eta * slack, 0, 6)
    np.testing.assert_allclose(first, expected, rtol=0, atol=1e-12)


def test_without_regularization_the_entropy_is_masked() -> None:
    """Q_ψ may be infinite where τ = 0: a grid may contain it."""
    every_q = numbers(0, (2, 4, 3, 2), 1.0)  # r, two constraints, ψ
    every_q[:, -1] = np.inf
    multipliers = np.array([0.5, 2.0])
    found = lagrangian(jnp.asarray(every_q), jnp.asarray(multipliers), jnp.asarray(0.0))
    expected = every_q[:, 0] + 0.5 * every_q[:, 1] + 2.0 * every_q[:, 2]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("scheme", ["primal-dual", "dual"])
def test_little_regularization_is_nearly_none(scheme: str) -> None:
    few = {"num_iterations": 30, "step_size": 0.3}
    vanilla = cmdpax.iterate(model(2), scheme, regularization=0.0, **few)
    nearly = cmdpax.iterate(model(2), scheme, regularization=1e-9, **few)
    np.testing.assert_allclose(nearly.multipliers, vanilla.multipliers, rtol=0, atol=1e-6)


# ----------------------------------------------------------------------- the restricted simplex


def convex_projection(y: np.ndarray, least: float) -> np.ndarray:
    """argmin Σ x log(x/y) over {x ≥ least, Σ x = 1}."""
    start = np.full(len(y), 1 / len(y))
    result = scipy.optimize.minimize(
        lambda x: np.sum(x * np.log(x / y)),
        start,
        jac=lambda x: np.log(x / y) + 1,
        bounds=[(max(least, 1e-12), 1.0)] * len(y),
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1, "jac": np.ones_like},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    return result.x


@pytest.mark.parametrize("floor", [0.05, 0.4, 0.9])
@pytest.mark.parametrize("seed", range(3))
def test_the_projection_is_a_convex_solvers(seed: int, floor: float) -> None:
    log_policy = policies(seed)
    found = floored(log_policy, floor)
    for at in np.ndindex(2, 3):
        expected = convex_projection(np.exp(log_policy[at]), floor / 4)
        np.testing.assert_allclose(found[at], expected, rtol=0, atol=1e-5)


@given(seed=SEEDS, floor=st.sampled_from([1e-6, 0.01, 0.3, 0.99]))
def test_the_projections_conditions(seed: int, floor: float) -> None:
    """KKT: x/y is one number κ where x exceeds the floor, and at least κ where it does not."""
    log_policy = policies(seed, spread=6.0)
    found, least = floored(log_policy, floor), floor / 4
    assert_distributions(found)
    assert np.all(found >= least * (1 - 1e-9))
    ratio = found / np.exp(log_policy)
    free = found > least * (1 + 1e-9)
    for at in np.ndindex(2, 3):
        kappa = ratio[at][free[at]]
        np.testing.assert_allclose(kappa, kappa[0], rtol=1e-9)
        assert np.all(ratio[at] >= kappa[0] * (1 - 1e-9))


def test_no_floor_changes_nothing_and_the_highest_leaves_one_policy() -> None:
    log_policy = policies(4, spread=6.0)
    found = raise_to_floor(jnp.asarray(log_policy), jnp.asarray(0.0))
    np.testing.assert_array_equal(found, log_policy)
    np.testing.assert_allclose(floored(log_policy, 1.0), 0.25, rtol=0, atol=1e-12)


def test_inside_the_restricted_simplex_nothing_changes() -> None:
    log_policy = np.log(np.array([[[0.4, 0.3, 0.2, 0.1]]]))
    np.testing.assert_allclose(floored(log_policy, 0.4), np.exp(log_policy), atol=1e-14)


def test_underflown_probabilities_are_raised() -> None:
    log_policy = np.array([[[0.0, -5000.0, -1e-3, -np.inf]]])
    log_policy[..., 0] = np.log1p(-np.exp(-1e-3) * 0.1)
    log_policy[..., 2] = np.log(0.1)
    found = floored(log_policy, 0.2)
    assert found[0, 0, 1] == pytest.approx(0.05)
    assert found[0, 0, 3] == pytest.approx(0.05)
    assert_distributions(found)


def test_the_scheme_keeps_its_floor() -> None:
    few = {"num_iterations": 200, "step_size": 1.0}
    kept = cmdpax.iterate(model(2), "primal-dual", policy_floor=0.2, **few)
    assert kept.policy.min() == pytest.approx(0.1, abs=1e-9)
    assert cmdpax.iterate(model(2), "primal-dual", **few).policy.min() < 0.05
