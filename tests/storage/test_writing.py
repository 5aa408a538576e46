"""Files are written whole, where the user said, and nothing else is touched."""

import os
import stat
from pathlib import Path

import pytest

import cmdpax
from cmdpax.storage.writing import (
    remove_all_left_behind,
    remove_left_behind,
    write_bytes,
    write_text,
)
from storage_cases import aside

RING = cmdpax.environments.make("ring")


class TestLinks:
    def test_a_link_stays_and_its_target_is_replaced(self, tmp_path: Path) -> None:
        (tmp_path / "far").mkdir()
        target, link = tmp_path / "far" / "real.npz", tmp_path / "link.npz"
        target.write_bytes(b"older")
        link.symlink_to(target)
        cmdpax.save(RING, link)
        assert link.is_symlink()
        assert cmdpax.load(target).fingerprint == RING.fingerprint
        assert os.listdir(tmp_path / "far") == ["real.npz"]

    def test_a_link_to_nothing_yet(self, tmp_path: Path) -> None:
        (tmp_path / "link.npz").symlink_to("real.npz")
        cmdpax.save(RING, tmp_path / "link.npz")
        assert (tmp_path / "link.npz").is_symlink()
        assert cmdpax.load(tmp_path / "real.npz").fingerprint == RING.fingerprint

    def test_a_link_into_a_folder_that_is_not_there(self, tmp_path: Path) -> None:
        (tmp_path / "link.npz").symlink_to("none/real.npz")
        with pytest.raises(cmdpax.FileError, match="none does not exist; create it first"):
            cmdpax.save(RING, tmp_path / "link.npz")

    def test_a_link_to_itself(self, tmp_path: Path) -> None:
        (tmp_path / "link.npz").symlink_to("link.npz")
        for attempt in (cmdpax.load, lambda path: cmdpax.save(RING, path)):
            with pytest.raises(cmdpax.FileError, match="Too many levels of symbolic links"):
                attempt(tmp_path / "link.npz")

    def test_links_that_are_not_followed_are_replaced(self, tmp_path: Path) -> None:
        (tmp_path / "real").write_bytes(b"older")
        (tmp_path / "link").symlink_to("real")
        write_bytes(tmp_path / "link", b"newer", follow_links=False)
        assert not (tmp_path / "link").is_symlink()
        assert (tmp_path / "real").read_bytes() == b"older"


class TestOtherThanFiles:
    @pytest.mark.parametrize("name", ["pipe.npz", "socket.npz", "device.npz"])
    def test_refused(self, name: str, tmp_path: Path) -> None:
        path = tmp_path / name
        if name == "pipe.npz":
            os.mkfifo(path)
        elif name == "socket.npz":
            os.mknod(path, stat.S_IFSOCK | 0o600)
        else:
            path.symlink_to(os.devnull)
        what = {"pipe.npz": "a pipe", "socket.npz": "a socket", "device.npz": "a device"}[name]
        with pytest.raises(cmdpax.FileError, match=f"cannot write .*: it is {what}; give an ordin"):
            cmdpax.save(RING, path)
        with pytest.raises(cmdpax.FileError, match=f"is {what}, not a file"):
            cmdpax.load(path)  # which would wait for ever, or read without end
        assert not stat.S_ISREG(path.stat().st_mode)

    def test_the_null_device_stays_one(self) -> None:
        with pytest.raises(cmdpax.FileError, match="it is a device"):
            write_text(Path(os.devnull), "hello")
        assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_who_could_not_read_a_file_still_cannot(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    cmdpax.save(RING, path)
    path.chmod(0o600)
    cmdpax.save(RING, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


class TestNames:
    def test_the_longest_name_of_a_file(self, tmp_path: Path) -> None:
        path = tmp_path / ("n" * 251 + ".npz")
        cmdpax.save(RING, path)
        assert cmdpax.load(path).fingerprint == RING.fingerprint
        assert os.listdir(tmp_path) == [path.name]

    @pytest.mark.parametrize("name", ["n" * 300 + ".npz", "n" * 5000 + ".npz", "a\0b.npz"])
    def test_names_that_no_file_has(self, name: str, tmp_path: Path) -> None:
        for attempt in (cmdpax.load, lambda path: cmdpax.save(RING, path)):
            with pytest.raises(cmdpax.FileError) as caught:
                attempt(tmp_path / name)
            assert len(str(caught.value)) < 600

    def test_a_file_in_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "a.npz").write_bytes(b"")
        with pytest.raises(cmdpax.FileError, match="does not exist"):
            cmdpax.load(tmp_path / "a.npz" / "b.npz")
        with pytest.raises(cmdpax.FileError, match="cannot write"):
            cmdpax.save(RING, tmp_path / "a.npz" / "b.npz")

    def test_what_no_file_can_hold_is_written_as_a_question_mark(self, tmp_path: Path) -> None:
        write_text(tmp_path / "a.txt", "one \ud800 half")
        assert (tmp_path / "a.txt").read_text() == "one ? half"


class TestLeftBehind:
    def test_only_by_our_names(self, tmp_path: Path) -> None:
        ours = [aside("a.npz", "0123abcd"), aside("a.npz", "ffffffff")]
        others = [aside("b.npz", "0123abcd"), aside("a.npz", "0123ABCD"), ".a.npz.writing-a1_b2c3d"]
        for name in (*ours, *others):
            (tmp_path / name).write_bytes(b"half")
        (tmp_path / aside("a.npz", "00000000")).mkdir()
        (tmp_path / aside("a.npz", "11111111")).symlink_to("elsewhere")
        remove_left_behind(tmp_path / "a.npz")
        kept = {*others, aside("a.npz", "00000000"), aside("a.npz", "11111111")}
        assert set(os.listdir(tmp_path)) == kept
        remove_all_left_behind(tmp_path)
        assert set(os.listdir(tmp_path)) == kept - {aside("b.npz", "0123abcd")}

    def test_a_folder_that_is_not_there(self, tmp_path: Path) -> None:
        remove_left_behind(tmp_path / "none" / "a.npz")
        assert os.listdir(tmp_path) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_folder_that_may_not_be_searched(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    cmdpax.save(RING, closed / "a.npz")
    modes = {folder: folder.stat().st_mode for folder in (tmp_path, *tmp_path.parents, closed)}
    for folder, mode in modes.items():
        folder.chmod(0o600 if folder == closed else mode | 0o111)
    os.seteuid(65534)
    try:
        for attempt in (cmdpax.load, lambda path: cmdpax.save(RING, path)):
            with pytest.raises(cmdpax.FileError, match="cannot be looked at: Permission denied"):
                attempt(closed / "a.npz")
    finally:
        os.seteuid(0)
        for folder, mode in modes.items():
            folder.chmod(mode)
