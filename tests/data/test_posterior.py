import math

import numpy as np
import pytest

import cmdpax
from cmdpax.data.posterior import Draws, Signal, _signal, learn_posterior
from cmdpax.data.prior import Rows, dirichlet, learn_rows
from data_cases import evidence_of, logged, random_model, random_policy, uniform

# ----------------------------------------------------------------------------------------- priors


def log_probability(counts, weights) -> float:
    """log P(counts in some order) under Dirichlet(weights), one observation after the other."""
    total, left = 0.0, np.array(weights, float)
    for outcome, count in enumerate(counts):
        for _ in range(int(count)):
            total += math.log(left[outcome] / left.sum())
            left[outcome] += 1
    return total


def rows_of(counts, owners=None) -> Rows:
    counts = np.array(counts, float)
    even = np.full(counts.shape, 1 / counts.shape[1])
    return learn_rows(counts, [even], np.arange(len(counts)) if owners is None else owners)


def test_likelihoods_are_those_of_one_observation_after_the_other():
    rng = np.random.default_rng(0)
    found = rows_of(rng.multinomial(5, np.full(3, 1 / 3), 4), np.array([0, 0, 1, 1]))
    for row, counts in enumerate(found.counts):
        logs = [
            log_probability(counts, weight * found.bases[number, row])
            for number, weight in zip(found.numbers, found.weights[row], strict=True)
        ]
        expected = np.exp(np.array(logs) - max(logs))
        np.testing.assert_allclose(found.likelihoods[row], expected, rtol=1e-9)


def test_means_are_mixtures_of_dirichlet_means():
    rng = np.random.default_rng(1)
    found = rows_of(rng.multinomial(4, [0.5, 0.3, 0.2], 6), np.array([0, 0, 0, 1, 1, 2]))
    for row, counts in enumerate(found.counts):
        mean = 0.0
        for place, number in enumerate(found.numbers):
            weight = found.weights[row, place]
            base = found.bases[number, row]
            chance = found.chances[row, place]
            mean = mean + chance * (counts + weight * base) / (counts.sum() + weight)
        np.testing.assert_allclose(found.mean()[row], mean)
    drawn = found.draw(np.zeros(20_000, int), found.draw_mixing(20_000, rng), rng)
    np.testing.assert_allclose(drawn.mean(axis=0), found.mean()[0], atol=0.02)


@pytest.mark.parametrize(("weight", "low", "high"), [(0.05, 0.0, 0.3), (3.0, 1.0, 3.0)])
def test_the_weight_of_many_rows_is_found(weight, low, high):
    rng = np.random.default_rng(1)
    rows = rng.dirichlet(np.full(5, weight / 5), 400)
    found = rows_of(rng.multinomial(20, rows))
    expected = float((found.chances * found.weights).sum(axis=1).mean())
    assert low < expected <= high


def test_certain_rows_and_spread_ones_have_their_own_weights():
    rng = np.random.default_rng(2)
    certain = 30 * np.eye(6)[rng.integers(0, 6, 100)]
    spread = rng.multinomial(30, rng.dirichlet(np.full(6, 0.5), 100))

    def unseen(found):
        return np.where(found.counts == 0, found.mean(), 0.0).sum(axis=1)

    both = unseen(rows_of(np.concatenate([certain, spread])))
    missing = (spread == 0).any(axis=1)
    assert both[:100].mean() < 0.5 * both[100:][missing].mean()


def test_actions_of_one_state_share_what_they_have_in_common():
    rng = np.random.default_rng(2)
    owners = np.repeat(np.arange(10), 6)  # six actions lead to the same two states
    rows = np.zeros((60, 20))
    for row, owner in enumerate(owners):
        rows[row, [owner, owner + 5]] = 0.7, 0.3
    counts = rng.multinomial(4, rows)
    alike, apart = rows_of(counts, owners), rows_of(counts)
    impossible = [np.where(rows == 0, found.mean(), 0.0).sum() for found in (alike, apart)]
    assert impossible[0] < 0.5 * impossible[1]


def test_steps_of_one_pair_share_what_they_have_in_common():
    """Two actions that differ, at twenty steps: what they did at other steps tells them apart."""
    rng = np.random.default_rng(2)
    states, pairs = np.repeat(np.arange(5), 40), np.arange(5).repeat(40) * 2 + np.arange(200) % 2
    rows = np.zeros((200, 6))
    rows[::2, :2], rows[1::2, 1:3] = (0.8, 0.2), (0.2, 0.8)
    counts = rng.multinomial(3, rows)
    both, alone = rows_of(counts, np.stack([states, pairs])), rows_of(counts, states)
    errors = [np.abs(found.mean() - rows).sum(axis=1).mean() for found in (both, alone)]
    assert errors[0] < 0.8 * errors[1]


def test_a_known_weight_is_kept():
    counts = np.eye(4)
    found = learn_rows(counts, [np.full((4, 4), 0.25)], np.arange(4), 2.0)
    np.testing.assert_allclose(found.mean(), (counts + 0.5) / 3)
    np.testing.assert_allclose(found.sizes(), 3)


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


def mixing_of(signal: Signal, count: int) -> np.ndarray:
    if signal.shares is None:
        return np.ones((count, 1))
    return signal.shares.draw_mixing(count, np.random.default_rng(9))


def make_signal(observed: list[float], low=0.0, high=1.0) -> Signal:
    """One row with these observations, among many whose variance is 0.04."""
    rng = np.random.default_rng(0)
    rows = np.append(np.zeros(len(observed), int), np.repeat(np.arange(1, 200), 10))
    noise = 0.5 + 0.2 * rng.standard_normal(1990)
    signal = np.append(observed, np.clip(noise, low, high))
    return _signal(rows, signal, np.arange(200), (low, high))


def test_means_of_continuous_signals_have_students_posterior():
    signal = make_signal([0.4, 0.6, 0.5, 0.7, 0.3])
    assert signal.values is None
    drawn = signal.draw(0, mixing_of(signal, 20_000), np.random.default_rng(1))
    assert abs(drawn.mean() - 0.5) < 0.005
    # (3 · 0.04 + 0.1) / (3 + 5 - 3) / 5, a little less where it is cut to the range
    assert abs(drawn.var() - signal.variances()[0]) < 0.15 * signal.variances()[0]
    assert abs(signal.variances()[0] - 0.22 / 5 / 5) < 0.001


def test_means_stay_in_their_range_and_unvisited_ones_fill_it():
    signal = make_signal([0.98, 0.99, 1.0])
    drawn = signal.draw(0, mixing_of(signal, 5_000), np.random.default_rng(2))
    assert drawn.max() <= 1
    assert drawn.min() >= 0
    empty = signal._replace(visits=np.where(np.arange(200) == 0, 0, signal.visits))
    drawn = empty.draw(0, mixing_of(empty, 5_000), np.random.default_rng(3))
    assert abs(drawn.mean() - 0.5) < 0.02
    assert abs(drawn.var() - 1 / 12) < 0.01


def test_signals_with_few_values_are_drawn_as_categories():
    rng = np.random.default_rng(4)
    shares = rng.beta(1, 1, 300)
    rows = np.repeat(np.arange(300), 12)
    signal = _signal(rows, 1.0 * (rng.random(3600) < shares[rows]), np.arange(300), (0.0, 1.0))
    assert signal.values is not None
    # The posterior mean of a uniform prior is (successes + 1) / (n + 2): nearly that is learned.
    successes = np.bincount(rows, signal.means[rows]) / 1
    np.testing.assert_allclose(signal.expected(), (successes + 1) / 14, atol=0.06)
    inside = 0
    for row in range(300):
        low, high = np.quantile(signal.draw(row, mixing_of(signal, 400), rng), [0.05, 0.95])
        inside += low <= shares[row] <= high
    assert 0.84 < inside / 300 < 0.96


def test_certain_signals_are_nearly_certain_in_the_posterior():
    cmdp = random_model(2, (1, 4, 3, 3))
    log = logged(cmdp, uniform(cmdp), 400, 2)
    posterior = learn_posterior(evidence_of(cmdp, log))
    visited = posterior.visits > 2
    for signal in posterior.signals:
        assert np.sqrt(signal.variances()[visited]).max() < 0.01
