"""Episodes that end before the horizon: exactly the steps that happened are counted."""

import itertools
from typing import Any

import numpy as np
import pytest

import cmdpax
from lanes import quick_or_whole
from live_cases import (
    LISTS,
    LISTS_BY_STEP,
    PROGRAMS,
    Steps,
    assert_counted,
    assert_same,
    differences,
    draw_episodes,
    known,
    log_of,
    make,
    reference_after,
    replay_calls,
)

SHORT, LONG = 3, 18
"""The horizons of the two ways in which statistics are kept."""


def lists_of(horizon: int, stationary: bool) -> np.ndarray:
    """Lists that change with the step, where the steps do not share their counts."""
    return LISTS if stationary else np.concatenate([LISTS_BY_STEP] * (horizon // 3))


def agent_for(algorithm: str, horizon: int, lists: bool, stationary: bool) -> cmdpax.Agent:
    return make(
        algorithm,
        horizon=horizon,
        thresholds=[0.9 * horizon, 0.7 * horizon],
        stationary=stationary,
        successors=lists_of(horizon, stationary) if lists else None,
        step_size=0.5,
    )


def episodes_for(agent: cmdpax.Agent) -> list[Steps]:
    """Of every length there is, in some order, and some twice."""
    whole = draw_episodes(agent, 24, cut=False)
    horizon = agent.declaration.sizes.horizon
    lengths = np.random.default_rng(0).permutation(np.arange(24) % horizon + 1).tolist()
    assert set(lengths) == set(range(1, horizon + 1))
    return [cut(*episode, length) for episode, length in zip(whole, lengths, strict=True)]


def cut(states: Any, actions: Any, rewards: Any, constraint_rewards: Any, length: int) -> Steps:
    signals = [signal[:length] for signal in constraint_rewards]
    return states[: length + 1], actions[:length], rewards[:length], signals


def play_with_rests(agent: cmdpax.Agent, episodes: list[Steps]) -> None:
    """Call by call; now and then an action stays open, or an episode ends at once."""
    horizon = agent.declaration.sizes.horizon
    for number, episode in enumerate(episodes):
        if number % 4 == 1:
            agent.start(0)
            if number % 8 == 1:
                agent.act(0)
            assert agent.end().steps == 0
        states, actions, rewards, constraint_rewards = episode
        agent.start(states[0])
        for step, action in enumerate(actions):
            agent.act(states[step])
            signals = [signal[step] for signal in constraint_rewards]
            agent.observe(rewards[step], signals, states[step + 1], action=action)
        if len(actions) < horizon and number % 2:
            agent.act(states[-1])
            assert agent.action is not None
        record = agent.end()
        assert (record.episode, record.steps) == (number + 1, len(actions))
        assert abs(record.reward - sum(rewards)) <= 1e-12


CASES = list(itertools.product(PROGRAMS, (SHORT, LONG), (False, True), (False, True)))


@pytest.mark.parametrize(
    ("algorithms", "horizon", "lists", "stationary"),
    [quick_or_whole(*case, quick=case[1] == SHORT and case[2]) for case in CASES],
)
def test_what_happened_is_counted(
    algorithms: tuple[str, ...], horizon: int, lists: bool, stationary: bool
):
    for algorithm in algorithms:
        assert_counts_what_happened(algorithm, horizon, lists, stationary)


def assert_counts_what_happened(algorithm: str, horizon: int, lists: bool, stationary: bool):
    """The counts by loops, and what the slow learner makes of them."""
    agent = agent_for(algorithm, horizon, lists, stationary)
    episodes = episodes_for(agent)
    play_with_rests(agent, episodes)
    assert_counted(agent, episodes)
    account, lengths = agent.account, [len(actions) for _, actions, *_ in episodes]
    assert (account.episodes, account.steps) == (24, sum(lengths))
    assert account.cut_short == sum(length < horizon for length in lengths) > 0
    assert agent.visits.sum() == sum(lengths)
    assert np.isfinite(agent.policy).all()
    np.testing.assert_allclose(agent.policy.sum(axis=-1), 1, rtol=0, atol=1e-12)
    assert agent.multipliers.max() > 0
    fed = agent_for(algorithm, horizon, lists, stationary)
    fed.feed(log_of(fed, episodes), own=True)
    assert all(name.startswith("['tally']") for name in differences(fed, agent))
    expected = reference_after(agent, episodes)
    close = {"rtol": 0, "atol": 1e-9}
    np.testing.assert_allclose(agent.multipliers, expected.multipliers, **close)
    np.testing.assert_allclose(agent.policy, expected.policy, **close)
    believed = [one.optimistic for one in account]
    np.testing.assert_allclose(believed, expected.constraint_values, **close)


def test_known_rewards():
    agent = make(**known())
    episodes = draw_episodes(agent, 12)
    assert any(len(actions) < 3 for _, actions, *_ in episodes)
    replay_calls(agent, episodes)
    assert agent.learner_state.statistics.reward_sums is None
    assert_counted(agent, episodes)
    expected = reference_after(agent, episodes)
    np.testing.assert_allclose(agent.policy, expected.policy, rtol=0, atol=1e-9)


def test_one_step_episodes_are_never_cut():
    agent = make(horizon=1, thresholds=[0.4, 0.4])
    replay_calls(agent, draw_episodes(agent, 3))
    assert agent.account.cut_short == 0
    assert agent.account.steps == 3


def test_an_observed_step_counts_and_an_open_action_does_not():
    """By hand."""
    agent = make()
    agent.start(1)
    agent.act(1)
    agent.observe(0.25, [0.5, 1.0], 2, action=0)
    agent.act(2)
    record = agent.end()
    assert (record.steps, record.reward, record.constraint_returns.tolist()) == (
        1,
        0.25,
        [0.5, 1.0],
    )
    statistics = agent.learner_state.statistics
    visits = np.zeros((3, 3, 2), int)
    visits[0, 1, 0] = 1
    np.testing.assert_array_equal(statistics.visits, visits)
    assert [int(counts.sum()) for counts in statistics.storage[0]] == [1, 0, 0]
    assert statistics.storage[0][0][1, 0].tolist() == [0, 0, 1]
    assert statistics.storage[1][0][:, 1, 0].tolist() == [0, 0, 1]
    assert statistics.reward_sums[0, :, 1, 0].tolist() == [0.25, 0.5, 1.0]
    assert statistics.reward_sums.sum() == 1.75


def test_the_multipliers_and_the_policy_go_on():
    """A short episode is an episode: η and λ are those of the next one."""
    agent, whole = (make(step_size=cmdpax.schedules.power(0.5, 0.5)) for _ in range(2))
    replay_calls(agent, [cut(*one, 1) for one in draw_episodes(agent, 5, cut=False)])
    replay_calls(whole, draw_episodes(whole, 5, cut=False))
    assert agent.learner_state.episode == whole.learner_state.episode == 6
    assert agent.episode == 6
    assert abs(agent.policy - make().policy).max() > 1e-3


def test_the_second_half_of_a_run_is_the_same_whether_the_first_was_fed_or_played():
    played, fed = (make(stationary=True, successors=LISTS) for _ in range(2))
    episodes = draw_episodes(played, 10)
    play_with_rests(played, episodes[:5])
    fed.feed(log_of(fed, episodes[:5]), own=True)
    replay_calls(played, episodes[5:])
    replay_calls(fed, episodes[5:])
    assert_same(played, fed)
