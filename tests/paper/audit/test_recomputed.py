"""The audit's numbers against slow loops: both sides where it is worst, and that it is worst."""

import numpy as np
import pytest

import audit_reference
from audit_cases import T, unbroken
from audit_reference import Iterates, iterates_of


@pytest.fixture(scope="module")
def run() -> Iterates:
    """The scheme of the audit in plain NumPy."""
    return iterates_of(unbroken().problem, T)


@pytest.mark.parametrize("name", audit_reference.SIDES)
def test_both_sides_at_the_worst_place_and_nowhere_less_slack(name: str, run: Iterates) -> None:
    row = unbroken().row(name)
    sides = [audit_reference.SIDES[name](run, k) for k in range(T)]
    left, right = (np.array(side) for side in zip(*sides, strict=True))
    place = tuple(row.worst.values())
    place = (place[0] - 1, *place[1:])
    assert len(place) == left.ndim
    tolerance = 1e-9 * max(1.0, abs(row.right))
    assert row.left == pytest.approx(left[place], abs=tolerance)
    assert row.right == pytest.approx(right[place], abs=tolerance)
    assert row.slack == pytest.approx((right - left).min(), abs=tolerance)
    assert row.slack == pytest.approx(row.right - row.left, abs=tolerance)


def test_the_axes_of_a_worst_place_have_names() -> None:
    assert list(unbroken().row("values are bounded").worst) == ["k", "h", "s", "a"]
    assert list(unbroken().row("local norms are bounded").worst) == ["k", "h", "s"]
    assert list(unbroken().row("constraint error").worst) == ["k", "i"]
    assert unbroken().row("strong duality").worst == {}


def test_the_identity_of_three_points(run: Iterates) -> None:
    row = unbroken().row("three-point identity")
    assert row.left < 1e-12
    k, h, s = row.worst.values()
    left, right = audit_reference.three_points(run, k - 1)
    assert left[h, s] == pytest.approx(right[h, s], abs=1e-12)
    assert np.abs(left).max() > 1e-3  # not all of it is zero


def test_potentials_and_the_closed_form(run: Iterates) -> None:
    found = unbroken()
    expected = np.array([audit_reference.potential(run, k) for k in range(T)])
    np.testing.assert_allclose(found.potentials, expected, rtol=0, atol=1e-9)
    eta, tau = run.numbers[:2]
    proved = (1 - eta * tau) ** np.arange(T) * expected[0]
    proved = proved + eta / tau * sum(audit_reference.constants(run))
    row = found.row("potential, closed form")
    assert row.slack == pytest.approx((proved - expected).min(), rel=1e-9)
    assert row.left == pytest.approx(expected[row.worst["k"] - 1], abs=1e-9)


def test_the_optimum_and_the_slater_gap(run: Iterates) -> None:
    problem = unbroken().problem
    assert problem.optimal_values[0] == pytest.approx(run.numbers.optimum, abs=1e-9)
    assert problem.slater_gap == pytest.approx(run.numbers.gap, abs=1e-9)
    np.testing.assert_allclose(problem.saddle.multipliers, run.target_multipliers, atol=1e-9)
    np.testing.assert_allclose(np.exp(problem.saddle.log_policy), run.target, atol=1e-9)


def test_the_bound_on_the_multipliers(run: Iterates) -> None:
    row, problem = unbroken().row("multiplier bound"), unbroken().problem
    assert row.left == pytest.approx(np.sum(problem.optimal_multipliers), abs=1e-9)
    slater = problem.slater_values
    assert np.min(slater[1:] - run.dense.thresholds) == pytest.approx(run.numbers.gap, abs=1e-6)
    assert row.right == pytest.approx((run.numbers.optimum - slater[0]) / run.numbers.gap, abs=1e-6)
