"""Checks that every border uses: what they take, and that they can say what they refuse."""

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import cmdpax
from cmdpax.errors import check_choice, require_count, require_flag, require_positive
from cmdpax.model import is_single

HUGE = 10**5000  # Python refuses to write it down
ODD: list[Any] = [None, "1", [], {}, [1, [2, 3]], np.zeros(2), -1, HUGE, -HUGE, 1j, object()]


def kind(value: Any) -> str:
    """For the name of a test: the value itself may have no text."""
    return type(value).__name__


@pytest.mark.parametrize("value", [1, 0.5, np.float32(2), np.int64(3), Fraction(1, 3)])
def test_positive_numbers(value: Any) -> None:
    found = require_positive("tolerance", value)
    assert type(found) is float
    assert found == float(value)


@pytest.mark.parametrize("value", [*ODD, True, 0, 0.0, float("nan"), float("inf")], ids=kind)
def test_what_is_no_positive_number(value: Any) -> None:
    with pytest.raises(cmdpax.ParameterError, match=r"^tolerance is .* a positive number\.$"):
        require_positive("tolerance", value)


@pytest.mark.parametrize("value", [True, False, np.True_, np.False_])
def test_flags(value: Any) -> None:
    assert require_flag("log", value) is bool(value)


@pytest.mark.parametrize("value", [*ODD, 0, 1, 1.0], ids=kind)
def test_what_is_no_flag(value: Any) -> None:
    with pytest.raises(cmdpax.ParameterError, match=r"^log is .*, it must be true or false\.$"):
        require_flag("log", value)


@pytest.mark.parametrize("value", [*ODD, True, 0, 1.5, 2**31], ids=kind)
def test_what_is_no_count(value: Any) -> None:
    with pytest.raises(cmdpax.ParameterError, match=r"^seeds is .*, it must be .*\.$"):
        require_count("seeds", value)


@pytest.mark.parametrize("value", [*ODD, np.array(["mean", "mean"]), "means", ["mean"]], ids=kind)
def test_what_is_no_choice(value: Any) -> None:
    sentence = r"^observations is .*; .*known: bernoulli, mean\.$"
    with pytest.raises(cmdpax.ParameterError, match=sentence):
        check_choice("observations", value, ("mean", "bernoulli"))


def test_the_nearest_choice_is_named() -> None:
    with pytest.raises(cmdpax.ParameterError, match=re.escape("did you mean 'mean'? ")):
        check_choice("observations", "means", ("mean", "bernoulli"))


@pytest.mark.parametrize(
    ("value", "single"), [(1, True), ("a", True), ([1], False), ([[1], [1, 2]], False)]
)
def test_single_things(value: Any, single: bool) -> None:
    assert is_single(value) == single
