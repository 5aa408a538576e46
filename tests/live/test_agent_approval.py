"""Plans that somebody approves before they are played, and policies that stay."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cmdpax
from cmdpax.live.playing import PolicyChange
from live_cases import assert_refused, assert_same, assert_sentence, snapshot
from pump_cases import NAMES, PUMP, WAIT, WAITS, Tank, pump_agent


class Asked:
    """Answers in turn, again and again, and keeps what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.changes = answers, []

    def __call__(self, change: PolicyChange) -> Any:
        self.changes.append(change)
        answer = self.answers[(len(self.changes) - 1) % len(self.answers)]
        if isinstance(answer, BaseException):
            raise answer
        return answer


def until_asked(agent: cmdpax.Agent, asked: Asked, tank: Tank) -> None:
    """Play until the next call would ask."""
    count = len(asked.changes)
    while len(asked.changes) == count:
        tank.call_next(agent)


class TestAsked:
    def test_with_a_table_of_what_changes(self) -> None:
        asked = Asked(True)
        agent = pump_agent(approve=asked, **NAMES)
        assert asked.changes == []  # the first plan replaces nothing
        first = np.array(agent.plan)
        until_asked(agent, asked, Tank())
        change = asked.changes[0]
        np.testing.assert_array_equal(change.before, first)
        np.testing.assert_array_equal(change.after, agent.plan)
        assert change.episode == agent.episode == agent.num_episodes + 1
        lines = str(change).splitlines()
        assert lines[0] == f"from episode {change.episode} on"
        assert lines[1].split() in (
            ["state", "before", "after"],
            ["state", "steps", "before", "after"],
        )
        frame = change.frame()
        assert frame.columns == ["state", "step", "before", "after"]
        differ = (change.before != change.after).any(axis=-1)
        assert frame.height == differ.sum() > 0
        for state, step, before, after in frame.rows():
            assert differ[step, ["dry", "wet"].index(state)]
            assert before != after or "%" in before

    def test_a_declined_plan_is_not_played(self) -> None:
        asked = Asked(False)
        agent, tank = pump_agent(approve=asked), Tank()
        first = np.array(agent.plan)
        tank.play(agent, 20)
        assert len(asked.changes) > 3
        for one in asked.changes:
            np.testing.assert_array_equal(one.before, first)
        np.testing.assert_array_equal(agent.plan, first)
        np.testing.assert_array_equal(agent.policy, first)
        assert agent.planning.declined > 1
        told = f"the last {agent.planning.declined} plans were declined, the one before is kept"
        assert told in str(agent.account)

    def test_an_approved_plan_is_played_and_nothing_else(self) -> None:
        asked = Asked(False, True, False)
        agent, tank = pump_agent(approve=asked), Tank()
        while len(asked.changes) < 3:
            tank.call_next(agent)
        np.testing.assert_array_equal(agent.policy, asked.changes[1].after)
        np.testing.assert_array_equal(asked.changes[2].before, asked.changes[1].after)
        assert agent.planning.declined == 1
        assert "the last plan was declined, the one before is kept" in str(agent.account)

    def test_who_always_approves_changes_nothing(self) -> None:
        plain, agreed = pump_agent(), pump_agent(approve=Asked(True, np.True_))
        for one in (plain, agreed):
            Tank().play(one, 15)
        np.testing.assert_array_equal(plain.policy, agreed.policy)
        np.testing.assert_array_equal(plain.visits, agreed.visits)
        assert str(plain.account) == str(agreed.account)

    @pytest.mark.parametrize("answer", [None, 1, "yes", np.array([True, False])])
    def test_other_answers_are_refused(self, answer: Any) -> None:
        asked = Asked(answer)
        agent, tank = pump_agent(approve=asked), Tank()
        with pytest.raises(cmdpax.ParameterError, match="approve returned ") as caught:
            tank.play(agent, 50)
        assert_sentence(caught.value)
        assert "return True to play the plan, or False" in str(caught.value)

    def test_its_exceptions_leave_the_agent_as_it_was(self) -> None:
        asked = Asked(ZeroDivisionError("of the user's"), *[True] * 50)
        agent, tank = pump_agent(approve=asked), Tank()
        plain = pump_agent(approve=Asked(True))
        before = []

        def play_on() -> None:
            while True:  # plans that change nothing are not shown
                before.append(snapshot(agent))
                tank.call_next(agent)

        with pytest.raises(ZeroDivisionError, match="of the user's"):
            play_on()
        assert agent.expects == "end"
        assert snapshot(agent) == before[-1]
        tank.play(agent, 30)
        assert_same(agent, tank.play(plain, 30))

    def test_fed_episodes_are_not_counted_if_it_fails(self) -> None:
        asked, log = Asked(KeyboardInterrupt(), True), Tank().log(WAIT, 30)
        agent = pump_agent(approve=asked)
        before = snapshot(agent)
        with pytest.raises(KeyboardInterrupt):
            agent.feed(log)
        assert snapshot(agent) == before
        agent.feed(log)
        assert len(asked.changes) == 2  # once for the whole log
        assert agent.num_episodes == 30

    def test_it_may_look_at_the_agent(self) -> None:
        found: list[str] = []

        def look(change: PolicyChange) -> bool:
            found.append(f"{agent.account}{agent.explain(0)}{agent.expects}")
            return True

        agent = pump_agent(approve=look)
        Tank().play(agent, 5)
        assert found

    def test_something_that_cannot_be_called(self) -> None:
        with pytest.raises(cmdpax.ParameterError, match="approve is True, it must be a function"):
            pump_agent(approve=True)

    def test_a_baseline_is_what_the_first_plan_replaces(self) -> None:
        asked = Asked(False)
        agent = pump_agent(approve=asked, baseline=[WAIT, WAIT])
        np.testing.assert_array_equal(asked.changes[0].before, WAITS)
        np.testing.assert_array_equal(agent.plan, WAITS)
        Tank().play(agent, 20)
        assert agent.visits[0, :, PUMP].sum() == 0


class TestSaved:
    def test_it_is_given_again(self, tmp_path: Path) -> None:
        path, asked = tmp_path / "a.npz", Asked(True)
        pump_agent(approve=asked).save(path)
        with pytest.raises(cmdpax.ParameterError, match="asked before it played a plan; give appr"):
            cmdpax.Agent.load(path)
        with pytest.raises(cmdpax.ParameterError, match="approve is 3, it must be a function"):
            cmdpax.Agent.load(path, approve=3)  # type: ignore[arg-type]
        assert cmdpax.Agent.load(path, approve=asked).num_episodes == 0
        pump_agent().save(path)
        with pytest.raises(cmdpax.ParameterError, match="that did not ask; leave approve= out"):
            cmdpax.Agent.load(path, approve=asked)

    @pytest.mark.parametrize("baseline", [None, [WAIT, WAIT]])
    def test_after_every_call(self, tmp_path: Path, baseline: Any) -> None:
        """Nobody is asked twice, and a declined plan stays declined."""
        answers = (False, True, False, False)
        ours, theirs = Asked(*answers), Asked(*answers)
        saved, plain = (pump_agent(approve=one, baseline=baseline) for one in (ours, theirs))
        tank, declined = Tank(), set()
        while plain.num_episodes < 9:
            saved.save(tmp_path / "a.npz")
            saved = cmdpax.Agent.load(tmp_path / "a.npz", approve=ours)
            assert_same(saved, plain)
            assert len(ours.changes) == len(theirs.changes)
            assert saved.planning.declined == plain.planning.declined
            declined.add(plain.planning.declined)
            assert tank.call_next(saved) == tank.call_next(plain)
        assert len(declined) > 1


FROZEN: dict[str, dict[str, Any]] = {
    "plain": {},
    "with a baseline": {"baseline": [WAIT, WAIT]},
    "with approval": {"approve": Asked(True, False)},
    "with both": {"baseline": [WAIT, WAIT], "approve": Asked(True)},
    "another algorithm": {"algorithm": "regularized-primal-dual"},
    "no ranges": {"reward_range": None, "constraint_ranges": None},
}


class TestFrozen:
    @pytest.mark.parametrize("name", FROZEN)
    def test_the_policy_stays_and_learning_goes_on(self, name: str) -> None:
        agent, tank = pump_agent(**FROZEN[name]), Tank()
        agent.feed(tank.log(WAIT, 20), own=True)
        assert not agent.frozen
        agent.freeze()
        agent.freeze()
        assert agent.frozen
        assert "frozen: the policy stays until resume" in str(agent.account)
        plan, mixture, before = np.array(agent.plan), agent.mixture, agent.visits.sum()
        tank.play(agent, 35)
        np.testing.assert_array_equal(agent.plan, plan)
        assert agent.mixture == mixture
        assert agent.visits.sum() == before + 45
        agent.resume()
        assert not agent.frozen
        assert "frozen" not in str(agent.account)
        if "approve" not in FROZEN[name]:
            assert abs(agent.plan - plan).max() > 0
        with pytest.raises(
            cmdpax.OrderError, match=r"agent\.resume was called, but the agent is no"
        ):
            agent.resume()

    def test_it_goes_on_as_if_nothing_had_been(self) -> None:
        """Freezing and resuming at once is nothing."""
        agent, plain = (pump_agent(baseline=[WAIT, WAIT]) for _ in range(2))
        tank = Tank()
        for episode in range(1, 12):
            agent.freeze()
            agent.resume()
            assert_same(tank.play(agent, episode), tank.play(plain, episode))

    def test_nobody_is_asked_meanwhile(self) -> None:
        asked = Asked(True)
        agent, tank = pump_agent(approve=asked), Tank()
        tank.play(agent, 5)
        agent.freeze()
        count, before = len(asked.changes), np.array(agent.plan)
        tank.play(agent, 15)
        assert len(asked.changes) == count
        agent.resume()
        assert len(asked.changes) <= count + 1
        if len(asked.changes) > count:
            np.testing.assert_array_equal(asked.changes[-1].before, before)

    def test_a_plan_that_is_declined_when_it_resumes(self) -> None:
        asked = Asked(False)
        agent, tank = pump_agent(approve=asked), Tank()
        before = np.array(agent.plan)
        agent.freeze()
        tank.play(agent, 10)
        agent.resume()
        assert len(asked.changes) == 1
        np.testing.assert_array_equal(agent.plan, before)

    @pytest.mark.parametrize("call", ["freeze", "resume"])
    def test_between_episodes_only(self, call: str) -> None:
        agent = pump_agent()
        agent.freeze()
        agent.start(0)
        sentence = f"agent.{call} was called where agent.act comes next"
        assert_refused(agent, lambda one: getattr(one, call)(), cmdpax.OrderError, sentence)
        agent.act(0)
        assert_refused(agent, lambda one: getattr(one, call)(), cmdpax.OrderError, f"agent.{call}")

    @pytest.mark.parametrize("name", FROZEN)
    def test_saved(self, tmp_path: Path, name: str) -> None:
        """While it is frozen, and after it was resumed, the file goes on bit for bit."""
        path, tank = tmp_path / "a.npz", Tank()
        arguments = FROZEN[name]
        approve = {"approve": arguments["approve"]} if "approve" in arguments else {}
        plain = tank.play(pump_agent(**arguments), 3)
        plain.freeze()
        tank.play(plain, 6)
        tank.call_next(plain)
        plain.save(path)
        saved = cmdpax.Agent.load(path, **approve)
        assert saved.frozen
        assert_same(saved, plain)
        assert_same(tank.play(saved, 8), tank.play(plain, 8))
        plain.resume()
        plain.save(path)
        saved = cmdpax.Agent.load(path, **approve)
        assert not saved.frozen
        assert_same(saved, plain)
        if not approve:  # one answer is for one of them
            assert_same(tank.play(saved, 11), tank.play(plain, 11))
