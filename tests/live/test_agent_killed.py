"""`kill -9`, again and again: the file is always whole, and the run goes on as if nothing were."""

import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

import cmdpax
from live_cases import assert_same, snapshot
from storage_cases import aside, lock_name

pytestmark = pytest.mark.kills

NUM_EPISODES = 34
SCRIPT = '''
"""A deterministic system, and an agent that is saved after every call."""
import os
import sys
import time
from pathlib import Path

import numpy as np

import cmdpax


def begin(algorithm):
    chosen = {"thresholds": [29.0, 1.5]}  # what a plan can just meet
    if algorithm != "replanning":
        chosen = {"thresholds": [10.0, 2.7], "step_size": 0.5}  # multipliers grow
    return cmdpax.Agent(
        algorithm, num_states=3, num_actions=2, horizon=3, senses=["at most", "at least"],
        constraint_ranges=[(0, 20), (0, 1)], initial=[0.5, 0.5, 0.0], seed=5, **chosen,
    )


def call_next(agent):
    """Every fifth episode is cut short, with an action that was given."""
    if agent.expects == "start":
        agent.start(agent.episode % 2)
    elif agent.expects == "act":
        agent.act(agent.state)
    elif agent.expects == "observe" and not (agent.episode % 5 == 0 and agent.step == 2):
        place = (agent.episode, agent.step, agent.state, agent.action)
        reward, cost, gain = np.random.default_rng(place).random(3)
        agent.observe(reward, [20 * cost, gain], sum(place) * 7 % 3)
    else:
        agent.end()


def run(agent, num_episodes, done):
    while agent.num_episodes < num_episodes:
        call_next(agent)
        done(agent)


def slow_fsync(handle, fsync=os.fsync):
    """The moment between a written file and its name, long enough to be met."""
    print("writing", flush=True)
    fsync(handle)
    time.sleep(0.006)


if __name__ == "__main__":
    path, os.fsync = Path(sys.argv[1]), slow_fsync

    def save(agent):
        agent.save(path)
        print("saved", flush=True)

    agent = cmdpax.Agent.load(path) if path.exists() else begin(sys.argv[3])
    print("ready", flush=True)
    run(agent, int(sys.argv[2]), save)
    print("finished", flush=True)
'''


class Found(NamedTuple):
    """What a kill left behind."""

    saves: int  # of the process
    writing: bool  # it was killed while it wrote
    left: set[str]  # other files than the agent's


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "system.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture
def system(script: Path) -> ModuleType:
    """The script's functions, in this process."""
    spec = importlib.util.spec_from_file_location("system", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def moment(agent: cmdpax.Agent) -> tuple[int, int, str]:
    return agent.episode, agent.step, agent.expects


def start(script: Path, path: Path, algorithm: str) -> "subprocess.Popen[str]":
    """Later processes find the programs that the first one compiled."""
    cache = {
        "JAX_COMPILATION_CACHE_DIR": str(script.parent / "programs"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    command = [sys.executable, str(script), str(path), str(NUM_EPISODES), algorithm]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | cache)


def live_and_die(script: Path, path: Path, algorithm: str, lines: int, pause: float) -> Found:
    """Kill the process so many lines after it is ready, and a pause."""
    with start(script, path, algorithm) as process:
        assert process.stdout is not None
        told = [process.stdout.readline() for _ in range(1 + lines)]
        time.sleep(pause)
        os.kill(process.pid, signal.SIGKILL)
        told += process.stdout.readlines()
        assert process.wait() == -signal.SIGKILL
    assert told[0] == "ready\n"
    assert "finished\n" not in told
    left = {name for name in os.listdir(path.parent) if name.startswith(".cmdpax-writing-")}
    assert set(os.listdir(path.parent)) <= {path.name, lock_name(path.name), *left}
    return Found(told.count("saved\n"), told[-1] == "writing\n", left)


def lives_to_lead() -> list[tuple[int, float]]:
    """How many lines each process may say, and the pause after them.

    Two lines per save: an odd number of them ends between the two. The first process dies before
    it saves, the second while it writes the first file.
    """
    generator = np.random.default_rng(2024)
    lines = [0, 1, *(generator.integers(1, 45, 8) * 2 + np.arange(8) % 2).tolist()]
    pauses = [0.0, 0.002, *generator.uniform(0, 0.005, 8).tolist()]
    return list(zip(lines, pauses, strict=True))


def every_moment(
    system: ModuleType, algorithm: str
) -> tuple[cmdpax.Agent, dict[tuple[int, int, str], Any]]:
    """An agent that nobody killed, and what it was after every call."""
    agent = system.begin(algorithm)
    moments = {moment(agent): snapshot(agent)}
    system.run(agent, NUM_EPISODES, lambda agent: moments.update({moment(agent): snapshot(agent)}))
    return agent, moments


@pytest.mark.parametrize("algorithm", ["regularized-primal-dual", "replanning"])
def test_killed_again_and_again(
    tmp_path: Path, script: Path, system: ModuleType, algorithm: str
) -> None:
    path = tmp_path / "agent" / "agent.npz"
    path.parent.mkdir()
    whole, moments = every_moment(system, algorithm)
    calls, found = 0, Found(0, False, set())
    kills = []
    for lines, pause in lives_to_lead():
        before = found.left
        found = live_and_die(script, path, algorithm, lines, pause)
        kills.append(found)
        assert not (found.saves and before & found.left)  # a save removes what others left
        assert all(name.startswith(aside("agent.npz", "")) for name in found.left)
        if path.exists():
            agent = cmdpax.Agent.load(path)
            assert snapshot(agent) == moments[moment(agent)]
            reached = list(moments).index(moment(agent))
            assert reached - calls - found.saves in (0, 1)  # the last one, said or not
            calls = reached
        else:
            assert found.saves == 0
    assert sum(found.writing for found in kills) >= 2
    assert sum(bool(found.left) for found in kills) >= 2
    assert calls > 100
    with start(script, path, algorithm) as process:
        told, _ = process.communicate(timeout=60)
    assert told.endswith("finished\n")
    assert os.listdir(path.parent) == ["agent.npz"]
    assert_ends_the_same(cmdpax.Agent.load(path), whole)


def assert_ends_the_same(killed: cmdpax.Agent, whole: cmdpax.Agent) -> None:
    """In every number."""
    assert_same(killed, whole)
    assert killed.num_episodes == NUM_EPISODES
    np.testing.assert_array_equal(killed.policy, whole.policy)
    np.testing.assert_array_equal(killed.multipliers, whole.multipliers)
    np.testing.assert_array_equal(killed.visits, whole.visits)
    assert killed.account == whole.account
    assert whole.account.cut_short > 0
    assert whole.recent["multipliers"].max() > 0
