"""The account: what was observed and what is believed, against SciPy on the episodes' returns."""

import json
from typing import Any

import numpy as np
import pytest
import scipy.stats

import cmdpax
from cmdpax.intervals import Interval
from cmdpax.live.accounts import RECENT
from live_cases import draw_episodes, log_of, make, play, replay_calls

MANY = RECENT + 37
USER: dict[str, Any] = {
    "reward_range": (-5, 15),
    "constraint_ranges": [(0, 20), (-1, 3)],
    "senses": ["at most", "at least"],
    "thresholds": [25.0, 4.5],
    "names": ["energy", "comfort"],
}


@pytest.fixture(scope="module")
def long_run() -> tuple[cmdpax.Agent, np.ndarray]:
    """More episodes than are recent, and their returns, `[K, J]`."""
    agent = make(**USER)
    episodes = draw_episodes(agent, MANY, cut=False)
    agent.feed(log_of(agent, episodes), own=True)
    returns = [[sum(rewards), *map(sum, signals)] for _, _, rewards, signals in episodes]
    return agent, np.array(returns)


def assert_student(found: Interval, returns: np.ndarray) -> None:
    """The mean of all of them, and its 95 % interval."""
    assert found.size == len(returns)
    np.testing.assert_allclose(found.mean, returns.mean(), rtol=1e-11)
    expected = scipy.stats.t.interval(
        0.95, len(returns) - 1, loc=returns.mean(), scale=scipy.stats.sem(returns)
    )
    np.testing.assert_allclose([found.low, found.high], expected, rtol=1e-10)


class TestObserved:
    def test_all_and_recent_episodes(self, long_run):
        agent, returns = long_run
        account = agent.account
        assert RECENT == 200
        signals = [account.objective, *account]
        for one, column in zip(signals, returns.T, strict=True):
            assert_student(one.observed, column)
            assert_student(one.recent, column[-200:])
        assert account.episodes == MANY
        assert [one.episodes for one in account] == [MANY, MANY]

    def test_missed_ones(self, long_run):
        agent, returns = long_run
        assert agent.account[0].missed == (returns[:, 1] > 25.0).sum() > 0
        assert agent.account[1].missed == (returns[:, 2] < 4.5).sum() > 0
        assert all(type(one.missed) is int for one in agent.account)

    def test_the_last_episodes_themselves(self, long_run):
        agent, returns = long_run
        recent = agent.recent
        np.testing.assert_allclose(recent["rewards"], returns[-200:, 0], rtol=1e-12)
        np.testing.assert_allclose(recent["constraint_returns"], returns[-200:, 1:], rtol=1e-12)
        assert recent["multipliers"].shape == (200, 2)

    @pytest.mark.parametrize("count", [2, 199, 200, 201])
    def test_around_the_number_of_recent_ones(self, count: int):
        agent = make(**USER)
        episodes = draw_episodes(agent, count, cut=False)
        agent.feed(log_of(agent, episodes), own=True)
        rewards = np.array([sum(rewards) for _, _, rewards, _ in episodes])
        assert_student(agent.account.objective.recent, rewards[-200:])
        assert_student(agent.account.objective.observed, rewards)

    def test_multipliers_are_those_that_were_played(self):
        agent, played = make(step_size=0.5), []
        for _ in range(12):
            played.append(agent.multipliers)
            play(agent, agent.num_episodes + 1)
        np.testing.assert_array_equal(agent.recent["multipliers"], played)
        assert np.max(played) > 0
        assert played[-1].tolist() != agent.multipliers.tolist()

    def test_large_numbers_keep_their_spread(self):
        """Sums of squares would lose it: returns of 3e9 that vary by a few."""
        agent = make(constraint_ranges=(1e9, 1e9 + 1), thresholds=[3e9, 3e9])
        episodes = draw_episodes(agent, 60, cut=False)
        agent.feed(log_of(agent, episodes), own=True)
        returns = np.array([sum(signals[0]) for *_, signals in episodes])
        found = agent.account[0].observed
        half = scipy.stats.sem(returns) * scipy.stats.t.ppf(0.975, 59)
        np.testing.assert_allclose(found.half, half, rtol=1e-6)

    def test_none_and_one(self):
        agent = make()
        for one in (agent.account.objective, *agent.account):
            assert np.isnan(one.observed.mean)
            assert np.isnan(one.recent.mean)
            assert one.observed[1:] == one.recent[1:] == (np.inf, 0)
        assert {one.verdict for one in agent.account} == {"open"}
        replay_calls(agent, draw_episodes(agent, 1))
        for one in agent.account:
            assert one.observed[1:] == one.recent[1:] == (np.inf, 1)
            assert one.verdict == "open"
            assert one.observed.mean == one.recent.mean > 0

    def test_what_is_given_is_the_users_own(self):
        agent = play(make(), 3)
        before = agent.account.objective
        agent.recent["rewards"][:] = 99
        agent.multipliers[:] = 99
        agent.visits[:] = 99
        agent.learner_state.statistics.visits[:] = 99
        assert agent.account.objective == before

    def test_arrays_are_the_users_own(self):
        agent, other = play(make(), 3), play(make(), 3)
        for array in (agent.multipliers, agent.visits):
            array[:] = 99
        with pytest.raises(ValueError, match="read-only"):
            agent.policy[:] = 99
        agent.learner_state.statistics.visits[:] = 99
        np.testing.assert_array_equal(agent.policy, other.policy)
        np.testing.assert_array_equal(agent.multipliers, other.multipliers)
        np.testing.assert_array_equal(agent.visits, other.visits)


def with_returns(sense: str, returns: Any, threshold: float = 3.0, **cut: Any) -> Any:
    """The account of one constraint after episodes of three steps with these returns."""
    agent = make(thresholds=[threshold], senses=sense, constraint_ranges=(0, 4))
    for value in returns:
        run_episode(agent, value / 3)
    for value in cut.get("first_steps", ()):
        run_episode(agent, value, steps=1)
    return agent.account[0]


def run_episode(agent: cmdpax.Agent, signal: float, steps: int = 3) -> None:
    agent.start(0)
    for _ in range(steps):
        agent.act(agent.state)
        agent.observe(0.5, [signal], 0)
    agent.end()


SPREAD = np.tile([-0.6, 0.6], 50)  # a half-width of 0.12


class TestVerdict:
    @pytest.mark.parametrize(
        ("mean", "at_least"),
        [(3.2, "met"), (3.1, "open"), (3.0, "open"), (2.9, "open"), (2.8, "missed")],
    )
    def test_of_intervals(self, mean: float, at_least: str):
        assert with_returns("at least", mean + SPREAD).verdict == at_least
        mirrored = {"met": "missed", "missed": "met", "open": "open"}[at_least]
        assert with_returns("at most", mean + SPREAD).verdict == mirrored

    def test_few_episodes_show_nothing(self):
        assert with_returns("at least", 6 + SPREAD[:29]).verdict == "open"
        assert with_returns("at least", 6 + SPREAD[:30]).verdict == "met"

    def test_equal_returns_are_no_certainty(self):
        """The rule of three: of 100 episodes without a cost, 3 % might yet have the largest."""
        assert with_returns("at most", np.zeros(100), threshold=0.3).verdict == "open"
        assert with_returns("at most", np.zeros(100), threshold=0.37).verdict == "met"
        assert with_returns("at least", np.full(100, 12.0), threshold=11.7).verdict == "open"
        assert with_returns("at least", np.full(100, 12.0), threshold=11.6).verdict == "met"

    def test_the_recent_ones_decide(self):
        account = with_returns("at least", np.concatenate([np.tile(8.0 + SPREAD, 5), 1 + SPREAD]))
        assert account.observed.low > 3
        assert account.recent.mean == pytest.approx(4.5)
        late = with_returns("at least", np.concatenate([11.0 + SPREAD, np.tile(1 + SPREAD, 2)]))
        assert (late.observed.low > 3, late.verdict) == (True, "missed")

    def test_what_is_missing_may_have_been_the_worst_or_the_best(self):
        """Twenty episodes that ended after a cost of 0 might have cost 8 more."""
        whole = with_returns("at most", 2 + SPREAD)
        cut = with_returns("at most", 2 + SPREAD, first_steps=[0.0] * 20)
        assert (whole.verdict, cut.verdict) == ("met", "open")
        assert cut.recent == whole.recent
        assert (cut.observed.size, cut.episodes) == (100, 120)
        missed = with_returns("at most", 5 + SPREAD, first_steps=[4.0] * 20)
        assert missed.verdict == "missed"
        assert missed.missed == 100 + 20

    def test_rounding_misses_nothing(self):
        found = with_returns("at most", np.tile([0.3, 0.3 + 2e-16], 20), threshold=0.3)
        assert found.missed == 0
        assert found.verdict == "met"


class TestBelieved:
    def test_names_thresholds_and_senses_are_as_declared(self, long_run):
        agent, _ = long_run
        first, second = agent.account
        assert (first.name, first.sense, first.threshold) == ("energy", "at most", 25.0)
        assert (second.name, second.sense, second.threshold) == ("comfort", "at least", 4.5)
        assert [one.name for one in make().account] == ["constraint 0", "constraint 1"]

    def test_multipliers_and_prices(self, long_run):
        agent, _ = long_run
        account = agent.account
        assert [one.multiplier for one in account] == agent.multipliers.tolist()
        assert account[0].price == pytest.approx(agent.multipliers[0] * 20 / 20)
        assert account[1].price == pytest.approx(agent.multipliers[1] * 20 / 4)
        assert agent.multipliers.max() > 0

    def test_the_estimate_is_of_the_coming_episode(self):
        """Of one state and one step, by hand: û is the mean and the bonus, at most 1."""
        agent = cmdpax.Agent(
            "regularized-primal-dual",
            num_states=1,
            num_actions=1,
            horizon=1,
            thresholds=[0.5],
            initial=0,
            optimism=cmdpax.Optimism.live(0.1),
        )
        assert agent.account[0].optimistic == 1.0
        for count, signal in enumerate((0.25, 0.75, 0.5), start=1):
            agent.start(0)
            agent.act(0)
            agent.observe(0.5, signal, 0)
            agent.end()
            mean = agent.account[0].observed.mean
            assert agent.account[0].optimistic == pytest.approx(mean + 0.1 / np.sqrt(count))

    def test_it_stays_while_the_episode_is_open(self):
        agent = play(make(), 3)
        before = agent.account
        agent.start(0)
        assert agent.account == before
        agent.act(0)
        agent.observe(1.0, [1.0, 1.0], 1)
        assert agent.account == before
        agent.end()
        assert agent.account != before


class TestShape:
    def test_iterating_and_indexing(self, long_run):
        account = long_run[0].account
        assert len(account) == 2
        assert list(account) == [account[0], account[1]] == list(account.constraints)
        assert account[-1] is account.constraints[1]
        with pytest.raises(IndexError):
            account[2]

    def test_through_json(self, long_run):
        account = long_run[0].account
        text = json.dumps(account.to_dict())
        assert cmdpax.AgentAccount.from_dict(json.loads(text)) == account
        assert cmdpax.AgentAccount.from_dict(account.to_dict()) == account
        assert [one.verdict for one in cmdpax.AgentAccount.from_dict(json.loads(text))] == [
            one.verdict for one in account
        ]

    @pytest.mark.parametrize("count", [0, 1])
    def test_through_json_before_there_is_an_interval(self, count: int):
        agent = make()
        replay_calls(agent, draw_episodes(agent, count))
        again = cmdpax.AgentAccount.from_dict(json.loads(json.dumps(agent.account.to_dict())))
        assert str(again.to_dict()) == str(agent.account.to_dict())

    def test_as_text(self, long_run):
        account = long_run[0].account
        first, *others = str(account).splitlines()
        assert first == f"{MANY} episodes, reward {account.objective.observed}"
        for one, line, daily in zip(account, others[::2], others[1::2], strict=True):
            assert daily.startswith(f"    looked at every day: {one.always} ({one.always_verdict}")
            assert line.startswith(f"{one.name}: {one.observed}, {one.sense} {one.threshold:g}")
            assert f"200: {one.recent}" in line
            assert line.endswith(f"({one.verdict})")
        first, *others = str(make().account).splitlines()
        assert first == "0 episodes, reward not defined"
        assert others[0].startswith("constraint 0: not defined, at least 2.4")
        assert str(play(make(), 1).account).startswith("1 episode, reward ")

    def test_plain_numbers(self, long_run):
        """No NumPy scalars: what is shown and stored looks the same everywhere."""
        account = long_run[0].account
        for one in account:
            for entry in (one.threshold, one.optimistic, one.multiplier, one.price):
                assert type(entry) is float
            assert [type(entry) for entry in one.observed] == [float, float, int]
        assert {type(entry) for entry in (account.episodes, account.steps, account.cut_short)} == {
            int
        }

    def test_without_constraints(self):
        agent = make(thresholds=())
        replay_calls(agent, draw_episodes(agent, 3, cut=False))
        assert list(agent.account) == []
        assert agent.multipliers.shape == (0,)
        assert agent.recent["constraint_returns"].shape == (3, 0)
        assert agent.account.objective.observed.size == 3
        agent.start(0)
        agent.act(0)
        agent.observe(0.5, None, 1)
        assert agent.end().constraint_returns.shape == (0,)
