import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings

import cmdpax
import reference
import strategies
from checks import assert_optimal, assert_truthful, one_step
from cmdpax.planning.column_generation import Generator
from cmdpax.planning.feasibility import maximise, slater_gap_of
from golden_files import Golden


def hard_cmdp(seed: int = 5) -> cmdpax.CMDP:
    """Four constraints, almost without slack: it takes several columns to be feasible at all."""
    cmdp = cmdpax.environments.make(
        "random", num_states=6, num_actions=4, horizon=6, num_constraints=4, seed=seed
    )
    slack = cmdpax.slater_gap(cmdp).gap
    return cmdp.replace(thresholds=cmdp.thresholds + slack - 0.001)


# -------------------------------------------------------------------------------- early stopping


@pytest.mark.parametrize("max_columns", [1, 4, 8, 12])
def test_stopping_early_warns_and_tells_the_truth(max_columns: int) -> None:
    cmdp = hard_cmdp()
    optimum = cmdpax.solve(cmdp, "occupancy-lp").value
    with pytest.warns(UserWarning, match=r"column generation stopped at a gap of .* columns"):
        solution = cmdpax.solve(cmdp, max_columns=max_columns)
    assert solution.gap > 1e-10
    assert solution.value < optimum - 1e-10
    assert_truthful(cmdp, solution, optimum)


def test_the_warning_names_both_bounds() -> None:
    cmdp = hard_cmdp()
    with pytest.warns(UserWarning, match="the optimum is between") as caught:
        solution = cmdpax.solve(cmdp, max_columns=8)
    text = str(caught[0].message)
    assert f"after {solution.num_columns} columns (asked for 1e-10)" in text
    bounds = f"between {solution.value:.10g} and {solution.value + solution.gap:.10g}."
    assert text.endswith(bounds)


@pytest.mark.whole
@given(cmdp=strategies.cmdps(kinds=strategies.CONSTRAINED, slacks=(0.0, 0.05)))
@settings(max_examples=30)
def test_a_limit_on_columns_never_makes_the_gap_lie(cmdp: cmdpax.CMDP) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution = cmdpax.solve(cmdp, max_columns=1)
    loose = cmdp.thresholds - 1e-9
    optimum = reference.optimum(reference.densify(cmdp)._replace(thresholds=loose))
    assert_truthful(cmdp, solution, optimum, tolerance=1e-7)


def test_a_looser_tolerance_stops_earlier_and_says_so() -> None:
    cmdp = hard_cmdp()
    exact, loose = cmdpax.solve(cmdp), cmdpax.solve(cmdp, tolerance=0.5)
    assert exact.gap <= 1e-10
    assert 1e-10 < loose.gap <= 0.5
    assert loose.num_columns < exact.num_columns
    assert_truthful(cmdp, loose, exact.value)


def test_the_stall_rule_ends_a_tolerance_that_rounding_forbids() -> None:
    cmdp = hard_cmdp()
    optimum = cmdpax.solve(cmdp, "occupancy-lp").value
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution = cmdpax.solve(cmdp, tolerance=1e-300)
    assert_optimal(cmdp, solution, optimum)


# --------------------------------------------------------------------------------- certified gaps


@pytest.mark.parametrize("num_constraints", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", [0, 1])
def test_larger_models_agree_with_the_occupancy_program(num_constraints: int, seed: int) -> None:
    cmdp = cmdpax.environments.make(
        "random",
        num_states=12,
        num_actions=3,
        horizon=8,
        num_constraints=num_constraints,
        seed=seed,
    )
    optimum = cmdpax.solve(cmdp, "occupancy-lp").value
    assert_optimal(cmdp, cmdpax.solve(cmdp), optimum)


def test_progress_reports_columns_and_a_gap_that_falls_to_the_final_one() -> None:
    reports: list[tuple[int, float]] = []
    solution = cmdpax.solve(
        hard_cmdp(), progress=lambda num_columns, gap: reports.append((num_columns, gap))
    )
    columns = [num_columns for num_columns, _ in reports]
    gaps = [gap for _, gap in reports]
    assert len(columns) > 2
    assert columns == sorted(columns)
    assert columns[-1] <= solution.num_columns
    assert math.isinf(gaps[0])  # nothing is feasible yet
    finite = [gap for gap in gaps if math.isfinite(gap)]
    assert finite == sorted(finite, reverse=True)
    assert finite[-1] >= solution.gap


def test_progress_of_the_slater_gap() -> None:
    reports: list[int] = []
    cmdpax.slater_gap(hard_cmdp(), progress=lambda num_columns, gap: reports.append(num_columns))
    assert len(reports) > 1
    assert reports == sorted(reports)


# -------------------------------------------------------------------------------------- its parts


@pytest.mark.usefixtures("double_precision")
def test_columns_are_values_of_deterministic_policies(two_constraints: Golden) -> None:
    cmdp = two_constraints.cmdp
    generator = Generator(cmdp, None, max_columns=100)
    outcome = maximise(generator, cmdp.thresholds, 1e-10)
    bound = generator.scaled.number(outcome.bound)
    assert bound == pytest.approx(float(two_constraints["optimum_value"]), abs=1e-9)
    scaled = np.array([column.signal_values for column in generator.columns])
    values = generator.scaled.to_user(scaled)
    assert len(np.unique(values, axis=0)) == len(values)
    model = reference.densify(cmdp)
    for weights, index in ((np.eye(3)[0], 0), (np.eye(3)[1], 1), (np.eye(3)[2], 2)):
        signals = np.concatenate([model.rewards[None], model.constraint_rewards])
        best = reference.best_value(model, np.tensordot(weights, signals, axes=1))
        assert values[:, index].max() == pytest.approx(best, abs=1e-12)


@pytest.mark.usefixtures("double_precision")
def test_the_limiting_constraint_has_the_smallest_slack() -> None:
    cmdp = one_step([1.0, 0.0], [[0.5, 0.9], [0.25, 0.75], [1.0, 1.0]], [0.5, 1.0, 0.0])
    generator = Generator(cmdp, None, max_columns=100)
    assert slater_gap_of(generator, cmdp.thresholds) == pytest.approx((-0.25, 1), abs=1e-15)


@pytest.mark.usefixtures("double_precision")
def test_new_thresholds_keep_columns_and_bounds(paper: Golden) -> None:
    thresholds = paper.cmdp.thresholds
    generator = Generator(paper.cmdp, None, max_columns=100)
    first = maximise(generator, thresholds, 1e-10)
    num_columns = len(generator.columns)
    moved = maximise(generator, thresholds - 0.01, 1e-10)
    assert len(generator.columns) == num_columns  # the same two policies, mixed otherwise
    assert moved.multipliers == pytest.approx(first.multipliers, abs=1e-12)
    scaled = generator.scaled
    price = scaled.user_multipliers(first.multipliers)[0]
    expected = scaled.number(first.value) + 0.01 * price
    assert scaled.number(moved.value) == pytest.approx(expected, abs=1e-12)
    assert scaled.number(moved.bound) == pytest.approx(expected, abs=1e-12)
    again = maximise(generator, thresholds, 1e-10)
    assert again.value == pytest.approx(first.value, abs=1e-12)
