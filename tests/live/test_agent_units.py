"""The user's units: an agent that is told ranges and senses is the one that is told [0, 1]."""

from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import cmdpax
from cmdpax.live.units import Units, declare_units
from live_cases import Steps, assert_close, draw_episodes, log_of, make, replay_calls

HORIZON = 3
RANGES: dict[str, Any] = {
    "costs": {
        "reward_range": (0, 1),
        "constraint_ranges": (0, 20),
        "senses": "at most",
        "thresholds": [12.0, 8.0],
    },
    "mixed": {
        "reward_range": (-5, 15),
        "constraint_ranges": [(0, 20), (-1, 3)],
        "senses": ["at most", "at least"],
        "thresholds": [10.0, 8.0],
    },
    "negative": {
        "reward_range": (-300, -100),
        "constraint_ranges": [(-2, -1), (1000, 1001)],
        "senses": ("at least", "at most"),
        "thresholds": [-3.3, 3000.3],
    },
    "plain": {
        "reward_range": (0, 1),
        "constraint_ranges": ((0, 1), (0, 1)),
        "senses": "at least",
        "thresholds": [2.6, 2.5],
    },
}


def ends_of(declared: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, list[bool]]:
    """Lows, highs and whether less is better, the reward first."""
    ranges, senses = declared["constraint_ranges"], declared["senses"]
    pairs = [ranges] * 2 if np.shape(ranges) == (2,) else list(ranges)
    words = [senses] * 2 if isinstance(senses, str) else list(senses)
    low, high = np.array([declared["reward_range"], *pairs], float).T
    return low, high, [False, *(word == "at most" for word in words)]


def to_unit(declared: dict[str, Any], signal: int, x: Any) -> Any:
    """u = (high - x)/(high - low) for at most, (x - low)/(high - low) for at least."""
    low, high, at_most = (entry[signal] for entry in ends_of(declared))
    return (
        (high - np.asarray(x)) / (high - low) if at_most else (np.asarray(x) - low) / (high - low)
    )


def unit_thresholds(declared: dict[str, Any]) -> list[float]:
    """c = (H·high - limit)/(high - low) for at most."""
    found = []
    for i, limit in enumerate(declared["thresholds"], start=1):
        low, high, at_most = (entry[i] for entry in ends_of(declared))
        room = HORIZON * high - limit if at_most else limit - HORIZON * low
        found.append(room / (high - low))
    return found


def converted(declared: dict[str, Any], episodes: list[Steps]) -> list[Steps]:
    return [
        (
            states,
            actions,
            to_unit(declared, 0, rewards).tolist(),
            [to_unit(declared, 1 + i, one).tolist() for i, one in enumerate(signals)],
        )
        for states, actions, rewards, signals in episodes
    ]


def known_in(declared: dict[str, Any]) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Known rewards in the user's units, and the same in [0, 1]."""
    low, high, _ = ends_of(declared)
    shares = np.random.default_rng(4).random((3, HORIZON, 3, 2))
    shares[:, 0, 0, 0], shares[:, 1, 0, 0] = 0, 1  # the ends, too
    users = low[:, None, None, None] + (high - low)[:, None, None, None] * shares
    unit = np.stack([to_unit(declared, signal, users[signal]) for signal in range(3)])
    return tuple({"rewards": one[0], "constraint_rewards": one[1:]} for one in (users, unit))


@pytest.mark.parametrize("told", ["rewards known", "rewards unknown"])
@pytest.mark.parametrize("name", RANGES)
def test_the_same_state_as_in_units_of_one(name: str, told: str) -> None:
    declared = RANGES[name]
    users, unit = known_in(declared) if told == "rewards known" else ({}, {})
    ours = make(**declared, **users, step_size=0.5)
    theirs = make(thresholds=unit_thresholds(declared), **unit, step_size=0.5)
    episodes = draw_episodes(ours, 20, cut=False)
    replay_calls(ours, episodes[:10])
    ours.feed(log_of(ours, episodes[10:]), own=True)
    replay_calls(theirs, converted(declared, episodes))
    assert_close(ours, theirs, 1e-12)
    assert abs(ours.policy - make(**declared, **users).policy).max() > 1e-3
    assert (ours.multipliers > 0).all()
    low, high, at_most = ends_of(declared)
    for i, (one, other) in enumerate(zip(ours.account, theirs.account, strict=True), start=1):
        scale = high[i] - low[i]
        inside = other.optimistic * scale
        optimistic = HORIZON * high[i] - inside if at_most[i] else HORIZON * low[i] + inside
        assert one.optimistic == pytest.approx(optimistic, rel=1e-12, abs=1e-12 * scale)
        assert one.threshold == declared["thresholds"][i - 1]
        assert one.sense == ("at most" if at_most[i] else "at least")
        assert one.multiplier == pytest.approx(other.multiplier, abs=1e-12)
        assert one.price == pytest.approx(other.multiplier * (high[0] - low[0]) / scale, abs=1e-12)
        returns = [sum(signals[i - 1]) for *_, signals in episodes]
        np.testing.assert_allclose(one.observed.mean, np.mean(returns), rtol=1e-12)
        limit = declared["thresholds"][i - 1]
        missed = [total > limit if at_most[i] else total < limit for total in returns]
        assert one.missed == sum(missed)
    total = [sum(rewards) for _, _, rewards, _ in episodes]
    np.testing.assert_allclose(ours.account.objective.observed.mean, np.mean(total), rtol=1e-12)


def test_margins_are_the_users_and_caps_are_inside() -> None:
    """As documented: margins in the user's units, λ_max for signals scaled to [0, 1]."""
    declared, chosen = RANGES["mixed"], {"max_multiplier": 0.7, "step_size": 3.0}
    ours = make(**declared, **chosen, margin=[4.0, 0.8])
    theirs = make(thresholds=unit_thresholds(declared), **chosen, margin=0.2)
    episodes = draw_episodes(ours, 15)
    replay_calls(ours, episodes)
    replay_calls(theirs, converted(declared, episodes))
    assert_close(ours, theirs, 1e-12)
    assert ours.account[0].threshold == 10.0


def test_the_record_is_in_the_users_units() -> None:
    agent = make(**RANGES["mixed"])
    agent.start(0)
    for reward, signals in ((-5, [20, 3]), (15, [0, -1]), (2.5, [7.5, 0.25])):
        agent.act(agent.state)
        agent.observe(reward, signals, 1)
    record = agent.end()
    assert (record.reward, record.constraint_returns.tolist()) == (12.5, [27.5, 2.25])
    for wrong in ((-5.1, [1, 1]), (1, [20.1, 1]), (1, [1, -1.1])):
        agent.start(0)
        agent.act(0)
        with pytest.raises(cmdpax.ParameterError, match="outside its declared range"):
            agent.observe(*wrong, 1)
        agent.end()
    sums = agent.learner_state.statistics.reward_sums  # in [0, 1], more is better
    np.testing.assert_allclose(sums.sum(axis=(0, 2, 3)), [27.5 / 20, 32.5 / 20, 5.25 / 4])


# ----------------------------------------------------------------------------- the units themselves

ENDS = st.floats(-1e6, 1e6, allow_nan=False)


@st.composite
def units(draw: st.DrawFn) -> Units:
    """A reward and two constraints."""
    pairs = []
    for _ in range(3):
        low, width = draw(ENDS), draw(st.floats(1e-3, 1e6))
        assume(low + width > low)
        pairs.append((low, low + width))
    senses = draw(st.lists(st.sampled_from(["at least", "at most"]), min_size=2, max_size=2))
    return declare_units(pairs[0], pairs[1:], senses, np.zeros(2), HORIZON)


@st.composite
def told_in(draw: st.DrawFn, chosen: Units, steps: int = HORIZON) -> np.ndarray:
    """Signals inside their ranges, `[steps, J]`."""
    share = st.floats(0, 1)
    rows = draw(st.lists(st.tuples(share, share, share), min_size=steps, max_size=steps))
    return np.clip(chosen.low + chosen.scale * np.array(rows), chosen.low, chosen.high)


@given(data=st.data(), chosen=units())
def test_signals_are_in_the_unit_interval_and_come_back(data: Any, chosen: Units) -> None:
    told = data.draw(told_in(chosen))
    inside = chosen.inward(told)
    assert inside.min() >= 0
    assert inside.max() <= 1
    back = np.where(
        chosen.at_most, chosen.high - inside * chosen.scale, chosen.low + inside * chosen.scale
    )
    rounding = 4 * np.finfo(float).eps * np.maximum(abs(chosen.low), abs(chosen.high))
    assert (abs(back - told) <= rounding + 4 * np.finfo(float).eps * chosen.scale).all()


@given(data=st.data(), chosen=units())
def test_sums_and_thresholds_go_together(data: Any, chosen: Units) -> None:
    """Inside is V_u - c what it is outside, up to the scale: the sign decides."""
    told = data.draw(told_in(chosen))
    limits = data.draw(told_in(chosen)).sum(axis=0)[1:]
    returns = told.sum(axis=0)[1:]
    inside = chosen.inward(told).sum(axis=0)[1:]
    bounds = chosen.thresholds_inward(limits, HORIZON)
    slack = np.where(chosen.at_most[1:], limits - returns, returns - limits)
    tolerance = 1e-12 * HORIZON * np.maximum(abs(chosen.low), abs(chosen.high))[1:]
    assert (abs((inside - bounds) * chosen.scale[1:] - slack) <= tolerance).all()
    values = chosen.constraint_values(inside, HORIZON)
    assert (abs(values - returns) <= tolerance).all()
    assert (abs(chosen.constraint_values(bounds, HORIZON) - limits) <= tolerance).all()
    clear = abs(slack) > 1e-8 * chosen.scale[1:]
    assert (chosen.misses(returns, limits, 0) == (slack < 0))[clear].all()
    assert not chosen.misses(limits, limits, 0).any()


@given(chosen=units(), multipliers=st.tuples(st.floats(0, 9), st.floats(0, 9)))
def test_prices_are_rewards_per_unit(chosen: Units, multipliers: tuple[float, float]) -> None:
    prices = chosen.prices(np.array(multipliers))
    widths = chosen.high - chosen.low
    np.testing.assert_allclose(prices, np.array(multipliers) * widths[0] / widths[1:], rtol=1e-12)


def test_units_of_no_constraint() -> None:
    chosen = declare_units((-1, 1), (0, 1), "at most", np.zeros(0), HORIZON)
    assert chosen.inward(np.array([0.0])).tolist() == [0.5]
    assert chosen.thresholds_inward(np.zeros(0), 3).shape == (0,)
    assert chosen.senses == ()
    agent = make(thresholds=[], reward_range=(-1, 1))
    replay_calls(agent, draw_episodes(agent, 4))
    assert len(agent.account) == 0
    assert jax.tree.leaves(agent.learner_state)[0] == 5
