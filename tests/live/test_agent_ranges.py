"""Ranges that are not declared: the agent takes those that it has observed."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cmdpax
from cmdpax.live.units import Units, declare_units
from live_cases import assert_refused, assert_same
from pump_cases import NAMES, WAIT, Tank, pump_agent, truth

FREE: dict[str, Any] = {"reward_range": None, "constraint_ranges": None}


def tell(agent: cmdpax.Agent, rewards: list[float], spills: list[float]) -> None:
    """An episode of three steps."""
    agent.start(0)
    for reward, spill in zip(rewards, spills, strict=True):
        agent.act(agent.state)
        agent.observe(reward, [spill], 1)
    agent.end()


def range_of(agent: cmdpax.Agent, signal: int) -> tuple[float, float]:
    units = agent.declaration.units
    return float(units.low[signal]), float(units.high[signal])


class TestWidened:
    def test_from_what_the_threshold_says_to_what_was_observed(self) -> None:
        """Four times a step's share of the threshold, and a tenth more than was seen."""
        agent = pump_agent(threshold=1.5, **FREE)
        assert range_of(agent, 1) == (0, 2)
        tell(agent, [1, 2, 3], [0.5, 0, 2])
        assert range_of(agent, 0) == pytest.approx((0.8, 3.2))
        assert range_of(agent, 1) == (0, 2)  # all of it was inside
        tell(agent, [2, 2, 5], [0, 0, 4])
        assert range_of(agent, 0) == pytest.approx((0.8, 5 + 0.42))
        assert range_of(agent, 1) == pytest.approx((0, 4.4))
        tell(agent, [5.4, 1, 1], [4.39, 0, 1])
        assert range_of(agent, 1) == pytest.approx((0, 4.4))  # it soon stays as it is
        assert [one.observed.mean for one in agent.account] == pytest.approx([11.89 / 3])

    def test_declared_ones_stay(self) -> None:
        agent = pump_agent(reward_range=None, constraint_ranges=(0, 2))
        tell(agent, [-7, 20, 3], [2, 0, 2])
        assert range_of(agent, 0) == pytest.approx((-9.7, 22.7))
        assert range_of(agent, 1) == (0, 2)
        agent.start(0)
        agent.act(0)
        assert_refused(
            agent,
            lambda one: one.observe(1, [3], 0),
            cmdpax.ParameterError,
            "the signal of constraint 0 is 3, outside its declared range [0, 2]",
        )

    def test_the_state_is_that_of_the_wide_range_from_the_start(self) -> None:
        """What was counted, and the plan that is made of nothing else."""
        chosen: dict[str, Any] = {"exploration": "none", "pooling": "none", "growth": 0.0}
        tank = Tank()
        free = pump_agent(1.5, **FREE, **chosen)
        free.feed(tank.log(WAIT, 3))
        wide = tank.log(1, 4)
        wide.rewards[0, 0], wide.constraint_rewards[0, 0, 1] = 37.0, 9.0
        free.feed(wide)
        free.feed(tank.log(1, 5))
        ranges = {"reward_range": range_of(free, 0), "constraint_ranges": range_of(free, 1)}
        assert ranges["reward_range"][1] > 37
        told = pump_agent(1.5, **ranges, **chosen)
        for log in (tank.log(WAIT, 3), wide, tank.log(1, 5)):
            told.feed(log)
        ours, theirs = (one.learner_state.statistics for one in (free, told))
        for found, expected in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
        np.testing.assert_allclose(free.plan, told.plan, rtol=0, atol=1e-6)
        believed = [one.account[0].optimistic for one in (free, told)]
        assert believed[0] == pytest.approx(believed[1], abs=1e-6)
        prices = [one.account[0].price for one in (free, told)]
        assert prices[0] == pytest.approx(prices[1], abs=1e-6)
        for name in ("rewards", "signals", "transitions"):
            found, expected = (getattr(one.model, name) for one in (free, told))
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)

    def test_what_it_believes_is_the_same_before_and_after(self) -> None:
        """Multipliers are for signals in other units; values and prices are the user's."""
        agent = Tank().play(pump_agent(1.5, **FREE, growth=1.0, stretch=1e6), 40)
        assert agent.planning.remaining > 1
        before = agent.account[0]
        assert before.price > 0
        tell(agent, [1, 2, 3], [0, 0, 2 * range_of(agent, 1)[1]])
        after = agent.account[0]
        assert after.optimistic == pytest.approx(before.optimistic)
        assert after.price == pytest.approx(before.price)
        assert after.multiplier != pytest.approx(before.multiplier)

    def test_saved_in_wide_units(self, tmp_path: Path) -> None:
        agent, path = pump_agent(1.5, **FREE, baseline=[WAIT, WAIT], margin=0.1), tmp_path / "a.npz"
        Tank().play(agent, 4)
        tell(agent, [-50, 0, 100], [0, 7, 0])
        agent.save(path)
        again = cmdpax.Agent.load(path)
        assert_same(again, agent)
        for one in (again, agent):
            tell(one, [-500, 0, 1000], [0, 70, 0])
            Tank().play(one, 9)
        assert_same(again, agent)
        assert again.mixture == agent.mixture


SIGNALS: dict[str, list[float]] = {
    "huge": [1e99, -1e99, 3.0],
    "tiny": [1e-90, 2e-90, 3e-90],
    "below the smallest": [1e-310, 2e-310, 0.0],
    "negative": [-5.0, -3.0, -4.0],
    "constant": [7.0, 7.0, 7.0],
    "always zero": [0.0, 0.0, 0.0],
    "large and constant": [1e15, 1e15, 1e15],
    "large and nearly constant": [1e15, 1e15 + 2, 1e15],
}


class TestSignals:
    @pytest.mark.parametrize("name", SIGNALS)
    @pytest.mark.parametrize("baseline", [None, [WAIT, WAIT]])
    def test_of_every_size(self, tmp_path: Path, name: str, baseline: Any) -> None:
        values = SIGNALS[name]
        agent = pump_agent(1.5, **FREE, baseline=baseline)
        for _ in range(3):
            tell(agent, values, [abs(value) for value in values])
        low, high = range_of(agent, 0)
        assert low <= min(values) <= max(values) <= high
        statistics = agent.learner_state.statistics
        for sums in (statistics.reward_sums, statistics.square_sums):
            assert np.isfinite(sums).all()
            assert (sums >= -1e-12).all()
            assert (sums <= statistics.visits[:, None] + 1e-12).all()
        for shown in (agent.account, agent.uncertainty, agent.explain(0), agent.model, agent.plan):
            assert "nan" not in str(shown)
        agent.save(tmp_path / "a.npz")
        assert_same(cmdpax.Agent.load(tmp_path / "a.npz"), agent)

    @pytest.mark.parametrize(
        ("reward", "spill", "sentence"),
        [
            (np.nan, 0, "the reward is not a number (NaN); nothing was counted; correct what is"),
            (0, np.nan, "the signal of spills is not a number (NaN); nothing was counted"),
            (
                np.inf,
                0,
                "the reward is inf; nothing was counted; observe numbers of at most 1e+100.",
            ),
            (
                0,
                -np.inf,
                "the signal of spills is -inf; nothing was counted; observe numbers of at",
            ),
            (
                1e101,
                0,
                "the reward is 1e+101; nothing was counted; observe numbers of at most 1e+1",
            ),
        ],
    )
    def test_no_numbers(self, reward: float, spill: float, sentence: str) -> None:
        agent = pump_agent(**FREE, **NAMES)
        agent.start(0)
        agent.act(0)
        wrong = (reward, [spill], 1)
        assert_refused(agent, lambda one: one.observe(*wrong), cmdpax.ParameterError, sentence)
        agent.end()
        log = Tank().log(WAIT, 2)
        log.rewards[1, 1], log.constraint_rewards[1, 0, 1] = reward, spill
        refused = (cmdpax.ParameterError, cmdpax.ModelError)
        with pytest.raises(refused):
            agent.feed(log)
        assert agent.num_episodes == 0

    @pytest.mark.parametrize("threshold", [1e99, 1e130, 1e-200, 0.0, -3.0])
    def test_thresholds_of_every_size(self, tmp_path: Path, threshold: float) -> None:
        agent = pump_agent(threshold, **FREE)
        tell(agent, [1, 2, 3], [0.5, 0, 2])
        agent.save(tmp_path / "a.npz")
        assert_same(cmdpax.Agent.load(tmp_path / "a.npz"), agent)


class TestUnknown:
    """What missing steps might have brought is not known where no range is declared."""

    @pytest.mark.parametrize("free", [False, True])
    def test_no_verdict_with_episodes_that_were_cut_short(self, free: bool) -> None:
        agent = pump_agent(2.0, **(FREE if free else {}))
        for _ in range(60):
            tell(agent, [1, 2, 3], [0, 0, 0])
        assert agent.account[0].verdict == "met"
        agent.start(0)
        agent.act(0)
        agent.observe(1, [0], 1)
        agent.end()
        assert agent.account.cut_short == 1
        assert agent.account[0].verdict == ("open" if free else "met")


@pytest.mark.whole
def test_the_same_optimum_as_with_declared_ranges() -> None:
    """Rewards are 0 or 10, spills 0 or 2; the plans are judged by the true model."""
    cmdp, found = truth(2.0), {}
    for name, ranges in {"free": FREE, "declared": {}}.items():
        agent, tank, values = pump_agent(2.0, **ranges), Tank(5), []
        tank.play(agent, 400)
        for episode in range(401, 501):
            values.append(cmdpax.evaluate(cmdp, agent.policy))
            tank.play(agent, episode)
        found[name] = (
            np.mean([one.value for one in values]),
            np.mean([one.constraint_values[0] for one in values]),
        )
    best = cmdpax.solve(cmdp).value
    for value, spills in found.values():
        assert value > best - 0.7
        assert spills < 2.25
    assert found["free"] == pytest.approx(found["declared"], abs=0.7)


# ----------------------------------------------------------------------------- the units themselves

NUMBER = st.floats(-1e9, 1e9, allow_nan=False)


@given(
    first=st.lists(NUMBER, min_size=2, max_size=6),
    later=st.lists(NUMBER, min_size=1, max_size=6),
    sense=st.sampled_from(["at least", "at most"]),
    threshold=st.floats(-1e6, 1e6),
)
def test_conversions_are_those_of_the_signals(
    first: list[float], later: list[float], sense: str, threshold: float
) -> None:
    """An inside signal in old units goes to that in new ones by slope and offset."""
    start = declare_units(None, None, sense, np.array([threshold]), 3, adapts=True)

    def widen(units: Units, values: list[float], anew: bool) -> Units:
        ends = np.full(2, min(values)), np.full(2, max(values))
        return units.widened(*ends, anew=anew)

    old = widen(start, first, True)
    new = widen(old, later, False)
    for units in (old, new):
        assert (units.low < units.high).all()
        assert not units.declared.any()
    assert (new.low <= old.low).all()
    assert (new.high >= old.high).all()
    assert widen(new, [*first, *later], False) is new
    slopes, offsets = old.conversion(new)
    signals = np.tile(np.array(first)[:, None], (1, 2))
    moved = slopes * old.inward(signals) + offsets
    np.testing.assert_allclose(moved, new.inward(signals), rtol=0, atol=1e-6)
    inside = new.inward(np.tile(np.array([*first, *later])[:, None], (1, 2)))
    assert inside.min() >= 0
    assert inside.max() <= 1
