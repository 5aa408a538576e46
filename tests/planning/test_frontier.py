import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cmdpax
import reference
import strategies
from checks import EXACT, one_step
from cmdpax.planning import column_generation
from cmdpax.planning import frontier as frontier_module
from golden_files import Golden

TOLERANCE = 1.01e-10  # of gaps, in models with rewards of at most 1
models = strategies.cmdps(kinds=strategies.CONSTRAINED)


def at(cmdp: cmdpax.CMDP, constraint: int, threshold: float) -> cmdpax.CMDP:
    """The model with another threshold of that constraint."""
    thresholds = cmdp.bounds.copy()
    thresholds[constraint] = threshold
    return cmdp.replace(thresholds=thresholds)


def assert_points_are_solutions(cmdp: cmdpax.CMDP, found: cmdpax.Frontier) -> None:
    """Each point is what `solve` says there, and its own certificate holds."""
    model = reference.densify(cmdp)
    for point, threshold in enumerate(found.thresholds):
        there = at(cmdp, found.constraint, threshold)
        try:
            solution = cmdpax.solve(there)
        except cmdpax.InfeasibleError:
            assert not found.feasible[point]
            assert np.isnan(found.value[point])
            assert np.isnan(found.gap[point])
            assert np.isnan(found.multipliers[point]).all()
            assert np.isnan(found.constraint_values[point]).all()
            continue
        assert found.feasible[point]
        assert abs(found.value[point] - solution.value) <= 1e-8
        assert 0 <= found.gap[point] <= TOLERANCE
        assert np.all(found.constraint_values[point] >= there.thresholds - EXACT)
        assert np.all(found.multipliers[point] >= 0)
        dual = reference.dual_value(
            model._replace(thresholds=there.thresholds), found.multipliers[point]
        )
        assert abs(dual - found.value[point]) <= EXACT


def largest_feasible(cmdp: cmdpax.CMDP, constraint: int) -> float:
    """max V_{u_i} subject to the others, over mixtures of all deterministic policies."""
    model = reference.densify(cmdp)
    others = np.arange(cmdp.num_constraints) != constraint
    return reference.optimum(
        model._replace(
            rewards=model.constraint_rewards[constraint],
            constraint_rewards=model.constraint_rewards[others],
            thresholds=model.thresholds[others],
        )
    )


# --------------------------------------------------------------------------------------- exactness


@given(cmdp=models, data=st.data())
def test_the_default_points_are_solutions(cmdp: cmdpax.CMDP, data: st.DataObject) -> None:
    constraint = data.draw(st.integers(0, cmdp.num_constraints - 1))
    found = cmdpax.frontier(cmdp, constraint=constraint, num_points=8)
    assert found.constraint == constraint
    assert_points_are_solutions(cmdp, found)
    assert abs(found.largest_feasible - largest_feasible(cmdp, constraint)) <= EXACT


@given(cmdp=models, data=st.data())
def test_any_points_in_any_order_are_solutions(cmdp: cmdpax.CMDP, data: st.DataObject) -> None:
    constraint = data.draw(st.integers(0, cmdp.num_constraints - 1))
    shifts = st.sampled_from([-5.0, -0.3, -0.1, 0.0, 0.02, 0.2, 0.7, 3.0])
    shifts = data.draw(st.lists(shifts, min_size=1, max_size=6))
    thresholds = cmdp.thresholds[constraint] + np.array(shifts)
    found = cmdpax.frontier(cmdp, constraint=constraint, thresholds=thresholds)
    np.testing.assert_array_equal(found.thresholds, thresholds)
    assert found.thresholds is not thresholds
    assert_points_are_solutions(cmdp, found)


@given(cmdp=models, data=st.data())
@settings(max_examples=40)
def test_the_value_is_concave_and_nonincreasing_with_slope_minus_multiplier(
    cmdp: cmdpax.CMDP, data: st.DataObject
) -> None:
    constraint = data.draw(st.integers(0, cmdp.num_constraints - 1))
    found = cmdpax.frontier(cmdp, constraint=constraint, num_points=12)
    value, multiplier = found.value[found.feasible], found.multipliers[found.feasible, constraint]
    steps = np.diff(found.thresholds[found.feasible])
    assert np.all(np.diff(value) <= EXACT)
    slopes = np.diff(value) / steps
    assert np.all(np.diff(slopes) <= EXACT / steps.min())
    # Left of a chord the curve is flatter than it, right of it steeper.
    rounding = EXACT / steps.min()
    assert np.all(multiplier[:-1] <= -slopes + rounding)
    assert np.all(-slopes <= multiplier[1:] + rounding)
    # Every λ bounds the whole curve: V*(c') ≤ V*(c) - λ_i (c' - c).
    distances = (
        found.thresholds[found.feasible][None, :] - found.thresholds[found.feasible][:, None]
    )
    bounds = value[:, None] - multiplier[:, None] * distances
    assert np.all(value[None, :] <= bounds + EXACT * (1 + abs(multiplier[:, None])))
    # Complementary slackness: what is not binding costs nothing.
    slack = found.constraint_values[found.feasible, constraint] - found.thresholds[found.feasible]
    assert np.all(multiplier * slack <= EXACT * (1 + multiplier))


def test_the_bandit_in_closed_form() -> None:
    found = cmdpax.frontier(cmdpax.environments.make("bandit"), num_points=20)
    c = found.thresholds
    # Options (V_r, V_u) = (1, 0.1) and (0.2, 0.9): the value is 1 up to 0.1, then 1.1 - c.
    expected = np.where(c > 0.9, np.nan, np.minimum(1.0, 1.1 - c))
    np.testing.assert_allclose(found.value, expected, rtol=0, atol=1e-12)
    at_kink = np.isclose(c, 0.1)
    slope = np.where(c > 0.9, np.nan, np.where(c < 0.1, 0.0, 1.0))
    multipliers = found.multipliers[:, 0]
    np.testing.assert_allclose(multipliers[~at_kink], slope[~at_kink], rtol=0, atol=1e-12)
    assert np.all((multipliers[at_kink] >= 0) & (multipliers[at_kink] <= 1 + 1e-12))
    np.testing.assert_array_equal(found.feasible, c < 0.9)
    assert found.largest_feasible == pytest.approx(0.9, abs=1e-12)


def test_golden_optima_lie_on_the_frontiers(golden: Golden) -> None:
    for constraint, threshold in enumerate(golden.cmdp.thresholds):
        around = threshold + np.array([0.1, 0.0, -0.1])
        found = cmdpax.frontier(golden.cmdp, constraint=constraint, thresholds=around)
        assert found.value[1] == pytest.approx(float(golden["optimum_value"]), abs=EXACT)
        assert found.multipliers[1] == pytest.approx(golden["optimum_multipliers"], abs=EXACT)
        assert found.value[0] < found.value[1] < found.value[2]


@pytest.mark.parametrize("constraint", [0, 1])
def test_a_gridworld_with_the_other_constraint_fixed(constraint: int) -> None:
    cmdp = cmdpax.environments.make(
        "gridworld", height=5, width=5, horizon=12, num_constraints=2, unsafe_density=0.4
    )
    assert isinstance(cmdp.transitions, cmdpax.Successors)
    found = cmdpax.frontier(cmdp, constraint=constraint, num_points=9)
    other = 1 - constraint
    assert found.feasible.sum() == 8
    reached = found.constraint_values[found.feasible]
    assert np.all(reached[:, other] <= cmdp.bounds[other] + EXACT)
    assert np.all(reached[:, constraint] <= found.thresholds[found.feasible] + EXACT)
    for point in np.flatnonzero(found.feasible):
        there = at(cmdp, constraint, found.thresholds[point])
        exact = cmdpax.solve(there, "occupancy-lp")
        assert found.value[point] == pytest.approx(exact.value, abs=1e-8)
    # The same model written out.
    model = reference.densify(cmdp)
    dense = cmdpax.CMDP(*model).with_words(cmdp.words)
    written_out = cmdpax.frontier(dense, constraint=constraint, thresholds=found.thresholds)
    np.testing.assert_allclose(written_out.value, found.value, rtol=0, atol=EXACT)
    assert written_out.largest_feasible == pytest.approx(found.largest_feasible, abs=EXACT)


@pytest.mark.parametrize("scale", [1e6, 1e-6])
def test_units_of_the_constraint_do_not_matter(scale: float, two_constraints: Golden) -> None:
    cmdp = two_constraints.cmdp
    units = np.array([scale, 1.0])
    scaled = cmdp.replace(
        constraint_rewards=units[:, None, None, None] * cmdp.constraint_rewards,
        thresholds=units * cmdp.thresholds,
    )
    one, other = cmdpax.frontier(cmdp, num_points=10), cmdpax.frontier(scaled, num_points=10)
    assert other.largest_feasible == pytest.approx(scale * one.largest_feasible, rel=1e-9)
    np.testing.assert_allclose(other.thresholds, scale * one.thresholds, rtol=1e-7)
    np.testing.assert_allclose(other.value, one.value, rtol=0, atol=1e-7)


def test_the_models_own_threshold_of_the_constraint_does_not_matter(paper: Golden) -> None:
    expected = cmdpax.frontier(paper.cmdp, num_points=10)
    for own in (-1e9, 1e9):
        found = cmdpax.frontier(at(paper.cmdp, 0, own), num_points=10)
        np.testing.assert_array_equal(found.thresholds, expected.thresholds)
        np.testing.assert_array_equal(found.value, expected.value)


# ---------------------------------------------------------------------------------- the warm start


def counted_pricing(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Each backward induction leaves an entry."""
    calls: list[int] = []
    original = column_generation.greedy_plans

    def plans(*arguments: object) -> object:
        calls.append(1)
        return original(*arguments)

    monkeypatch.setattr(column_generation, "greedy_plans", plans)
    return calls


def test_points_share_columns_and_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted_pricing(monkeypatch)
    cmdp = cmdpax.environments.make("queue")
    found = cmdpax.frontier(cmdp)
    together, columns = len(calls), 0
    calls.clear()
    for threshold in found.thresholds[found.feasible]:
        columns += cmdpax.solve(at(cmdp, 0, threshold)).num_columns
    assert together < 0.75 * len(calls)
    assert found.num_columns < 0.75 * columns


def test_points_on_a_line_between_known_policies_need_no_planning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = counted_pricing(monkeypatch)
    cmdp = cmdpax.environments.make("bandit")
    cmdpax.frontier(cmdp, thresholds=[0.3, 0.6])
    few = len(calls)
    calls.clear()
    many = cmdpax.frontier(cmdp, thresholds=np.linspace(0.2, 0.8, 50))
    assert len(calls) == few
    np.testing.assert_allclose(many.gap, 0.0, atol=1e-12)


def test_a_threshold_given_twice_is_solved_once(
    paper: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = counted_pricing(monkeypatch)
    once = cmdpax.frontier(paper.cmdp, thresholds=[2.0, 3.0])
    num_calls = len(calls)
    calls.clear()
    twice = cmdpax.frontier(paper.cmdp, thresholds=[3.0, 2.0, 3.0, 2.0])
    assert len(calls) == num_calls
    np.testing.assert_array_equal(twice.value, once.value[[1, 0, 1, 0]])
    assert twice.value[0] < twice.value[1]


# ------------------------------------------------------------------------------ the infeasible part


@pytest.mark.parametrize(("excess", "feasible"), [(0.0, True), (4e-10, True), (6e-10, False)])
def test_infeasibility_starts_where_that_of_solve_does(excess: float, feasible: bool) -> None:
    cmdp = one_step([1.0, 0.0], [[0.0, 0.5]], [0.2])
    found = cmdpax.frontier(cmdp, thresholds=[0.5 + excess])
    assert found.largest_feasible == pytest.approx(0.5, abs=1e-12)
    assert found.feasible.tolist() == [feasible]
    if feasible:
        assert found.value[0] == pytest.approx(0.0, abs=1e-8)


def test_a_point_that_cannot_be_decided_is_told(
    paper: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = frontier_module.maximise

    def undecided(generator, thresholds, *rest, **options):
        if thresholds[0] == 2.0:
            raise cmdpax.SolverError("it is hard.")
        return original(generator, thresholds, *rest, **options)

    monkeypatch.setattr(frontier_module, "maximise", undecided)
    with pytest.warns(
        cmdpax.CmdpaxWarning, match=r"^thresholds\[1\] counts as infeasible: it is hard\.$"
    ):
        found = cmdpax.frontier(paper.cmdp, thresholds=[1.0, 2.0])
    assert found.feasible.tolist() == [True, False]


def test_all_points_may_be_infeasible(paper: Golden) -> None:
    found = cmdpax.frontier(paper.cmdp, thresholds=[6.0, 7.0])
    assert found.feasible.tolist() == [False, False]
    assert np.isnan(found.value).all()
    assert found.largest_feasible < 6.0


def test_other_constraints_that_are_infeasible_leave_nothing(two_constraints: Golden) -> None:
    cmdp = at(two_constraints.cmdp, 1, 100.0)
    found = cmdpax.frontier(cmdp, num_points=6)
    assert not found.feasible.any()
    assert found.largest_feasible == -np.inf
    # The points are still those between what is best for r and what is best for u.
    model = reference.densify(cmdp)
    most = reference.best_value(model, model.constraint_rewards[0])
    assert found.thresholds[-2] < most < found.thresholds[-1]


def test_the_other_constraint_limits_the_largest_feasible_threshold() -> None:
    # V_{u_0} = x and V_{u_1} = 1 - x, of which 0.25 are required.
    cmdp = one_step([0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]], [0.0, 0.25])
    found = cmdpax.frontier(cmdp, thresholds=[0.7, 0.75, 0.76])
    assert found.largest_feasible == pytest.approx(0.75, abs=1e-12)
    assert found.feasible.tolist() == [True, True, False]


# ------------------------------------------------------------------------------ default thresholds


@pytest.mark.parametrize(
    ("num_points", "num_flat", "num_infeasible"), [(4, 1, 1), (10, 2, 1), (20, 3, 2), (40, 6, 4)]
)
def test_default_thresholds_cover_all_three_parts(
    num_points: int, num_flat: int, num_infeasible: int, paper: Golden
) -> None:
    found = cmdpax.frontier(paper.cmdp, num_points=num_points)
    free = cmdpax.solve(paper.cmdp.replace(constraint_rewards=[], thresholds=[]))
    begin = reference.evaluate(reference.densify(paper.cmdp), free.policy).constraint_values[0]
    steps = np.diff(found.thresholds)
    assert len(found.thresholds) == num_points
    np.testing.assert_allclose(steps, steps[0])
    assert found.thresholds[num_flat] == pytest.approx(begin, abs=1e-12)
    assert (~found.feasible).sum() == num_infeasible
    middle = found.thresholds[[-num_infeasible - 1, -num_infeasible]].mean()
    assert middle == pytest.approx(found.largest_feasible, abs=1e-9)
    assert np.all(np.abs(found.value[: num_flat + 1] - free.value) <= EXACT)
    assert np.all(found.value[num_flat + 1 :][: -num_infeasible or None] < free.value - 1e-3)


def test_a_constraint_that_costs_nothing_is_flat_until_it_is_infeasible() -> None:
    found = cmdpax.frontier(one_step([1.0, 0.0], [[0.5, 0.2]], [0.1]), num_points=10)
    assert found.largest_feasible == pytest.approx(0.5, abs=1e-12)
    np.testing.assert_allclose(found.value[:9], 1.0, rtol=0, atol=1e-12)
    assert found.feasible.tolist() == [True] * 9 + [False]
    assert found.thresholds[0] < 0.5 - 0.5
    assert found.thresholds[-1] > 0.5
