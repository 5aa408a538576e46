"""Draws against their distributions: SciPy's, and what a draw must not depend on."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from cmdpax.model.sampling import binomial, dirichlet, multinomial

pytestmark = pytest.mark.usefixtures("double_precision")
COUNT = 40_000
LEAST = 1e-4  # of p-values, with fixed keys


def drawn(trials: float, share: float, seed: int = 0) -> np.ndarray:
    bits = jax.random.bits(jax.random.key(seed), (COUNT,), jnp.uint64)
    found = jax.jit(binomial)(bits, jnp.full(COUNT, float(trials)), jnp.full(COUNT, share))
    return np.asarray(found)


@pytest.mark.parametrize(
    ("trials", "share"),
    [
        (1, 0.5),
        (5, 0.3),
        (25, 0.9),
        (100, 0.02),
        (30, 0.5),
        (21, 0.4999),
        (1000, 0.3),
        (10**6, 0.7),
        (10**9, 0.123),
        (10**12, 0.4999),
        (10**12, 1e-12),
        (10**12, 3e-11),
    ],
)
def test_binomial_counts_have_their_distribution(trials: int, share: float) -> None:
    """χ² over twenty classes of equal probability, mean and variance."""
    found = drawn(trials, share)
    expected = scipy.stats.binom(trials, share)
    edges = np.unique(expected.ppf(np.linspace(0, 1, 21)[1:-1]))
    shares = np.diff(np.concatenate([[0], expected.cdf(edges), [1]]))
    seen = np.bincount(np.searchsorted(edges, found), minlength=len(shares))
    often = shares * COUNT > 5
    statistic = ((seen - shares * COUNT)[often] ** 2 / (shares * COUNT)[often]).sum()
    assert scipy.stats.chi2.sf(statistic, often.sum() - 1) > LEAST
    assert abs(found.mean() - expected.mean()) < 4 * expected.std() / COUNT**0.5
    assert found.var() == pytest.approx(expected.var(), rel=0.05)
    assert ((found == found.round()) & (found >= 0) & (found <= trials)).all()


def test_binomial_counts_at_the_ends() -> None:
    assert (drawn(7, 1.0) == 7).all()
    assert (drawn(7, 0.0) == 0).all()
    assert (drawn(0, 0.5) == 0).all()
    assert (drawn(10**12, 1.0) == 10**12).all()


def test_small_deviations_are_exact_where_counts_are_huge() -> None:
    """The middle half of the distribution, where an error of 1e-3 in log P would show."""
    found = drawn(10**12, 0.25, seed=3)
    within = scipy.stats.norm.cdf((found - 0.25e12) / np.sqrt(1e12 * 0.1875))
    assert scipy.stats.kstest(within, "uniform").pvalue > LEAST


def test_multinomial_counts_have_their_moments() -> None:
    weights = np.array([0.1, 0.2, 0.0, 0.3, 0.4])
    rows = jnp.broadcast_to(jnp.asarray(3 * weights), (COUNT, 5))
    found = np.asarray(jax.jit(multinomial)(jax.random.key(1), jnp.full(COUNT, 1000.0), rows))
    assert (found.sum(axis=1) == 1000).all()
    assert (found[:, 2] == 0).all()
    np.testing.assert_allclose(found.mean(axis=0), 1000 * weights, rtol=2e-3, atol=1e-12)
    covariance = 1000 * (np.diag(weights) - np.outer(weights, weights))
    np.testing.assert_allclose(np.cov(found.T), covariance, rtol=0, atol=6)


def test_rows_without_draws_and_single_outcomes() -> None:
    key = jax.random.key(0)
    nothing = multinomial(key, jnp.zeros(3), jnp.zeros((3, 4)))
    assert (np.asarray(nothing) == 0).all()
    assert np.asarray(multinomial(key, jnp.full(2, 9.0), jnp.ones((2, 1)))).tolist() == [[9], [9]]


def test_a_draw_does_not_depend_on_what_is_drawn_beside_it() -> None:
    keys = jax.random.split(jax.random.key(4), 6)
    counts, weights = jnp.array([3.0, 1e9]), jnp.array([[0.2, 0.3, 0.5], [0.6, 0.4, 0.0]])
    together = jax.vmap(lambda key: multinomial(key, counts, weights))(keys)
    for place, key in enumerate(keys):
        np.testing.assert_array_equal(together[place], multinomial(key, counts, weights))


@pytest.mark.parametrize("shape", [0.2, 0.9, 1.0, 2.5, 40.0, 1e6])
def test_dirichlet_rows_have_beta_entries(shape: float) -> None:
    """Of two entries, the first is Beta(α, β)."""
    rows = jnp.broadcast_to(jnp.array([shape, 2 * shape]), (COUNT, 2))
    found = np.asarray(jax.jit(dirichlet)(jax.random.key(6), rows, jnp.ones(rows.shape, bool)))
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=0, atol=1e-12)
    beta = scipy.stats.beta(shape, 2 * shape)
    assert scipy.stats.kstest(found[:, 0], beta.cdf).pvalue > LEAST


def test_dirichlet_rows_of_tiny_concentrations_and_of_few_valid_entries() -> None:
    valid = jnp.array([[True, True, False], [False, True, False]])
    rows = dirichlet(jax.random.key(2), jnp.full((2, 3), 1e-5), valid)
    np.testing.assert_allclose(np.asarray(rows).sum(axis=1), 1, rtol=0, atol=1e-12)
    assert (np.asarray(rows)[~np.asarray(valid)] == 0).all()
    assert rows[1, 1] == 1
