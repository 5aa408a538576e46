"""Agents that plan in a thread: the old policy is played on, and nothing is lost."""

import copy
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import cmdpax
from cmdpax.live import course
from cmdpax.live.background import Background
from cmdpax.live.playing import PolicyChange
from live_cases import assert_same, assert_sentence
from pump_cases import Tank, pump_agent

PLACES = ("foreground", "background")
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


def busy_agent(person: Person, tank: Tank) -> cmdpax.Agent:
    """An agent whose thread waits for a person, while episodes wait for the thread."""
    agent = background_agent(approve=person)
    tank.play(agent, 1)
    while not person.asked.wait(0.01):  # the first plans may be the same
        tank.play(agent, agent.num_episodes + 1)
    return agent


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


def test_the_learner_sees_the_same_episodes_in_the_same_order() -> None:
    agent, other = background_agent(), pump_agent()
    log = play_and_log(agent, Tank(), 40)
    assert agent.num_episodes == agent.account.objective.observed.size == 40
    agent.catch_up()
    other.feed(log, own=True)
    assert_same_learners(agent, other)
    np.testing.assert_array_equal(agent.plan, other.plan)
    np.testing.assert_array_equal(agent.policy, other.policy)
    assert agent.planning.plans == other.planning.plans > 5
    assert agent.account[0].observed == other.account[0].observed


def test_the_old_policy_is_played_while_a_person_thinks() -> None:
    person, tank = Person(), Tank()
    agent = busy_agent(person, tank)
    first = np.array(agent.policy)
    begun, plans = agent.num_episodes, agent.planning.plans
    tank.play(agent, begun + 10)
    np.testing.assert_array_equal(agent.policy, first)
    assert agent.account.objective.observed.size == begun + 10
    assert agent.planning.plans == plans
    person.may_answer.set()
    agent.catch_up()
    assert agent.planning.plans > plans
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
            agent._background._thread and agent._background._thread.join()
    assert agent.expects == "end"
    counted = agent.num_episodes
    agent.end()
    agent.catch_up()
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
        one.catch_up()
        assert one.visits.sum() == 75
    plain = cmdpax.Agent.load(tmp_path / "agent.npz")
    assert plain._background is None


def test_a_file_holds_what_waits(tmp_path: Path) -> None:
    """A save does not wait for a person; whoever opens the file has lost nothing."""
    person, tank, path = Person(), Tank(), tmp_path / "agent.npz"
    agent = busy_agent(person, tank)
    tank.play(agent, agent.num_episodes + 5)
    agent.start(0)
    given = agent.act(agent.state)
    agent.save(path)
    waiting = agent.planning.waiting
    assert waiting >= 5
    person.may_answer.set()
    found = [cmdpax.Agent.load(path, approve=person, plan=plan) for plan in PLACES]
    for one in found:
        assert one.planning._replace(seconds=0.0) == agent.planning._replace(seconds=0.0)
        assert one.action == given
        np.testing.assert_array_equal(one.policy, agent.policy)
        assert one.account == agent.account
    for one in (agent, *found):
        one.end()  # no step happened
        one.catch_up()
        assert one.planning.waiting == 0
        assert one.planning.plans > 1
        assert_same_learners(one, agent)
        np.testing.assert_array_equal(one.policy, agent.policy)


def test_freezing_keeps_what_is_played_and_waits_for_nobody() -> None:
    person, tank = Person(), Tank()
    agent = busy_agent(person, tank)
    kept = np.array(agent.policy)
    agent.freeze()
    person.may_answer.set()
    asked = len(person.threads)
    tank.play(agent, agent.num_episodes + 30)
    agent.catch_up()
    assert agent.frozen
    assert agent.planning.plans > 3
    assert agent.visits.sum() == 3 * agent.num_episodes
    np.testing.assert_array_equal(agent.policy, kept)
    assert len(person.threads) == asked  # of a plan that is not played nobody is asked
    agent.resume()
    assert len(person.threads) == asked + 1
    assert not np.array_equal(agent.policy, kept)


@pytest.mark.parametrize("make_copy", [copy.copy, copy.deepcopy])
def test_copies_go_on_by_themselves(make_copy: Any) -> None:
    person, tank = Person(), Tank()
    agent = busy_agent(person, tank)
    other = make_copy(agent)
    assert_same(other, agent)
    person.may_answer.set()
    tank.play(agent, 40)
    other.catch_up()
    assert other.visits.sum() == 3 * other.num_episodes < 3 * 40
    Tank(seed=7).play(other, 40)
    for one in (agent, other):
        one.catch_up()
        assert one.visits.sum() == 120
    assert not np.array_equal(agent.visits, other.visits)


@pytest.mark.parametrize("place", ["advanced", "redrawn", "learn_from"])
def test_an_interrupted_end_counts_an_episode_once(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, tank = background_agent(), Tank()
    tank.play(agent, 3)
    while agent.expects != "end":
        tank.call_next(agent)
    with monkeypatch.context() as patch:
        owner: Any = course if place == "redrawn" else Background

        def interrupt(*_: Any) -> None:
            raise KeyboardInterrupt

        patch.setattr(owner, place, interrupt)
        with pytest.raises(KeyboardInterrupt):
            agent.end()
    counted = place == "learn_from"
    assert (agent.num_episodes, agent.expects) == ((4, "start") if counted else (3, "end"))
    tank.play(agent, 10)
    agent.catch_up()
    assert agent.visits.sum() == 30
    assert agent.account.objective.observed.size == 10


def test_whoever_approves_cannot_make_the_agent_wait_for_itself() -> None:
    refused = []

    def ask(change: PolicyChange) -> bool:
        with pytest.raises(cmdpax.OrderError) as caught:
            agent.feed(Tank().log(0, 1))
        assert agent.num_episodes > 0  # looking is allowed
        refused.append(caught.value)
        return True

    agent = background_agent(approve=ask)
    Tank().play(agent, 30)
    agent.catch_up()
    assert_sentence(refused[0])
    assert agent.visits.sum() == 90


@pytest.mark.kills
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_forked_process_has_a_lock_of_its_own() -> None:
    """The thread of the parent is not there; nothing waits for it."""
    person, tank = Person(), Tank()
    agent = busy_agent(person, tank)
    child = os.fork()
    if not child:
        signal.alarm(int(PATIENCE))
        thread = agent._background._thread
        free = agent._background._lock.acquire(blocking=False)
        os._exit(0 if thread is None and free else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    person.may_answer.set()
    agent.catch_up()
    assert agent.visits.sum() == 3 * agent.num_episodes


@pytest.mark.kills
@pytest.mark.parametrize("approve", ["None", "lambda change: print('asked', flush=True) or wait()"])
def test_the_interpreter_ends_while_a_plan_is_made(approve: str) -> None:
    """It waits for the computer, and not for a person."""
    script = f"""
import threading
from pump_cases import Tank, pump_agent
wait = threading.Event().wait
agent = pump_agent(plan="background", approve={approve})
Tank().play(agent, 40)
while {approve != "None"} and not agent._background._asks:
    Tank().play(agent, agent.num_episodes + 1)
print("done", agent.planning.waiting, flush=True)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        cwd=Path(__file__).parent.parent,  # where pump_cases is
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "done" in done.stdout


def test_a_copy_has_learned_as_much() -> None:
    person, tank = Person(), Tank()
    agent = background_agent(approve=person)
    person.may_answer.set()
    tank.play(agent, 15)
    other = copy.deepcopy(agent)
    for one in (agent, other):
        one.catch_up()
        assert one.visits.sum() == 45
    assert_same_learners(agent, other)


def test_ranges_that_are_not_declared_grow() -> None:
    plain = {"reward_range": None, "constraint_ranges": None}
    agent, other = background_agent(**plain), pump_agent(**plain)
    other.feed(play_and_log(agent, Tank(), 20), own=True)
    agent.catch_up()
    assert_same_learners(agent, other)


def test_a_baseline_is_mixed_in_the_thread(tmp_path: Path) -> None:
    agent, tank = background_agent(threshold=3.0, baseline=[0, 0]), Tank()
    tank.play(agent, 60)
    agent.catch_up()
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
