import sys
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cmdpax
import reference
import strategies
from checks import (
    METHODS,
    assert_numpy_doubles,
    assert_optimal,
    num_random_decisions,
    one_step,
)
from cmdpax.planning import recovery
from cmdpax.planning.column_generation import Generator
from cmdpax.planning.dynamic_program import greedy_values
from golden_files import Golden

every_method = pytest.mark.parametrize("method", METHODS)


# ------------------------------------------------------------------------------------- exactness


@given(cmdp=strategies.cmdps())
@settings(max_examples=40)
def test_both_methods_reach_the_best_mixture_of_deterministic_policies(cmdp: cmdpax.CMDP) -> None:
    optimum = reference.optimum(reference.densify(cmdp))
    for method in METHODS:
        solution = cmdpax.solve(cmdp, method)
        assert_optimal(cmdp, solution, optimum)
        assert solution.method == method


@given(cmdp=strategies.cmdps(slacks=(0.0,)))
def test_thresholds_on_the_border_of_what_a_policy_reaches(cmdp: cmdpax.CMDP) -> None:
    model = reference.densify(cmdp)
    for method in METHODS:
        solution = cmdpax.solve(cmdp, method)
        assert np.all(solution.constraint_values >= cmdp.thresholds - 1e-9)
        # The value of thresholds lowered by 1e-9 is the most that rounding may allow.
        loose = reference.optimum(model._replace(thresholds=model.thresholds - 1e-9))
        tight = reference.optimum(model._replace(thresholds=model.thresholds + 1e-9))
        assert solution.value <= loose + 1e-9
        assert tight is None or solution.value >= tight - 1e-9


@given(cmdp=strategies.cmdps(), data=st.data())
def test_no_feasible_policy_is_better(cmdp: cmdpax.CMDP, data: st.DataObject) -> None:
    solution = cmdpax.solve(cmdp)
    reached = reference.evaluate(reference.densify(cmdp), data.draw(strategies.policies(cmdp)))
    if np.all(reached.constraint_values >= cmdp.thresholds):
        assert reached.value <= solution.value + 1e-9
    # Whether feasible or not, λ* prices what it takes from the constraints.
    slacks = reached.constraint_values - cmdp.thresholds
    assert reached.value + solution.multipliers @ slacks <= solution.value + solution.gap + 1e-9


@given(cmdp=strategies.cmdps(kinds=strategies.KINDS[:1] + strategies.KINDS[-1:]))
def test_without_constraints_it_is_the_best_deterministic_policy(cmdp: cmdpax.CMDP) -> None:
    best = reference.all_values(reference.densify(cmdp))[:, 0].max()
    for method in METHODS:
        solution = cmdpax.solve(cmdp, method)
        assert abs(solution.value - best) <= 1e-12
        assert set(np.unique(solution.policy)) <= {0.0, 1.0}
        assert solution.multipliers.shape == solution.constraint_values.shape == (0,)
        assert solution.slater_gap is None


# ------------------------------------------------------------------------------------ the policy


@given(cmdp=strategies.cmdps())
def test_the_policy_is_random_in_at_most_as_many_places_as_constraints(cmdp: cmdpax.CMDP) -> None:
    assert num_random_decisions(cmdpax.solve(cmdp)) <= cmdp.num_constraints


@every_method
@given(cmdp=strategies.cmdps(kinds=strategies.CONSTRAINED))
def test_where_nothing_arrives_the_policy_is_greedy_for_the_lagrangian(
    method: str, cmdp: cmdpax.CMDP
) -> None:
    solution = cmdpax.solve(cmdp, method)
    model = reference.densify(cmdp)
    q_values = reference.q_values(model, reference.lagrangian_reward(model, solution.multipliers))
    unreached = solution.occupancy.sum(axis=2) == 0
    decisions = solution.policy[unreached]
    assert set(np.unique(decisions)) <= {0.0, 1.0}
    chosen = np.sum(decisions * q_values[unreached], axis=1)
    np.testing.assert_allclose(chosen, q_values[unreached].max(axis=1), rtol=0, atol=1e-9)


def unreachable_state() -> cmdpax.CMDP:
    """State 1 is never reached; there action 1 is best only if the constraint counts."""
    return cmdpax.CMDP(
        transitions=[[[[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [1.0, 0.0]]]],
        rewards=[[[1.0, 0.0], [0.5, 0.0]]],
        constraint_rewards=[[[[0.0, 1.0], [0.0, 1.0]]]],
        thresholds=[1.0],
        initial=[1.0, 0.0],
        horizon=2,
    )


@every_method
def test_an_unreachable_state_follows_the_price_of_the_constraint(method: str) -> None:
    solution = cmdpax.solve(unreachable_state(), method)
    assert solution.value == pytest.approx(1.0, abs=1e-12)
    assert solution.multipliers == pytest.approx([1.0], abs=1e-12)
    # r + λu is (0.5, 1) in state 1, and (1, 1) in state 0 later: action 1.
    assert solution.policy[:, 1].tolist() == [[0.0, 1.0], [0.0, 1.0]]


# ----------------------------------------------------------------------------------- special sizes


@every_method
def test_one_state_one_action_one_step_without_constraints(method: str) -> None:
    solution = cmdpax.solve(one_step([-0.75], [], []), method)
    assert (solution.value, solution.slater_gap) == (-0.75, None)
    assert 0 < solution.gap < 1e-14  # rounding, as far as anybody knows
    assert solution.policy.tolist() == solution.occupancy.tolist() == [[[1.0]]]


@every_method
def test_one_step_closed_form(method: str) -> None:
    # Two actions: the reward falls by 1 for every 0.5 of constraint reward, so λ* = 2.
    solution = cmdpax.solve(one_step([1.0, 0.0], [[0.0, 0.5]], [0.2]), method)
    assert solution.value == pytest.approx(0.6, abs=1e-12)
    assert solution.multipliers == pytest.approx([2.0], abs=1e-12)
    assert solution.policy.ravel() == pytest.approx([0.6, 0.4], abs=1e-12)
    assert solution.slater_gap == pytest.approx(0.3, abs=1e-12)


@every_method
def test_a_slack_constraint_costs_nothing(method: str) -> None:
    solution = cmdpax.solve(one_step([1.0, 0.0], [[0.5, 1.0]], [0.2]), method)
    assert solution.value == 1.0
    assert solution.multipliers.tolist() == [0.0]
    assert solution.constraint_values.tolist() == [0.5]


@every_method
@pytest.mark.parametrize("scale", [1e6, 1e-6])
def test_rewards_of_any_magnitude(method: str, scale: float, two_constraints: Golden) -> None:
    golden, cmdp = two_constraints, two_constraints.cmdp
    scaled = cmdp.replace(rewards=scale * cmdp.rewards)
    solution = cmdpax.solve(scaled, method)
    value = scale * golden["optimum_value"]
    assert solution.value == pytest.approx(value, rel=1e-9)
    assert solution.multipliers == pytest.approx(scale * golden["optimum_multipliers"], rel=1e-9)
    assert solution.constraint_values == pytest.approx(cmdp.thresholds, abs=1e-9)
    assert solution.gap <= 1e-9 * scale


@every_method
@pytest.mark.parametrize("scale", [1e6, 1e-6])
def test_constraint_rewards_of_any_magnitude(
    method: str, scale: float, two_constraints: Golden
) -> None:
    golden, cmdp = two_constraints, two_constraints.cmdp
    scaled = cmdp.replace(
        constraint_rewards=np.array([scale, 1.0])[:, None, None, None] * cmdp.constraint_rewards,
        thresholds=[scale, 1.0] * cmdp.thresholds,
    )
    solution = cmdpax.solve(scaled, method)
    assert solution.value == pytest.approx(float(golden["optimum_value"]), abs=1e-9)
    multipliers = golden["optimum_multipliers"] / [scale, 1.0]
    assert solution.multipliers == pytest.approx(multipliers, rel=1e-8)


@given(cmdp=strategies.cmdps(kinds=strategies.CONSTRAINED), shift=st.sampled_from([-3.0, 0.5]))
def test_shifting_the_rewards_shifts_the_value(cmdp: cmdpax.CMDP, shift: float) -> None:
    value = cmdpax.solve(cmdp).value
    shifted = cmdpax.solve(cmdp.replace(rewards=cmdp.rewards + shift))
    assert shifted.value == pytest.approx(value + shift * cmdp.horizon, abs=1e-9)


# -------------------------------------------------------------------------------------- symmetries


def test_permuting_constraints_permutes_everything(two_constraints: Golden) -> None:
    cmdp = two_constraints.cmdp
    swapped = cmdp.replace(
        constraint_rewards=cmdp.constraint_rewards[::-1], thresholds=cmdp.thresholds[::-1]
    )
    for method in METHODS:
        one, other = cmdpax.solve(cmdp, method), cmdpax.solve(swapped, method)
        assert other.value == pytest.approx(one.value, abs=1e-10)
        assert other.multipliers == pytest.approx(one.multipliers[::-1], abs=1e-9)
        assert other.constraint_values == pytest.approx(one.constraint_values[::-1], abs=1e-9)
        assert other.slater_gap == pytest.approx(one.slater_gap, abs=1e-9)


def test_a_repeated_constraint_changes_nothing(paper: Golden) -> None:
    cmdp = paper.cmdp
    twice = cmdp.replace(
        constraint_rewards=np.repeat(cmdp.constraint_rewards, 2, axis=0),
        thresholds=np.repeat(cmdp.thresholds, 2),
    )
    for method in METHODS:
        solution = cmdpax.solve(twice, method)
        assert solution.value == pytest.approx(float(paper["optimum_value"]), abs=1e-9)
        total = solution.multipliers.sum()
        assert total == pytest.approx(float(paper["optimum_multipliers"][0]), abs=1e-9)


@given(cmdp=strategies.cmdps(kinds=strategies.CONSTRAINED))
def test_lower_thresholds_never_hurt(cmdp: cmdpax.CMDP) -> None:
    lower = cmdp.replace(thresholds=cmdp.thresholds - 0.1)
    one, other = cmdpax.solve(cmdp), cmdpax.solve(lower)
    assert one.value <= other.value + 1e-9
    # Concave in the thresholds, with slope -λ*.
    assert other.value <= one.value + 0.1 * one.multipliers.sum() + 1e-9


# ------------------------------------------------------------------------------------- Slater gap


@given(cmdp=strategies.cmdps(kinds=strategies.CONSTRAINED, slacks=(-0.3, 0.0, 0.3)))
def test_the_slater_gap_is_that_of_the_best_mixture(cmdp: cmdpax.CMDP) -> None:
    expected = reference.slater_gap(reference.densify(cmdp))
    for method in METHODS:
        found = cmdpax.slater_gap(cmdp, method)
        assert abs(found.gap - expected) <= 1e-9


def test_the_slater_gap_is_computed_when_first_asked_for(
    paper: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cmdpax.planning import solution as module

    calls = []
    original = module.slater_gap

    def counted(*args: object, **kwargs: object) -> object:
        calls.append(kwargs)
        return original(*args, **kwargs)

    monkeypatch.setattr(module, "slater_gap", counted)
    for method in METHODS:
        calls.clear()
        solution = cmdpax.solve(paper.cmdp, method)
        assert calls == []
        first = solution.slater_gap
        assert solution.slater_gap == first == pytest.approx(float(paper["optimum_slater_gap"]))
        assert calls == [{"method": method}]


def test_the_slater_gap_does_not_exist_without_constraints() -> None:
    assert cmdpax.slater_gap(one_step([1.0], [], [])) is None


# ------------------------------------------------------------------------------------- feasibility


@given(cmdp=strategies.cmdps(kinds=strategies.CONSTRAINED, feasible=False))
def test_infeasible_models_are_refused_with_their_gap(cmdp: cmdpax.CMDP) -> None:
    model = reference.densify(cmdp)
    expected = reference.slater_gap(model)
    for method in METHODS:
        with pytest.raises(cmdpax.InfeasibleError) as raised:
            cmdpax.solve(cmdp, method)
        assert raised.value.slater_gap == pytest.approx(expected, abs=1e-9)
        # Ξ is concave in c with slopes -λ on the simplex, and the worst constraint has the largest
        # λ: raising its threshold by 1 lowers Ξ by 1/I at least.
        harder = model.thresholds.copy()
        harder[raised.value.worst_constraint] += 1.0
        lowered = reference.slater_gap(model._replace(thresholds=harder))
        assert lowered <= expected - 1 / cmdp.num_constraints + 1e-9


@every_method
def test_the_sentence_of_an_infeasible_model(method: str) -> None:
    # Constraint 0 has slack 0.4 at best, constraint 1 lacks 0.25 at best.
    cmdp = one_step([1.0, 0.0], [[0.5, 0.9], [0.25, 0.75]], [0.5, 1.0])
    with pytest.raises(cmdpax.InfeasibleError) as raised:
        cmdpax.solve(cmdp, method)
    assert raised.value.worst_constraint == 1
    assert raised.value.slater_gap == pytest.approx(-0.25, abs=1e-12)
    assert str(raised.value) == (
        "the CMDP is infeasible: every policy misses some threshold by at least 0.25 (Slater gap "
        "-0.25), constraint 1 being the worst: it must be at least 1, and 0.75 is the most that "
        "can be reached, the others being met; lower thresholds[1] by 0.25."
    )


@every_method
def test_constraints_that_exclude_each_other_are_infeasible_together(method: str) -> None:
    cmdp = one_step([1.0, 0.0], [[1.0, 0.0], [0.0, 1.0]], [0.75, 0.75])
    with pytest.raises(cmdpax.InfeasibleError) as raised:
        cmdpax.solve(cmdp, method)
    assert raised.value.slater_gap == pytest.approx(-0.25, abs=1e-12)


@every_method
def test_a_threshold_at_the_maximum_is_feasible_without_slack(method: str, paper: Golden) -> None:
    model = reference.densify(paper.cmdp)
    most = greedy_values(paper.cmdp, np.array([[0.0, 1.0]]))[0, 1]
    assert most == pytest.approx(reference.best_value(model, model.constraint_rewards[0]))
    cmdp = paper.cmdp.replace(thresholds=[most])
    solution = cmdpax.solve(cmdp, method)
    assert solution.slater_gap == pytest.approx(0.0, abs=1e-9)
    assert solution.constraint_values[0] >= most - 1e-9
    # The one policy that maximises V_u decides the reward.
    only = greedy_values(paper.cmdp, np.array([[0.0, 1.0]]))[0, 0]
    assert solution.value == pytest.approx(only, abs=1e-6)
    assert num_random_decisions(solution) <= 1


@every_method
def test_two_opposing_constraints_leave_a_single_value(method: str, paper: Golden) -> None:
    # V_u ≥ c and V_{-u} ≥ -c: exactly c. The reward is then the optimum of V_u ≥ c.
    cmdp = paper.cmdp.replace(
        constraint_rewards=np.concatenate(
            [paper.cmdp.constraint_rewards, -paper.cmdp.constraint_rewards]
        ),
        thresholds=np.concatenate([paper.cmdp.thresholds, -paper.cmdp.thresholds]),
    )
    solution = cmdpax.solve(cmdp, method)
    assert solution.value == pytest.approx(float(paper["optimum_value"]), abs=1e-8)
    assert solution.constraint_values[0] == pytest.approx(paper.cmdp.thresholds[0], abs=1e-9)
    assert solution.slater_gap == pytest.approx(0.0, abs=1e-9)


@every_method
def test_a_single_feasible_point(method: str) -> None:
    # Action 0 with probability exactly 1/4, by two opposing constraints.
    cmdp = one_step([1.0, 0.0], [[1.0, 0.0], [-1.0, 0.0]], [0.25, -0.25])
    solution = cmdpax.solve(cmdp, method)
    assert solution.value == pytest.approx(0.25, abs=1e-9)
    assert solution.policy.ravel() == pytest.approx([0.25, 0.75], abs=1e-9)


@every_method
@pytest.mark.filterwarnings("ignore:the occupancy program was left")  # HiGHS allows 1e-10
@pytest.mark.parametrize(("excess", "feasible"), [(4e-10, True), (6e-10, False)])
def test_infeasibility_starts_at_1e_9_of_scale(method: str, excess: float, feasible: bool) -> None:
    cmdp = one_step([1.0, 0.0], [[0.0, 0.5]], [0.5 + excess])  # the scale is 0.5
    if feasible:
        assert cmdpax.solve(cmdp, method).value == pytest.approx(0.0, abs=1e-8)
    else:
        with pytest.raises(cmdpax.InfeasibleError, match="constraint 0 being the worst"):
            cmdpax.solve(cmdp, method)


def test_an_undecided_search_for_feasibility_is_not_called_infeasible(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cmdp = one_step([1.0, 0.0], [[0.0, 0.5]], [0.2])
    original = Generator.maximise_slack

    def undecided(self: Generator, *arguments: Any, **named: Any) -> Any:
        found = original(self, *arguments, **named)
        return found._replace(value=-0.1, bound=bound)

    monkeypatch.setattr(Generator, "maximise_slack", undecided)
    bound = 0.3
    with pytest.raises(cmdpax.SolverError, match=r"slack is between -0\.1 and 0\.3") as raised:
        cmdpax.solve(cmdp)
    assert str(raised.value).endswith("relax the thresholds a little.")
    bound = -0.05
    with pytest.raises(cmdpax.InfeasibleError):
        cmdpax.solve(cmdp)


# ------------------------------------------------------------------------------------ the interface


@every_method
def test_results_are_numpy_doubles(method: str, two_constraints: Golden) -> None:
    solution = cmdpax.solve(two_constraints.cmdp, method)
    assert_numpy_doubles(
        solution.policy, solution.occupancy, solution.multipliers, solution.constraint_values
    )
    assert type(solution.value) is float
    assert type(solution.gap) is float
    assert type(solution.slater_gap) is float
    assert solution.policy.shape == solution.occupancy.shape == (6, 4, 3)
    assert repr(solution).startswith("Solution(value=2.851699364, gap=")


def test_columns_are_counted(paper: Golden) -> None:
    assert cmdpax.solve(paper.cmdp, "occupancy-lp").num_columns == 0
    assert 2 <= cmdpax.solve(paper.cmdp).num_columns <= 30


def test_another_thread_gets_the_same_numbers(golden: Golden) -> None:
    found = {}

    def work() -> None:
        solution = cmdpax.solve(golden.cmdp)
        found.update(value=solution.value, policy=solution.policy)
        found["saddle"] = cmdpax.solve_regularized(golden.cmdp, 0.05, 6.0).policy

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found["value"] == pytest.approx(float(golden["optimum_value"]), abs=1e-9)
    assert_numpy_doubles(found["policy"], found["saddle"])
    np.testing.assert_allclose(found["saddle"], golden["saddle_policy"], rtol=0, atol=1e-9)


def test_an_unknown_method_is_named_with_the_nearest(paper: Golden) -> None:
    expected = "method is 'ocupancy-lp'; did you mean 'occupancy-lp'"
    with pytest.raises(cmdpax.ParameterError, match=expected):
        cmdpax.solve(paper.cmdp, "ocupancy-lp")
    with pytest.raises(cmdpax.ParameterError, match="method is"):
        cmdpax.slater_gap(paper.cmdp, "simplex")


@pytest.mark.parametrize("tolerance", [0.0, -1.0, float("nan")])
def test_a_tolerance_must_be_positive(tolerance: float, paper: Golden) -> None:
    with pytest.raises(cmdpax.ParameterError, match=f"tolerance is {tolerance}, it must be"):
        cmdpax.solve(paper.cmdp, tolerance=tolerance)


def test_models_are_validated(paper: Golden) -> None:
    broken = paper.cmdp.replace(initial=[0.5, 0, 0, 0, 0])
    for function in (cmdpax.solve, cmdpax.slater_gap):
        with pytest.raises(cmdpax.ModelError, match=r"initial sums to 0\.5"):
            function(broken)


def test_no_solver_is_needed(monkeypatch: pytest.MonkeyPatch, paper: Golden) -> None:
    """The master is solved here: numpy and jax are enough to plan."""
    expected = cmdpax.solve(paper.cmdp)
    monkeypatch.setitem(sys.modules, "scipy", None)  # makes its import fail
    found = cmdpax.solve(paper.cmdp)
    assert (found.value, found.slater_gap) == (expected.value, expected.slater_gap)
    assert cmdpax.frontier(paper.cmdp, num_points=4).feasible.any()


def test_a_simpler_policy_that_is_worse_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    cmdp = cmdpax.environments.make("gridworld", num_constraints=2, uniform_start=True, seed=3)
    monkeypatch.setattr(recovery, "derandomize", lambda cmdp, policy: policy[..., ::-1].copy())
    solution = cmdpax.solve(cmdp)
    with pytest.warns(cmdpax.CmdpaxWarning, match="random in more places"):
        assert num_random_decisions(solution) > 2
    assert cmdpax.evaluate(cmdp, solution.policy).value == pytest.approx(solution.value, abs=1e-9)


def test_how_a_mixture_rounds_does_not_keep_a_policy_random(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sums over millions of places round more than backward induction: here by so much."""
    cmdp = cmdpax.environments.make("gridworld", num_constraints=2, uniform_start=True, seed=3)
    exact = recovery.mixture_values
    monkeypatch.setattr(
        recovery, "mixture_values", lambda mixture: exact(mixture) + 2e-12 * cmdp.horizon
    )
    assert num_random_decisions(cmdpax.solve(cmdp)) <= 2
