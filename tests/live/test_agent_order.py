"""Calls in the wrong order and wrong values: one sentence, and nothing has happened."""

import pytest

import cmdpax
from live_cases import (
    Call,
    System,
    assert_counted,
    assert_refused,
    assert_same,
    call_next,
    draw_episodes,
    log_of,
    make,
    play,
    snapshot,
)

CALLS: dict[str, Call] = {
    "start": lambda agent: agent.start(0),
    "act": lambda agent: agent.act(0 if agent.state is None else agent.state),
    "observe": lambda agent: agent.observe(0.5, [0.5, 0.25], 1),
    "end": lambda agent: agent.end(),
    "feed": lambda agent: agent.feed(log_of(agent, draw_episodes(agent, 1)), own=True),
}
STEP = ("act", "observe")
PHASES: dict[str, tuple[tuple[str, ...], str, set[str]]] = {
    # The calls that lead there, what is expected next, and what is allowed.
    "new": ((), "start", {"start", "feed"}),
    "started": (("start",), "act", {"act", "end"}),
    "acted": (("start", "act"), "observe", {"observe", "end"}),
    "observed": (("start", *STEP), "act", {"act", "end"}),
    "acted later": (("start", *STEP, "act"), "observe", {"observe", "end"}),
    "all steps": (("start", *STEP * 3), "end", {"end"}),
    "ended": (("start", *STEP * 3, "end"), "start", {"start", "feed"}),
    "cut short": (("start", *STEP, "end"), "start", {"start", "feed"}),
    "ended at once": (("start", "end"), "start", {"start", "feed"}),
}


def agent_in(phase: str) -> cmdpax.Agent:
    agent = play(make(), 2)
    for call in PHASES[phase][0]:
        CALLS[call](agent)
    return agent


class TestOrder:
    @pytest.mark.parametrize("phase", PHASES)
    def test_every_call_in_every_phase(self, phase: str):
        _, expected, allowed = PHASES[phase]
        for name, call in CALLS.items():
            agent = agent_in(phase)
            assert agent.expects == expected
            if name in allowed:
                before = snapshot(agent)
                call(agent)
                assert snapshot(agent) != before
            else:
                parts = (f"agent.{name} was called", f"agent.{expected} comes next")
                assert_refused(agent, call, cmdpax.OrderError, *parts)

    def test_where_it_is(self):
        parts = ("1 of 3 steps", "state 1", "action ")
        assert_refused(agent_in("acted later"), CALLS["act"], cmdpax.OrderError, *parts)
        assert_refused(agent_in("new"), CALLS["end"], cmdpax.OrderError, "no episode is open")
        assert_refused(agent_in("all steps"), CALLS["act"], cmdpax.OrderError, "all 3 steps")

    def test_what_is_told_of_the_open_episode(self):
        agent = agent_in("acted later")
        assert (agent.num_episodes, agent.episode, agent.step, agent.state) == (2, 3, 1, 1)
        assert agent.action in (0, 1)
        agent = agent_in("ended")
        assert (agent.num_episodes, agent.episode, agent.step) == (3, 4, 0)
        assert agent.state is agent.action is None

    def test_an_episode_without_steps_did_not_happen(self):
        for calls in (("start", "end"), ("start", "act", "end")):
            agent, other = play(make(), 4), play(make(), 4)
            for call in calls:
                record = CALLS[call](agent)
            assert (record.episode, record.steps, record.reward) == (5, 0, 0.0)
            assert record.constraint_returns.tolist() == [0.0, 0.0]
            assert_same(agent, other)


class TestGoingOn:
    def test_as_if_nothing_had_happened(self):
        """Every refused call before every right one."""
        mistaken, plain = make(), make()
        system = System(plain)
        while plain.num_episodes < 4:
            for name, call in CALLS.items():
                if name not in (plain.expects, "end") and (name, plain.expects) != (
                    "feed",
                    "start",
                ):
                    with pytest.raises(cmdpax.OrderError):
                        call(mistaken)
            self.tell_nonsense(mistaken)
            assert call_next(mistaken, system) == call_next(plain, system)
            assert_same(mistaken, plain)

    def tell_nonsense(self, agent: cmdpax.Agent) -> None:
        wrong: dict[str, list[Call]] = {
            "start": [lambda agent: agent.start(2), lambda agent: agent.start(0.0)],
            "act": [lambda agent: agent.act(7), lambda agent: agent.act((agent.state + 1) % 3)],
            "observe": [
                lambda agent: agent.observe(2.0, [0.5, 0.5], 0),
                lambda agent: agent.observe(0.5, [0.5], 0),
                lambda agent: agent.observe(0.5, [0.5, 0.5], 3),
                lambda agent: agent.observe(0.5, [0.5, 0.5], 0, action=2),
            ],
        }
        for call in wrong.get(agent.expects, []):
            with pytest.raises(cmdpax.ParameterError):
                call(agent)

    def test_what_was_really_done_is_learned(self):
        """Always another action than the one that was given."""
        agent, actions, episodes = make(), [], []
        for k in range(6):
            agent.start(k % 2)
            states = [k % 2]
            actions = []
            for step in range(3):
                actions.append(1 - agent.act(states[-1]))
                states.append((k + step) % 3)
                agent.observe(0.5, [0.25, 1.0], states[-1], action=actions[-1])
                assert agent.action is None
            agent.end()
            episodes.append((states, actions, [0.5] * 3, [[0.25] * 3, [1.0] * 3]))
        assert_counted(agent, episodes)
        fed = make()
        fed.feed(log_of(fed, episodes), own=True)
        assert_same(fed, agent)
