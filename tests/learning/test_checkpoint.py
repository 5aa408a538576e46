"""Checkpoints: a run that ends anywhere and goes on is the uninterrupted one, bit for bit."""

import functools
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

import cmdpax
from checkpoint_cases import (
    BLOCK,
    NUM_EPISODES,
    arrays_in,
    contents,
    episodes_in,
    head_of,
    interrupt,
    learn,
    small,
    write_often,
)
from cmdpax.learning.checkpoint import Checkpoint
from cmdpax.learning.group import Group, Position
from cmdpax.learning.loop import Task
from cmdpax.learning.settings import UNSAFE_AT
from cmdpax.learning.workers import _numerics
from configurations import configured, designed
from learning_cases import ALGORITHM, NO_WARNING, every_algorithm
from storage_cases import aside


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    write_often(monkeypatch)


@functools.cache
def corridor() -> cmdpax.CMDP:
    """Three states in successor lists, a constraint that binds."""
    return cmdpax.environments.make("gridworld", layout="S1G", horizon=3, slip=0.2)


def uninterrupted(**chosen: Any) -> cmdpax.History:
    """In the same groups, one after the other."""
    with pytest.MonkeyPatch.context() as patch:
        write_often(patch)
        patch.setattr("cmdpax.learning.workers.num_cores", lambda: 1)
        return learn(**chosen)


@pytest.fixture(scope="module")
def expected() -> cmdpax.History:
    """What nobody interrupted."""
    return uninterrupted()


def assert_same(found: cmdpax.History, expected: cmdpax.History) -> None:
    """Bit for bit: accounts, multipliers, policies, distances, episodes and the manifest."""
    ours, theirs = (jax.tree.leaves_with_path(vars(history)) for history in (found, expected))
    assert [path for path, _ in ours] == [path for path, _ in theirs]
    for (path, one), (_, other) in zip(ours, theirs, strict=True):
        one, other = np.asarray(one), np.asarray(other)
        name = jax.tree_util.keystr(path)
        assert (one.dtype, one.shape) == (other.dtype, other.shape), name
        assert one.tobytes() == other.tobytes(), name


class Copies:
    """As `progress`: every file that a process killed at that moment would leave."""

    def __init__(self, path: Path) -> None:
        self.path, self.found, self.lock = path, dict[bytes, None](), threading.Lock()

    def __call__(self, done: int, total: int) -> None:
        with self.lock:
            if self.path.exists():
                self.found[self.path.read_bytes()] = None

    def some(self, count: int) -> list[bytes]:
        """The first, the last and some between."""
        found = list(self.found)
        places = np.linspace(0, len(found) - 1, count).round().astype(int)
        return [found[place] for place in places]


DENSE: dict[str, Any] = {}
LISTS: dict[str, Any] = {
    "cmdp": corridor,
    "optimism": "live",
    "observations": "bernoulli",
    "precision": "single",
    "record": [1, 17, 40],
    "potential": False,
}


class TestResumed:
    @pytest.mark.parametrize(
        "case",
        [DENSE, pytest.param(LISTS, marks=pytest.mark.whole)],
        ids=["dense, double", "lists, single"],
    )
    @every_algorithm
    def test_from_any_moment(self, tmp_path, algorithm: str, case: dict[str, Any]):
        chosen = case | ({"cmdp": case["cmdp"]()} if "cmdp" in case else {})
        whole = uninterrupted(algorithm=algorithm, **chosen)
        copies = Copies(tmp_path / "c.npz")
        assert_same(learn(algorithm, **chosen, checkpoint=copies.path, progress=copies), whole)
        assert len(copies.found) >= 5
        for index, content in enumerate(copies.some(4)):
            path = tmp_path / f"{index}.npz"
            path.write_bytes(content)
            assert_same(learn(algorithm, **chosen, checkpoint=path), whole)
            assert episodes_in(path.read_bytes()) == [NUM_EPISODES] * 3
        assert episodes_in(copies.some(4)[0]) != [NUM_EPISODES] * 3

    @pytest.mark.parametrize("reports", [1, 2, 5, 9])
    def test_after_an_interruption(self, tmp_path, expected, reports: int):
        path = tmp_path / "c.npz"
        interrupt(path, reports)
        assert_same(learn(checkpoint=path), expected)

    def test_after_three_interruptions(self, tmp_path, expected):
        path = tmp_path / "c.npz"
        stages = []
        for reports in (4, 5, 4):
            interrupt(path, reports)
            stages.append(sum(episodes_in(path.read_bytes())))
        assert stages == sorted(set(stages))
        assert_same(learn(checkpoint=path), expected)

    @pytest.mark.parametrize("cores", [1, 8])
    def test_on_other_numbers_of_cores(self, tmp_path, expected, monkeypatch, cores: int):
        """Groups are as large as the file says."""
        path = tmp_path / "c.npz"
        interrupt(path, 6)
        monkeypatch.setattr("cmdpax.learning.workers.num_cores", lambda: cores)
        monkeypatch.setattr("cmdpax.learning.workers._GROUP_RUNS", 64)
        assert_same(learn(checkpoint=path), expected)
        assert head_of(path)["group_size"] == 2

    def test_a_finished_one_is_the_result(self, tmp_path, expected, monkeypatch):
        path = tmp_path / "c.npz"
        learn(checkpoint=path)
        before = contents(tmp_path)
        monkeypatch.setattr("cmdpax.learning.group.advance", None)  # nothing is played
        told: list[tuple[int, int]] = []
        found = learn(checkpoint=path, progress=lambda *numbers: told.append(numbers))
        assert_same(found, expected)
        assert max(told) == (NUM_EPISODES, NUM_EPISODES)
        assert contents(tmp_path) == before

    def test_warnings_count_all_episodes(self, tmp_path):
        """λ at its cap: those before the interruption, too."""
        path, cap = tmp_path / "c.npz", {"max_multiplier": 1e-3}
        with pytest.warns(cmdpax.CmdpaxWarning) as whole:
            learn(**cap)
        with pytest.warns(cmdpax.CmdpaxWarning):
            interrupt(path, 8, **cap)
        with pytest.warns(cmdpax.CmdpaxWarning) as resumed:
            learn(checkpoint=path, **cap)
        ours, theirs = ([str(one.message) for one in found] for found in (resumed, whole))
        assert ours == theirs
        assert any(f"of {NUM_EPISODES} episodes" in text for text in ours)

    def test_progress_begins_where_it_was(self, tmp_path):
        path = tmp_path / "c.npz"
        interrupt(path, 9)
        left = [NUM_EPISODES - done for done in episodes_in(path.read_bytes())]
        left += [NUM_EPISODES] * (3 - len(left))
        told: list[int] = []
        learn(checkpoint=path, progress=lambda done, total: told.append(done))
        assert len(told) == 3 + sum(-(-count // BLOCK) for count in left)  # groups, and blocks
        assert max(told) == NUM_EPISODES

    def test_by_name_and_by_path(self, tmp_path, expected, monkeypatch):
        """Names are not patterns: `run[1]` is not `run1`."""
        monkeypatch.chdir(tmp_path)
        ours, other = aside("run[1].checkpoint", "a1b2c3d4"), aside("run1.checkpoint", "a1b2c3d4")
        for name in (ours, other):
            Path(name).write_bytes(b"half of a fi")
        interrupt(Path("run[1].checkpoint"), 5)
        assert_same(learn(checkpoint="run[1].checkpoint"), expected)
        assert set(contents(tmp_path)) == {"run[1].checkpoint", other}


def first_group() -> Group:
    """Of `learn()`, without its saddle point."""
    configurations = [configured(ALGORITHM, seed, max_multiplier=NO_WARNING) for seed in (0, 1)]
    design = designed(configurations[0], keep_log=True, keep_log_policies=True)
    recorded = np.arange(1, NUM_EPISODES + 1)
    task = Task(design, (cmdpax.rescale(small()),), (0.5,), recorded, NUM_EPISODES, UNSAFE_AT)
    return Group(task, configurations, None)


def leaves_of(content: bytes, group: int) -> list[bytes]:
    arrays = arrays_in(content)
    return [arrays[name].tobytes() for name in sorted(arrays) if name.startswith(f"{group}.")]


@pytest.fixture
def numerics() -> Iterator[None]:
    """Those of the threads that groups run in."""
    with _numerics(True, 0):
        yield


class TestWriting:
    def test_what_is_kept_stays_while_the_group_goes_on(self, tmp_path, numerics):
        """States are changed in place, and another group's time to write comes later."""
        group, path = first_group(), tmp_path / "c.npz"
        position = group.go_on(group.first_position(), BLOCK)
        before: list[bytes] = []
        for is_read in (False, True):  # as it was made, and as it was read
            with Checkpoint(path, {"runs": [{}, {}], "num_episodes": NUM_EPISODES}) as checkpoint:
                if is_read:
                    position = checkpoint.restore(0, group)
                else:
                    checkpoint.group_size = 2
                    checkpoint.offer(0, lambda here=position: here)
                    before = leaves_of(path.read_bytes(), 0)
                for _ in range(2):
                    position = group.go_on(position, BLOCK)
                checkpoint.offer(1, lambda here=position: here)
            assert leaves_of(path.read_bytes(), 0) == before
            assert leaves_of(path.read_bytes(), 1) != before

    @pytest.mark.parametrize("reports", [3, 8])
    def test_an_interruption_keeps_everything(self, tmp_path, monkeypatch, reports: int):
        """Though it was not time to write."""
        monkeypatch.setattr(Checkpoint.__init__, "__defaults__", (3600.0,))
        path = tmp_path / "c.npz"
        told = interrupt(path, reports)
        assert sum(episodes_in(path.read_bytes())) // 3 >= told > 0

    def test_writing_takes_a_small_part_of_the_time(self, tmp_path, numerics, monkeypatch):
        """A file that takes three seconds is written once a minute."""
        clock = SimpleNamespace(now=0.0)
        ticking = SimpleNamespace(monotonic=lambda: clock.now)
        monkeypatch.setattr("cmdpax.learning.checkpoint.time", ticking)
        monkeypatch.setattr("cmdpax.learning.checkpoint._WORTH", 20)
        position, written = first_group().first_position(), []

        def make() -> Position:
            clock.now += 3.0
            written.append(clock.now)
            return position

        with Checkpoint(tmp_path / "c.npz", {}, seconds=10.0) as checkpoint:
            checkpoint.group_size = 2
            for now in (9.0, 11.0, 13.0, 73.0, 75.0, 77.0):
                clock.now = now
                checkpoint.offer(0, make)
        assert written == [14.0, 78.0]

    def test_only_when_it_is_time(self, tmp_path, numerics):
        path = tmp_path / "c.npz"
        with Checkpoint(path, {}, seconds=3600.0) as checkpoint:
            checkpoint.group_size = 2
            checkpoint.offer(0, lambda: pytest.fail("it is not time"))
            assert not path.exists()
            checkpoint.offer(0, first_group().first_position, now=True)
            assert path.exists()

    def test_a_write_that_fails_leaves_the_older_file(self, tmp_path, expected):
        path, written = tmp_path / "c.npz", []
        save = np.savez

        def fail(file: Any, **arrays: Any) -> None:
            if len(written) == 4:
                file.write(b"half of a fi")
                raise OSError(28, "No space left on device")
            written.append(file)
            save(file, **arrays)

        sentence = f"cannot write {path}: No space left on device."
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(np, "savez", fail)
            with pytest.raises(cmdpax.FileError, match=re.escape(sentence)):
                learn(checkpoint=path)
        assert list(contents(tmp_path)) == ["c.npz"]
        assert 0 < sum(episodes_in(path.read_bytes())) < 3 * NUM_EPISODES
        assert_same(learn(checkpoint=path), expected)

    def test_leftovers_of_killed_writers_are_removed(self, tmp_path, expected):
        path = tmp_path / "c.npz"
        interrupt(path, 5)
        neighbours = ["other.npz", "c.npz.bak", ".c.npy.q", ".c.npz.writing-a1_b2c3d"]
        for name in (aside("c.npz", "a1b2c3d4"), *neighbours):
            (tmp_path / name).write_bytes(b"half of a fi")
        assert_same(learn(checkpoint=path), expected)
        assert set(contents(tmp_path)) == {"c.npz", *neighbours}
