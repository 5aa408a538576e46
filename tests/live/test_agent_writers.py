"""An agent, its file, and everybody who might write at the same time."""

import copy
import gc
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import cmdpax
from live_cases import assert_same, make, play
from storage_cases import contents, lock_name

SAVES = """
import sys
import cmdpax
agent = cmdpax.Agent.load(sys.argv[1])
agent.save(sys.argv[1])
print("saved", flush=True)
for line in sys.stdin:
    agent.save(sys.argv[1])
print("ended", flush=True)
"""


def start(path: Path) -> "subprocess.Popen[str]":
    """A process that saves the agent, and saves it again for every line that it is told."""
    command = [sys.executable, "-c", SAVES, str(path)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


class TestProcesses:
    @pytest.mark.kills
    def test_the_second_is_told_and_the_first_loses_nothing(self, tmp_path: Path) -> None:
        path, other = tmp_path / "a.npz", play(make(), 1)
        play(make(), 2).save(path)
        gc.collect()
        with start(path) as first:
            assert first.stdin is not None
            assert first.stdout is not None
            assert first.stdout.readline() == "saved\n"
            sentence = f"{path} is being written by another process; wait for it"
            for _ in range(20):
                first.stdin.write("again\n")
                first.stdin.flush()
                with pytest.raises(cmdpax.FileError, match=sentence):
                    other.save(path)
                assert cmdpax.Agent.load(path).num_episodes == 2  # everybody may read
            told, _ = first.communicate()
            assert (told, first.returncode) == ("ended\n", 0)
        other.save(path)
        assert cmdpax.Agent.load(path).num_episodes == 1

    def test_the_file_is_free_when_the_agent_is_gone(self, tmp_path: Path) -> None:
        agent = make()
        agent.save(tmp_path / "a.npz")
        assert set(os.listdir(tmp_path)) == {"a.npz", lock_name("a.npz")}
        del agent
        gc.collect()
        assert os.listdir(tmp_path) == ["a.npz"]

    def test_agents_of_one_process_share_it(self, tmp_path: Path) -> None:
        path, first = tmp_path / "a.npz", play(make(), 2)
        first.save(path)
        second = cmdpax.Agent.load(path)
        for agent in (second, first, second):
            agent.save(path)
        del first, agent
        gc.collect()
        assert lock_name("a.npz") in os.listdir(tmp_path)

    def test_names_are_of_where_one_is(self, tmp_path: Path, monkeypatch) -> None:
        agent = make()
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            monkeypatch.chdir(tmp_path / name)
            agent.save("a.npz")
            assert set(os.listdir()) == {"a.npz", lock_name("a.npz")}

    def test_a_copy_is_an_agent_of_its_own(self, tmp_path: Path) -> None:
        agent = play(make(), 2)
        agent.save(tmp_path / "a.npz")
        other = copy.deepcopy(agent)
        assert_same(other, agent)
        play(other, 4)
        assert agent.num_episodes == 2
        del other
        gc.collect()
        assert lock_name("a.npz") in os.listdir(tmp_path)


class TestThreads:
    def test_no_update_is_lost(self) -> None:
        """Eight threads teach one agent, and every update starts from the one before."""
        agent, errors = make(), []
        log = cmdpax.Log(
            states=np.zeros((5, 4), int),
            actions=np.zeros((5, 3), int),
            rewards=np.full((5, 3), 0.5),
            constraint_rewards=np.full((5, 2, 3), 0.5),
        )

        def teach() -> None:
            try:
                for _ in range(5):
                    agent.feed(log)
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=teach) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert agent.num_episodes == 8 * 5 * 5
        assert agent.visits.sum() == 8 * 5 * 5 * 3

    def test_saves_are_of_one_moment(self, tmp_path: Path) -> None:
        agent, path, done = make(), tmp_path / "a.npz", threading.Event()
        agent.save(path)
        found: list[cmdpax.Agent] = []

        def keep() -> None:
            while not done.is_set():
                agent.save(path)
                found.append(cmdpax.Agent.load(path))

        thread = threading.Thread(target=keep)
        thread.start()
        play(agent, 30)
        done.set()
        thread.join()
        assert found
        for one in found:
            assert_same(one, play(make(), one.num_episodes)) if one.expects == "start" else None


class TestPaths:
    def test_a_link(self, tmp_path: Path) -> None:
        (tmp_path / "far").mkdir()
        (tmp_path / "a.npz").symlink_to(tmp_path / "far" / "real.npz")
        agent = play(make(), 2)
        for _ in range(2):
            agent.save(tmp_path / "a.npz")
        assert (tmp_path / "a.npz").is_symlink()
        assert list(contents(tmp_path / "far")) == ["real.npz"]
        assert_same(cmdpax.Agent.load(tmp_path / "a.npz"), agent)

    def test_a_device(self) -> None:
        with pytest.raises(cmdpax.FileError, match="it is a device; give an ordinary file"):
            make().save(os.devnull)
        assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
