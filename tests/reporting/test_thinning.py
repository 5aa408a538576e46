"""Fewer points: at most what is wanted, and no extreme is lost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cmdpax.reporting.thinning import thin


@st.composite
def tables(draw: st.DrawFn) -> np.ndarray:
    """Rows with many ties, or without."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = draw(st.tuples(st.integers(0, 6), st.integers(1, 300)))
    if draw(st.booleans()):
        return generator.integers(-2, 3, shape).astype(float)
    return generator.normal(size=shape).cumsum(axis=1)


@given(tables(), st.integers(2, 320))
def test_what_is_kept(rows: np.ndarray, wanted: int) -> None:
    kept, length = thin(rows, wanted), rows.shape[1]
    assert len(kept) <= max(wanted, 2)
    assert sorted(set(kept)) == kept.tolist()
    assert kept[0] == 0
    assert kept[-1] == length - 1
    if length <= wanted:
        assert len(kept) == length
    certain = rows[: max(0, (wanted - 2) // 2)]  # two extremes of each, and the two ends
    np.testing.assert_array_equal(certain[:, kept].min(axis=1), certain.min(axis=1))
    np.testing.assert_array_equal(certain[:, kept].max(axis=1), certain.max(axis=1))


@pytest.mark.whole
@given(st.integers(0, 2**32 - 1), st.integers(50, 400))
def test_every_bucket_keeps_its_extremes(seed: int, wanted: int) -> None:
    """The widest gap between kept points bounds the buckets: each has both extremes of each row."""
    rows = np.random.default_rng(seed).normal(size=(3, 1000))
    kept = thin(rows, wanted)
    found = [
        width
        for width in range(1, 1001)
        if all(
            find(row[start : start + width]) + start in kept
            for row in rows
            for start in range(0, 1000, width)
            for find in (np.argmin, np.argmax)
        )
        and set(range(0, 1000, width)) <= set(kept)
    ]
    # Buckets of about seven kept points: no wider than they must be.
    assert found
    assert found[0] <= 2 * 7 * 1000 / wanted + 1


def test_a_lonely_spike_stays() -> None:
    flat = np.zeros((2, 10_000))
    flat[1, 4321] = 1e-3
    assert 4321 in thin(flat, 60)


def test_runs_that_are_lost() -> None:
    """NaN is what a run of one's own may end with."""
    rows = np.full((2, 100), np.nan)
    rows[:, :50] = np.arange(50)
    kept = thin(rows, 20)
    assert len(kept) <= 20
    assert {0, 99} <= set(kept)


@pytest.mark.parametrize("wanted", [2, 3, 5])
def test_the_first_rows_count_most(wanted: int) -> None:
    rows = np.zeros((4, 50))
    rows[np.arange(4), [7, 17, 27, 37]] = 1.0
    kept = thin(rows, wanted)
    assert len(kept) <= wanted
    assert (7 in kept) == (wanted > 2)
