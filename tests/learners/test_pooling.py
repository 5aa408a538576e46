"""What the steps have in common: against the slow reference, by simulation, and at the edges."""

from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cmdpax
import replanning_reference as reference
from cmdpax.learners.pooling import pool_rows, pool_signals, share_between

pytestmark = pytest.mark.usefixtures("double_precision")
HORIZON, NUM_STATES, NUM_ACTIONS = 4, 3, 2
UNIFORM = np.full((1, NUM_STATES, NUM_ACTIONS, NUM_STATES), 1 / NUM_STATES)


def counts_of(rng: np.random.Generator, rows: np.ndarray, visits: np.ndarray) -> np.ndarray:
    """Counts of successors, `[H, S, A, T]`."""
    return np.stack(
        [rng.multinomial(visits[at], rows[at]) for at in np.ndindex(visits.shape)]
    ).reshape(rows.shape)


def some_counts(seed: int, most: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    shape = (HORIZON, NUM_STATES, NUM_ACTIONS)
    rows = rng.dirichlet(np.ones(NUM_STATES), shape)
    return counts_of(rng, rows, rng.integers(0, most + 1, shape))


@given(st.integers(0, 10**6), st.sampled_from([0, 1, 3, 50, 10**6]))
@settings(max_examples=40, deadline=None)
def test_rows_are_those_of_the_reference(seed: int, most: int) -> None:
    counts = some_counts(seed, most)
    found = pool_rows(jnp.asarray(counts, float), jnp.asarray(UNIFORM), 1.0)
    rows, worth = reference.pooled_rows(counts.astype(float))
    np.testing.assert_allclose(found.means, rows, rtol=0, atol=1e-9)
    np.testing.assert_allclose(np.maximum(found.visits, 1), worth, rtol=1e-9)
    np.testing.assert_allclose(np.asarray(found.means).sum(axis=-1), 1, rtol=0, atol=1e-12)
    assert (np.asarray(found.visits) >= counts.sum(axis=-1) - 1e-9).all()


@given(st.integers(0, 10**6), st.sampled_from([0, 1, 3, 50]), st.sampled_from(["noisy", "mean"]))
@settings(max_examples=40, deadline=None)
def test_signals_are_those_of_the_reference(seed: int, most: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    visits = rng.integers(0, most + 1, (HORIZON, NUM_STATES, NUM_ACTIONS)).astype(float)
    means = rng.random((2, *visits.shape))
    sums = rng.binomial(visits.astype(int), means) if kind == "noisy" else visits * means
    squares = sums if kind == "noisy" else visits * means**2
    given_counts = SimpleNamespace(sums=sums.astype(float), squares=squares.astype(float))
    expected, errors, worth = reference.pooled_signals(visits, given_counts, 1.0)
    swapped = [jnp.asarray(np.swapaxes(array, 0, 1), float) for array in (sums, squares)]
    found, deviations = pool_signals(jnp.asarray(visits), *swapped, jnp.asarray(1.0))
    np.testing.assert_allclose(np.swapaxes(found, 0, 1), expected, rtol=0, atol=1e-8)
    np.testing.assert_allclose(np.swapaxes(deviations.together, 0, 1), errors, rtol=1e-6, atol=1e-5)
    np.testing.assert_allclose(np.swapaxes(deviations.visits, 0, 1), worth, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("concentration", [0.5, 4.0, 60.0])
def test_the_share_between_steps_is_that_of_the_rows(concentration: float) -> None:
    """Rows around a common one with concentration α have ρ = 1/(1 + α): its mean over models."""
    rng = np.random.default_rng(7)
    shape = (8, 5, 4)  # steps, states, actions
    found = []
    for _ in range(60):
        centre = rng.dirichlet(np.ones(5), shape[1:])
        rows = np.stack(
            [rng.dirichlet(concentration * centre[at[1:]] + 1e-9) for at in np.ndindex(shape)]
        ).reshape(*shape, 5)
        counts = counts_of(rng, rows, rng.integers(1, 60, shape))
        pooled = pool_rows(jnp.asarray(counts, float), jnp.full((1, 5, 4, 5), 0.2), 1e-3)
        found.append(1 / (1 + float(pooled.concentration)))
    assert np.mean(found) == pytest.approx(1 / (1 + concentration), rel=0.15)


def test_equal_steps_are_estimated_from_all_of_them() -> None:
    rng = np.random.default_rng(1)
    shape = (20, NUM_STATES, NUM_ACTIONS)
    row = rng.dirichlet(np.ones(NUM_STATES), shape[1:])
    counts = counts_of(rng, np.broadcast_to(row, (*shape, NUM_STATES)), np.full(shape, 500))
    counts[3] = 0  # a step that was never played
    found = pool_rows(jnp.asarray(counts, float), jnp.asarray(UNIFORM), 1.0)
    assert float(found.concentration) > 500
    assert np.asarray(found.visits)[3].min() > 300
    np.testing.assert_allclose(found.means[3], row, rtol=0, atol=0.05)
    alone = np.abs(counts[0] / 500 - row).mean()
    assert np.abs(np.asarray(found.means[0]) - row).mean() < alone


def test_a_few_steps_that_differ_are_learned_as_they_are() -> None:
    """One pair of six differs between the steps; its estimates converge to those of its steps."""
    rng = np.random.default_rng(2)
    row = rng.dirichlet(np.ones(NUM_STATES), (NUM_STATES, NUM_ACTIONS))
    rows = np.broadcast_to(row, (HORIZON, *row.shape)).copy()
    rows[:, 0, 0] = np.eye(NUM_STATES)[[0, 1, 2, 0]]
    errors = []
    for visits in (100, 10_000, 1_000_000):
        counts = counts_of(rng, rows, np.full(rows.shape[:3], visits))
        found = pool_rows(jnp.asarray(counts, float), jnp.asarray(UNIFORM), 1.0)
        errors.append(np.abs(np.asarray(found.means) - rows)[:, 0, 0].max())
    assert errors[0] < 0.2
    assert errors[2] < 2e-5
    assert errors[2] < 0.02 * errors[1] + 1e-6


def test_nothing_counted_is_the_row_of_nothing() -> None:
    found = pool_rows(
        jnp.zeros((HORIZON, NUM_STATES, NUM_ACTIONS, NUM_STATES)), jnp.asarray(UNIFORM), 1.0
    )
    np.testing.assert_allclose(found.means, np.broadcast_to(UNIFORM, found.means.shape))
    assert not np.asarray(found.visits).any()
    zeros = jnp.zeros((HORIZON, NUM_STATES, NUM_ACTIONS))
    means, errors = pool_signals(zeros, zeros[:, None], zeros[:, None], jnp.asarray(0.7))
    np.testing.assert_allclose(means, 0.7)
    np.testing.assert_allclose(errors.common, 0.5)
    assert not np.asarray(errors.visits).any()


def test_rewards_that_are_the_same_at_all_steps_are_known_after_one_visit() -> None:
    visits = np.zeros((HORIZON, NUM_STATES, NUM_ACTIONS))
    visits[1] = 1.0
    visits[2] = 4.0
    rewards = np.random.default_rng(3).random((NUM_STATES, NUM_ACTIONS))
    sums = jnp.asarray((visits * rewards)[:, None])
    squares = jnp.asarray((visits * rewards**2)[:, None])
    means, _ = pool_signals(jnp.asarray(visits), sums, squares, jnp.asarray(1.0))
    np.testing.assert_allclose(means[:, 0], np.broadcast_to(rewards, visits.shape), atol=1e-9)


def test_the_share_of_no_variance_is_none() -> None:
    zeros = jnp.zeros((HORIZON, NUM_STATES, NUM_ACTIONS))
    assert float(share_between(zeros + 3, zeros, zeros[:1])) < 1e-9


def test_pooling_learns_what_is_the_same_at_every_step_faster() -> None:
    """Strong regrets of the same runs with and without it; the learner is not told."""
    ring = cmdpax.environments.make("ring", num_states=5, horizon=10, budget=5.0)
    sums = {}
    for pooling in ("steps", "none"):
        history = cmdpax.learn(ring, num_episodes=2000, seeds=6, record=1, pooling=pooling)
        found = history.summary()
        sums[pooling] = (found["strong_objective"] + found["strong_constraints"]).mean()
    assert sums["steps"] < 0.6 * sums["none"]
