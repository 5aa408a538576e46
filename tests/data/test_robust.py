import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

import cmdpax
from cmdpax.data.robust import Outcomes, _outcomes, largest_means, robust_bounds
from data_cases import declared, evidence_of, logged, random_model, random_policy, uniform

RANGES = {"reward_range": (0, 1), "constraint_ranges": (0, 1)}


def by_optimizer(shares: np.ndarray, values: np.ndarray, best: float, radius: float) -> float:
    """max ⟨p, V⟩ over KL(p̂, p) ≤ radius, with one more outcome worth `best`."""
    everything = np.append(values, best)
    start = np.append(0.999 * shares, 0.001)

    def slack(p):
        return radius - np.sum(shares * np.log(shares / p[:-1]))

    found = minimize(
        lambda p: -p @ everything,
        start,
        constraints=[
            {"type": "ineq", "fun": slack},
            {"type": "eq", "fun": lambda p: p.sum() - 1},
        ],
        bounds=[(1e-12, 1)] * len(start),
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return float(-found.fun)


@pytest.mark.parametrize(
    ("shares", "values", "best", "radius"),
    [
        ([0.2, 0.3, 0.5], [1.0, 0.0, 0.5], 1.0, 0.05),
        ([0.2, 0.3, 0.5], [1.0, 0.0, 0.5], 2.0, 0.05),  # mass on what nobody saw
        ([0.2, 0.3, 0.5], [1.0, 0.0, 0.5], 2.0, 1.5),
        ([1.0], [0.3], 1.0, 0.2),
        ([0.9, 0.1], [0.0, 10.0], 10.0, 0.01),
    ],
)
def test_largest_means_are_those_of_an_optimizer(shares, values, best, radius):
    shares, values = np.array(shares), np.array(values)
    at = Outcomes(np.zeros(len(shares), int), shares, np.array([radius]))
    found = largest_means(at, values, np.array([best]))[0]
    assert abs(found - by_optimizer(shares, values, best, radius)) < 1e-5


def test_one_outcome_has_a_closed_form():
    at = Outcomes(np.zeros(1, int), np.ones(1), np.array([0.2]))
    found = largest_means(at, np.array([0.3]), np.array([1.0]))[0]
    assert abs(found - (1 - 0.7 * np.exp(-0.2))) < 1e-12


@given(st.integers(0, 2**32 - 1), st.floats(0, 5))
def test_largest_means_are_means_that_are_possible(seed, radius):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 4, 6)  # six places
    places = np.repeat(np.arange(6), counts)
    values = rng.integers(0, 3, len(places)) / 2
    shares = np.concatenate([rng.dirichlet(np.ones(count)) for count in counts])
    best = np.maximum.reduceat(values, np.append(0, np.cumsum(counts)[:-1]))
    best = best + rng.integers(0, 2, 6)
    radii = np.full(6, radius)
    found = largest_means(Outcomes(places, shares, radii), values, best)
    means = np.bincount(places, shares * values)
    assert (found >= means - 1e-9).all()
    assert (found <= best + 1e-9).all()
    wider = largest_means(Outcomes(places, shares, radii + 0.1), values, best)
    assert (wider >= found - 1e-9).all()
    none = largest_means(Outcomes(places, shares, 0 * radii), values, best)
    np.testing.assert_allclose(none, means, atol=1e-6)


def test_radii_are_those_of_the_mixture():
    """m(N), as the product of predictive probabilities, in any order of what was seen."""
    counts = np.array([3, 1, 2])
    mixed = 0.0
    for weight in (0.5, 1 / 4):  # four outcomes are possible, one was not seen
        left, product = np.full(4, weight), 1.0
        for outcome, count in enumerate(counts):
            for _ in range(count):
                product *= left[outcome] / left.sum()
                left[outcome] += 1
        mixed += product / 2
    shares = counts / 6
    radius = (np.log(20) + np.sum(counts * np.log(shares)) - np.log(mixed)) / 6
    found = _outcomes(np.zeros(3, int), counts, 1, 4, np.log(20))
    assert abs(found.radii[0] - radius) < 1e-12


def test_rows_are_covered_at_all_numbers_of_visits():
    """Ville's inequality: over 400 visits fewer than δ = 20 % of the rows ever leave their set."""
    rng = np.random.default_rng(0)
    left = 0
    for _ in range(200):
        row = rng.dirichlet(np.full(4, 0.7))
        seen = rng.choice(4, 400, p=row)
        for visits in (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 400):
            counts = np.bincount(seen[:visits], minlength=4)
            there = np.flatnonzero(counts)
            at = _outcomes(np.zeros(len(there), int), counts[there], 1, 4, np.log(5))
            shares = counts[there] / visits
            if np.sum(shares * np.log(shares / row[there])) > at.radii[0]:
                left += 1
                break
    assert left < 0.2 * 200 + 3 * np.sqrt(0.16 * 200)


def test_bounds_hold_for_all_policies_at_once():
    cmdp = random_model(3, (2, 3, 3, 2))
    log = logged(cmdp, uniform(cmdp), 300, 3, noise="bernoulli")
    evidence = evidence_of(cmdp, log, **RANGES)
    for seed in range(5):
        policy = random_policy(cmdp, seed)
        truth = cmdpax.evaluate(cmdp, policy)
        found = robust_bounds(evidence, policy, 0.9)
        values = np.array([truth.value, *truth.constraint_values])
        assert (found.low <= values).all()
        assert (values <= found.high).all()
        assert (found.low >= 0).all()
        assert (found.high <= cmdp.horizon).all()


def test_bounds_of_a_plan_from_the_same_data_hold():
    """By far more often than they must: each of 60 logs has a plan of its own."""
    held = 0
    for seed in range(60):
        cmdp = random_model(seed, (1, 2, 2, 2))
        log = logged(cmdp, uniform(cmdp), 40, seed, noise="bernoulli")
        plan = np.asarray(cmdpax.solve(cmdpax.estimate(log, thresholds=[0.0])).policy)
        truth = cmdpax.evaluate(cmdp, plan)
        found = robust_bounds(evidence_of(cmdp, log, **RANGES), plan, 0.5)
        values = np.array([truth.value, *truth.constraint_values])
        held += bool(((found.low <= values) & (values <= found.high)).all())
    assert held >= 30


def test_widths_fall_with_the_square_root_of_the_data():
    cmdp = random_model(5)
    policy = random_policy(cmdp, 0)
    widths = []
    for count in (400, 1600, 6400):
        log = logged(cmdp, uniform(cmdp), count, 4)
        found = robust_bounds(evidence_of(cmdp, log, **RANGES), policy, 0.95)
        widths.append(found.high - found.low)
    ratios = np.array(widths[:-1]) / np.array(widths[1:])
    assert (ratios > 1.6).all()
    assert (ratios < 2.9).all()


def test_bounds_turn_with_the_signal():
    """The bounds of 1 - x are H minus those of x."""
    cmdp = random_model(6)
    log = logged(cmdp, uniform(cmdp), 100, 5)
    turned = log._replace(constraint_rewards=1 - log.constraint_rewards)
    policy = random_policy(cmdp, 1)
    one = robust_bounds(evidence_of(cmdp, log, **RANGES), policy, 0.95)
    other = robust_bounds(evidence_of(cmdp, turned, **RANGES), policy, 0.95)
    np.testing.assert_allclose(one.low[1], cmdp.horizon - other.high[1], atol=1e-8)
    np.testing.assert_allclose(one.high[1], cmdp.horizon - other.low[1], atol=1e-8)


def test_known_starts_and_shared_steps_help():
    cmdp = random_model(7)
    stationary = cmdp.replace(
        transitions=cmdp.transitions[:1],
        rewards=cmdp.rewards[:1],
        constraint_rewards=cmdp.constraint_rewards[:, :1],
    )
    log = logged(stationary, uniform(cmdp), 200, 6)
    policy = random_policy(cmdp, 2)
    widths = []
    for shared, initial in itertools.product((False, True), (None, cmdp.initial)):
        given = evidence_of(cmdp, log, stationary=shared, initial=initial, **RANGES)
        found = robust_bounds(given, policy, 0.95)
        widths.append(float((found.high - found.low)[0]))
    assert widths[1] < widths[0]
    assert widths[2] < 0.8 * widths[0]
    assert widths[3] < widths[2]


def test_unavailable_pairs_need_no_sets():
    cmdp = random_model(8)
    flags = np.ones((3, 2), bool)
    flags[0, 1] = False
    there = cmdp.replace(available=flags)
    policy = np.where(flags, 1.0, 0.0) / flags.sum(axis=1, keepdims=True)
    policy = np.broadcast_to(policy, cmdp.sizes[1:])
    log = logged(there, policy, 150, 7)
    free = robust_bounds(evidence_of(cmdp, log, **RANGES), policy, 0.95)
    known = robust_bounds(evidence_of(cmdp, log, available=flags, **RANGES), policy, 0.95)
    assert (known.low > free.low).all()
    assert (known.high < free.high).all()


def test_declared_parameters_are_used():
    cmdp = random_model(9)
    log = logged(cmdp, uniform(cmdp), 50, 8)
    given = declared(cmdp)
    wide = cmdpax.uncertainty(
        log, uniform(cmdp), method="robust", reward_range=(-5, 5), constraint_ranges=(0, 1), **given
    )
    tight = cmdpax.uncertainty(log, uniform(cmdp), method="robust", **RANGES, **given)
    assert np.diff(wide.value) > np.diff(tight.value)
    np.testing.assert_allclose(wide.constraint_values, tight.constraint_values, atol=1e-9)
