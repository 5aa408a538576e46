import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st

from cmdpax.planning import master as module
from cmdpax.planning.master import Master
from cmdpax.planning.simplex import eliminate, invert, maximise


def make(*columns: list[float]) -> Master:
    master = Master(num_constraints=len(columns[0]) - 1, size=10.0, noise=1e-15)
    master.add(np.array(columns))
    return master


def solve(master: Master, thresholds: list[float], relaxation: float = 0.0, signal: int = 0):
    master.maximise_slack(np.array(thresholds), np.ones(len(thresholds)))
    slack = master.solve()
    assert slack.value >= -relaxation - 1e-12
    master.maximise_signal(signal, np.array(thresholds) - relaxation)
    return master.solve()


def test_it_mixes_columns() -> None:
    solution = solve(make([1.0, -1.0], [0.0, 3.0]), [0.0])
    assert solution.value == pytest.approx(0.75, abs=1e-15)
    assert solution.weights == pytest.approx([0.75, 0.25], abs=1e-15)
    assert solution.duals == pytest.approx([0.25], abs=1e-15)


def test_it_goes_on_with_new_columns_and_another_objective() -> None:
    master = make([1.0, -1.0, 1.0])
    master.maximise_slack(np.zeros(2), np.ones(2))
    assert master.solve().value == -1.0
    master.add(np.array([[0.0, 1.0, -0.5]]))
    slack = master.solve()
    # (-w + (1 - w), w - (1 - w)/2) are equal at w = 3/7.
    assert slack.value == pytest.approx(1 / 7, abs=1e-15)
    assert slack.duals.sum() == pytest.approx(1.0, abs=1e-15)
    master.maximise_signal(0, np.zeros(2))
    assert master.solve().value == pytest.approx(0.5, abs=1e-15)
    # Slacks down to -0.5:
    relaxed = solve(make([1.0, -1.0, 1.0], [0.0, 1.0, -0.5]), [0.0, 0.0], relaxation=0.5)
    assert relaxed.value == pytest.approx(0.75, abs=1e-15)


def test_slacks_count_in_their_units() -> None:
    master = make([0.0, 1.0, 0.0], [0.0, 0.0, 1.0])
    master.maximise_slack(np.zeros(2), np.array([1.0, 3.0]))
    slack = master.solve()
    assert slack.value == pytest.approx(0.25, abs=1e-15)  # (1/4, 3/4) in units of (1, 3)
    assert slack.duals @ [1.0, 3.0] == pytest.approx(1.0, abs=1e-15)


def test_other_thresholds_and_signals() -> None:
    master = make([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0])
    for one, other in ((0.0, 0.0), (0.25, 0.5), (0.125, 0.0)):
        solution = solve(master, [one, other])
        assert solution.value == pytest.approx(1.0 - one - other, abs=1e-15)
        assert solution.weights[1:] == pytest.approx([one, other], abs=1e-15)
    solution = solve(master, [-1.0, 0.25], signal=1)
    assert solution.value == pytest.approx(0.75, abs=1e-15)
    assert solution.duals == pytest.approx([0.0, 1.0], abs=1e-15)


def test_without_constraints_the_best_column_is_taken() -> None:
    master = make([1.0], [3.0], [2.0])
    master.maximise_signal(0, np.zeros(0))
    assert master.solve().weights.tolist() == [0.0, 1.0, 0.0]


def test_columns_that_differ_by_rounding_do_no_harm() -> None:
    """Constant constraint rewards: every policy has the same value, but for the last bits."""
    draw = np.random.default_rng(0)
    master = Master(num_constraints=2, size=50.0, noise=1e-14)
    noise = 1e-14 * draw.standard_normal((40, 2))
    master.add(np.column_stack([draw.random(40), 50.0 + noise]))
    solution = solve(master, [50.0, 50.0], relaxation=1e-12)
    assert solution.value == pytest.approx(master._values[:, 0].max(), abs=1e-12)


def test_without_a_vertex_the_last_mixture_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    master = make([1.0, -1.0], [0.0, 3.0])
    before = solve(master, [0.0])
    monkeypatch.setattr(module, "maximise", lambda *arguments: None)
    after = master.solve()
    np.testing.assert_array_equal(after.weights, before.weights)
    assert after.value == before.value
    fresh = make([1.0, -1.0], [0.0, 3.0])
    fresh.maximise_slack(np.zeros(1), np.ones(1))
    slack = fresh.solve()
    assert (slack.value, slack.weights.tolist()) == (3.0, [0.0, 1.0])
    assert slack.duals.tolist() == [1.0]


def test_a_mixture_that_misses_a_row_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    master = make([1.0, -1.0], [0.0, 3.0])
    before = solve(master, [0.0])

    def wrong(*arguments: object) -> object:
        basis, _, duals = maximise(*arguments)
        first_column = basis == 2  # after t and a surplus
        return basis, first_column.astype(np.longdouble), duals

    monkeypatch.setattr(module, "maximise", wrong)
    np.testing.assert_array_equal(master.solve().weights, before.weights)


@given(seed=st.integers(0, 10_000))
def test_it_is_as_good_as_highs(seed: int) -> None:
    draw = np.random.default_rng(seed)
    num_constraints, num_columns = int(draw.integers(1, 8)), int(draw.integers(1, 30))
    columns = draw.integers(-3, 4, (num_columns, 1 + num_constraints)) / draw.choice([1.0, 7.0])
    master = Master(num_constraints, size=3.0, noise=1e-15)
    master.add(columns)
    thresholds = draw.dirichlet(np.ones(num_columns)) @ columns[:, 1:]
    master.maximise_slack(thresholds, np.ones(num_constraints))
    assert master.solve().value >= -1e-12
    master.maximise_signal(0, thresholds - 1e-12)
    solution = master.solve()
    expected = scipy.optimize.linprog(
        -columns[:, 0],
        A_ub=-columns[:, 1:].T,
        b_ub=1e-12 - thresholds,
        A_eq=np.ones((1, num_columns)),
        b_eq=[1.0],
    )
    assert solution.value == pytest.approx(-expected.fun, abs=1e-6)
    assert np.all(solution.weights @ columns[:, 1:] >= thresholds - 1e-10)
    # Weak duality holds for any multipliers, with equality at the optimum.
    prices = columns[:, 0] + (columns[:, 1:] - thresholds + 1e-12) @ solution.duals
    assert prices.max() == pytest.approx(solution.value, abs=1e-9)


def test_an_inverse_in_extended_precision() -> None:
    matrix = np.vander(np.arange(1.0, 9.0))  # condition number 1e10
    error = np.abs(eliminate(matrix) @ matrix - np.eye(8)).max()
    assert error < 1e-10 * float(np.finfo(np.longdouble).eps) / 1e-19
    assert invert(np.ones((3, 3))) is None
    assert (
        maximise(np.ones((2, 3), np.longdouble), np.ones(2), np.ones(3), np.array([0, 1])) is None
    )
