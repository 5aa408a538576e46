"""The compiled planner of many models: the optimum of `solve`, in any transformation of JAX."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cmdpax
import strategies
from checks import EXACT, assert_distributions, one_step
from cmdpax.jax_context import cast, in_double_precision
from cmdpax.planning import batched, feasibility
from cmdpax.planning.batched import Plan, plan
from golden_files import Golden

one_by_one = jax.jit(plan)
all_at_once = jax.jit(jax.vmap(plan))


def stacked(cmdps: Sequence[cmdpax.CMDP]) -> cmdpax.CMDP:
    return jax.tree.map(lambda *arrays: np.stack(arrays), *cmdps)


@in_double_precision
def planned(cmdp: cmdpax.CMDP, start: np.ndarray | None = None) -> Plan:
    """The plan of one model, in double precision, as NumPy arrays.

    It begins at 0 if not told, in the program that is told; batches have one that is not.
    """
    start = np.zeros_like(cmdp.thresholds) if start is None else start
    return jax.tree.map(np.asarray, one_by_one(jax.tree.map(jnp.asarray, cmdp), start))


@in_double_precision
def planned_together(cmdps: cmdpax.CMDP, *start: np.ndarray) -> Plan:
    """The plans of stacked models."""
    return jax.tree.map(np.asarray, all_at_once(jax.tree.map(jnp.asarray, cmdps), *start))


def nth(plans: Plan, index: int) -> Plan:
    return jax.tree.map(lambda array: array[index], plans)


def random_models(count: int, **sizes: Any) -> list[cmdpax.CMDP]:
    return [cmdpax.environments.make("random", seed=seed, **sizes) for seed in range(count)]


def assert_exact(cmdp: cmdpax.CMDP, found: Plan, tolerance: float = EXACT) -> None:
    """The optimum of `solve`, bounds that meet it, and a Markov policy that reaches it."""
    solution = cmdpax.solve(cmdp)
    assert found.feasible
    assert found.value == pytest.approx(solution.value, abs=tolerance)
    assert found.upper_bound == pytest.approx(solution.value, abs=tolerance)
    reached = cmdpax.evaluate(cmdp, found.policy)
    assert_distributions(found.policy)
    assert reached.value == pytest.approx(found.value, abs=tolerance)
    np.testing.assert_allclose(
        reached.constraint_values, found.constraint_values, rtol=0, atol=tolerance
    )
    np.testing.assert_allclose(reached.occupancy, found.occupancy, rtol=0, atol=tolerance)
    assert np.all(found.constraint_values >= cmdp.thresholds - tolerance)
    assert np.all(found.multipliers >= 0)


def test_tolerances_are_those_of_solve() -> None:
    assert batched._MISSED == feasibility.TOLERANCE


def test_golden_models(golden: Golden) -> None:
    assert_exact(golden.cmdp, planned(golden.cmdp))


@given(strategies.cmdps(slacks=(0.0, 0.05, 0.3)))
def test_every_storage_and_number_of_constraints(cmdp: cmdpax.CMDP) -> None:
    assert_exact(cmdp, planned(cmdp))


@given(strategies.cmdps(strategies.CONSTRAINED, feasible=False))
def test_infeasible_models_have_the_largest_worst_slack(cmdp: cmdpax.CMDP) -> None:
    found = planned(cmdp)
    scales = np.abs(cmdp.constraint_rewards).max(axis=(1, 2, 3))
    scales = np.where(scales > 0, scales, 1.0)
    # In units of scale the Slater gap is what `worst_slack` is.
    relative = cmdp.replace(
        constraint_rewards=cmdp.constraint_rewards / scales[:, None, None, None],
        thresholds=cmdp.thresholds / scales,
    )
    assert not found.feasible
    assert found.worst_slack == pytest.approx(cmdpax.slater_gap(relative).gap, abs=EXACT)
    assert found.slack_bound == pytest.approx(found.worst_slack, abs=EXACT)
    assert found.multipliers @ scales == pytest.approx(1.0, abs=EXACT)
    reached = cmdpax.evaluate(relative, found.policy).constraint_values
    assert (reached - relative.thresholds).min() == pytest.approx(found.worst_slack, abs=EXACT)


@pytest.mark.parametrize("num_constraints", [0, 1, 2, 4])
def test_a_batch_is_its_models_one_by_one(num_constraints: int) -> None:
    models = random_models(6, num_constraints=num_constraints)
    together = planned_together(stacked(models))
    for index, cmdp in enumerate(models):
        assert_exact(cmdp, nth(together, index))
        alone = planned(cmdp)
        assert alone.rounds == together.rounds[index]
        np.testing.assert_allclose(alone.policy, together.policy[index], rtol=0, atol=1e-12)
    assert together.rounds.max() <= 12 + 8 * num_constraints


def test_batches_of_batches_and_shared_arrays() -> None:
    cmdp = cmdpax.environments.make("random", num_constraints=2)
    factors = np.linspace(0.5, 1.0, 6).reshape(2, 3)
    thresholds = factors[:, :, None] * cmdp.thresholds

    @in_double_precision
    def run() -> Plan:
        each = jax.vmap(
            jax.vmap(lambda c: plan(jax.tree.map(jnp.asarray, cmdp).replace(thresholds=c)))
        )
        return jax.tree.map(np.asarray, jax.jit(each)(thresholds))

    found = run()
    assert found.policy.shape == (2, 3, 5, 5, 5)
    for place in np.ndindex(2, 3):
        there = cmdp.replace(thresholds=thresholds[place])
        assert_exact(there, jax.tree.map(lambda array, at=place: array[at], found))


@given(strategies.cmdps(strategies.CONSTRAINED), st.data())
def test_the_start_does_not_matter(cmdp: cmdpax.CMDP, data: st.DataObject) -> None:
    start = data.draw(strategies.multipliers(cmdp))
    assert_exact(cmdp, planned(cmdp, start))


def test_warm_starts_save_rounds() -> None:
    models = random_models(6, num_constraints=1)
    cold = planned_together(stacked(models))
    warm = planned_together(stacked(models), cold.multipliers)
    np.testing.assert_allclose(warm.value, cold.value, rtol=0, atol=EXACT)
    assert warm.rounds.mean() < cold.rounds.mean()


def test_single_precision() -> None:
    models = random_models(8, num_constraints=2)
    found = all_at_once(cast(stacked(models), np.float32))
    assert found.value.dtype == np.float32
    exact = [cmdpax.solve(cmdp).value for cmdp in models]
    np.testing.assert_allclose(found.value, exact, rtol=0, atol=1e-4)
    assert np.all(found.worst_slack >= -1e-4)


def test_ties_and_states_that_are_never_reached() -> None:
    cmdp = one_step([1.0, 1.0, 0.0, 0.0], [[0.0, 0.0, 1.0, 1.0]], [0.5])
    found = planned(cmdp)
    assert found.value == pytest.approx(0.5, abs=EXACT)
    still = np.eye(3)[:, None].repeat(2, axis=1)[None]
    apart = cmdpax.CMDP(still, [[[0.0, 1.0]] * 3], [[[[1.0, 0.0]] * 3]], [2.0], [1.0, 0.0, 0.0], 4)
    found = planned(apart)
    assert_exact(apart, found)
    assert np.all(np.isin(found.policy[:, 1:], [0.0, 1.0]))


def test_inside_a_loop() -> None:
    models = stacked(random_models(6, num_constraints=1))

    @in_double_precision
    def run() -> Plan:
        def improve(cmdp: cmdpax.CMDP) -> Plan:
            first = plan(cmdp)
            return jax.lax.fori_loop(0, 2, lambda _, last: plan(cmdp, last.multipliers), first)

        return jax.tree.map(
            np.asarray, jax.jit(jax.vmap(improve))(jax.tree.map(jnp.asarray, models))
        )

    np.testing.assert_allclose(run().value, planned_together(models).value, rtol=0, atol=EXACT)


def test_many_states_actions_and_slots() -> None:
    sizes = {"num_states": 20, "num_actions": 18, "horizon": 3, "num_constraints": 2}
    models = random_models(3, **sizes)
    for index, cmdp in enumerate(models):
        assert_exact(cmdp, nth(planned_together(stacked(models)), index))
    listed = []
    for cmdp in models:
        order = np.argsort(-cmdp.transitions, axis=-1)
        rows = np.take_along_axis(cmdp.transitions, order, axis=-1)
        listed.append(cmdp.replace(transitions=cmdpax.Successors(order, rows)))
    found = planned_together(stacked(listed))
    for index, cmdp in enumerate(models):
        assert_exact(cmdp, nth(found, index))
