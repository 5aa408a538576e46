"""How much of a plan is played beside a baseline, compared with slow loops."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cmdpax.live.mixing import (
    _CAUTION,
    _LEAST,
    _MOST,
    _PROMISED,
    _SHARES,
    _STEP,
    ENOUGH,
    Mixture,
    mix,
)

CONFIDENCE = 0.9


@st.composite
def slacks(draw: st.DrawFn) -> np.ndarray:
    """Of a baseline and a plan, `[draws, 2, I]`."""
    generator = np.random.default_rng(draw(st.integers(0, 10**6)))
    count, constraints = draw(st.integers(1, 40)), draw(st.integers(0, 3))
    centre = generator.normal(size=(1, 2, constraints)) * draw(st.sampled_from([0.0, 0.3, 3.0]))
    spread = draw(st.sampled_from([0.0, 0.1, 1.0]))
    return centre + spread * generator.normal(size=(count, 2, constraints))


def slow_mix(
    slacks: Any, margins: Any, confidence: float, episodes: int, kept: float
) -> dict[str, Any]:
    """In loops over shares, models and constraints."""
    draws, _, count = slacks.shape
    rounding = [1e-9 * max(1.0, float(abs(slacks[:, :, i]).max())) for i in range(count)]
    models = slacks.tolist()
    less = [_PROMISED * float(np.std(slacks[:, 1, i] - slacks[:, 0, i])) for i in range(count)]
    safe = [all(b[i] >= -rounding[i] for i in range(count)) for b, _ in models]
    trusted = episodes < ENOUGH or sum(safe) / draws >= 1 - confidence
    wanted, chances = 1 - _CAUTION * (1 - confidence), []
    for share in _SHARES.tolist():
        met = 0
        for baseline, plan in models:
            ours = [max(b, 0.0) if trusted else b for b in baseline]
            mixed = [(1 - share) * ours[i] + share * (plan[i] - less[i]) for i in range(count)]
            met += all(mixed[i] >= -rounding[i] for i in range(count))
        chances.append(met / draws)
    enough = [k for k, chance in enumerate(chances) if chance >= wanted]
    chosen = enough[-1] if enough else chances.index(max(chances))
    expected = [sum(b[i] for b, _ in models) / draws for i in range(count)]
    following = []
    for i in range(count):
        spare = max(expected[i], 0)
        surely = np.quantile([plan[i] for _, plan in models], (1 - wanted) / count) - less[i]
        step = min(max(kept - surely, -_STEP * spare), _STEP * spare)
        following.append(min(max(margins[i] + step, _LEAST * spare), _MOST * spare))
    return {
        "share": float(_SHARES[chosen]),
        "probability": chances[chosen],
        "trusted": trusted,
        "slack": expected,
        "margins": following,
    }


@given(found=slacks(), episodes=st.sampled_from([0, ENOUGH - 1, ENOUGH, 1000]), data=st.data())
def test_the_slow_reference(found: np.ndarray, episodes: int, data: Any) -> None:
    confidence = data.draw(st.sampled_from([0.5, 0.9, 0.99]))
    margins = np.array(data.draw(st.lists(st.floats(-1, 2), min_size=3, max_size=3)))
    kept = data.draw(st.sampled_from([0.0, 0.5]))
    margins = margins[: found.shape[2]]
    ours = mix(found, margins, confidence, episodes, kept)
    theirs = slow_mix(found, margins, confidence, episodes, kept)
    assert (ours.share, ours.trusted) == (theirs["share"], theirs["trusted"])
    assert ours.probability == pytest.approx(theirs["probability"], abs=1e-12)
    np.testing.assert_allclose(ours.slack, theirs["slack"], rtol=0, atol=1e-12)
    np.testing.assert_allclose(ours.margins, theirs["margins"], rtol=0, atol=1e-12)


@given(found=slacks(), shift=st.floats(0, 3))
def test_a_safer_plan_is_played_as_often_or_more_often(found: np.ndarray, shift: float) -> None:
    nothing = np.zeros(found.shape[2])
    better = found + np.array([0.0, shift])[:, None]
    one, other = (mix(each, nothing, CONFIDENCE, 0) for each in (found, better))
    assert other.share >= one.share
    assert (np.array(other.margins) <= np.array(one.margins) + 1e-12).all()


@given(found=slacks())
def test_a_trusted_baseline_is_safe_whatever_the_plan_is(found: np.ndarray) -> None:
    chosen = mix(found, np.zeros(found.shape[2]), CONFIDENCE, 0)
    assert chosen.trusted
    assert chosen.probability >= 1 - _CAUTION * (1 - CONFIDENCE)
    assert (abs(np.array(chosen.margins)) <= _STEP * np.maximum(chosen.slack, 0) + 1e-12).all()


@given(found=slacks(), confidences=st.tuples(st.floats(0.1, 0.99), st.floats(0.1, 0.99)))
def test_more_confidence_plays_the_plan_less(found: np.ndarray, confidences: Any) -> None:
    nothing = np.zeros(found.shape[2])
    shares = [mix(found, nothing, one, 0).share for one in sorted(confidences)]
    assert shares[1] <= shares[0]


def of(baseline: float, plan: float, draws: int = 100) -> np.ndarray:
    """The same slacks in every model, of one constraint."""
    return np.tile(np.array([[[baseline], [plan]]]), (draws, 1, 1))


def test_certain_values() -> None:
    """The share is where the mixture meets its constraint exactly: (1 - α) b + α p = 0."""
    nothing = np.zeros(1)
    assert mix(of(1.0, 0.5), nothing, CONFIDENCE, 0).share == 1
    assert mix(of(1.0, -1.0), nothing, CONFIDENCE, 0).share == pytest.approx(0.5)
    assert mix(of(0.0, -0.1), nothing, CONFIDENCE, 0).share == 0
    assert mix(of(0.0, 0.0), nothing, CONFIDENCE, 0).share == 1


def test_margins_follow_the_slack_of_the_plan() -> None:
    """By a fifth of the baseline's slack at most, and never more than 0.7 of it."""

    def following(margin: float, plan: float, kept: float = 0.0) -> float:
        return mix(of(0.5, plan), np.array([margin]), CONFIDENCE, 0, kept).margins[0]

    assert following(0.2, -0.05) == pytest.approx(0.25)  # that much is missing
    assert following(0.2, 0.05) == pytest.approx(0.15)
    assert following(0.2, -1.0) == pytest.approx(0.3)
    assert following(0.3, -1.0) == pytest.approx(0.35)
    assert following(0.0, 1.0) == pytest.approx(-0.1)  # the learner is too cautious
    assert following(0.0, 1.0, kept=0.95) == pytest.approx(-0.05)
    assert following(-2.0, 1.0) == pytest.approx(-2.0)


def test_a_plan_is_judged_as_if_it_were_worse_than_it_looks() -> None:
    """By a deviation of its difference from the baseline: none for what the two have in common."""
    generator = np.random.default_rng(0)
    shared, own = generator.normal(size=(2, 4000))
    both = np.stack([shared, shared + 1.7], axis=1)[..., None] + 3.0
    assert mix(both, np.zeros(1), CONFIDENCE, 0).share == 1
    apart = np.stack([np.full(4000, 3.0), own + 1.7], axis=1)[..., None]
    assert mix(apart, np.zeros(1), CONFIDENCE, 0).share < 1  # 1.7 alone would do for 95 %
    assert mix(apart + np.array([[0.0], [1.1]]), np.zeros(1), CONFIDENCE, 0).share == 1


def test_data_contradict_a_baseline_that_is_unsafe_in_nearly_all_models() -> None:
    nothing, unsafe = np.zeros(1), of(-1.0, 0.5)
    early, late = (mix(unsafe, nothing, CONFIDENCE, count) for count in (ENOUGH - 1, ENOUGH))
    assert (early.trusted, early.share) == (True, 1)
    assert not late.trusted
    assert late.share == 1
    unsafe[:10, 0] = 1.0  # one model in ten leaves it possible
    assert mix(unsafe, nothing, CONFIDENCE, ENOUGH).trusted


def test_where_nothing_is_safe_the_likeliest_share_is_played() -> None:
    hopeless = of(-2.0, -1.0)
    hopeless[:30, 1] = 3.0
    chosen = mix(hopeless, np.zeros(1), CONFIDENCE, ENOUGH)
    assert not chosen.trusted
    assert chosen.probability == 0.3
    less = 4 * 0.21**0.5  # a deviation
    assert 0.63 < 2 / (5 - less) < chosen.share == pytest.approx(0.64)  # the first of them


@pytest.mark.parametrize("episodes", [0, 1000])
def test_without_constraints_the_plan_is_played(episodes: int) -> None:
    chosen = mix(np.zeros((5, 2, 0)), np.zeros(0), CONFIDENCE, episodes)
    assert chosen == Mixture(1.0, 1.0, True, (), ())


def test_in_words() -> None:
    nothing = np.zeros(1)
    assert str(mix(of(0.0, -1.0), nothing, CONFIDENCE, 0)) == (
        "the baseline is played in all episodes: its slack is believed to be 0, and no share of "
        "the plan is safe enough"
    )
    assert str(mix(of(1.0, -1.0), nothing, CONFIDENCE, 0)) == (
        "the plan is played in 50 % of the episodes, the baseline in the others; all constraints "
        "are met with probability 1"
    )
    assert str(mix(of(-1.0, 0.5), nothing, CONFIDENCE, ENOUGH)) == (
        "the data contradict the baseline, whose slack is believed to be -1; the plan is played "
        "in 100 % of the episodes; all constraints are met with probability 1"
    )
