import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given

import cmdpax
import reference
import strategies
from checks import METHODS, one_step
from golden_files import Golden

BANDIT_FINGERPRINT = "7aa5fad6d282d576d2b644b1084d6353755345b2a1d1d6ed15349d461303397d"


def small_arrays() -> dict[str, object]:
    """S = 2, A = 3, H = 4, I = 1, everything stationary but the rewards."""
    return {
        "transitions": np.full((1, 2, 3, 2), 0.5),
        "rewards": np.arange(24.0).reshape(4, 2, 3),
        "constraint_rewards": np.ones((1, 1, 2, 3)),
        "thresholds": [2.0],
        "initial": [0.25, 0.75],
    }


# ----------------------------------------------------------------------------------- construction


def test_arrays_become_read_only_doubles() -> None:
    cmdp = cmdpax.CMDP(**small_arrays())
    for name, array in cmdp.named_arrays().items():
        assert array.dtype == np.float64, name
        assert not array.flags.writeable, name


def test_the_model_does_not_change_with_the_callers_arrays() -> None:
    arrays = small_arrays()
    cmdp = cmdpax.CMDP(**arrays)
    arrays["rewards"][0, 0, 0] = 99.0
    assert cmdp.rewards[0, 0, 0] == 0.0


@pytest.mark.parametrize("convert", [np.asarray, np.ndarray.tolist, jnp.asarray, np.float32])
def test_lists_and_other_array_types_are_accepted(convert: object) -> None:
    arrays = {name: np.asarray(value) for name, value in small_arrays().items()}
    expected = cmdpax.CMDP(**arrays)
    given_arrays = {name: convert(array) for name, array in arrays.items()}
    assert cmdpax.CMDP(**given_arrays).fingerprint == expected.fingerprint


def test_a_model_is_immutable() -> None:
    cmdp = cmdpax.CMDP(**small_arrays())
    with pytest.raises(AttributeError, match=r"immutable; use cmdp\.replace\(horizon=…\)"):
        cmdp.horizon = 3
    with pytest.raises(AttributeError, match="immutable"):
        del cmdp.rewards
    with pytest.raises(ValueError, match="read-only"):
        cmdp.rewards[0, 0, 0] = 1.0


def test_sizes_and_the_text_of_a_model() -> None:
    cmdp = cmdpax.CMDP(**small_arrays())
    assert cmdp.sizes == cmdpax.Sizes(num_constraints=1, horizon=4, num_states=2, num_actions=3)
    assert repr(cmdp) == "CMDP(S=2, A=3, H=4, I=1, dense)"
    lists = cmdpax.Successors(np.zeros((1, 2, 3, 1), dtype=int), np.ones((1, 2, 3, 1)))
    listed = cmdp.replace(transitions=lists)
    assert repr(listed) == "CMDP(S=2, A=3, H=4, I=1, successors)"
    assert (cmdp.row_length, listed.row_length) == (2, 1)


@pytest.mark.parametrize("long", ["transitions", "rewards", "constraint_rewards"])
def test_the_horizon_is_the_largest_leading_axis(long: str) -> None:
    shapes = {"transitions": (1, 2, 3, 2), "rewards": (1, 2, 3), "constraint_rewards": (1, 1, 2, 3)}
    arrays = {name: np.full(shape, 0.5) for name, shape in shapes.items()}
    axis = 1 if long == "constraint_rewards" else 0
    arrays[long] = np.repeat(arrays[long], 7, axis=axis)
    cmdp = cmdpax.CMDP(**arrays, thresholds=[0.0], initial=[1.0, 0.0])
    assert cmdpax.validate(cmdp).horizon == 7
    assert cmdpax.evaluate(cmdp, np.full((1, 2, 3), 1 / 3)).value == pytest.approx(3.5)


def test_a_stationary_model_lasts_as_long_as_its_horizon() -> None:
    cmdp = one_step([1.0, 0.0], [[0.0, 1.0]], [3.0]).replace(horizon=8)
    assert cmdpax.solve(cmdp).value == pytest.approx(5.0, abs=1e-12)


def test_no_constraints_may_be_written_as_an_empty_list() -> None:
    cmdp = cmdpax.validate(one_step([1.0, 2.0], [], []))
    assert cmdp.constraint_rewards.shape == (0, 1, 1, 2)
    assert cmdp.num_constraints == 0


@pytest.mark.parametrize("horizon", [2.5, True, "3", [3, 4]])
def test_a_horizon_is_a_whole_number(horizon: object) -> None:
    with pytest.raises(cmdpax.ModelError, match="horizon must be a whole number, got"):
        cmdpax.CMDP(**small_arrays(), horizon=horizon)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rewards", [[1.0, 2.0], [3.0]]),
        ("rewards", "many"),
        ("thresholds", [1j]),
        ("initial", [{}]),
    ],
)
def test_what_is_not_an_array_of_numbers_is_refused(name: str, value: object) -> None:
    with pytest.raises(cmdpax.ModelError, match=f"{name} cannot be read as an array of real"):
        cmdpax.CMDP(**(small_arrays() | {name: value}))


def test_lists_without_steps_are_the_same_at_every_step() -> None:
    rng = np.random.default_rng(0)
    successors, probabilities = rng.integers(2, size=(2, 3, 2)), rng.dirichlet([1, 1], (2, 3))
    arrays = small_arrays() | {"horizon": 4}
    short = cmdpax.CMDP(**arrays | {"transitions": cmdpax.Successors(successors, probabilities)})
    lists = cmdpax.Successors(successors[None], probabilities[None])
    long = cmdpax.CMDP(**arrays | {"transitions": lists})
    assert cmdpax.validate(short).fingerprint == long.fingerprint
    assert short.transitions.probabilities.shape == (1, 2, 3, 2)
    assert not any(array.flags.writeable for array in short.transitions)
    same = short.replace(rewards=short.rewards).transitions
    assert same.successors is short.transitions.successors  # kept, not copied again
    # Another number of steps is refused, and so are lists of which only one has no steps.
    mixed = cmdpax.Successors(successors, probabilities[None])
    with pytest.raises(cmdpax.ModelError, match="expected one shape"):
        cmdpax.validate(cmdpax.CMDP(**arrays | {"transitions": mixed}))


def test_successors_must_be_integers() -> None:
    lists = cmdpax.Successors(np.zeros((1, 2, 3, 1)), np.ones((1, 2, 3, 1)))
    with pytest.raises(cmdpax.ModelError, match=r"successors must be integers .* got float64"):
        cmdpax.CMDP(**(small_arrays() | {"transitions": lists}))


def test_ragged_successors_are_refused() -> None:
    lists = cmdpax.Successors([[[[0], [0, 1]]]], np.ones((1, 2, 3, 1)))
    with pytest.raises(
        cmdpax.ModelError, match="successors cannot be read as an array of integers"
    ):
        cmdpax.CMDP(**(small_arrays() | {"transitions": lists}))


def test_replace_changes_one_array_and_knows_the_names() -> None:
    cmdp = cmdpax.CMDP(**small_arrays())
    changed = cmdp.replace(thresholds=[1.0])
    assert changed.thresholds.tolist() == [1.0]
    assert changed.rewards is cmdp.rewards
    assert cmdp.thresholds.tolist() == [2.0]
    with pytest.raises(
        cmdpax.ParameterError, match=r"no array 'thresholdz'; did you mean 'thresho"
    ):
        cmdp.replace(thresholdz=[1.0])


# ------------------------------------------------------------------------------------------ pytree


def test_a_model_is_a_pytree_with_a_static_horizon() -> None:
    cmdp = cmdpax.CMDP(**small_arrays(), horizon=4)
    leaves, structure = jax.tree.flatten(cmdp)
    assert len(leaves) == 5
    assert jax.tree.unflatten(structure, leaves).fingerprint == cmdp.fingerprint
    stationary = cmdp.replace(rewards=cmdp.rewards[:1])
    other = stationary.replace(horizon=5)
    assert jax.tree.structure(stationary) != jax.tree.structure(other)


def test_the_horizon_is_known_while_tracing_and_compiles_once_per_value() -> None:
    seen = []

    @jax.jit
    def total(cmdp: cmdpax.CMDP) -> jax.Array:
        seen.append(cmdp.horizon)
        return cmdp.horizon * jnp.sum(cmdp.thresholds)

    cmdp = one_step([0.0], [[0.0]], [2.0]).replace(horizon=3)
    assert float(total(cmdp)) == 6.0
    assert float(total(cmdp.replace(thresholds=[5.0]))) == 15.0
    assert float(total(cmdp.replace(horizon=4))) == 8.0
    assert seen == [3, 4]


def test_a_model_can_be_made_under_jit() -> None:
    @jax.jit
    def doubled(cmdp: cmdpax.CMDP) -> cmdpax.CMDP:
        return cmdp.replace(rewards=2 * cmdp.rewards)

    cmdp = one_step([1.0, 3.0], [], [])
    assert np.asarray(doubled(cmdp).rewards).tolist() == [[[2.0, 6.0]]]


# ------------------------------------------------------------------------------------- fingerprint


def test_fingerprints_are_pinned(golden: Golden) -> None:
    """They name models in files and results, so they must not change between releases."""
    pinned = {
        "bandit": BANDIT_FINGERPRINT,
        "paper": "e04790dd2b24c3429219e986b8bd6e97c09aaf0eb808b38320f32c81bd7998e4",
        "two_constraints": "aea12c77450f7220cd46a939036543c280b8da1262ad1dd5fcf3c3087a0560a9",
    }
    assert golden.cmdp.fingerprint == pinned[golden.name]


def test_every_array_and_the_horizon_enter_the_fingerprint() -> None:
    cmdp = cmdpax.CMDP(**small_arrays())
    changes = [{}, {"horizon": 5}]
    changes += [{name: np.asarray(value) + 0.5} for name, value in small_arrays().items()]
    assert len({cmdp.replace(**change).fingerprint for change in changes}) == 7


def test_successor_lists_enter_the_fingerprint() -> None:
    lists = np.array([[[[0, 1], [1, 0]], [[1, 1], [0, 0]]]])
    chances = np.full(lists.shape, 0.5)
    prints = set()
    for change in (lists, 1 - lists):
        for probabilities in (chances, chances * [0.5, 1.5]):
            transitions = cmdpax.Successors(change, probabilities)
            cmdp = cmdpax.CMDP(transitions, [[[0, 0], [0, 0]]], [], [], [1, 0])
            prints.add(cmdp.fingerprint)
            wide = cmdpax.Successors(change.astype(np.uint8), probabilities)
            assert cmdp.replace(transitions=wide).fingerprint == cmdp.fingerprint
    assert len(prints) == 4


def test_negative_zero_and_memory_order_do_not_matter() -> None:
    arrays = small_arrays()
    expected = cmdpax.CMDP(**arrays).fingerprint
    rewards = np.asfortranarray(arrays["rewards"])
    rewards[0, 0, 0] = -0.0
    assert cmdpax.CMDP(**(arrays | {"rewards": rewards})).fingerprint == expected


# --------------------------------------------------------------------------------------- from_costs


def from_costs(costs: object, limits: object, horizon: int = 2) -> cmdpax.CMDP:
    return cmdpax.from_costs(
        transitions=np.full((1, 2, 2, 2), 0.5),
        rewards=[[[1.0, 0.2], [0.3, 0.8]]],
        costs=costs,
        limits=limits,
        initial=[1.0, 0.0],
        horizon=horizon,
    )


def test_costs_in_the_unit_interval_are_taken_from_one() -> None:
    cmdp = from_costs([[[[0.75, 0.25], [0.5, 0.0]]]], [0.5])
    assert cmdp.constraint_rewards.tolist() == [[[[0.25, 0.75], [0.5, 1.0]]]]
    assert cmdp.thresholds.tolist() == [1.5]
    assert cmdp.horizon == 2


def test_costs_beyond_the_unit_interval_are_taken_from_their_maximum() -> None:
    unit = [[[0.75, 0.25], [0.5, 0.0]]]
    wide = [[[4.0, -2.0], [0.0, 1.0]]]
    cmdp = from_costs([unit, wide], [0.5, 3.0])
    assert cmdp.constraint_rewards.tolist() == [
        [[[0.25, 0.75], [0.5, 1.0]]],
        [[[0.0, 6.0], [4.0, 3.0]]],
    ]
    assert cmdp.thresholds.tolist() == [1.5, 2 * 4.0 - 3.0]


@given(cmdp=strategies.cmdps(kinds=strategies.CONSTRAINED))
def test_costs_give_the_same_optimum_and_multipliers(cmdp: cmdpax.CMDP) -> None:
    # V_u ≥ c is V_{-u} ≤ -c: costs -u with limits -c.
    converted = cmdpax.from_costs(
        cmdp.transitions,
        cmdp.rewards,
        -cmdp.constraint_rewards,
        -cmdp.thresholds,
        cmdp.initial,
        cmdp.horizon,
    )
    model = reference.densify(converted)
    optimum = reference.optimum(reference.densify(cmdp))
    for method in METHODS:
        solution = cmdpax.solve(converted, method)
        assert solution.value == pytest.approx(optimum, abs=1e-9)
        # The multipliers of one prove the optimum of the other.
        multipliers = cmdpax.solve(cmdp, method).multipliers
        assert reference.dual_value(model, multipliers) == pytest.approx(optimum, abs=1e-9)


def test_no_costs_are_no_constraints() -> None:
    assert cmdpax.validate(from_costs([], [])).num_constraints == 0


def test_costs_and_limits_must_match() -> None:
    with pytest.raises(cmdpax.ModelError, match=r"costs has shape \(1, 1, 2, 2\) and limits \(2,"):
        from_costs([[[[0.75, 0.25], [0.5, 0.0]]]], [0.5, 0.5])
