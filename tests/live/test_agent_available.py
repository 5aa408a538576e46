"""An agent is told which actions are available: it plays no other, and counts no other."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cmdpax
from available_cases import HORIZON, Case, case
from lanes import quick_or_whole
from learning_cases import NO_WARNING, OURS
from live_cases import System, assert_refused, assert_same, call_next, play

ALGORITHMS = [
    quick_or_whole(name, quick=name in ("regularized-primal-dual", "replanning")) for name in OURS
]
FLAGS = case("steps").flags


def make(algorithm: str = "regularized-primal-dual", **changes: Any) -> cmdpax.Agent:
    arguments: dict[str, Any] = {
        "num_states": 3,
        "num_actions": 3,
        "horizon": HORIZON,
        "thresholds": [2.4],
        "initial": [0.5, 0.5, 0.0],
        "seed": 4,
        "available": FLAGS,
    }
    return cmdpax.Agent(algorithm, **(arguments | changes))


def other_action(step: int, state: int) -> int:
    """One that is not available."""
    return int(np.flatnonzero(~FLAGS[step, state])[0])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_no_other_action_is_played_or_counted(algorithm: str) -> None:
    agent = make(algorithm)
    system, steps = System(agent), 0
    while agent.num_episodes < 12:
        if call_next(agent, system) == "act":
            assert agent.state is not None
            assert FLAGS[agent.step, agent.state, agent.action]
            steps += 1
        assert (agent.policy[~FLAGS] == 0).all()
    assert (agent.visits[~FLAGS] == 0).all()
    assert agent.visits.sum() == agent.account.steps <= steps


def _told(one: Case, known: bool) -> dict[str, Any]:
    """The unused rows of the lists are left empty, and rewards of other actions are wrong."""
    cmdp, flags = one.cmdp, one.flags
    lists = np.where(flags[..., None], cmdp.transitions.successors, -1)
    told: dict[str, Any] = {"successors": lists, "available": flags}
    if known:
        told["rewards"] = np.where(flags, cmdp.rewards, np.pi)
        told["constraint_rewards"] = np.where(flags[None], cmdp.constraint_rewards, -7.0)
    return told


@pytest.mark.parametrize("optimism", ["live", quick_or_whole("empirical", quick=False)])
def test_an_agent_is_where_a_run_is(optimism: str) -> None:
    one = case("lists")
    chosen = {"optimism": optimism, "max_multiplier": NO_WARNING}
    history = cmdpax.learn(
        one.cmdp, "regularized-primal-dual", num_episodes=21, seeds=[4], log=True, **chosen
    )
    agent = make(
        thresholds=one.cmdp.thresholds,
        initial=one.cmdp.initial,
        **chosen,
        **_told(one, optimism == "empirical"),
    )
    assert history.log is not None
    log = history.log.run(0)
    agent.feed(cmdpax.Log(*(array[:20] for array in log)))
    np.testing.assert_allclose(agent.policy, history.policy[0], rtol=0, atol=1e-9)
    np.testing.assert_allclose(agent.multipliers, history.multipliers[0, -1], rtol=0, atol=1e-9)
    agent.start(int(log.states[20, 0]))
    for step, action in enumerate(log.actions[20]):
        assert agent.act(int(log.states[20, step])) == action
        agent.observe(0.0, [0.0], int(log.states[20, step + 1]))


def test_other_actions_are_refused_by_name() -> None:
    agent = make()
    agent.start(1)
    agent.act(1)
    wrong = other_action(0, 1)
    said = f"action {wrong} is not available in state 1 at step 0; "
    assert_refused(
        agent, lambda one: one.observe(0.5, [0.5], 2, action=wrong), cmdpax.ParameterError, said
    )
    agent.observe(0.5, [0.5], 2, action=int(np.flatnonzero(FLAGS[0, 1])[1]))
    agent.end()
    states = np.array([[1, 2, 2, 0]])
    actions = np.array([[int(np.flatnonzero(FLAGS[0, 1])[0]), other_action(1, 2), -1]])
    log = cmdpax.Log(states, actions, np.zeros((1, 3)), np.zeros((1, 1, 3)))
    said = f"action {actions[0, 1]} is not available in state 2 at step 1; "
    assert_refused(agent, lambda one: one.feed(log), cmdpax.ParameterError, said)


@pytest.mark.parametrize("algorithm", ["regularized-primal-dual", "replanning"])
def test_saved_and_loaded(tmp_path: Path, algorithm: str) -> None:
    agent, path = play(make(algorithm), 4), tmp_path / "agent.npz"
    agent.start(1)
    agent.act(1)
    agent.save(path)
    again = cmdpax.Agent.load(path)
    np.testing.assert_array_equal(again.declaration.available, FLAGS)
    assert_same(again, agent)
    assert_same(play(again, 7), play(agent, 7))


def test_a_file_whose_open_action_is_not_available_is_damaged(tmp_path: Path) -> None:
    agent, path = make(), tmp_path / "agent.npz"
    agent.start(1)
    agent.act(1)
    agent.save(path)
    with np.load(path) as archive:
        entries = {name: archive[name] for name in archive.files}
    np.savez(path, **(entries | {"open_action": np.array(other_action(0, 1))}))
    with pytest.raises(cmdpax.FileError, match="is not a readable file of an agent"):
        cmdpax.Agent.load(path)


def test_where_all_are_available_nothing_is_kept(tmp_path: Path) -> None:
    agent = make(available=np.ones((3, 3)))
    assert agent.declaration.available is None
    agent.save(tmp_path / "agent.npz")
    with np.load(tmp_path / "agent.npz") as archive:
        assert "declared_available" not in archive.files
    np.testing.assert_array_equal(agent.policy, make(available=None).policy)


def test_flags_that_are_wrong_are_refused() -> None:
    nowhere = FLAGS.copy()
    nowhere[1, 2] = False
    for flags, said in (
        (nowhere, "state 2 has no available action at step 1"),
        (FLAGS[:2], r"available has shape \(2, 3, 3\), expected"),
        (FLAGS + 0.5, "available must be flags"),
    ):
        with pytest.raises(cmdpax.ModelError, match=said):
            make(available=flags)
