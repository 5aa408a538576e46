import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cmdpax
import reference
import strategies
from checks import num_random_decisions
from cmdpax.planning.scaling import scale
from cmdpax.planning.stepping import Stepper, occupancy_of, state_occupancy_of, values_ahead
from cmdpax.planning.switching import switch


@given(cmdp=strategies.cmdps(), data=st.data())
def test_values_and_occupancies_of_policies(cmdp: cmdpax.CMDP, data: st.DataObject) -> None:
    policy, stepper = data.draw(strategies.policies(cmdp)), Stepper(cmdp)
    expected = reference.evaluate(reference.densify(cmdp), policy)
    np.testing.assert_allclose(occupancy_of(stepper, policy), expected.occupancy, atol=1e-13)
    values = cmdp.initial @ values_ahead(stepper, policy)[0]
    assert values[0] == pytest.approx(expected.value, abs=1e-12)
    assert values[1:] == pytest.approx(expected.constraint_values, abs=1e-12)


@given(cmdp=strategies.cmdps(), data=st.data())
def test_a_deterministic_policy_by_its_actions(cmdp: cmdpax.CMDP, data: st.DataObject) -> None:
    policy, stepper = data.draw(strategies.policies(cmdp)), Stepper(cmdp)
    actions = policy.argmax(axis=2)
    certain = np.eye(cmdp.num_actions)[actions]
    mass = occupancy_of(stepper, certain).sum(axis=2)
    np.testing.assert_allclose(state_occupancy_of(stepper, actions), mass, atol=1e-14)


@given(cmdp=strategies.cmdps(), exponents=st.data())
def test_scaling_is_exact(cmdp: cmdpax.CMDP, exponents: st.DataObject) -> None:
    factor = 2.0 ** exponents.draw(st.integers(-300, 300))
    scaled = scale(cmdp.replace(rewards=factor * cmdp.rewards))
    np.testing.assert_array_equal(
        np.ldexp(scaled.cmdp.rewards, scaled.exponents[0]), factor * cmdp.rewards
    )
    if cmdp.rewards.any():
        assert 0.5 <= np.abs(scaled.cmdp.rewards).max() < 1
    np.testing.assert_array_equal(
        np.ldexp(scaled.thresholds(cmdp.thresholds), scaled.exponents[1:]), cmdp.thresholds
    )


# ------------------------------------------------------------------------------------- switching


@given(cmdp=strategies.cmdps(), data=st.data())
def test_switching_keeps_the_constraint_value(cmdp: cmdpax.CMDP, data: st.DataObject) -> None:
    """Any policy, and any one constraint."""
    signal = data.draw(strategies.policies(cmdp))  # any numbers will do
    one = cmdp.replace(constraint_rewards=signal[None], thresholds=[0.0])
    policy = data.draw(strategies.policies(cmdp))
    switched = switch(one, policy)
    model = reference.densify(one)
    before, after = reference.evaluate(model, policy), reference.evaluate(model, switched)
    assert after.constraint_values == pytest.approx(before.constraint_values, abs=1e-12)
    assert np.count_nonzero(np.count_nonzero(switched, axis=2) > 1) <= 1


def test_switching_serves_where_there_is_one_constraint(monkeypatch: pytest.MonkeyPatch) -> None:
    from cmdpax.planning import recovery

    def never(*arguments: object) -> None:
        raise AssertionError

    monkeypatch.setattr(recovery, "derandomize", never)
    cmdp = cmdpax.environments.make("gridworld", uniform_start=True, seed=3)
    assert cmdp.num_constraints == 1
    solution = cmdpax.solve(cmdp)
    assert num_random_decisions(solution) <= 1
    reached = cmdpax.evaluate(cmdp, solution.policy)
    assert reached.value == pytest.approx(solution.value, abs=1e-9)
    assert reached.constraint_values == pytest.approx(solution.constraint_values, abs=1e-9)
