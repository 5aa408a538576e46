import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import cmdpax
import strategies
from cmdpax.model.validation import validate_policy


def arrays() -> dict[str, Any]:
    """S = 3, A = 2, H = 4, I = 2, fully written out."""
    return {
        "transitions": np.full((4, 3, 2, 3), 1 / 3),
        "rewards": np.zeros((4, 3, 2)),
        "constraint_rewards": np.zeros((2, 4, 3, 2)),
        "thresholds": np.zeros(2),
        "initial": np.array([0.5, 0.5, 0.0]),
    }


def listed() -> dict[str, Any]:
    """The same with successor lists of two slots."""
    successors = np.zeros((4, 3, 2, 2), dtype=int)
    successors[..., 1] = 2
    lists = cmdpax.Successors(successors, np.full((4, 3, 2, 2), 0.5))
    return arrays() | {"transitions": lists}


def put(name: str, index: tuple[int, ...], number: float) -> Callable[[dict[str, Any]], None]:
    def change(model: dict[str, Any]) -> None:
        model[name] = model[name].copy()
        model[name][index] = number

    return change


def reshape(name: str, shape: tuple[int, ...]) -> Callable[[dict[str, Any]], None]:
    def change(model: dict[str, Any]) -> None:
        model[name] = np.full(shape, 0.5)

    return change


def put_in_lists(field: str, index: tuple[int, ...], number: float) -> Callable[..., None]:
    def change(model: dict[str, Any]) -> None:
        array = getattr(model["transitions"], field).copy()
        array[index] = number
        model["transitions"] = model["transitions"]._replace(**{field: array})

    return change


DENSE_ERRORS = [
    (put("transitions", (2, 1, 0, 1), 0.5), "transitions[2, 1, 0] sums to 1.16666666667, not to 1"),
    (put("transitions", (2, 1, 0, 1), -0.5), "transitions[2, 1, 0, 1] is -0.5; probabilities can"),
    (put("transitions", (3, 2, 1, 0), np.nan), "transitions[3, 2, 1, 0] is nan; every entry must"),
    (put("transitions", (3, 2, 1, 0), np.inf), "transitions[3, 2, 1, 0] is inf; every entry must"),
    (put("rewards", (1, 2, 0), np.nan), "rewards[1, 2, 0] is nan; every entry must be a finite"),
    (put("rewards", (1, 2, 0), -np.inf), "rewards[1, 2, 0] is -inf; every entry must be a finite"),
    (put("constraint_rewards", (1, 3, 2, 1), np.nan), "constraint_rewards[1, 3, 2, 1] is nan; "),
    (put("thresholds", (1,), np.nan), "thresholds[1] is nan; every entry must be a finite number"),
    (put("initial", (1,), np.nan), "initial[1] is nan; every entry must be a finite number."),
    (put("initial", (1,), -0.25), "initial[1] is -0.25; probabilities cannot be negative."),
    (put("initial", (1,), 0.25), "initial sums to 0.75, not to 1; divide it by its sum."),
    (
        reshape("transitions", (4, 3, 2)),
        "transitions has shape (4, 3, 2), expected (H, S, A, S): for (S, A, S), the same at every",
    ),
    (reshape("transitions", (4, 3, 2, 2)), "transitions has shape (4, 3, 2, 2), expected (H, S, A"),
    (reshape("transitions", (4, 0, 2, 0)), "a CMDP needs at least one state, one action and one"),
    (
        reshape("rewards", (4, 2, 3)),
        "rewards has shape (4, 2, 3), expected (H, S, A) = (4, 3, 2) or (1, 3, 2).",
    ),
    (reshape("rewards", (3, 3, 2)), "rewards has shape (3, 3, 2), expected (H, S, A) = (4, 3, 2)"),
    (
        reshape("constraint_rewards", (2, 4, 3, 3)),
        "constraint_rewards has shape (2, 4, 3, 3), expected (I, H, S, A) = (2, 4, 3, 2) or "
        "(2, 1, 3, 2).",
    ),
    (reshape("constraint_rewards", (4, 3, 2)), "constraint_rewards has shape (4, 3, 2), expected"),
    (
        reshape("thresholds", (3,)),
        "thresholds has length 3, but constraint_rewards has 2",
    ),
    (reshape("thresholds", (2, 1)), "thresholds has shape (2, 1), expected (I,)."),
    (reshape("initial", (2,)), "initial has shape (2,), expected (S,) = (3,)."),
    (reshape("initial", (1, 3)), "initial has shape (1, 3), expected (S,) = (3,)."),
]

LISTED_ERRORS = [
    (
        put_in_lists("successors", (1, 2, 0, 1), 3),
        "successors[1, 2, 0, 1] is 3, but states are 0 … 2; give unused slots probability 0",
    ),
    (put_in_lists("successors", (1, 2, 0, 1), -1), "successors[1, 2, 0, 1] is -1, but states are"),
    (put_in_lists("successors", (0, 0, 0, 0), 2**40), "successors[0, 0, 0, 0] is 1099511627776, b"),
    (
        put_in_lists("probabilities", (3, 1, 1, 0), 0.75),
        "probabilities[3, 1, 1] sums to 1.25, not to 1; divide the row by its sum.",
    ),
    (put_in_lists("probabilities", (3, 1, 1, 0), -0.5), "probabilities[3, 1, 1, 0] is -0.5; proba"),
    (put_in_lists("probabilities", (3, 1, 1, 0), np.nan), "probabilities[3, 1, 1, 0] is nan; ever"),
    (
        lambda model: model.update(
            transitions=cmdpax.Successors(np.zeros((4, 3, 2, 1), int), np.ones((4, 3, 2, 2)))
        ),
        "successors has shape (4, 3, 2, 1) and probabilities (4, 3, 2, 2), expected one shape",
    ),
    (
        lambda model: model.update(
            transitions=cmdpax.Successors(np.zeros((3, 3, 2, 1), int), np.ones((3, 3, 2, 1)))
        ),
        "probabilities has shape (3, 3, 2, 1), expected (H, S, A, ·) = (4, 3, 2, 1) or (1, 3, 2",
    ),
]


@pytest.mark.parametrize(("change", "message"), DENSE_ERRORS)
def test_errors_name_array_index_value_and_expectation(
    change: Callable[[dict[str, Any]], None], message: str
) -> None:
    model = arrays()
    cmdpax.validate(cmdpax.CMDP(**model))
    change(model)
    with pytest.raises(cmdpax.ModelError, match=re.escape(message)) as raised:
        cmdpax.validate(cmdpax.CMDP(**model))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("change", "message"), LISTED_ERRORS)
def test_errors_of_successor_lists(change: Callable[[dict[str, Any]], None], message: str) -> None:
    model = listed()
    cmdpax.validate(cmdpax.CMDP(**model))
    change(model)
    with pytest.raises(cmdpax.ModelError, match=re.escape(message)):
        cmdpax.validate(cmdpax.CMDP(**model))


@pytest.mark.parametrize("horizon", [0, -3])
def test_a_horizon_is_at_least_one(horizon: int) -> None:
    with pytest.raises(cmdpax.ModelError, match=f"horizon is {horizon}, it must be at least 1"):
        cmdpax.validate(cmdpax.CMDP(**arrays(), horizon=horizon))


def test_a_horizon_must_fit_the_arrays() -> None:
    message = r"transitions has shape \(4, 3, 2, 3\), expected .* = \(5, 3, 2, 3\) or \(1, 3"
    with pytest.raises(cmdpax.ModelError, match=message):
        cmdpax.validate(cmdpax.CMDP(**arrays(), horizon=5))


def test_no_slots_are_no_successors() -> None:
    model = arrays()
    model["transitions"] = cmdpax.Successors(
        np.zeros((4, 3, 2, 0), dtype=int), np.zeros((4, 3, 2, 0))
    )
    with pytest.raises(cmdpax.ModelError, match=r"probabilities has shape \(4, 3, 2, 0\)"):
        cmdpax.validate(cmdpax.CMDP(**model))


@pytest.mark.parametrize("thing", [None, "model.npz", {"rewards": []}])
def test_something_else_is_not_a_model(thing: object) -> None:
    message = f"expected a cmdpax.CMDP, got {type(thing).__name__}; cmdpax.load reads one"
    with pytest.raises(cmdpax.ModelError, match=message):
        cmdpax.validate(thing)


def test_rows_may_be_off_by_rounding_only() -> None:
    def with_excess(excess: float) -> cmdpax.CMDP:
        model = arrays()
        put("transitions", (0, 0, 0, 0), 1 / 3 + excess)(model)
        return cmdpax.CMDP(**model)

    kept = cmdpax.validate(with_excess(1e-9))
    assert kept.transitions[0, 0, 0].sum() - 1 == pytest.approx(1e-9, rel=1e-3)
    divided = cmdpax.validate(with_excess(1e-7))  # as in single precision
    assert divided.transitions[0, 0, 0].sum() == pytest.approx(1, abs=1e-15)
    with pytest.raises(cmdpax.ModelError, match=r"transitions\[0, 0, 0\] sums to 1\.00001, not"):
        cmdpax.validate(with_excess(1e-5))


@given(cmdp=strategies.cmdps())
def test_good_models_are_returned_as_they_are(cmdp: cmdpax.CMDP) -> None:
    assert cmdpax.validate(cmdp) is cmdp
    assert cmdpax.validate(cmdp) is cmdp  # and again, from memory


def test_a_changed_copy_of_a_good_model_is_checked_anew() -> None:
    cmdp = cmdpax.validate(cmdpax.CMDP(**arrays()))
    with pytest.raises(cmdpax.ModelError, match="thresholds has length 1"):
        cmdpax.validate(cmdp.replace(thresholds=[0.0]))


# ---------------------------------------------------------------------------------------- policies


def uniform_policy() -> np.ndarray:
    return np.full((4, 3, 2), 0.5)


def changed_policy(index: tuple[int, ...], number: float) -> np.ndarray:
    policy = uniform_policy()
    policy[index] = number
    return policy


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (np.full((4, 2, 2), 0.5), "policy has shape (4, 2, 2), expected (H, S, A) = (4, 3, 2) or"),
        (np.full((3, 2), 0.5), "policy has shape (3, 2), expected (H, S, A) = (4, 3, 2) or"),
        (changed_policy((1, 2, 0), 0.25), "policy[1, 2] sums to 0.75, not to 1; divide the row by"),
        (changed_policy((1, 2, 0), -0.25), "policy[1, 2, 0] is -0.25; probabilities cannot be neg"),
        (changed_policy((1, 2, 0), np.nan), "policy[1, 2, 0] is nan; every entry must be a finite"),
        ([[1.0], [0.5, 0.5]], "policy cannot be read as an array of real numbers"),
        ("uniform", "policy cannot be read as an array of real numbers"),
    ],
)
def test_errors_of_policies(policy: object, message: str) -> None:
    with pytest.raises(cmdpax.ModelError, match=re.escape(message)):
        cmdpax.evaluate(cmdpax.CMDP(**arrays()), policy)


def test_a_stationary_policy_is_repeated() -> None:
    cmdp = cmdpax.CMDP(**arrays())
    checked = validate_policy(cmdp, [[[1, 0], [0, 1], [0.5, 0.5]]])
    assert checked.shape == (4, 3, 2)
    assert np.all(checked == checked[0])
