"""`solve_many`: the solutions of `solve`, for many models at once."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import cmdpax
import exact
from certified import HARD
from checks import EXACT, assert_numpy_doubles, assert_optimal, num_random_decisions, one_step
from cmdpax.planning import many
from degenerate import SHAPES, degenerate
from lanes import quick_or_whole

FEW = 11
"""Models of most tests: filled up to 16, they share one program per number of constraints."""


def random_models(count: int = FEW, num_constraints: int = 1) -> list[cmdpax.CMDP]:
    """Of one shape; thresholds at what a random policy has, more or less, so that many bind."""
    draw = np.random.default_rng(num_constraints)
    shape = (4, 3, 3)  # H, S, A
    return [
        cmdpax.CMDP(
            transitions=draw.dirichlet(np.ones(3), shape),
            rewards=draw.random(shape),
            constraint_rewards=draw.random((num_constraints, *shape)),
            thresholds=draw.uniform(1.6, 2.1, num_constraints),
            initial=draw.dirichlet(np.ones(3)),
        )
        for _ in range(count)
    ]


def flaws_of(
    cmdps: Sequence[cmdpax.CMDP], solutions: Sequence[cmdpax.Solution]
) -> list[tuple[int, object]]:
    """Where `solve` says something else, by more than 1e-9 of scale."""
    flaws: list[tuple[int, object]] = []
    for index, (cmdp, found) in enumerate(zip(cmdps, solutions, strict=True)):
        scales = exact.scales_of(cmdp)
        try:
            solution = cmdpax.solve(cmdp)
        except cmdpax.InfeasibleError as error:
            if found.feasible or not np.isnan(found.value) or not error.slater_gap < 0:
                flaws.append((index, "only solve finds it infeasible"))
            continue
        if not found.feasible:
            flaws.append((index, "only solve finds it feasible"))
        elif not abs(found.value - solution.value) <= EXACT * scales[0]:
            flaws.append((index, found.value - solution.value))
        elif found.gap > max(1e-10 * scales[0], 2 * solution.gap):
            flaws.append((index, f"a gap of {found.gap}"))
    return flaws


# --------------------------------------------------------------------------- the optima of `solve`


@pytest.mark.parametrize("num_constraints", [0, 1, 3])
def test_random_models(num_constraints: int) -> None:
    models = random_models(num_constraints=num_constraints)
    solutions = cmdpax.solve_many(models)
    for cmdp, found in zip(models, solutions, strict=True):
        assert found.feasible
        assert_optimal(cmdp, found, cmdpax.solve(cmdp).value)
        assert num_random_decisions(found) <= num_constraints
        assert_numpy_doubles(found.constraint_values, found.multipliers, found.policy)
        assert_numpy_doubles(found.occupancy)
        assert found.num_columns >= 1


@pytest.mark.whole
@pytest.mark.parametrize("num_constraints", [1, 2, 4])
def test_random_models_by_the_hundreds(num_constraints: int) -> None:
    """With the next test, 2,048 models; three parts of one call."""
    models = random_models(3 * 128, num_constraints=num_constraints)
    assert flaws_of(models, cmdpax.solve_many(models)) == []


@pytest.mark.parametrize(
    "shape", [quick_or_whole(shape, quick=shape in (3, 8)) for shape in (1, 3, 5, 6, 8, 11, 13)]
)
@pytest.mark.filterwarnings("ignore::cmdpax.CmdpaxWarning")
def test_degenerate_models(shape: int) -> None:
    made = [degenerate(shape + index * len(SHAPES)) for index in range(128)]
    models = [model.cmdp for model in made]
    solutions = cmdpax.solve_many(models)
    assert flaws_of(models, solutions) == []
    for model, found in list(zip(made, solutions, strict=True))[::8]:
        assert model.feasible is None or found.feasible == model.feasible
        if found.feasible:
            assert exact.flaws_of(model.cmdp, found) == []  # in exact arithmetic


@pytest.mark.whole
@pytest.mark.parametrize("path", HARD[::21], ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::cmdpax.CmdpaxWarning")
def test_hard_models(path: Any) -> None:
    models = [cmdpax.load(path)]
    assert flaws_of(models, cmdpax.solve_many(models)) == []


@pytest.mark.parametrize("name", ["gridworld", "inventory"])
def test_lists_that_all_models_share(name: str) -> None:
    cmdp = cmdpax.environments.make(name)
    models = [cmdp.replace(thresholds=part * cmdp.thresholds) for part in (0.5, 0.9, 1.0)]
    assert flaws_of(models, cmdpax.solve_many(models)) == []


def test_lists_that_differ() -> None:
    models = [degenerate(shape).cmdp for shape in (2, 2 + len(SHAPES))]
    assert isinstance(models[0].transitions, cmdpax.Successors)
    assert flaws_of(models, cmdpax.solve_many(models)) == []


def test_several_parts_and_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    models = random_models()
    together = cmdpax.solve_many(models)
    monkeypatch.setattr(many, "_LARGEST_PART", 2)
    monkeypatch.setattr(many, "_batch_size", lambda cmdp: 5)
    apart = cmdpax.solve_many(iter(models))
    for one, other in zip(together, apart, strict=True):
        assert one.value == pytest.approx(other.value, abs=1e-12)


def test_warm_starts() -> None:
    models = random_models()
    cold = cmdpax.solve_many(models)
    start = [solution.multipliers for solution in cold]
    warm = cmdpax.solve_many(models, multipliers=start)
    assert flaws_of(models, warm) == []
    rounds = [sum(one.num_columns for one in solutions) for solutions in (warm, cold)]
    assert rounds[0] < rounds[1]


# ------------------------------------------------------------------------- what is not so ordinary


def assert_least_bad(cmdp: cmdpax.CMDP, found: cmdpax.Solution) -> None:
    """No policy has a larger worst slack, in units of scale."""
    scales = exact.scales_of(cmdp)[1:]
    relative = cmdp.replace(
        constraint_rewards=cmdp.constraint_rewards / scales[:, None, None, None],
        thresholds=cmdp.thresholds / scales,
    )
    most = cmdpax.slater_gap(relative).gap
    assert not found.feasible
    assert np.isnan(found.value)
    assert np.isnan(found.gap)
    assert ((found.constraint_values - cmdp.thresholds) / scales).min() == pytest.approx(most)
    reached = cmdpax.evaluate(cmdp, found.policy)
    np.testing.assert_allclose(reached.constraint_values, found.constraint_values, atol=EXACT)
    np.testing.assert_allclose(reached.occupancy, found.occupancy, atol=EXACT)
    assert found.multipliers @ scales == pytest.approx(1.0)
    assert found.slater_gap < 0


def test_infeasible_models_stand_among_others() -> None:
    models = random_models(num_constraints=2)
    models[1::2] = [cmdp.replace(thresholds=1.0 + 2 * cmdp.thresholds) for cmdp in models[1::2]]
    solutions = cmdpax.solve_many(models)
    assert [solution.feasible for solution in solutions] == [True, False] * 5 + [True]
    for cmdp, found in zip(models[1::2], solutions[1::2], strict=True):
        assert_least_bad(cmdp, found)
    assert "value=nan" in repr(solutions[1])


def test_infeasible_models_that_the_compiled_planner_leaves_to_solve(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(many, "_SLACK_GAP", -1.0)
    models = random_models(num_constraints=2)
    models[0] = models[0].replace(thresholds=1.0 + 2 * models[0].thresholds)
    assert_least_bad(models[0], cmdpax.solve_many(models)[0])


def test_thresholds_out_of_all_proportion() -> None:
    cmdp = one_step([1.0, 0.0], [[0.25, 1.0], [1.0, 0.5]], [1e20, 0.1])
    found = cmdpax.solve_many([cmdp, cmdp.replace(thresholds=[-1e20, 0.75])])
    assert [solution.feasible for solution in found] == [False, True]
    assert found[0].policy.tolist() == [[[0.0, 1.0]]]  # the first constraint is the worst
    assert found[1].value == 1.0


def test_without_slack_it_is_solve() -> None:
    cmdp = one_step([1.0, 0.0], [[0.0, 1.0]], [1.0])
    found, other = cmdpax.solve_many([cmdp, cmdp.replace(thresholds=[1.0 + 1e-10])])
    assert found.feasible
    assert found.value == pytest.approx(0.0, abs=1e-8)
    assert other.feasible


def test_units_do_not_matter() -> None:
    models = random_models(num_constraints=2)
    units = np.array([1e-6, 1e6])
    other = [
        cmdp.replace(
            rewards=1e-3 * cmdp.rewards,
            constraint_rewards=units[:, None, None, None] * cmdp.constraint_rewards,
            thresholds=units * cmdp.thresholds,
        )
        for cmdp in models
    ]
    for one, two in zip(cmdpax.solve_many(models), cmdpax.solve_many(other), strict=True):
        assert two.value == pytest.approx(1e-3 * one.value, rel=1e-12)
        assert two.multipliers * units / 1e-3 == pytest.approx(one.multipliers, rel=1e-9)


def test_nothing_to_solve() -> None:
    assert cmdpax.solve_many([]) == []


def test_no_warnings() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cmdpax.solve_many(random_models())


# ----------------------------------------------------------------------------------- what is wrong


def test_models_of_other_shapes() -> None:
    first, other = random_models(1)[0], cmdpax.environments.make("bandit")
    sentence = (
        r"^cmdps\[1\] is CMDP\(S=1, A=3, H=1, I=1, dense\) and cmdps\[0\] is "
        r"CMDP\(S=3, A=3, H=4, I=1, dense\): the arrays of all models must have the same shapes; "
        r"solve those of one shape at a time\.$"
    )
    with pytest.raises(cmdpax.ModelError, match=sentence):
        cmdpax.solve_many([first, other])


def test_multipliers_of_another_shape() -> None:
    models = random_models(2)
    with pytest.raises(cmdpax.ParameterError, match=r"^multipliers has shape \(1,\), expected one"):
        cmdpax.solve_many(models, multipliers=[0.0])
    with pytest.raises(cmdpax.ParameterError, match=r"must be finite and not negative\.$"):
        cmdpax.solve_many(models, multipliers=[[-1.0], [0.0]])


def test_what_cannot_be_told_names_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    def undecided(*_: Any, **__: Any) -> None:
        raise cmdpax.SolverError("it is hard.")

    monkeypatch.setattr(many, "solve", undecided)
    monkeypatch.setattr(many, "SENSITIVE", -1.0)
    with pytest.raises(cmdpax.SolverError, match=r"^cmdps\[0\]: it is hard\.$"):
        cmdpax.solve_many(random_models())
