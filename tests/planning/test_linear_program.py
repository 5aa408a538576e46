from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cmdpax
import reference
import strategies
from certified import flaws_on
from checks import one_step
from cmdpax.planning import linear_program
from degenerate import degenerate
from golden_files import Golden


@given(cmdp=strategies.cmdps(), data=st.data())
def test_occupancies_of_policies_satisfy_the_flow_equations(
    cmdp: cmdpax.CMDP, data: st.DataObject
) -> None:
    flow, right = linear_program.flow_constraints(cmdp)
    policy = data.draw(strategies.policies(cmdp))
    mass = reference.evaluate(reference.densify(cmdp), policy).occupancy
    np.testing.assert_allclose(flow @ mass.ravel(), right, rtol=0, atol=1e-12)


@given(cmdp=strategies.cmdps())
def test_the_flow_equations_entry_by_entry(cmdp: cmdpax.CMDP) -> None:
    model = reference.densify(cmdp)
    _, horizon, num_states, num_actions = cmdp.sizes
    expected = np.zeros((horizon, num_states, horizon, num_states, num_actions))
    for h, s, a in np.ndindex(horizon, num_states, num_actions):
        expected[h, s, h, s, a] += 1
        if h + 1 < horizon:
            for t in range(num_states):
                expected[h + 1, t, h, s, a] -= model.transitions[h, s, a, t]
    flow, right = linear_program.flow_constraints(cmdp)
    matrix = flow.toarray()
    np.testing.assert_allclose(matrix, expected.reshape(matrix.shape), rtol=0, atol=1e-15)
    assert right.tolist() == [*cmdp.initial.tolist(), *[0.0] * (horizon - 1) * num_states]


def test_the_flow_matrix_stays_sparse() -> None:
    cmdp = cmdpax.environments.make("gridworld", height=20, width=20, horizon=5)
    flow, _ = linear_program.flow_constraints(cmdp)
    _, horizon, num_states, num_actions = cmdp.sizes
    # One entry for leaving a pair and at most four for where it leads.
    assert flow.nnz <= 5 * horizon * num_states * num_actions


def test_an_infeasible_program_has_no_optimum() -> None:
    cmdp = one_step([1.0, 0.0], [[0.0, 0.5]], [0.75])
    assert linear_program.maximise_reward(cmdp) == "HiGHS calls it infeasible"
    occupancy, _ = linear_program.maximise_reward(cmdp.replace(thresholds=[0.5]))
    assert occupancy.ravel() == pytest.approx([0.0, 1.0], abs=1e-12)


def test_the_slack_program_counts_in_units() -> None:
    cmdp = one_step([1.0, 0.0], [[0.5, 0.9], [0.25, 0.75]], [0.5, 1.0])
    _, multipliers = linear_program.maximise_slack(cmdp, np.ones(2))
    assert multipliers == pytest.approx([0.0, 1.0], abs=1e-12)
    _, multipliers = linear_program.maximise_slack(cmdp, np.array([1.0, 4.0]))
    assert multipliers == pytest.approx([0.0, 0.25], abs=1e-12)


# ----------------------------------------------------------------------- what HiGHS says is checked


def proposals(monkeypatch: pytest.MonkeyPatch, change: Callable[[Any], Any]) -> None:
    original = linear_program.maximise_reward
    monkeypatch.setattr(linear_program, "maximise_reward", lambda cmdp: change(original(cmdp)))


def fallen_back(paper: Golden, reason: str) -> None:
    with pytest.warns(cmdpax.CmdpaxWarning, match=f"left to column generation: {reason}"):
        solution = cmdpax.solve(paper.cmdp, "occupancy-lp")
    assert solution.method == "column-generation"
    assert solution.value == pytest.approx(float(paper["optimum_value"]), abs=1e-9)


def test_an_occupancy_that_misses_a_threshold_is_not_believed(
    monkeypatch: pytest.MonkeyPatch, paper: Golden
) -> None:
    first_action = np.eye(5)[0] * np.ones((5, 5, 1))
    proposals(monkeypatch, lambda found: (first_action, found[1]))
    fallen_back(paper, "the occupancy that HiGHS returned misses a threshold by .* of its scale")


def test_multipliers_that_prove_nothing_are_not_believed(
    monkeypatch: pytest.MonkeyPatch, paper: Golden
) -> None:
    proposals(monkeypatch, lambda found: (found[0], found[1] + 1.0))
    fallen_back(paper, "the optimum that HiGHS returned is certified to a gap of .* only")


def test_a_tiny_miss_that_is_worth_much_is_not_believed() -> None:
    """A probability of 2e-15 makes λ so large that a miss of 6e-12 of scale is worth 0.43."""
    cmdp = degenerate(13_012_672).cmdp
    with pytest.warns(cmdpax.CmdpaxWarning, match="HiGHS returned is worth .* more than any"):
        solution = cmdpax.solve(cmdp, "occupancy-lp")
    assert solution.value == pytest.approx(cmdpax.solve(cmdp).value, rel=1e-9)


def test_circles_end() -> None:
    """HiGHS makes no progress on this model, and would not stop."""
    cmdp = degenerate(13_020_927).cmdp
    with pytest.warns(cmdpax.CmdpaxWarning, match="HiGHS did not solve it within 16000 steps"):
        cmdpax.solve(cmdp, "occupancy-lp")


def test_a_program_that_is_not_solved_is_told(
    monkeypatch: pytest.MonkeyPatch, paper: Golden
) -> None:
    proposals(monkeypatch, lambda found: "HiGHS could not solve it (status 4)")
    fallen_back(paper, r"HiGHS could not solve it \(status 4\)")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("HiGHS could not solve it (status 4)", "status 4"),
        (np.zeros(1), "HiGHS returned no multipliers"),
        (np.ones(1), "the Slater gap that HiGHS returned is certified to .* only"),
    ],
)
def test_a_slater_gap_is_not_believed_either(
    answer: Any, reason: str, monkeypatch: pytest.MonkeyPatch, paper: Golden
) -> None:
    given = answer if isinstance(answer, str) else (np.full((5, 5, 5), 0.04), answer)
    monkeypatch.setattr(linear_program, "maximise_slack", lambda cmdp, units: given)
    with pytest.warns(cmdpax.CmdpaxWarning, match=reason):
        found = cmdpax.slater_gap(paper.cmdp, "occupancy-lp")
    assert found.gap == pytest.approx(float(paper["optimum_slater_gap"]), abs=1e-9)


def test_a_chain_on_which_presolving_does_not_end() -> None:
    """HiGHS' presolve overflowed the stack on this model, and with it ended the process."""
    model = degenerate(51_000_831)
    assert not flaws_on(model.cmdp, model.feasible)
