import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cmdpax
import reference
import strategies
from cmdpax.planning import stepping
from cmdpax.planning.scaling import Scaled
from cmdpax.planning.stepping import Stepper, occupancy_of, values_ahead


@given(cmdp=strategies.cmdps(), data=st.data())
def test_values_and_occupancies_of_policies(cmdp: cmdpax.CMDP, data: st.DataObject) -> None:
    policy, stepper = data.draw(strategies.policies(cmdp)), Stepper(cmdp)
    expected = reference.evaluate(reference.densify(cmdp), policy)
    np.testing.assert_allclose(occupancy_of(stepper, policy), expected.occupancy, atol=1e-13)
    values = cmdp.initial @ values_ahead(stepper, policy)[0]
    assert values[0] == pytest.approx(expected.value, abs=1e-12)
    assert values[1:] == pytest.approx(expected.constraint_values, abs=1e-12)


@given(cmdp=strategies.cmdps(), data=st.data())
def test_lists_and_matrices_say_the_same(cmdp: cmdpax.CMDP, data: st.DataObject) -> None:
    """Small models are stepped as matrices, large ones as they are stored."""
    policy, ahead = data.draw(strategies.policies(cmdp)), np.zeros((cmdp.horizon + 1, 0, 0))
    found = []
    for small in (0, 32):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(stepping, "_SMALL", small)
            patch.setattr(stepping, "_BLOCK", 50 if small else 2_000_000)
            stepper = Stepper(cmdp)
            ahead = values_ahead(stepper, policy)
            steps, states, actions = np.nonzero(policy)
            q_values = stepper.q_values(steps, states, actions, ahead)
            rows = [stepper.row(*pair) for pair in np.argwhere(policy).tolist()]
            found.append((occupancy_of(stepper, policy), ahead, q_values, np.array(rows)))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
    # V is the mean of Q.
    mean = np.zeros_like(ahead[:-1])
    np.add.at(mean, (steps, states), policy[steps, states, actions][:, None] * q_values)
    np.testing.assert_allclose(mean, ahead[:-1], atol=1e-12)


def test_several_masses_are_pushed_at_once() -> None:
    for states in (3, 40):
        cmdp = cmdpax.environments.make("gridworld", height=states, width=1, seed=0)
        policy = np.full((cmdp.horizon, *cmdp.sizes[2:]), 1 / cmdp.num_actions)
        flows = Stepper(cmdp).flows(policy)
        masses = np.random.default_rng(0).random((2, cmdp.num_states))
        pushed = flows.push(0, masses)
        np.testing.assert_allclose(pushed, [flows.push(0, mass) for mass in masses], atol=1e-15)
        assert pushed.sum() == pytest.approx(masses.sum())
        functions = np.random.default_rng(1).random((cmdp.num_states, 2))
        # ⟨mass P, f⟩ = ⟨mass, P f⟩
        np.testing.assert_allclose(pushed @ functions, masses @ flows.expected(0, functions))


@given(cmdp=strategies.cmdps(), exponents=st.data())
def test_scaling_is_exact(cmdp: cmdpax.CMDP, exponents: st.DataObject) -> None:
    factor = 2.0 ** exponents.draw(st.integers(-300, 300))
    scaled = Scaled(cmdp.replace(rewards=factor * cmdp.rewards))
    np.testing.assert_array_equal(
        np.ldexp(scaled.cmdp.rewards, scaled.exponents[0]), factor * cmdp.rewards
    )
    if cmdp.rewards.any():
        assert 0.5 <= np.abs(scaled.cmdp.rewards).max() < 1
    np.testing.assert_array_equal(
        np.ldexp(scaled.thresholds(cmdp.thresholds), scaled.exponents[1:]), cmdp.thresholds
    )
