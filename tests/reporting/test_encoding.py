"""Numbers as bytes, and back."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as extra

from cmdpax.reporting.encoding import all_rounded, encode, plain, rounded
from report_cases import decode

SHAPES = extra.array_shapes(min_dims=2, max_dims=2, max_side=12)
FINE, COARSE = (2.0**-digits + 2.0**-24 for digits in (17, 11))  # rounded twice
NUMBERS = st.floats(-1e37, 1e37) | st.floats(-1.0, 1.0) | st.sampled_from([0.0, -0.0, 1e-300, -1.0])


def decoded(episodes: np.ndarray, block: str, num_rows: int) -> tuple[list[int], np.ndarray]:
    names = [str(row) for row in range(num_rows)]
    group = {"kept": len(episodes), "units": 1, "shown": ["one"], "series": names}
    found, rows = decode(group, block)
    return found, np.concatenate([rows[name] for name in names])


@given(extra.arrays(np.float64, SHAPES, elements=NUMBERS), st.data())
def test_numbers_come_back(rows: np.ndarray, data: st.DataObject) -> None:
    whole = st.integers(0, 2**32 - 1)
    episodes = data.draw(extra.arrays(np.int64, rows.shape[1], elements=whole))
    found, numbers = decoded(episodes, encode(episodes, rows), len(rows))
    assert found == episodes.tolist()
    np.testing.assert_allclose(numbers, rows, rtol=FINE, atol=1.2e-38)


@given(extra.arrays(np.float64, SHAPES, elements=NUMBERS))
def test_coarse_rows_have_three_digits(rows: np.ndarray) -> None:
    episodes = np.arange(1, rows.shape[1] + 1)
    _, numbers = decoded(episodes, encode(episodes, rows, [0]), len(rows))
    np.testing.assert_allclose(numbers[0], rows[0], rtol=COARSE, atol=1.2e-38)
    np.testing.assert_allclose(numbers[1:], rows[1:], rtol=FINE, atol=1.2e-38)


def test_whole_numbers_are_exact() -> None:
    rows = np.arange(-60_000.0, 60_000.0, 977.0)[None]
    episodes = np.arange(rows.shape[1])
    _, numbers = decoded(episodes, encode(episodes, rows), 1)
    np.testing.assert_array_equal(numbers, rows)


def test_what_is_no_number() -> None:
    rows = np.array([[1.0, np.nan, np.inf, -np.inf, 1e300]])
    _, numbers = decoded(np.arange(5), encode(np.arange(5), rows), 1)
    assert np.isnan(numbers[0, 1])
    np.testing.assert_allclose(numbers[0, 2:], [3.4e38, -3.4e38, 3.4e38], rtol=1e-4)


def test_curves_take_little_room() -> None:
    """A smooth curve takes less than half of single precision."""
    smooth = np.cumsum(1 / np.sqrt(np.arange(1, 2001)))[None]
    assert len(encode(np.arange(1, 2001), smooth)) < 0.5 * (4 / 3) * 4 * 2 * 2000


@given(st.floats())
def test_rounding_for_json(number: float) -> None:
    found = rounded(number)
    if not math.isfinite(number):
        assert found is None
    else:
        assert found == pytest.approx(number, rel=1e-6, abs=5e-324)
        assert found == rounded(found)


def test_rounding_everything() -> None:
    assert all_rounded([1 / 3, math.nan, math.inf]) == [0.3333333, None, None]
    assert rounded(None) is None
    found = plain({"a": [1 / 3, {"b": -math.inf, "c": "0.123456789"}], "d": 123456789, "e": True})
    assert plain("a\udcffö") == "a?ö"
    assert found == {
        "a": [0.3333333, {"b": None, "c": "0.123456789"}],
        "d": 123456789,
        "e": True,
    }
