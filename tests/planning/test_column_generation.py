import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings

import cmdpax
import reference
import strategies
from checks import assert_optimal, assert_truthful, one_step
from cmdpax.planning.column_generation import Generator, limiting_constraint, signal_scales
from cmdpax.planning.master import ColdMaster, Master, WarmMaster
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
    generator = Generator(two_constraints.cmdp, None, max_columns=100)
    generator.maximise_slack(1e-10, goal=0.0)
    outcome = generator.maximise_reward(1e-10, relaxation=0.0)
    assert outcome.bound == pytest.approx(float(two_constraints["optimum_value"]), abs=1e-9)
    values = np.array([column.signal_values for column in generator.columns])
    assert len(np.unique(values, axis=0)) == len(values)
    model = reference.densify(two_constraints.cmdp)
    for weights, index in ((np.eye(3)[0], 0), (np.eye(3)[1], 1), (np.eye(3)[2], 2)):
        signals = np.concatenate([model.rewards[None], model.constraint_rewards])
        best = reference.best_value(model, np.tensordot(weights, signals, axes=1))
        assert values[:, index].max() == pytest.approx(best, abs=1e-12)


def test_scales_are_the_magnitudes_of_the_signals() -> None:
    cmdp = one_step([-4.0, 1.0], [[0.5, -2.0], [0.0, 0.0]], [0.0, 0.0])
    assert signal_scales(cmdp).tolist() == [4.0, 2.0, 1.0]


@pytest.mark.usefixtures("double_precision")
def test_the_limiting_constraint_has_the_smallest_slack() -> None:
    cmdp = one_step([1.0, 0.0], [[0.5, 0.9], [0.25, 0.75], [1.0, 1.0]], [0.5, 1.0, 0.0])
    generator = Generator(cmdp, None, max_columns=100)
    slack = generator.maximise_slack(1e-10, goal=np.inf)
    assert limiting_constraint(slack.master, generator.columns, cmdp.thresholds) == 1


@pytest.mark.parametrize("kind", [WarmMaster, ColdMaster])
def test_the_master_mixes_columns(kind: type[Master]) -> None:
    master = kind(np.array([2.0, 4.0]))
    master.add(np.array([1.0, -1.0]))
    master.add(np.array([0.0, 3.0]))
    master.maximise_reward(0.0)
    solution = master.solve()
    assert solution.value == pytest.approx(0.75, abs=1e-12)
    assert solution.weights == pytest.approx([0.75, 0.25], abs=1e-12)
    assert solution.multipliers == pytest.approx([0.25], abs=1e-12)


@pytest.mark.parametrize("kind", [WarmMaster, ColdMaster])
def test_the_master_goes_on_with_new_columns_and_another_objective(kind: type[Master]) -> None:
    master = kind(np.array([1.0, 1.0, 1.0]))
    master.add(np.array([1.0, -1.0, 1.0]))
    master.maximise_slack()
    assert master.solve().value == pytest.approx(-1.0, abs=1e-12)
    master.add(np.array([0.0, 1.0, -0.5]))
    slack = master.solve()
    # (-w + (1 - w), w - (1 - w)/2) are equal at w = 3/7.
    assert slack.value == pytest.approx(1 / 7, abs=1e-12)
    assert slack.multipliers.sum() == pytest.approx(1.0, abs=1e-12)
    master.maximise_reward(0.0)
    assert master.solve().value == pytest.approx(0.5, abs=1e-12)
    master.maximise_reward(0.5)  # slacks down to -0.5
    assert master.solve().value == pytest.approx(0.75, abs=1e-12)


@pytest.mark.parametrize("kind", [WarmMaster, ColdMaster])
def test_the_master_goes_on_with_other_thresholds_and_signals(kind: type[Master]) -> None:
    master = kind(np.array([2.0, 4.0, 0.5]))
    master.add(np.array([1.0, 0.0, 0.0]))
    master.add(np.array([0.0, 1.0, 0.0]))
    master.add(np.array([0.0, 0.0, 1.0]))
    master.maximise_reward(0.0)
    for one, other in ((0.0, 0.0), (0.25, 0.5), (0.125, 0.0)):
        master.require(np.array([one, other]))
        solution = master.solve()
        assert solution.value == pytest.approx(1.0 - one - other, abs=1e-12)
        assert solution.weights[1:] == pytest.approx([one, other], abs=1e-12)
    master.require(np.array([-1.0, 0.25]))
    master.maximise_reward(0.0, signal=1)
    solution = master.solve()
    assert solution.value == pytest.approx(0.75, abs=1e-12)
    assert solution.multipliers == pytest.approx([0.0, 1.0], abs=1e-12)
    master.maximise_slack()
    assert master.solve().value == pytest.approx(0.75, abs=1e-12)  # V_{u_1} = 1


@pytest.mark.usefixtures("double_precision")
def test_new_thresholds_keep_columns_and_bounds(paper: Golden) -> None:
    generator = Generator(paper.cmdp, None, max_columns=100)
    first = generator.maximise_reward(1e-10, relaxation=0.0)
    num_columns = len(generator.columns)
    generator.require(paper.cmdp.thresholds - 0.01)
    moved = generator.maximise_reward(1e-10, relaxation=0.0)
    assert len(generator.columns) == num_columns  # the same two policies, mixed otherwise
    assert moved.multipliers == pytest.approx(first.multipliers, abs=1e-12)
    expected = first.master.value + 0.01 * first.multipliers[0]
    assert moved.master.value == pytest.approx(expected, abs=1e-12)
    assert moved.bound == pytest.approx(expected, abs=1e-12)
    generator.require(paper.cmdp.thresholds)
    again = generator.maximise_reward(1e-10, relaxation=0.0)
    assert again.master.value == pytest.approx(first.master.value, abs=1e-12)


@pytest.mark.parametrize("kind", [WarmMaster, ColdMaster])
def test_an_infeasible_master_has_no_solution(kind: type[Master]) -> None:
    master = kind(np.array([1.0, 1.0]))
    master.add(np.array([1.0, -1.0]))
    master.maximise_reward(0.0)
    assert master.solve() is None
