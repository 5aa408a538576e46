import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cmdpax
import reference
import strategies
from checks import one_step
from cmdpax.planning import linear_program


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
    assert linear_program.maximise_reward(cmdp) is None
    relaxed = linear_program.maximise_reward(cmdp, relaxation=0.25)
    assert relaxed.occupancy.ravel() == pytest.approx([0.0, 1.0], abs=1e-12)


def test_the_slack_program_names_the_limiting_constraint() -> None:
    cmdp = one_step([1.0, 0.0], [[0.5, 0.9], [0.25, 0.75]], [0.5, 1.0])
    assert linear_program.maximise_slack(cmdp) == pytest.approx((-0.25, 1), abs=1e-12)
