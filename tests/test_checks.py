"""Checks that every border uses: what they take, and that they can say what they refuse."""

import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import cmdpax
from cmdpax.checks import (
    check_choice,
    real_number,
    require_count,
    require_flag,
    require_index,
    require_number,
    require_positive,
    require_share,
    whole_number,
)
from cmdpax.model.arrays import is_single

HUGE = 10**5000  # Python refuses to write it down
ODD: list[Any] = [None, "1", [], {}, [1, [2, 3]], np.zeros(2), -1, HUGE, -HUGE, 1j, object()]
FLAGS: list[Any] = [True, np.True_, np.array(True), jnp.array(True)]
WORDS: list[Any] = ["1", b"1", np.array("1"), np.datetime64("2020-01-01")]
LISTS: list[Any] = [[], [1], (1,), np.array([1]), jnp.array([1]), [1, [2, 3]], {}]
NEITHER: list[Any] = [None, 1j, np.complex64(1), object(), *FLAGS, *WORDS, *LISTS]


def kind(value: Any) -> str:
    """For the name of a test: the value itself may have no text."""
    return type(value).__name__


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3), np.array(3), jnp.array(3)])
def test_whole_numbers(value: Any) -> None:
    found = whole_number(value)
    assert type(found) is int
    assert found == require_count("seeds", value) == require_index("state", value, 4, "states") == 3


FLOATS = [3.0, np.float64(3), np.array(3.0), jnp.array(3.0), Fraction(3), Decimal(3)]


@pytest.mark.parametrize("value", [*NEITHER, *FLOATS], ids=kind)
def test_what_is_no_whole_number(value: Any) -> None:
    assert whole_number(value) is None
    with pytest.raises(cmdpax.ParameterError, match="it must be one of the states 0 … 3"):
        require_index("state", value, 4, "states")


@pytest.mark.parametrize("value", [3, np.int8(3), jnp.array(3), 2**80, math.inf, *FLOATS])
def test_real_numbers(value: Any) -> None:
    found = real_number(value)
    assert type(found) is float
    assert found == float(value)


@pytest.mark.parametrize("value", [*NEITHER, HUGE, math.nan], ids=kind)
def test_what_is_no_real_number(value: Any) -> None:
    assert math.isnan(real_number(value))
    with pytest.raises(cmdpax.ParameterError, match=r"^noise is .*, it must be a number\.$"):
        require_number("noise", value)


@pytest.mark.parametrize(
    ("check", "bounds", "value", "sentence"),
    [
        (require_count, (0,), -1, "it must be a whole number of at least 0."),
        (require_count, (2, 5), 1, "it must be a whole number of at least 2."),
        (require_count, (2, 5), 6, "it must be at most 5."),
        (require_count, (), 2**31, "it must be below 2^31: counts are integers."),
        (require_index, (4, "states"), 4, "the states are 0 … 3."),
        (require_index, (4, "states"), -1, "the states are 0 … 3."),
        (require_number, (0, 0.9), 1, "it must be a number between 0 and 0.9."),
        (require_number, (0,), -0.5, "it must be a number between 0 and infinity."),
        (require_number, (0,), math.inf, "it must be a number between 0 and infinity."),
        (require_number, (), -math.inf, "it must be a number."),
        (require_share, (), 0, "it must be between 0 and 1."),
        (require_share, (), 1.0, "it must be between 0 and 1."),
        (require_share, (), "0.5", "it must be between 0 and 1."),
    ],
)
def test_ranges(check: Any, bounds: tuple[Any, ...], value: Any, sentence: str) -> None:
    with pytest.raises(cmdpax.ParameterError, match=re.escape(f"it is {value!r}, {sentence}")):
        check("it", value, *bounds)


def test_the_ends_of_a_range_belong_to_it() -> None:
    assert [require_count("it", value, 2, 5) for value in (2, 5)] == [2, 5]
    assert [require_number("it", value, 0, 0.9) for value in (0, 0.9)] == [0.0, 0.9]
    assert require_share("it", np.float32(0.5)) == 0.5


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
