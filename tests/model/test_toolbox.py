import re
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import cmdpax
import reference
from cmdpax.model.toolbox import from_arrays

RUN, REPAIR = [[0.8, 0.2, 0.0], [0.0, 0.7, 0.3], [0.0, 0.0, 1.0]], np.eye(3)[[0, 0, 1]]
TRANSITIONS = np.array([RUN, REPAIR])  # P[a, s, t], S = 3, A = 2
REWARDS = np.array([[1.0, 0.0], [0.5, -0.25], [0.0, -0.5]])  # R[s, a]
SAFE = np.array([[1.0, 1.0], [1.0, 0.5], [0.0, 0.5]])


def by_hand(**changes: Any) -> cmdpax.CMDP:
    """The model as `cmdpax.CMDP` takes it, written down entry by entry."""
    rows = [[[[0.8, 0.2, 0.0], [1.0, 0.0, 0.0]], [[0.0, 0.7, 0.3], [1.0, 0.0, 0.0]]]]
    rows[0].append([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    fields: dict[str, Any] = {
        "transitions": rows,
        "rewards": [[[1.0, 0.0], [0.5, -0.25], [0.0, -0.5]]],
        "constraint_rewards": [[[[1.0, 1.0], [1.0, 0.5], [0.0, 0.5]]]],
        "thresholds": [4.5],
        "initial": [1.0, 0.0, 0.0],
        "horizon": 6,
    }
    return cmdpax.CMDP(**(fields | changes))


def convert(**changes: Any) -> cmdpax.CMDP:
    arguments: dict[str, Any] = {
        "transitions": TRANSITIONS,
        "rewards": REWARDS,
        "constraint_rewards": SAFE,
        "thresholds": 4.5,
        "initial": 0,
        "horizon": 6,
    }
    return from_arrays(**(arguments | changes))


def sparse(matrices: np.ndarray, form: Callable[..., Any] = scipy.sparse.csr_matrix) -> list[Any]:
    return [form(matrix) for matrix in matrices]


# ------------------------------------------------------------------------------------- transitions


@pytest.mark.parametrize(
    "transitions",
    [
        TRANSITIONS,
        TRANSITIONS.tolist(),
        list(TRANSITIONS),
        tuple(TRANSITIONS),
        np.asfortranarray(TRANSITIONS),
    ],
)
def test_dense_transitions_give_the_model_written_by_hand(transitions: Any) -> None:
    assert convert(transitions=transitions).fingerprint == by_hand().fingerprint


def in_object_array(matrices: np.ndarray) -> np.ndarray:
    """As the examples of MDP toolboxes keep sparse matrices."""
    kept = np.empty(len(matrices), dtype=object)
    kept[:] = sparse(matrices)
    return kept


def with_a_dense_one(matrices: np.ndarray) -> list[Any]:
    return [scipy.sparse.coo_array(matrices[0]), *matrices[1:].tolist()]


@pytest.mark.parametrize(
    "form",
    [
        sparse,
        lambda matrices: tuple(sparse(matrices, scipy.sparse.csc_array)),
        lambda matrices: sparse(matrices, scipy.sparse.coo_array),
        lambda matrices: sparse(matrices, scipy.sparse.lil_matrix),
        in_object_array,
        with_a_dense_one,
    ],
)
def test_sparse_transitions_give_successor_lists(form: Callable[[np.ndarray], Any]) -> None:
    cmdp = convert(transitions=form(TRANSITIONS))
    assert repr(cmdp) == "CMDP(S=3, A=2, H=6, I=1, successors)"
    assert cmdp.transitions.successors.shape == (1, 3, 2, 2)
    expected = reference.densify(by_hand())
    np.testing.assert_array_equal(reference.densify(cmdp).transitions, expected.transitions)
    assert cmdpax.solve(cmdp).value == pytest.approx(cmdpax.solve(by_hand()).value, abs=1e-10)


def test_an_object_array_of_dense_matrices() -> None:
    kept = np.empty(2, dtype=object)
    kept[:] = list(TRANSITIONS)
    assert convert(transitions=kept).fingerprint == by_hand().fingerprint


def test_entries_given_twice_are_added_and_zeros_take_no_slot() -> None:
    values, rows, columns = [0.3, 0.5, 0.2, 0.0, 1.0], [0, 0, 0, 1, 1], [1, 1, 0, 0, 1]
    matrix = scipy.sparse.coo_matrix((values, (rows, columns)), shape=(2, 2))
    cmdp = from_arrays([matrix], [0.0, 1.0], horizon=1, initial=0)
    lists, chances = cmdp.transitions
    assert lists.tolist() == [[[[0, 1]], [[1, 0]]]]
    np.testing.assert_allclose(chances, [[[[0.2, 0.8]], [[1.0, 0.0]]]])
    assert matrix.nnz == 5  # the caller's matrix is as it was


def test_a_large_sparse_model_is_never_dense() -> None:
    size = 50_000  # dense: 40 GB
    walk = scipy.sparse.diags_array(
        [np.full(size - 1, 0.5), np.r_[0.5, np.zeros(size - 2), 0.5], np.full(size - 1, 0.5)],
        offsets=[-1, 0, 1],
    ).tocsr()
    earned = walk.copy()
    earned.data[:] = 2.0
    cmdp = from_arrays([walk, walk], [earned, earned], horizon=3, initial=0)
    assert cmdp.transitions.successors.shape == (1, size, 2, 2)
    np.testing.assert_array_equal(cmdp.rewards, np.full((1, size, 2), 2.0))


# ----------------------------------------------------------------------------------------- signals


def of_transitions(signal: np.ndarray) -> np.ndarray:
    """A signal `[A, S, S]` with the expectation `signal [S, A]`; where P is 0 it is nonsense."""
    offset = TRANSITIONS * (1 - TRANSITIONS)  # has the expectation Σ p²(1 - p)
    mean = np.sum(TRANSITIONS * offset, axis=-1, keepdims=True)
    around = signal.T[:, :, None] + offset - mean
    return np.where(TRANSITIONS > 0, around, np.nan)


def forms(signal: np.ndarray) -> dict[str, Any]:
    """One signal in each layout that can hold it."""
    matrices = of_transitions(signal)
    zeroed = np.nan_to_num(matrices)
    return {
        "pairs": signal,
        "transitions": matrices,
        "object array": in_object_array(zeroed),
    }


@pytest.mark.parametrize("layout", ["pairs", "transitions", "object array"])
@pytest.mark.parametrize("stored", [lambda p: p, sparse])
def test_each_layout_of_a_signal_means_the_same(layout: str, stored: Callable[..., Any]) -> None:
    cmdp = convert(
        transitions=stored(TRANSITIONS),
        rewards=forms(REWARDS)[layout],
        constraint_rewards=forms(SAFE)[layout],
    )
    np.testing.assert_allclose(cmdp.rewards, REWARDS[None], rtol=0, atol=1e-15)
    np.testing.assert_allclose(cmdp.constraint_rewards, SAFE[None, None], rtol=0, atol=1e-15)
    assert (cmdp.rewards.shape, cmdp.constraint_rewards.shape) == ((1, 3, 2), (1, 1, 3, 2))


def test_a_signal_of_states_is_the_same_for_all_actions() -> None:
    cmdp = convert(rewards=[3.0, 2.0, 1.0], constraint_rewards=np.array([1.0, 0.5, 0.0]))
    assert cmdp.rewards.tolist() == [[[3.0, 3.0], [2.0, 2.0], [1.0, 1.0]]]
    assert cmdp.constraint_rewards.tolist() == [[[[1.0, 1.0], [0.5, 0.5], [0.0, 0.0]]]]


@given(
    seed=st.integers(0, 2**32 - 1),
    num_states=st.integers(1, 5),
    num_actions=st.integers(1, 4),
    sparse_rewards=st.booleans(),
    sparse_transitions=st.booleans(),
)
def test_expectations_against_a_loop(
    seed: int, num_states: int, num_actions: int, sparse_rewards: bool, sparse_transitions: bool
) -> None:
    generator = np.random.default_rng(seed)
    shape = (num_actions, num_states, num_states)
    weights = generator.integers(0, 3, shape) + np.eye(num_states)
    transitions = weights / weights.sum(axis=-1, keepdims=True)
    earned = generator.integers(-2, 3, shape).astype(float)
    cmdp = from_arrays(
        sparse(transitions) if sparse_transitions else transitions,
        sparse(earned) if sparse_rewards else earned,
        horizon=2,
        initial=np.full(num_states, 1 / num_states),
    )
    assert isinstance(cmdp.transitions, cmdpax.Successors) == sparse_transitions
    rows = reference.densify(cmdp).transitions
    for a, s in np.ndindex(num_actions, num_states):
        expected = sum(transitions[a, s, t] * earned[a, s, t] for t in range(num_states))
        assert cmdp.rewards[0, s, a] == pytest.approx(expected, abs=1e-14)
        np.testing.assert_array_equal(rows[0, s, a], transitions[a, s])


# ------------------------------------------------------------------------------------- constraints


def test_without_constraints_it_is_a_plain_mdp() -> None:
    plain = by_hand(constraint_rewards=[], thresholds=[])
    assert convert(constraint_rewards=None, thresholds=None).fingerprint == plain.fingerprint
    assert convert(constraint_rewards=[], thresholds=[]).fingerprint == plain.fingerprint
    assert repr(plain) == "CMDP(S=3, A=2, H=6, I=0, dense)"


def test_a_list_is_several_signals_and_an_array_is_one() -> None:
    assert convert(constraint_rewards=[SAFE], thresholds=[4.5]).fingerprint == by_hand().fingerprint
    two = convert(
        constraint_rewards=(of_transitions(SAFE), [0.0, 0.0, 1.0]), thresholds=np.array([4.5, 0.1])
    )
    expected = [SAFE[None], [[[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]]]]
    np.testing.assert_allclose(two.constraint_rewards, expected, rtol=0, atol=1e-15)
    assert two.thresholds.tolist() == [4.5, 0.1]


def test_one_signal_of_sparse_matrices_stands_in_a_list() -> None:
    matrices = sparse(np.nan_to_num(of_transitions(SAFE)))
    cmdp = convert(constraint_rewards=[matrices])
    np.testing.assert_allclose(cmdp.constraint_rewards, SAFE[None, None], rtol=0, atol=1e-15)
    with pytest.raises(cmdpax.ModelError, match=r"constraint_rewards\[0\] is one sparse matrix"):
        convert(constraint_rewards=matrices)


@pytest.mark.parametrize("scale", [1.0, 3.0, -2.0])  # within [0, 1], beyond it, negative
def test_costs_are_converted_as_by_from_costs(scale: float) -> None:
    costs, limits = [scale * (1 - SAFE), SAFE], [1.5 * scale, 5.0]
    cmdp = convert(constraint_rewards=None, thresholds=None, costs=costs, limits=limits)
    expected = cmdpax.from_costs(
        by_hand().transitions, REWARDS[None], np.array(costs)[:, None], limits, [1, 0, 0], 6
    )
    assert cmdp.fingerprint == expected.fingerprint


def test_one_cost_with_one_limit() -> None:
    cmdp = convert(constraint_rewards=None, thresholds=None, costs=1 - SAFE, limits=1.5)
    assert cmdp.with_arrays().fingerprint == by_hand().fingerprint
    assert cmdp.words.senses == ("at most",)
    assert cmdp.bounds.tolist() == [1.5]


# ----------------------------------------------------------------------------------------- initial


@pytest.mark.parametrize("initial", [1, np.int32(1), np.array(1), jnp.asarray(1), [0.0, 1.0, 0.0]])
def test_a_state_or_a_distribution_to_start_from(initial: Any) -> None:
    expected = by_hand(initial=[0.0, 1.0, 0.0])
    assert convert(initial=initial).fingerprint == expected.fingerprint


# ------------------------------------------------------------------------------------------ errors


def changed(array: np.ndarray, place: tuple[int, ...], value: float) -> np.ndarray:
    copy = np.array(array, dtype=float)
    copy[place] = value
    return copy


MODEL_ERRORS: list[tuple[dict[str, Any], str]] = [
    (
        {"transitions": np.swapaxes(TRANSITIONS, 0, 1)},
        "transitions has shape (3, 2, 3), expected (A, S, S): the action comes first, so for "
        "P[s, a, t] give np.swapaxes(P, 0, 1).",
    ),
    ({"transitions": np.moveaxis(TRANSITIONS, 0, 2)}, "(A, S, S): one matrix P[a] of rows P[a,"),
    ({"transitions": by_hand().transitions}, "(A, S, S): for (H, S, A, S) use cmdpax.CMDP."),
    ({"transitions": RUN}, "transitions has shape (3, 3), expected (A, S, S)"),
    ({"transitions": []}, "transitions has shape (0,), expected (A, S, S)"),
    ({"transitions": np.zeros((2, 0, 0))}, "transitions has shape (2, 0, 0), expected (A, S, S)"),
    ({"transitions": [RUN, [[1.0]]]}, "transitions cannot be read as an array of real numbers: "),
    ({"transitions": TRANSITIONS * 1j}, "transitions cannot be read as an array of real numbers: "),
    (
        {"transitions": scipy.sparse.csr_matrix(RUN)},
        "transitions is one sparse matrix, of shape (3",
    ),
    (
        {"transitions": [scipy.sparse.csr_matrix(RUN), scipy.sparse.eye_array(2)]},
        "transitions[1] has shape (2, 2), expected (S, S) = (3, 3).",
    ),
    (
        {"transitions": [scipy.sparse.csr_matrix((2, 3)), REPAIR]},
        "transitions[0] has shape (2, 3), expected (S, S) = (3, 3).",
    ),
    ({"transitions": [1.0, scipy.sparse.csr_matrix(RUN)]}, "transitions[0] has shape (), expected"),
    (
        {"transitions": sparse(np.zeros((2, 0, 0)), scipy.sparse.coo_array)},
        "transitions[0] has shape (0, 0), expected (S, S)",
    ),
    (
        {"transitions": changed(TRANSITIONS, (1, 2, 1), 0.75)},
        "transitions[1][2] sums to 0.75, not to 1; divide the row by its sum.",
    ),
    (
        {"transitions": sparse(changed(TRANSITIONS, (1, 2, 1), 0.0))},
        "transitions[1][2] sums to 0, not to 1; if the action is not available there, say so with",
    ),
    (
        {"transitions": np.swapaxes(TRANSITIONS, 1, 2)},
        "transitions[0][0] sums to 0.8, not to 1; its columns do, so give it transposed.",
    ),
    (
        {"transitions": sparse(changed(TRANSITIONS, (0, 1, 2), -0.3))},
        "transitions[0][1, 2] is -0.3; probabilities are finite and not negative.",
    ),
    ({"transitions": changed(TRANSITIONS, (0, 1, 2), np.nan)}, "transitions[0][1, 2] is nan; prob"),
    ({"transitions": changed(TRANSITIONS, (0, 1, 2), np.inf)}, "transitions[0][1, 2] is inf; prob"),
    (
        {"rewards": REWARDS.T},
        "rewards has shape (2, 3), expected (S,) = (3,), (S, A) = (3, 2) or (A, S, S) = (2, 3, 3).",
    ),
    ({"rewards": 1.0}, "rewards has shape (), expected (S,) = (3,)"),
    ({"rewards": sparse(TRANSITIONS[:1])}, "rewards has length 1, expected A = 2 matrices."),
    (
        {"rewards": [scipy.sparse.csr_matrix((3, 3)), scipy.sparse.csr_matrix((3, 2))]},
        "rewards[1] has shape (3, 2), expected (S, S) = (3, 3).",
    ),
    ({"rewards": changed(REWARDS, (2, 1), np.nan)}, "rewards is nan for state 2 and action 1; eve"),
    (
        {"rewards": changed(np.zeros((2, 3, 3)), (0, 1, 2), np.inf)},
        "rewards is inf for state 1 and action 0; every entry must be a finite number.",
    ),
    ({"rewards": "many"}, "rewards cannot be read as an array of real numbers: they are"),
    (
        {"constraint_rewards": [0.0, 1.0, 1.0], "thresholds": [1.0, 1.0, 1.0]},
        "constraint_rewards[0] has shape (), expected (S,) = (3,), (S, A) = (3, 2) or (A, S, S) = "
        "(2, 3, 3); a list is several signals, anything else is one.",
    ),
    (
        {"constraint_rewards": np.stack([SAFE, SAFE]), "thresholds": [1.0, 1.0]},
        "constraint_rewards has shape (2, 3, 2), expected (S,)",
    ),
    (
        {"constraint_rewards": [SAFE, changed(SAFE, (0, 1), -np.inf)], "thresholds": [1.0, 1.0]},
        "constraint_rewards[1] is -inf for state 0 and action 1; every entry must be a finite",
    ),
    ({"thresholds": [1.0, 2.0]}, "thresholds has shape (2,), expected (I,) = (1,): one number for"),
    ({"constraint_rewards": [SAFE, SAFE]}, "thresholds has shape (1,), expected (I,) = (2,)"),
    ({"constraint_rewards": []}, "thresholds has shape (1,), expected (I,) = (0,)"),
    ({"thresholds": np.nan}, "thresholds[0] is nan; every entry must be a finite number."),
    ({"initial": [0.5, 0.5]}, "initial has shape (2,), expected (S,) = (3,)."),
    ({"initial": [0.5, 0.6, 0.0]}, "initial sums to 1.1, not to 1"),
]


@pytest.mark.parametrize(("changes", "message"), MODEL_ERRORS)
def test_arrays_that_are_no_model(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(cmdpax.ModelError, match=re.escape(message)) as raised:
        convert(**changes)
    assert str(raised.value).endswith(".")
    assert "\n" not in str(raised.value)


def test_errors_of_costs_name_costs_and_limits() -> None:
    plain = {"constraint_rewards": None, "thresholds": None}
    with pytest.raises(
        cmdpax.ModelError, match=r"limits has shape \(2,\), expected \(I,\) = \(1,\)"
    ):
        convert(**plain, costs=SAFE, limits=[1.0, 2.0])
    with pytest.raises(cmdpax.ModelError, match=r"limits\[1\] is inf; every entry must be"):
        convert(**plain, costs=[SAFE, SAFE], limits=[1.0, np.inf])
    with pytest.raises(cmdpax.ModelError, match=r"costs\[1\] is nan for state 2 and action 0"):
        convert(**plain, costs=[SAFE, changed(SAFE, (2, 0), np.nan)], limits=[1.0, 1.0])


PARAMETER_ERRORS: list[tuple[dict[str, Any], str]] = [
    ({"sense": "at most"}, "from_arrays has no argument 'sense'; did you mean 'senses'?"),
    ({"senses": "below"}, "senses is 'below'; known: at least, at most."),
    (
        {"thresholds": None},
        "constraint_rewards is given without thresholds; constraint_rewards go with thresholds (at "
        "least), costs with limits (at most).",
    ),
    ({"constraint_rewards": None}, "thresholds is given without constraint_rewards; "),
    ({"costs": SAFE}, "costs is given without limits; "),
    ({"limits": 1.0}, "limits is given without costs; "),
    ({"initial": 3}, "initial is 3, but states are 0 … 2."),
    ({"initial": -1}, "initial is -1, but states are 0 … 2."),
    (
        {"initial": 1.0},
        "initial must be a state (a whole number) or a distribution over the 3 states, got 1.0.",
    ),
    ({"initial": True}, "initial must be a state"),
    ({"initial": None}, "initial must be a state"),
    ({"horizon": 0}, "horizon must be a whole number, at least 1, got 0."),
    ({"horizon": 2.5}, "horizon must be a whole number, at least 1, got 2.5."),
    ({"horizon": None}, "horizon must be a whole number, at least 1, got None."),
    ({"horizon": True}, "horizon must be a whole number, at least 1, got True."),
]


@pytest.mark.parametrize(("changes", "message"), PARAMETER_ERRORS)
def test_arguments_that_do_not_go_together(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(cmdpax.ParameterError, match=re.escape(message)) as raised:
        convert(**changes)
    assert str(raised.value).endswith(".")
    assert "\n" not in str(raised.value)
