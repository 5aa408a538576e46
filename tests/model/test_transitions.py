from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given

import cmdpax
import reference
import strategies
from cmdpax.model import transitions as operations

pytestmark = pytest.mark.usefixtures("double_precision")


def random_lists(
    num_states: int, num_actions: int, num_slots: int, horizon: int = 1, seed: int = 0
) -> cmdpax.Successors:
    """Lists with repeated successors and unused slots."""
    generator = np.random.default_rng(seed)
    shape = (horizon, num_states, num_actions, num_slots)
    rows = generator.integers(0, 3, shape) + 1.0 * (np.arange(num_slots) == 0)
    lists = generator.integers(0, num_states, shape)
    return cmdpax.Successors(lists, rows / rows.sum(axis=-1, keepdims=True))


def densified(lists: cmdpax.Successors) -> np.ndarray:
    """p as `[H, S, A, S]`."""
    horizon, num_states, num_actions, _ = lists.probabilities.shape
    cmdp = cmdpax.CMDP(
        lists,
        np.zeros((horizon, num_states, num_actions)),
        [],
        [],
        np.eye(num_states)[0],
    )
    return reference.densify(cmdp).transitions


def first_step(storage: np.ndarray | cmdpax.Successors) -> Any:
    """The transitions of step 0, as JAX arrays."""
    return operations.at_step(jax.device_put(storage), 0)


@pytest.mark.parametrize("num_slots", [1, 3, 20])  # one by one, or all at once
@pytest.mark.parametrize("signals", [(), (2,)])
def test_backup_is_the_expectation_of_the_next_value(
    num_slots: int, signals: tuple[int, ...]
) -> None:
    lists = random_lists(5, 3, num_slots)
    values = np.random.default_rng(1).random((5, *signals))
    expected = np.zeros((5, 3, *signals))
    dense = densified(lists)[0]
    for s, a, t in np.ndindex(5, 3, 5):
        expected[s, a] += dense[s, a, t] * values[t]
    for storage in (lists, dense[None]):
        found = operations.backup(first_step(storage), jnp.asarray(values))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("num_slots", [1, 3, 20])
def test_push_is_where_the_mass_goes(num_slots: int) -> None:
    lists = random_lists(5, 3, num_slots)
    mass = np.random.default_rng(1).random((5, 3))
    dense = densified(lists)[0]
    expected = np.zeros(5)
    for s, a, t in np.ndindex(5, 3, 5):
        expected[t] += mass[s, a] * dense[s, a, t]
    for storage in (lists, dense[None]):
        found = operations.push(first_step(storage), jnp.asarray(mass), 5)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)


def test_choose_keeps_one_action_per_state() -> None:
    lists = random_lists(5, 3, 2)
    actions = np.array([2, 0, 1, 2, 0])
    dense = densified(lists)[0]
    values = jnp.arange(5.0)
    for storage in (lists, dense[None]):
        chosen = operations.choose(first_step(storage), jnp.asarray(actions))
        found = operations.backup(chosen, values)
        expected = [dense[s, actions[s]] @ np.arange(5.0) for s in range(5)]
        np.testing.assert_allclose(found[:, 0], expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("horizon", [1, 3])
def test_steps_of_stationary_and_other_transitions(horizon: int) -> None:
    lists = random_lists(4, 2, 2, horizon)
    dense = densified(lists)
    for step in range(3):
        row = 0 if horizon == 1 else step
        np.testing.assert_array_equal(operations.at_step(jnp.asarray(dense), step), dense[row])
        picked = operations.at_step(jax.device_put(lists), step)
        np.testing.assert_array_equal(picked.successors, lists.successors[row])
        np.testing.assert_array_equal(picked.probabilities, lists.probabilities[row])


# ------------------------------------------------------------------------------------------ sample


def draws(transitions: Any, state: int, action: int, number: int, seed: int = 7) -> np.ndarray:
    keys = jax.random.split(jax.random.key(seed), number)
    one = first_step(transitions)
    states = jax.vmap(operations.sample, in_axes=(0, None, None, None))(
        keys, one, jnp.asarray(state), jnp.asarray(action)
    )
    return np.asarray(states)


@pytest.mark.parametrize("storage", ["dense", "lists"])
def test_samples_have_the_given_frequencies(storage: str) -> None:
    lists = random_lists(6, 2, 4, seed=3)
    dense = densified(lists)
    number = 40_000
    for state in (0, 3, 5):
        found = draws(lists if storage == "lists" else dense, state, 1, number)
        counts = np.bincount(found, minlength=6)
        expected = number * dense[0, state, 1]
        assert np.all(counts[expected == 0] == 0)
        possible = expected > 0
        distance = np.sum((counts - expected)[possible] ** 2 / expected[possible])
        assert distance < 20.5  # 99.9 % point of chi-square with five degrees of freedom


@pytest.mark.parametrize("precision", [np.float64, np.float32])
def test_impossible_successors_are_never_drawn(precision: type) -> None:
    # Zeros at both ends and between, and a row whose sum rounds to less than one.
    row = np.array([0.0, 0.1, 0.0, 0.2, 0.3, 0.4 - 1e-9, 0.0], dtype=precision)
    dense = np.zeros((1, 7, 1, 7), dtype=precision)
    dense[0, 0, 0] = row
    assert set(draws(jnp.asarray(dense), 0, 0, 20_000)) == {1, 3, 4, 5}
    lists = cmdpax.Successors(
        jnp.broadcast_to(jnp.arange(7)[::-1], dense.shape), jnp.asarray(dense[..., ::-1])
    )
    assert set(draws(lists, 0, 0, 20_000)) == {1, 3, 4, 5}


def test_a_uniform_at_the_very_end_still_draws_a_possible_state(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = jnp.asarray(np.array([0.0, 0.7, 0.3, 0.0])[None, None])
    key, zero = jax.random.key(0), jnp.asarray(0)
    for uniform, expected in ((0.0, 1), (0.7 - 1e-16, 1), (0.7, 2), (1.0, 2)):
        monkeypatch.setattr(
            jax.random, "uniform", lambda key, dtype, u=uniform: jnp.asarray(u, dtype)
        )
        assert int(operations.sample(key, row, zero, zero)) == expected


def test_a_key_decides_the_draw() -> None:
    dense = np.full((1, 4, 1, 4), 0.25)
    np.testing.assert_array_equal(draws(dense, 0, 0, 50), draws(dense, 0, 0, 50))
    assert np.any(draws(dense, 0, 0, 50) != draws(dense, 0, 0, 50, seed=8))


# -------------------------------------------------------------------------------- never a matrix


@pytest.mark.whole
@given(cmdp=strategies.cmdps(kinds=tuple(kind for kind in strategies.KINDS if kind.num_slots)))
def test_lists_and_their_matrix_have_the_same_optimum(cmdp: cmdpax.CMDP) -> None:
    dense = cmdp.replace(transitions=reference.densify(cmdp).transitions)
    assert cmdpax.solve(dense).value == pytest.approx(cmdpax.solve(cmdp).value, abs=1e-10)
    one = cmdpax.solve_regularized(cmdp, 0.1, 6.0)
    other = cmdpax.solve_regularized(dense, 0.1, 6.0)
    np.testing.assert_allclose(one.policy, other.policy, rtol=0, atol=1e-10)


def intermediate_sizes(jaxpr: Any) -> list[int]:
    """The sizes of all arrays that a traced function makes, inner functions included."""
    sizes = []
    for equation in jaxpr.eqns:
        sizes += [variable.aval.size for variable in equation.outvars]
        for parameter in jax.tree.leaves(
            list(equation.params.values()), is_leaf=lambda leaf: hasattr(leaf, "eqns")
        ):
            inner = getattr(parameter, "jaxpr", parameter)
            if hasattr(inner, "eqns"):
                sizes += intermediate_sizes(inner)
    return sizes


def test_no_compiled_function_makes_a_matrix_of_a_list() -> None:
    from cmdpax.model.evaluation import evaluate_policy
    from cmdpax.planning.dynamic_program import greedy_plan, soft_plan

    num_states, num_actions, horizon = 200, 2, 3
    cmdp = cmdpax.CMDP(
        random_lists(num_states, num_actions, 2),
        np.ones((1, num_states, num_actions)),
        np.ones((1, 1, num_states, num_actions)),
        [0.0],
        np.eye(num_states)[0],
        horizon=horizon,
    )
    matrix = num_states * num_actions * num_states
    weights, policy = jnp.ones(2), jnp.ones((horizon, num_states, num_actions))
    for function, arguments in (
        (evaluate_policy, (policy,)),
        (greedy_plan, (weights,)),
        (soft_plan, (weights, jnp.asarray(0.1))),
    ):
        sizes = intermediate_sizes(jax.make_jaxpr(function)(cmdp, *arguments).jaxpr)
        assert len(sizes) > 10
        assert max(sizes) < matrix / 10
        # The same with a matrix would be caught.
        dense = cmdp.replace(transitions=densified(cmdp.transitions))
        assert max(intermediate_sizes(jax.make_jaxpr(function)(dense, *arguments).jaxpr)) >= matrix


@pytest.mark.whole
def test_a_gridworld_of_forty_thousand_states() -> None:
    # As a matrix its transitions would take 51 GB.
    cmdp = cmdpax.environments.make("gridworld", height=210, width=210, horizon=12)
    assert cmdp.num_states > 39_000
    solution = cmdpax.solve(cmdp, tolerance=1e-8)
    assert solution.gap <= 1e-8
    reached = cmdpax.evaluate(cmdp, solution.policy)
    assert reached.value == pytest.approx(solution.value, abs=1e-9)
    assert reached.constraint_values[0] <= cmdp.bounds[0] + 1e-9


# ------------------------------------------------------------------------------------ one row, rows


@pytest.mark.parametrize("horizon", [1, 3])
@pytest.mark.parametrize("listed", [True, False])
def test_a_row_is_what_plain_indexing_gives(listed: bool, horizon: int) -> None:
    lists = random_lists(5, 3, 2, horizon)
    storage = jax.device_put(lists if listed else densified(lists))
    row = jax.jit(operations.row_at)
    for step, state, action in np.ndindex(3, 5, 3):
        found = row(storage, step, state, action)
        at = (0 if horizon == 1 else step, state, action)
        assert isinstance(found, cmdpax.Successors) == listed
        for one, array in zip(jax.tree.leaves(found), jax.tree.leaves(storage), strict=True):
            np.testing.assert_array_equal(one, array[at])


@pytest.mark.parametrize("more", [-1, 0, 1, 20])
def test_transposed_transitions_on_both_sides_of_unrolling(more: int) -> None:
    num_states = operations._MAX_UNROLLED_STATES + more
    generator = np.random.default_rng(0)
    rows = generator.dirichlet(np.ones(num_states), (num_states, 3))
    values = generator.random((4, num_states))
    expected = np.einsum("sat,lt->lsa", rows, values)
    transposed = operations.Transposed(jnp.asarray(np.moveaxis(rows, -1, 0)))
    for storage in (transposed, jnp.asarray(rows)):
        found = operations.backup_signals(storage, jnp.asarray(values))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)
