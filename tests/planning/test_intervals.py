"""Plans over policies and rows within bounds: the optimum of the extended linear program."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cmdpax
from checks import assert_distributions
from cmdpax.jax_context import in_double_precision
from cmdpax.planning.batched import Plan, plan
from extended_program import extended_program

TOLERANCE = 1e-8
one_by_one = jax.jit(plan)
all_at_once = jax.jit(jax.vmap(plan))


@functools.cache
def bounded(
    num_constraints: int,
    seed: int = 0,
    width: float = 0.2,
    slack: float = 0.3,
    storage: str = "dense",
    num_states: int = 3,
) -> tuple[cmdpax.CMDP, np.ndarray]:
    """A random model whose transitions are lower bounds, and upper bounds."""
    generator = np.random.default_rng((num_constraints, seed))
    cmdp = cmdpax.environments.make(
        "random",
        num_states=num_states,
        num_actions=2,
        horizon=3,
        num_constraints=num_constraints,
        seed=seed,
    )
    if storage == "stationary":
        cmdp = cmdp.replace(
            transitions=cmdp.transitions[:1], initial=np.full(num_states, 1 / num_states)
        )
    if storage == "masked":
        flags = generator.random((1, num_states, 2)) < 0.6
        cmdp = cmdp.replace(available=flags | ~flags.any(axis=-1, keepdims=True))
    widths = width * generator.random(cmdp.transitions.shape)
    rows = np.array(cmdp.transitions)
    widths[:, 0, 0] = 1.0  # nothing is known about these rows
    lower, upper = np.maximum(rows - widths, 0), np.minimum(rows + widths, 1)
    cmdp = cmdp.replace(thresholds=np.full(num_constraints, -1.0)).replace(transitions=lower)
    reachable = extended_program(cmdp, upper).worst_slack - 1.0
    return cmdp.replace(thresholds=np.full(num_constraints, reachable - slack)), upper


@in_double_precision
def planned(cmdp: cmdpax.CMDP, upper: np.ndarray) -> Plan:
    start = jnp.zeros_like(cmdp.thresholds)
    given = jax.tree.map(jnp.asarray, cmdp)
    return jax.tree.map(np.asarray, one_by_one(given, start, jnp.asarray(upper)))


def as_lists(cmdp: cmdpax.CMDP, upper: np.ndarray) -> tuple[cmdpax.CMDP, np.ndarray]:
    """The same bounds in lists, with the states in an order of its own in every row."""
    generator = np.random.default_rng(5)
    shape = np.shape(cmdp.transitions)
    orders = generator.permuted(np.broadcast_to(np.arange(shape[-1]), shape), axis=-1)
    lower = np.take_along_axis(np.asarray(cmdp.transitions), orders, axis=-1)
    lists = cmdpax.Successors(orders, lower)
    return cmdp.replace(transitions=lists), np.take_along_axis(upper, orders, axis=-1)


def assert_optimal(cmdp: cmdpax.CMDP, upper: np.ndarray, found: Plan) -> None:
    """The value, bounds that meet it, and a policy that reaches it with the best rows."""
    expected = extended_program(cmdp, upper)
    assert found.feasible
    assert found.value == pytest.approx(expected.value, abs=TOLERANCE)
    assert found.upper_bound == pytest.approx(expected.value, abs=TOLERANCE)
    assert (found.constraint_values >= cmdp.thresholds - TOLERANCE).all()
    assert_distributions(found.policy)
    of_policy = extended_program(cmdp, upper, found.policy)
    assert of_policy.value == pytest.approx(expected.value, abs=TOLERANCE)
    np.testing.assert_allclose(found.occupancy.sum(axis=(1, 2)), 1, rtol=0, atol=TOLERANCE)
    assert (found.occupancy * cmdp.rewards).sum() == pytest.approx(found.value, abs=TOLERANCE)


@pytest.mark.parametrize("storage", ["dense", "lists", "stationary", "masked"])
@pytest.mark.parametrize("num_constraints", [0, 1, 2, 3])
def test_the_optimum_is_that_of_the_extended_program(num_constraints: int, storage: str) -> None:
    for seed in range(3):
        cmdp, upper = bounded(num_constraints, seed, storage=storage)
        given = as_lists(cmdp, upper) if storage == "lists" else (cmdp, upper)
        assert_optimal(cmdp, upper, planned(*given))


@pytest.mark.parametrize("num_constraints", [1, 2])
def test_where_nothing_is_feasible_the_worst_slack_is_largest(num_constraints: int) -> None:
    cmdp, upper = bounded(num_constraints, slack=-0.2)
    scales = np.abs(cmdp.constraint_rewards).max(axis=(1, 2, 3))
    relative = cmdp.replace(
        constraint_rewards=cmdp.constraint_rewards / scales[:, None, None, None],
        thresholds=cmdp.thresholds / scales,
    )
    found = planned(cmdp, upper)
    assert not found.feasible
    assert np.isnan(extended_program(cmdp, upper).value)
    expected = extended_program(relative, upper).worst_slack
    assert found.worst_slack == pytest.approx(expected, abs=TOLERANCE)
    assert found.slack_bound == pytest.approx(expected, abs=TOLERANCE)


def test_many_states_are_planned_with_products() -> None:
    cmdp, upper = bounded(1, width=0.02, num_states=18)
    dense, lists = planned(cmdp, upper), planned(*as_lists(cmdp, upper))
    assert dense.value == pytest.approx(lists.value, abs=TOLERANCE)
    expected = extended_program(cmdp, upper).value
    assert dense.value == pytest.approx(expected, abs=TOLERANCE)


def test_bounds_that_meet_are_the_model() -> None:
    cmdp = cmdpax.environments.make("random", num_states=3, num_actions=2, horizon=3)
    cmdp = cmdp.replace(initial=np.full(3, 1 / 3))
    found = planned(cmdp, np.array(cmdp.transitions))
    solution = cmdpax.solve(cmdp)
    assert found.value == pytest.approx(solution.value, abs=1e-12)
    np.testing.assert_allclose(found.policy, solution.policy, rtol=0, atol=1e-9)


def test_states_without_mass_have_a_uniform_policy() -> None:
    """State 1 pays and every row is free, so that state 2 and state 0 never follow."""
    rewards = np.zeros((2, 3, 2))
    rewards[:, 1] = [1.0, 0.5]
    flags = np.array([[[True, True], [True, True], [True, False]]])
    cmdp = cmdpax.CMDP(
        np.zeros((1, 3, 2, 3)),
        rewards,
        np.zeros((0, 1, 3, 2)),
        np.zeros(0),
        np.array([0.0, 1.0, 0.0]),
        2,
        available=flags,
    )
    found = planned(cmdp, np.ones((1, 3, 2, 3)))
    assert found.value == pytest.approx(2.0)
    np.testing.assert_array_equal(found.policy[1], [[0.5, 0.5], [1, 0], [1, 0]])


def test_a_batch_is_its_models_one_by_one() -> None:
    models = [bounded(2, seed) for seed in range(3)]
    stacked = jax.tree.map(lambda *arrays: np.stack(arrays), *models)

    @in_double_precision
    def run() -> Plan:
        cmdps, upper = jax.tree.map(jnp.asarray, stacked)
        return jax.tree.map(np.asarray, all_at_once(cmdps, jnp.zeros((3, 2)), upper))

    together = run()
    for index, (cmdp, upper) in enumerate(models):
        alone = planned(cmdp, upper)
        assert alone.rounds == together.rounds[index]
        np.testing.assert_allclose(alone.policy, together.policy[index], rtol=0, atol=1e-12)
