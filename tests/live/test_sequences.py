"""Intervals that may be looked at every day: right at all times, in thousands of simulations."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.stats

import cmdpax
from cmdpax.live.sequences import Band, Sequence, episodes_left, make_bands
from live_cases import draw_episodes, log_of, make, play

PATHS, DAYS = 1000, 500
Draw = Callable[[np.random.Generator, int, np.ndarray], tuple[Any, Any]]
"""Of every path the returns of a day and their conditional means; it sees the means so far."""


def tossed(chance: Any) -> Draw:
    def draw(generator: np.random.Generator, day: int, means: np.ndarray) -> tuple[Any, Any]:
        return (generator.random(PATHS) < chance).astype(float), chance

    return draw


def drifting(generator: np.random.Generator, day: int, means: np.ndarray) -> tuple[Any, Any]:
    """Learning: costs become rarer, with a wave in between."""
    return tossed(0.1 + 0.6 * np.exp(-day / 80) + 0.1 * np.sin(day / 30))(generator, day, means)


def steered(generator: np.random.Generator, day: int, means: np.ndarray) -> tuple[Any, Any]:
    """A policy that reacts: where costs were high so far it is careful, and the reverse."""
    return tossed(np.where(means > 0.3, 0.1, 0.5))(generator, day, means)


def summed(generator: np.random.Generator, day: int, means: np.ndarray) -> tuple[Any, Any]:
    """Of ten steps, as a share of the most that they can bring."""
    return generator.binomial(10, 0.15, PATHS) / 10, 0.15


def cut_off(generator: np.random.Generator, day: int, means: np.ndarray) -> tuple[Any, Any]:
    """Exponential, and 1 where it would be more."""
    rate = 8.0
    return np.minimum(generator.exponential(1 / rate, PATHS), 1), (1 - np.exp(-rate)) / rate


def skewed(generator: np.random.Generator, day: int, means: np.ndarray) -> tuple[Any, Any]:
    return generator.lognormal(size=PATHS), np.exp(0.5)


DRAWS: dict[str, Draw] = {
    "even": tossed(0.5),
    "seldom": tossed(0.1),
    "rare": tossed(0.01),
    "never": tossed(0.0),
    "drifting": drifting,
    "steered": steered,
    "summed": summed,
    "cut off": cut_off,
}


def live(draw: Draw, declared: bool, days: int = DAYS) -> dict[str, Any]:
    """The share of paths in which an interval was wrong on some day, and its last half."""
    generator = np.random.default_rng(7)
    sequence, total, found = Sequence.empty((PATHS,)), np.zeros(PATHS), {}
    wrong = {name: np.zeros(PATHS, bool) for name in ("always", "daily Student", "last Student")}
    for day in range(1, days + 1):
        returns, mean = draw(generator, day, sequence.mean)
        total += mean
        sequence = sequence.after(returns, 0.5)
        error = np.abs(sequence.mean - total / day)
        found["half"] = sequence.radius(1.0, np.array(declared))
        wrong["always"] |= error > found["half"]
        if day >= 30:  # as for the verdict of the account
            spread = np.sqrt(sequence.squares / (day - 1) / day)
            wrong["last Student"] = error > scipy.stats.t.ppf(0.975, day - 1) * spread
            wrong["daily Student"] |= wrong["last Student"]
    return found | {name: one.mean() for name, one in wrong.items()}


class TestAtAllTimes:
    @pytest.mark.parametrize("name", DRAWS)
    def test_with_a_range_it_is_guaranteed(self, name: str):
        found = live(DRAWS[name], True)
        assert found["always"] <= 0.05
        assert found["half"].max() < 0.13

    @pytest.mark.parametrize("name", ["even", "seldom", "drifting", "steered", "summed", "cut off"])
    def test_without_a_range_it_is_so_about(self, name: str):
        found = live(DRAWS[name], False)
        assert found["always"] <= 0.06
        assert np.median(found["half"]) < 0.08

    def test_heavy_tails_take_longer_without_a_range(self):
        found = live(skewed, False)
        assert found["always"] <= 0.06
        assert np.isinf(found["half"]).any()
        assert live(skewed, False, 2000)["always"] <= 0.06

    def test_whoever_looks_daily_at_students_interval_errs(self):
        """One look at the end is right, and looking every day is not; ours is."""
        found = live(DRAWS["even"], True, 1000)
        assert found["last Student"] == pytest.approx(0.05, abs=0.02)
        assert found["daily Student"] > 0.3
        assert found["always"] < 0.05

    def test_it_shrinks_as_it_should(self):
        """Like √(log n / n) at least; for any time to come, √(log log n / n) is the least."""
        few = Sequence(*np.array([1e4, 0.3, 900.0, 900.0, 0.5]))
        for declared in (True, False):
            halves = [few.later(size).radius(1.0, np.array(declared)) for size in (1e4, 1e6, 1e8)]
            once = [1.96 * 0.3 / np.sqrt(size) for size in (1e4, 1e6, 1e8)]
            ratios = np.array(halves) / once
            assert (ratios > 1.4).all()
            assert (ratios < 1.35 * np.sqrt(np.log([1e4, 1e6, 1e8]) / 4)).all()

    def test_equal_returns_are_narrow_where_a_range_is_declared(self):
        sequence = Sequence.empty(())
        for _ in range(200):
            sequence = sequence.after(0.0, 0.5)
        rule_of_three = 3 / 200
        assert rule_of_three < sequence.radius(1.0, np.array(True)) < 2 * rule_of_three
        assert sequence.radius(1.0, np.array(False)) == np.inf


class TestSums:
    def test_against_slow_ones(self):
        generator = np.random.default_rng(3)
        returns, sequence = generator.normal(5, 2, (40, 3)), Sequence.empty((3,))
        for one in returns:
            sequence = sequence.after(one, 4.0)
        distances, added = np.zeros(3), np.zeros((40, 3))
        for k in range(40):
            distances += (returns[k] - (4.0 + returns[:k].sum(axis=0)) / (k + 1)) ** 2
            added[k] = (k + 1) * returns[: k + 1].var(axis=0) - added[:k].sum(axis=0)
        np.testing.assert_array_equal(sequence.size, 40)
        np.testing.assert_allclose(sequence.mean, returns.mean(axis=0))
        np.testing.assert_allclose(sequence.squares, 40 * returns.var(axis=0))
        np.testing.assert_allclose(sequence.distances, distances)
        np.testing.assert_allclose(sequence.largest, added.max(axis=0))

    def test_what_is_not_counted_changes_nothing(self):
        sequence = Sequence.empty((2,)).after([1.0, 2.0], 0.5).after([3.0, 1.0], 0.5)
        after = sequence.after([9.0, 9.0], 0.5, np.array([True, False]))
        for one, before in zip(after, sequence, strict=True):
            assert one[0] != before[0]
            assert one[1] == before[1]

    @pytest.mark.parametrize("variance", [0.0, 0.3, 2.0, 30.0, 700.0])
    def test_the_bound_is_where_the_mixture_says(self, variance: float):
        """Integrated numerically: the mixture of supermartingales reaches 1/2.5 % there."""
        sequence = Sequence(*np.array([1000.0, 0.0, variance, variance, variance]))
        total = 1000 * float(sequence.radius(1.0, np.array(True)))

        def density(rate: float) -> float:
            return (1 - rate) ** -0.5 * np.exp(-0.5 * (1 - rate))

        def weighed(rate: float) -> float:
            return np.exp(rate * total + (np.log1p(-rate) + rate) * variance) * density(rate)

        mixture, whole = (scipy.integrate.quad(one, 0, 1)[0] for one in (weighed, density))
        assert mixture / whole == pytest.approx(40, rel=1e-6)

    def test_units_do_not_matter(self):
        returns = np.random.default_rng(4).random((60, 1))
        inside, outside = Sequence.empty((2, 1)), Sequence.empty((2, 1))
        for one in returns:
            inside = inside.after(one, 0.5)
            outside = outside.after(20 * one - 7, 3.0)
        for declared in (np.array([True]), np.array([False])):
            (one,) = make_bands(inside, np.zeros(1), np.ones(1), declared)
            (other,) = make_bands(outside, np.full(1, -7.0), np.full(1, 13.0), declared)
            np.testing.assert_allclose([20 * one.low - 7, 20 * one.high - 7], other[:2])

    def test_impossible_sums(self):
        sequence = Sequence.empty((2,)).after([1.0, 2.0], 0.5)
        assert sequence.is_possible(1)
        assert not sequence.is_possible(0)
        assert not sequence._replace(squares=np.array([0.0, -1.0])).is_possible(1)
        assert not sequence._replace(size=np.array([0.5, 1.0])).is_possible(1)


class TestVerdicts:
    @pytest.mark.parametrize(
        ("threshold", "at_most"),
        [(0.9, "missed"), (1.0, "open"), (1.5, "open"), (2.0, "met"), (2.1, "met")],
    )
    def test_of_bands(self, threshold: float, at_most: str):
        band = Band(1.0, 2.0, 50, True)
        assert band.verdict("at most", threshold) == at_most
        mirrored = Band(-2.0, -1.0, 50, True)
        assert mirrored.verdict("at least", -threshold) == at_most

    def test_in_words(self):
        assert str(Band(1.25, 2.0, 50, True)) == "1.25 to 2"
        assert str(Band(1.25, 2.0, 50, False)) == "~ 1.25 to 2"
        assert str(Band()) == "not defined"

    @pytest.mark.parametrize("declared", [True, False])
    @pytest.mark.parametrize("threshold", [0.37, 0.28])
    def test_how_many_episodes_are_left(self, declared: bool, threshold: float):
        """Returns of 0, 0, 1, again and again: it is what it then takes, but for a few per cent."""
        sequence, days = Sequence.empty(()), 120
        for day in range(days):
            sequence = sequence.after(float(day % 3 == 2), 0.5)
        distance = abs(threshold - 1 / 3)
        estimate = episodes_left(sequence, distance, 1.0, declared)
        while not sequence.radius(1.0, np.array(declared)) <= abs(sequence.mean - threshold):
            sequence, days = sequence.after(float(days % 3 == 2), 0.5), days + 1
        assert days - 120 > 50
        assert estimate == pytest.approx(days - 120, rel=0.05)

    def test_too_many_are_not_told(self):
        sequence = Sequence(*np.array([100.0, 0.5, 25.0, 25.0, 0.25]))
        assert episodes_left(sequence, 0.5, 1.0, True) == 1
        assert episodes_left(sequence, 3e-3, 1.0, True) > 100_000
        for distance in (1e-4, 0.0, -1.0):
            assert episodes_left(sequence, distance, 1.0, True) is None
        assert episodes_left(Sequence.empty(()), 0.5, 1.0, True) is None


def returned(
    sense: str, returns: Any, threshold: float, short: Any = (), **given: Any
) -> cmdpax.Agent:
    """An agent with one constraint after whole episodes, and some of one step of three."""
    told = {"reward_range": (0, 1), "constraint_ranges": (0, 4), "names": ["cost"]} | given
    agent = make("replanning", thresholds=[threshold], senses=sense, **told)
    for value in (*returns, *short):
        agent.start(0)
        for _ in range(1 if len(agent.recent["rewards"]) >= len(returns) else 3):
            agent.act(agent.state)
            agent.observe(0.5, [value / 3], 0)
        agent.end()
    return agent


SPREAD = np.tile([-0.6, 0.6], 100)


class TestAccount:
    @pytest.mark.parametrize(
        ("threshold", "at_most"), [(2.6, "met"), (2.1, "open"), (1.9, "open"), (1.4, "missed")]
    )
    def test_what_it_shows(self, threshold: float, at_most: str):
        one = returned("at most", 2 + SPREAD, threshold).account[0]
        assert one.always_verdict == at_most
        assert one.always.low < 2 < one.always.high
        assert one.always[2:] == (200, True)
        assert one.always.low < one.observed.low < one.observed.high < one.always.high
        other = returned("at least", 2 + SPREAD, threshold).account[0]
        assert other.always == one.always
        mirrored = {"met": "missed", "missed": "met", "open": "open"}[at_most]
        assert other.always_verdict == mirrored
        assert (one.episodes_left is None) == (at_most != "open")

    def test_it_is_not_outside_what_can_be(self):
        agent = returned("at most", [], 2.0)
        assert agent.account[0].always == Band(0.0, 12.0, 0, True)
        assert agent.account.objective.always == Band(0.0, 3.0, 0, True)
        one = returned("at most", np.zeros(40), 2.0).account[0]
        assert (one.always.low, one.always_verdict) == (0.0, "met")

    def test_missing_steps_bring_the_least_and_the_most(self):
        """Twenty episodes that ended after a cost of 0 might have cost 8 more, or nothing."""
        whole = returned("at most", 2 + SPREAD, 2.6).account[0]
        cut = returned("at most", 2 + SPREAD, 2.6, short=[0.0] * 20).account[0]
        assert (whole.always_verdict, cut.always_verdict) == ("met", "open")
        assert cut.always.size == 220
        assert cut.always.low < 2 * 200 / 220 < (2 * 200 + 8 * 20) / 220 < cut.always.high
        assert cut.observed == whole.observed
        assert cut.episodes_left > 1  # whatever they brought
        hidden = returned("at most", 2 + SPREAD, 2.0, short=[0.0] * 20).account[0]
        assert hidden.episodes_left is None  # it depends on what they brought

    def test_without_a_declared_range(self):
        """Asymptotic, and said so; what was cut short leaves everything open."""
        exact = returned("at most", 2 + SPREAD, 2.6).account
        agent = returned("at most", 2 + SPREAD, 2.6, constraint_ranges=None)
        one = agent.account[0]
        assert one.always[2:] == (200, False)
        assert exact[0].always.low < one.always.low < one.always.high < exact[0].always.high
        assert one.always_verdict == "met"
        assert agent.account.objective.always == exact.objective.always
        assert str(agent.account).splitlines()[-1].endswith("(met, asymptotic)")
        cut = returned("at most", 2 + SPREAD, 2.6, short=[0.0], constraint_ranges=None).account[0]
        assert cut.always == one.always
        assert (cut.always_verdict, cut.episodes_left) == ("open", None)

    def test_in_words(self):
        one = returned("at most", 2 + SPREAD, 2.2)
        (account,) = one.account
        *_, last = str(one.account).splitlines()
        left = account.episodes_left
        rounded = int(np.ceil(left / 10)) * 10
        assert 100 < left < 1000
        assert last == (
            f"    looked at every day: {account.always} "
            f"(open, about {rounded} more episodes would decide)"
        )
        met = returned("at most", 2 + SPREAD, 2.6)
        assert str(met.account).endswith(f": {met.account[0].always} (met)")

    def test_through_json(self):
        for count in (0, 40):
            account = play(make(thresholds=[1.0]), count).account
            again = cmdpax.AgentAccount.from_dict(json.loads(json.dumps(account.to_dict())))
            assert again[0].always == account[0].always
            assert again[0].episodes_left == account[0].episodes_left
            assert again.objective.always == account.objective.always

    def test_logs_of_its_own_count(self):
        """Fed or played, the sums are the same; those of others are left out."""
        agent, fed = make(), make()
        episodes = draw_episodes(agent, 20)
        agent.feed(log_of(agent, episodes))
        assert agent.account[0].always.size == 0
        fed.feed(log_of(fed, episodes), own=True)
        assert fed.account[0].always.size == 20
