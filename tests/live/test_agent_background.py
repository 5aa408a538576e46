"""Agents that plan in a thread: the old policy is played on, and nothing is lost."""

import copy
import threading
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import cmdpax
from cmdpax.live.playing import PolicyChange
from live_cases import assert_same, assert_sentence
from pump_cases import Tank, pump_agent

PATIENCE = 60.0  # seconds, after which a test fails instead of waiting for ever


class Person:
    """Approves plans, but takes as long as the test says."""

    def __init__(self) -> None:
        self.asked, self.may_answer = threading.Event(), threading.Event()
        self.threads: list[str] = []

    def __call__(self, change: PolicyChange) -> bool:
        self.threads.append(threading.current_thread().name)
        self.asked.set()
        assert self.may_answer.wait(PATIENCE)
        return True

    def __deepcopy__(self, _: Any) -> "Person":
        return self


def background_agent(**changes: Any) -> cmdpax.Agent:
    return pump_agent(plan="background", **changes)


def log_of(episodes: list[list[tuple[int, int, float, float, int]]]) -> cmdpax.Log:
    """Episodes of three steps: state, action, reward, spill and next state of each."""
    table = np.array(episodes)
    return cmdpax.Log(
        np.concatenate([table[..., 0], table[:, -1:, 4]], axis=1).astype(int),
        table[..., 1].astype(int),
        table[..., 2],
        table[:, None, :, 3],
    )


def assert_same_learners(one: cmdpax.Agent, other: cmdpax.Agent) -> None:
    ours, theirs = (jax.tree.leaves(agent.learner_state) for agent in (one, other))
    for mine, other_one in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(mine, other_one)


def play_and_log(agent: cmdpax.Agent, tank: Tank, num_episodes: int) -> cmdpax.Log:
    episodes = []
    for _ in range(num_episodes):
        agent.start(0)
        steps = []
        while agent.expects == "act":
            state, action = agent.state, agent.act(agent.state)
            reward, spill, following = tank.step(agent.episode, agent.step, state, action)
            agent.observe(reward, spill, following)
            steps.append((state, action, reward, spill[0], following))
        agent.end()
        episodes.append(steps)
    return log_of(episodes)


def test_the_learner_sees_the_same_episodes_in_the_same_order(tmp_path: Path) -> None:
    agent, other = background_agent(), pump_agent()
    log = play_and_log(agent, Tank(), 40)
    assert agent.num_episodes == agent.account.objective.observed.size == 40
    agent.save(tmp_path / "agent.npz")  # waits
    other.feed(log, own=True)
    assert_same_learners(agent, other)
    np.testing.assert_array_equal(agent.plan, other.plan)
    np.testing.assert_array_equal(agent.policy, other.policy)
    assert agent.planning.plans == other.planning.plans > 5
    assert agent.account[0].observed == other.account[0].observed


def test_the_old_policy_is_played_while_a_person_thinks() -> None:
    person, tank = Person(), Tank()
    agent = background_agent(approve=person)
    first = np.array(agent.policy)
    tank.play(agent, 1)
    while not person.asked.wait(0.01):  # the first plans may be the same
        tank.play(agent, agent.num_episodes + 1)
    begun = agent.num_episodes
    tank.play(agent, begun + 10)
    np.testing.assert_array_equal(agent.policy, first)
    assert agent.account.objective.observed.size == begun + 10
    assert agent.planning.plans == 1
    person.may_answer.set()
    agent.start(0)
    agent.end()  # no step happened
    agent.freeze()  # waits
    assert agent.planning.plans > 1
    assert not np.array_equal(agent.policy, first)
    assert set(person.threads) != {threading.main_thread().name}


def test_what_goes_wrong_in_the_thread_is_raised_by_the_next_end_and_tried_again() -> None:
    calls = []

    def fail_once(change: PolicyChange) -> bool:
        calls.append(change)
        if len(calls) == 1:
            raise RuntimeError("the telephone is dead")
        return True

    agent, tank = background_agent(approve=fail_once), Tank()
    with pytest.raises(RuntimeError, match="telephone"):  # noqa: PT012 - whichever end it is
        for _ in range(200):
            tank.play(agent, agent.num_episodes + 1)
            agent._background._wait()
    assert agent.expects == "end"
    counted = agent.num_episodes
    agent.end()
    agent.freeze()
    assert agent.num_episodes == counted + 1
    assert len(calls) > 1
    assert agent.visits.sum() == 3 * (counted + 1)


def test_it_goes_on_from_its_file(tmp_path: Path) -> None:
    agent, tank = background_agent(), Tank()
    tank.play(agent, 12)
    agent.start(0)
    agent.act(agent.state)
    agent.save(tmp_path / "agent.npz")
    again = cmdpax.Agent.load(tmp_path / "agent.npz", plan="background")
    assert_same(again, agent)
    for one in (agent, again):
        tank.play(one, 25)
        one.save(tmp_path / f"{id(one)}.npz")
        assert one.visits.sum() == 75
    plain = cmdpax.Agent.load(tmp_path / "agent.npz")
    assert plain._background is None


def test_a_copy_has_learned_as_much(tmp_path: Path) -> None:
    person, tank = Person(), Tank()
    agent = background_agent(approve=person)
    person.may_answer.set()
    tank.play(agent, 15)
    other = copy.deepcopy(agent)
    for one in (agent, other):
        one.freeze()
        assert one.visits.sum() == 45
    assert_same_learners(agent, other)


def test_ranges_that_are_not_declared_grow(tmp_path: Path) -> None:
    plain = {"reward_range": None, "constraint_ranges": None}
    agent, other = background_agent(**plain), pump_agent(**plain)
    other.feed(play_and_log(agent, Tank(), 20), own=True)
    agent.save(tmp_path / "agent.npz")
    assert_same_learners(agent, other)


def test_a_baseline_is_mixed_in_the_thread(tmp_path: Path) -> None:
    agent, tank = background_agent(threshold=3.0, baseline=[0, 0]), Tank()
    tank.play(agent, 60)
    agent.save(tmp_path / "agent.npz")
    assert agent.mixture is not None
    assert agent.mixture.share > 0
    again = cmdpax.Agent.load(tmp_path / "agent.npz")
    np.testing.assert_array_equal(again.policy, agent.policy)


def test_there_are_two_places_to_plan() -> None:
    with pytest.raises(cmdpax.ParameterError) as caught:
        pump_agent(plan="later")
    assert_sentence(caught.value)
    assert "plan" in str(caught.value)
    assert "background" in str(caught.value)
