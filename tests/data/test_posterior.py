import math

import numpy as np
import pytest

import cmdpax
from cmdpax.data.posterior import Draws, Signal, dirichlet, learn_posterior
from cmdpax.data.prior import fit_prior
from data_cases import evidence_of, logged, random_model, random_policy, uniform

# ----------------------------------------------------------------------------------------- priors


def log_probability(counts, weights) -> float:
    """log P(counts in order) under Dirichlet(weights), one observation after the other."""
    total, left = 0.0, np.array(weights, float)
    for outcome, count in enumerate(counts):
        for _ in range(int(count)):
            total += math.log(left[outcome] / left.sum())
            left[outcome] += 1
    return total


def test_the_weight_makes_the_counts_most_probable():
    rng = np.random.default_rng(0)
    counts = rng.multinomial(6, rng.dirichlet(np.full(4, 0.5), 30)).astype(float)
    common, owners = np.full((30, 4), 0.25), np.arange(30)  # no other row of the same state
    found = fit_prior(counts, common, owners)
    assert found.share == 0.0

    def of(weight):
        return sum(log_probability(row, weight * common[0]) for row in counts)

    best = of(found.weight)
    assert all(of(found.weight * factor) <= best + 1e-9 for factor in (0.3, 0.6, 1.6, 3.0))
    assert 0.5 < found.weight < 8  # rows are drawn with a weight of 2


@pytest.mark.parametrize("weight", [0.1, 3.0, 60.0])
def test_the_weight_of_the_prior_is_found(weight):
    rng = np.random.default_rng(1)
    rows = rng.dirichlet(np.full(5, weight / 5), 400)
    counts = rng.multinomial(20, rows).astype(float)
    found = fit_prior(counts, np.full((400, 5), 0.2), np.arange(400))
    assert weight / 1.8 < found.weight < weight * 1.8


def test_actions_of_one_state_share_what_they_have_in_common():
    rng = np.random.default_rng(2)
    owners = np.repeat(np.arange(10), 6)  # six actions lead to the same two states
    rows = np.zeros((60, 20))
    for row, owner in enumerate(owners):
        rows[row, [owner, owner + 5]] = 0.7, 0.3
    counts = rng.multinomial(8, rows).astype(float)
    alike = fit_prior(counts, np.full((60, 20), 0.05), owners)
    apart = fit_prior(counts, np.full((60, 20), 0.05), np.arange(60))
    assert alike.share >= 0.9
    assert apart.share == 0.0
    unseen = alike.base[:, ::1] * (rows == 0)
    assert unseen.sum() < 0.2 * (apart.base * (rows == 0)).sum() / apart.weight * alike.weight


def test_nothing_is_suggested_by_single_visits():
    counts = np.eye(4)
    assert fit_prior(counts, np.full((4, 4), 0.25), np.arange(4)).weight == 1.0


# ------------------------------------------------------------------------------------------ draws


@pytest.mark.parametrize("weights", [[0.02, 0.01, 0.0], [1.0, 2.0, 0.5], [30.0, 0.0, 70.0]])
def test_dirichlet_rows_have_their_moments(weights):
    rng = np.random.default_rng(3)
    rows = dirichlet(np.tile(weights, (20_000, 1)), rng)
    total = np.sum(weights)
    means = np.array(weights) / total
    np.testing.assert_allclose(rows.sum(axis=1), 1)
    np.testing.assert_allclose(rows.mean(axis=0), means, atol=0.012)
    np.testing.assert_allclose(rows.var(axis=0), means * (1 - means) / (total + 1), atol=0.01)
    assert (rows[:, np.array(weights) == 0] == 0).all()


def test_draws_are_models_that_evaluate_agrees_with():
    cmdp = random_model(0, (2, 3, 3, 2))
    log = logged(cmdp, uniform(cmdp), 40, 0, noise="normal")
    posterior = learn_posterior(evidence_of(cmdp, log))
    draws = Draws(posterior, 5, seed=7)
    policy = random_policy(cmdp, 1)
    values = draws.values(policy)
    rows = range(posterior.evidence.found.num_rows)
    assert set(draws._transitions) == set(rows)
    for index in range(5):
        transitions = np.stack([draws._transitions[row][index] for row in rows])
        signals = np.stack([draws._signals[row][:, index] for row in rows], axis=1)
        model = cmdpax.CMDP(
            transitions.reshape(cmdp.transitions.shape),
            signals[0].reshape(cmdp.rewards.shape),
            signals[1:].reshape(cmdp.constraint_rewards.shape),
            cmdp.thresholds,
            draws._start[index],
        )
        found = cmdpax.evaluate(model, policy)
        np.testing.assert_allclose(values[index], [found.value, *found.constraint_values])


def test_draws_do_not_depend_on_what_was_evaluated_before():
    cmdp = random_model(1)
    log = logged(cmdp, uniform(cmdp), 50, 1)
    posterior = learn_posterior(evidence_of(cmdp, log))
    first, second = Draws(posterior, 20, 3), Draws(posterior, 20, 3)
    one, other = random_policy(cmdp, 0), random_policy(cmdp, 1)
    first.values(one)
    np.testing.assert_array_equal(first.values(other), second.values(other))
    assert not np.array_equal(second.values(other), Draws(posterior, 20, 4).values(other))


def make_signal(observed: list[float], low=0.0, high=1.0) -> Signal:
    """One row with these observations, among many whose variance is 0.04."""
    rng = np.random.default_rng(0)
    rows = np.append(np.zeros(len(observed), int), np.repeat(np.arange(1, 200), 10))
    noise = 0.5 + 0.2 * rng.standard_normal(1990)
    signal = np.append(observed, np.clip(noise, low, high))
    from cmdpax.data.posterior import _signal

    return _signal(rows, signal, np.arange(200), (low, high))


def test_means_of_continuous_signals_have_students_posterior():
    signal = make_signal([0.4, 0.6, 0.5, 0.7, 0.3])
    assert signal.values is None
    drawn = signal.draw(0, 20_000, np.random.default_rng(1))
    assert abs(drawn.mean() - 0.5) < 0.005
    # (3 · 0.04 + 0.1) / (3 + 5 - 3) / 5, a little less where it is cut to the range
    assert abs(drawn.var() - signal.variances()[0]) < 0.15 * signal.variances()[0]
    assert abs(signal.variances()[0] - 0.22 / 5 / 5) < 0.001


def test_means_stay_in_their_range_and_unvisited_ones_fill_it():
    signal = make_signal([0.98, 0.99, 1.0])
    drawn = signal.draw(0, 5_000, np.random.default_rng(2))
    assert drawn.max() <= 1
    assert drawn.min() >= 0
    empty = signal._replace(visits=np.where(np.arange(200) == 0, 0, signal.visits))
    drawn = empty.draw(0, 5_000, np.random.default_rng(3))
    assert abs(drawn.mean() - 0.5) < 0.02
    assert abs(drawn.var() - 1 / 12) < 0.01


def test_signals_with_few_values_are_drawn_as_categories():
    rng = np.random.default_rng(4)
    shares = rng.beta(1, 1, 300)
    rows = np.repeat(np.arange(300), 12)
    from cmdpax.data.posterior import _signal

    signal = _signal(rows, 1.0 * (rng.random(3600) < shares[rows]), np.arange(300), (0.0, 1.0))
    assert signal.values is not None
    # The posterior mean of a uniform prior is (successes + 1) / (n + 2): nearly that is learned.
    successes = np.bincount(rows, signal.means[rows]) / 1
    np.testing.assert_allclose(signal.expected(), (successes + 1) / 14, atol=0.03)
    inside = 0
    for row in range(300):
        low, high = np.quantile(signal.draw(row, 400, rng), [0.05, 0.95])
        inside += low <= shares[row] <= high
    assert 0.84 < inside / 300 < 0.96


def test_certain_signals_are_nearly_certain_in_the_posterior():
    cmdp = random_model(2, (1, 4, 3, 3))
    log = logged(cmdp, uniform(cmdp), 400, 2)
    posterior = learn_posterior(evidence_of(cmdp, log))
    visited = posterior.visits > 2
    for signal in posterior.signals:
        assert np.sqrt(signal.variances()[visited]).max() < 0.01
