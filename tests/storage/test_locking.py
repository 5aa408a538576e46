"""One process writes: the others are told so, and lose nothing."""

import gc
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import cmdpax
from cmdpax.live.saving import Owned
from cmdpax.storage import locking
from cmdpax.storage.locking import lock_beside
from storage_cases import lock_name

TAKES = """
import sys
from pathlib import Path
from cmdpax.errors import FileError
from cmdpax.storage.locking import lock_beside
try:
    lock = lock_beside(Path(sys.argv[1]), shared=True)
except FileError as error:
    print(error)
else:
    print("taken", flush=True)
    sys.stdin.readline()
    lock.release()
"""


def start(path: Path) -> "subprocess.Popen[str]":
    """Another process that takes the lock, and has it until it is told something."""
    command = [sys.executable, "-c", TAKES, str(path)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def said(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def refused(path: Path) -> str:
    return f"{path} is being written by another process; wait for it, or give another path."


@pytest.mark.kills
class TestProcesses:
    def test_the_second_is_told_until_the_first_ends(self, tmp_path: Path) -> None:
        path = tmp_path / "a.npz"
        with start(path) as first:
            assert said(first) == "taken"
            with pytest.raises(cmdpax.FileError) as caught:
                lock_beside(path, shared=True)
            assert str(caught.value) == refused(path)
            first.communicate("\n")
        assert os.listdir(tmp_path) == []
        with lock_beside(path):
            assert os.listdir(tmp_path) == [lock_name("a.npz")]
            with start(path) as second:
                assert said(second) == refused(path)
        assert os.listdir(tmp_path) == []

    def test_a_lock_ends_with_its_process(self, tmp_path: Path) -> None:
        path = tmp_path / "a.npz"
        with start(path) as first:
            assert said(first) == "taken"
            first.kill()
        assert os.listdir(tmp_path) == [lock_name("a.npz")]
        lock_beside(path).release()
        assert os.listdir(tmp_path) == []

    @pytest.mark.filterwarnings("ignore:.*fork")
    def test_a_child_does_not_have_what_its_parent_has(self, tmp_path: Path) -> None:
        path = tmp_path / "a.npz"
        context = multiprocessing.get_context("fork")
        with lock_beside(path):
            child = context.Process(target=_try_in_child, args=(path, tmp_path / "refused"))
            child.start()
            child.join(60)
        assert (tmp_path / "refused").exists()

    def test_a_link_and_its_target_are_one_file(self, tmp_path: Path) -> None:
        (tmp_path / "link.npz").symlink_to("a.npz")
        with lock_beside(tmp_path / "a.npz"), pytest.raises(cmdpax.FileError):
            lock_beside(tmp_path / "link.npz")


def _try_in_child(path: Path, refused: Path) -> None:
    try:
        lock_beside(path, shared=True)
    except cmdpax.FileError:
        refused.touch()


class TestOwners:
    def test_owners_in_one_process_may_share_it(self, tmp_path: Path) -> None:
        path = tmp_path / "a.npz"
        one, other = lock_beside(path, shared=True), lock_beside(path, shared=True)
        with pytest.raises(cmdpax.FileError, match="is being written"):
            lock_beside(path)
        one.release()
        one.release()
        with pytest.raises(cmdpax.FileError, match="is being written"):
            lock_beside(path)
        other.release()
        lock_beside(path).release()
        assert os.listdir(tmp_path) == []

    @pytest.mark.kills
    def test_a_lock_file_that_was_removed_meanwhile(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its owner removes it between our opening and our locking it."""
        path, take, removed = tmp_path / "a.npz", locking.take, []

        def slow(file: Any, protected: Path) -> None:
            if not removed:
                removed.append((tmp_path / lock_name("a.npz")).unlink())
            take(file, protected)

        monkeypatch.setattr(locking, "take", slow)
        with lock_beside(path), start(path) as second:
            assert said(second) == refused(path)
        assert removed == [None]

    def test_a_file_system_without_locks(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(file: Any) -> None:
            raise OSError(38, "Function not implemented")

        monkeypatch.setattr(locking, "_lock", refuse)
        with pytest.warns(cmdpax.CmdpaxWarning, match="a file system without locks"):
            lock_beside(tmp_path / "a.npz").release()


class TestOwnersThatGo:
    def test_the_collector_never_waits(self, tmp_path: Path) -> None:
        """It may run in a thread that has the guard: owners in cycles, collected all the time."""
        before = gc.get_threshold()
        gc.set_threshold(5)
        try:
            for index in range(300):
                owned = Owned()
                owned.require(tmp_path / f"{index % 7}.npz")
                cycle = [owned]
                cycle.append(cycle)  # type: ignore[arg-type]
                del owned, cycle
        finally:
            gc.set_threshold(*before)
        gc.collect()
        lock_beside(tmp_path / "last.npz").release()
        assert os.listdir(tmp_path) == []

    def test_a_removed_lock_file_is_taken_anew(self, tmp_path: Path) -> None:
        path, owned = tmp_path / "a.npz", Owned()
        owned.require(path)
        (tmp_path / lock_name("a.npz")).unlink()
        owned.require(path)
        assert os.listdir(tmp_path) == [lock_name("a.npz")]
        with pytest.raises(cmdpax.FileError, match="is being written"):
            lock_beside(path)

    @pytest.mark.kills
    @pytest.mark.filterwarnings("ignore:.*fork")
    def test_a_forked_owner_owns_nothing(self, tmp_path: Path) -> None:
        path, owned = tmp_path / "a.npz", Owned()
        owned.require(path)
        context = multiprocessing.get_context("fork")
        child = context.Process(target=_require_in_child, args=(owned, path, tmp_path / "refused"))
        child.start()
        child.join(60)
        assert (tmp_path / "refused").exists()
        owned.require(path)


def _require_in_child(owned: Owned, path: Path, refused: Path) -> None:
    try:
        owned.require(path)
    except cmdpax.FileError:
        refused.touch()
