"""Agents in the user's words: names of states, actions and constraints, and units."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cmdpax
from furnace import ACTIONS, ENERGY, HORIZON, PROFIT, QUALITY, STATES

NEXT = {"off": "idle", "slow": "busy", "fast": "hot"}


def agent(**changes: Any) -> cmdpax.Agent:
    given: dict[str, Any] = {
        "num_states": 3,
        "num_actions": 3,
        "horizon": HORIZON,
        "initial": "idle",
        "thresholds": [40.0, 2.0],
        "senses": ["at most", "at least"],
        "reward_range": (0, 30),
        "constraint_ranges": [(0, 20), (0, 1)],
        "names": ["energy", "quality"],
        "state_names": STATES,
        "action_names": ACTIONS,
        "units": {"reward": "EUR", "energy": "kWh"},
        "available": [[1, 1, 0], [1, 1, 1], [1, 1, 1]],
        "seed": 2,
    }
    return cmdpax.Agent(**(given | changes))


def play(learner: cmdpax.Agent) -> list[str]:
    """An episode in names alone."""
    learner.start("idle")
    done = []
    while learner.expects == "act":
        state = learner.state
        action = learner.act(state)
        place = STATES.index(state), ACTIONS.index(action)
        learner.observe(PROFIT[place], [ENERGY[place], QUALITY[place]], NEXT[action])
        done.append(action)
    learner.end()
    return done


def test_an_agent_that_is_spoken_to_in_names(tmp_path: Path) -> None:
    named, plain = agent(), agent(state_names=None, action_names=None, units=None, initial=0)
    for _ in range(5):
        actions = play(named)
        assert actions[0] != "fast"  # not available in "idle"
        plain.start(0)
        for action in actions:
            state = plain.state
            assert plain.act(state) == ACTIONS.index(action)
            place = state, ACTIONS.index(action)
            following = STATES.index(NEXT[action])
            plain.observe(PROFIT[place], [ENERGY[place], QUALITY[place]], following)
        plain.end()
    np.testing.assert_array_equal(named.policy, plain.policy)
    lines = str(named.account).splitlines()
    assert lines[0].startswith("5 episodes, reward ")
    assert lines[0].endswith(" EUR")
    assert lines[1].startswith("energy: ")
    assert " kWh, at most 40 (open)" in lines[1]
    assert " kWh (open" in lines[2]
    assert " kWh" not in lines[3] + lines[4]
    named.start("idle")
    assert named.action is None
    assert named.act("idle") == named.action
    named.save(tmp_path / "agent.npz")
    again = cmdpax.Agent.load(tmp_path / "agent.npz")
    assert again.declaration.words == named.declaration.words
    assert (again.state, again.action) == ("idle", named.action)
    assert str(again.account) == str(named.account)


def test_constraints_are_named_as_in_a_model() -> None:
    learner = agent(names=None, constraint_names=["energy", "quality"])
    assert learner.declaration.names == ("energy", "quality")


def test_indices_are_welcome_too() -> None:
    learner = agent()
    learner.start(0)
    assert learner.act(0) in ACTIONS
    learner.observe(0.0, [0.0, 0.0], 1, action=1)
    assert learner.state == "busy"


def test_names_that_do_not_exist() -> None:
    learner = agent()
    with pytest.raises(cmdpax.ParameterError, match="no state 'idlo'; did you mean 'idle'"):
        learner.start("idlo")
    learner.start("idle")
    with pytest.raises(cmdpax.ParameterError, match="the state is busy, but idle was told last"):
        learner.act("busy")
    learner.act("idle")
    with pytest.raises(cmdpax.ParameterError, match="fast is not available in idle at step 0"):
        learner.observe(0.0, [0.0, 0.0], "busy", action="fast")
    with pytest.raises(cmdpax.ParameterError, match="no action 'quick'"):
        learner.observe(0.0, [0.0, 0.0], "busy", action="quick")
    learner.observe(0.0, [0.0, 0.0], "busy", action="slow")
    without = agent(state_names=None, initial=0)
    with pytest.raises(cmdpax.ParameterError, match="the first state is 'idle', it must be one of"):
        without.start("idle")
    for changes in ({"state_names": ["a"]}, {"units": {"energi": "kWh"}}, {"initial": "cold"}):
        with pytest.raises(cmdpax.ParameterError):
            agent(**changes)


def test_observations_that_leave_their_range_by_rounding_are_counted() -> None:
    learner = agent()
    learner.start("idle")
    learner.act("idle")
    learner.observe(float(np.float32(30.0) + np.float32(1e-5)), [0.0, 0.0], "idle", action="off")
    learner.act("idle")
    with pytest.raises(cmdpax.ParameterError, match=r"the reward is 30\.01, outside its declared"):
        learner.observe(30.01, [0.0, 0.0], "idle", action="off")
