"""Actions that are not available: the optimum is that of the model without them."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given

import available_cases
import cmdpax
import exact
import reference
from available_cases import STORAGES, case, restricted, with_copies
from cmdpax.planning.batched import plan
from cmdpax.planning.certificate import Rounding, sharper_bound
from cmdpax.planning.dynamic_program import greedy_plans

METHODS = ("column-generation", "occupancy-lp")
every_storage = pytest.mark.parametrize("storage", STORAGES)


def copied(cmdp: cmdpax.CMDP) -> cmdpax.CMDP:
    """Without flags, and with the same values."""
    return cmdpax.CMDP(*with_copies(cmdp))


def assert_available(cmdp: cmdpax.CMDP, policy: np.ndarray) -> None:
    """Probability 0, not almost, for all other actions."""
    flags = np.broadcast_to(cmdp.available, policy.shape)
    assert (policy[~flags] == 0).all()
    np.testing.assert_allclose(policy.sum(axis=-1), 1, rtol=0, atol=1e-12)


def assert_solved(cmdp: cmdpax.CMDP, found: cmdpax.Solution, value: float) -> None:
    assert found.value == pytest.approx(value, abs=1e-9)
    assert_available(cmdp, found.policy)
    assert exact.flaws_of(copied(cmdp), found) == []
    reached = cmdpax.evaluate(cmdp, found.policy)
    assert reached.value == pytest.approx(value, abs=1e-9)
    np.testing.assert_allclose(reached.occupancy, found.occupancy, rtol=0, atol=1e-12)


@every_storage
def test_the_optimum_is_that_of_the_other_actions(storage: str) -> None:
    cmdp, left, _ = case(storage)
    best = reference.optimum(reference.densify(left))
    assert best is not None
    for method in METHODS:
        found = cmdpax.solve(cmdp, method)
        assert found.method == method
        assert_solved(cmdp, found, best)
        np.testing.assert_allclose(found.multipliers, cmdpax.solve(left).multipliers, atol=1e-9)
    gaps = [cmdpax.slater_gap(model) for model in (cmdp, left)]
    assert gaps[0] == pytest.approx(gaps[1], abs=1e-9)


@given(cmdp=restricted())
def test_any_flags(cmdp: cmdpax.CMDP) -> None:
    if cmdp.available is None:
        return
    best = reference.optimum(with_copies(cmdp))
    assert best is not None
    (found,) = cmdpax.solve_many([cmdp])
    for solution in (*(cmdpax.solve(cmdp, method) for method in METHODS), found):
        assert_solved(cmdp, solution, best)


def test_what_only_other_actions_reach_is_infeasible() -> None:
    cmdp, left, _ = case("steps")
    most = reference.best_value(
        reference.densify(left), reference.densify(left).constraint_rewards[0]
    )
    beyond = cmdp.replace(thresholds=[most + 0.01])
    assert cmdpax.solve(beyond.replace(available=None)).feasible
    for method in METHODS:
        with pytest.raises(cmdpax.InfeasibleError, match="can be reached"):
            cmdpax.solve(beyond, method)
    (found,) = cmdpax.solve_many([beyond])
    assert not found.feasible
    assert found.constraint_values[0] == pytest.approx(most, abs=1e-9)
    assert_available(beyond, found.policy)


def test_many_models_with_flags_and_without() -> None:
    """Flags of one step, of all steps, and none, in one stack."""
    base = case("steps").cmdp
    models = [
        base,
        base.replace(available=base.available[0]),
        base.replace(available=None),
        base.replace(available=base.available[::-1]),
    ]
    for some in (models, models[:2], models[::2]):
        for cmdp, found in zip(some, cmdpax.solve_many(some), strict=True):
            alone = cmdpax.solve(cmdp)
            assert found.value == pytest.approx(alone.value, abs=1e-9)
            if cmdp.available is not None:
                assert_solved(cmdp, found, alone.value)
    values = [cmdpax.solve(cmdp).value for cmdp in models]
    assert np.ptp(values) > 0.01


@pytest.mark.usefixtures("double_precision")
@every_storage
def test_the_compiled_planner_jitted_and_vmapped(storage: str) -> None:
    """Models with flags of their own, or with one model's."""
    cmdps = [case(storage, seed).cmdp for seed in range(2)]
    together = jax.jit(jax.vmap(plan))(jax.tree.map(lambda *parts: jnp.stack(parts), *cmdps))
    compiled = jax.jit(plan)
    for index, cmdp in enumerate(cmdps):
        alone = compiled(cmdp)
        assert_available(cmdp, np.asarray(alone.policy))
        for one, other in zip(together, alone, strict=True):
            np.testing.assert_allclose(one[index], other, rtol=0, atol=1e-12)
    thresholds = jnp.stack([cmdps[0].thresholds, cmdps[0].thresholds - 0.2])

    def at(bound: Any) -> Any:
        children, horizon = cmdps[0].tree_flatten()
        return plan(cmdpax.CMDP.tree_unflatten(horizon, (*children[:3], bound, *children[4:])))

    shared = jax.jit(jax.vmap(at))(thresholds)
    for policy, value, bound in zip(shared.policy, shared.value, thresholds, strict=True):
        assert_available(cmdps[0], np.asarray(policy))
        best = cmdpax.solve(cmdps[0].replace(thresholds=np.asarray(bound))).value
        assert float(value) == pytest.approx(best, abs=1e-9)


@pytest.mark.usefixtures("double_precision")
@every_storage
def test_bounds_in_every_precision_are_over_available_actions(storage: str) -> None:
    cmdp, left, _ = case(storage)
    multipliers, thresholds = np.array([0.7]), cmdp.thresholds
    expected = float(reference.dual_value(reference.densify(left), multipliers))
    weights = np.array([[1.0, 0.7]])
    values, actions = greedy_plans(cmdp, weights)
    assert float(weights[0] @ values[0] - multipliers @ thresholds) == pytest.approx(expected)
    steps, states = np.indices(actions.shape[1:])
    assert np.broadcast_to(cmdp.available, cmdp.sizes[1:])[steps, states, actions[0]].all()
    for worth in (1.0, 0.0):  # extended precision, then integers
        found = sharper_bound(cmdp, Rounding(cmdp), multipliers, 0, thresholds, worth)
        assert found is not None
        assert found[0] == pytest.approx(expected, abs=1e-12)


@every_storage
def test_the_regularized_saddle_is_that_of_the_other_actions(storage: str) -> None:
    one = case(storage)
    found, left = (cmdpax.solve_regularized(model, 0.05) for model in one[:2])
    assert found.value == pytest.approx(left.value, abs=1e-12)
    assert found.residual < 1e-12
    np.testing.assert_allclose(found.multipliers, left.multipliers, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.policy, one.widened(left.policy), rtol=0, atol=1e-9)
    assert_available(one.cmdp, found.policy)
    assert (found.log_policy[~one.flags] == -np.inf).all()
    np.testing.assert_allclose(found.occupancy, one.widened(left.occupancy), rtol=0, atol=1e-9)


def test_the_frontier_is_that_of_the_other_actions() -> None:
    cmdp, left, _ = available_cases.case("lists")
    found, other = (cmdpax.frontier(model, num_points=5) for model in (cmdp, left))
    np.testing.assert_allclose(found.thresholds, other.thresholds, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.value, other.value, rtol=0, atol=1e-9)


def test_policies_with_other_actions_are_refused() -> None:
    cmdp = case("steps").cmdp
    uniform = np.full(cmdp.sizes[1:], 1 / 3)
    for call in (
        lambda: cmdpax.evaluate(cmdp, uniform),
        lambda: cmdpax.account(cmdp, uniform[None]),
    ):
        with pytest.raises(cmdpax.ModelError, match=r"is not available in state .*; give it prob"):
            call()
