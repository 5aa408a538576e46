"""The folder of a sweep: damage is found and named, and mended with the same numbers."""

import hashlib
import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars
import pytest

import cmdpax
from cmdpax.experiments import sweeping
from cmdpax.experiments.folder import Folder
from damages import empty, flip, truncate
from storage_cases import copied
from sweep_cases import SMALL, assert_same_results, contents, specification

HOLDER = """
import sys
from cmdpax.experiments.folder import Folder
with Folder(sys.argv[1]).locked():
    print("locked", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> cmdpax.Results:
    """What nobody has damaged."""
    return cmdpax.sweep(specification(), tmp_path_factory.mktemp("whole"))


@pytest.fixture
def folder(expected: cmdpax.Results, tmp_path: Path) -> Path:
    """The same, to be damaged."""
    return copied(expected.path, tmp_path / "sweep")


def delete(path: Path) -> None:
    path.unlink()


DAMAGES = [truncate, empty, flip, delete]


class TestDamage:
    @pytest.mark.parametrize("damage", DAMAGES)
    @pytest.mark.parametrize("table", ["final", "curves"])
    def test_tables(self, folder, expected, table: str, damage: Callable[[Path], None]):
        (path,) = (folder / table).iterdir()
        damage(path)
        self.check_named_and_mended(folder, path, expected)

    @pytest.mark.parametrize("damage", [truncate, empty, flip])
    def test_entries(self, folder, expected, damage: Callable[[Path], None]):
        (path,) = (folder / "parts").iterdir()
        damage(path)
        with pytest.raises(cmdpax.FileError, match="is damaged; run the sweep again"):
            cmdpax.results(folder)
        with pytest.warns(
            cmdpax.CmdpaxWarning,
            match="is damaged; those of its runs that .* are computed again",
        ):
            mended = cmdpax.sweep(specification(), folder)
        assert_same_results(mended, expected)

    def test_an_entry_with_other_runs(self, folder, expected):
        """Valid JSON and right checksums, and yet not what was written."""
        (path,) = (folder / "parts").iterdir()
        entry = json.loads(path.read_bytes())
        entry["runs"][3] = entry["runs"][3][::-1]
        path.write_text(json.dumps(entry))
        self.check_named_and_mended(folder, path, expected)

    @pytest.mark.parametrize("content", ["[]", "{}", '{"runs": 3, "checksums": {}}', "null"])
    def test_an_entry_of_another_kind(self, folder, expected, content: str):
        (path,) = (folder / "parts").iterdir()
        path.write_text(content)
        self.check_named_and_mended(folder, path, expected)

    def test_without_its_entry_a_batch_does_not_count(self, folder, expected):
        (path,) = (folder / "parts").iterdir()
        path.unlink()
        found = cmdpax.results(folder)
        assert len(found.final) == len(found.curves.collect()) == 0
        with pytest.raises(cmdpax.ParameterError, match="holds no finished runs"):
            found.best()
        assert_same_results(cmdpax.sweep(specification(), folder), expected)
        assert set(contents(folder)) == set(contents(expected.path))

    @pytest.mark.parametrize("damage", DAMAGES)
    def test_cmdps(self, folder, expected, damage: Callable[[Path], None]):
        fingerprint = next(iter(expected.cmdps))
        path = Folder(folder).cmdp_path(fingerprint)
        damage(path)
        opened = cmdpax.results(folder)
        assert opened.final.equals(expected.final)
        with pytest.raises((cmdpax.FileError, cmdpax.ModelError), match=re.escape(str(path))):
            opened.cmdps[fingerprint]
        self.check_warned(folder, path)
        assert cmdpax.results(folder).cmdps[fingerprint].fingerprint == fingerprint

    def test_another_cmdp_in_its_place(self, folder, expected):
        one, other = (Folder(folder).cmdp_path(name) for name in expected.cmdps)
        one.write_bytes(other.read_bytes())
        with pytest.raises(cmdpax.FileError, match=re.escape(f"{one} is damaged")):
            cmdpax.results(folder).cmdps[next(iter(expected.cmdps))]
        self.check_warned(folder, one)

    @pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"name": "a page"}'])
    def test_a_manifest(self, folder, expected, content: str):
        """It is put together again from what the batches say."""
        path = folder / "manifest.json"
        path.write_text(content)
        with pytest.raises(cmdpax.FileError, match=re.escape(f"{path} is damaged")):
            cmdpax.results(folder)
        mended = self.check_warned(folder, path)
        assert mended.manifest == expected.manifest
        assert_same_results(mended, expected)

    def test_a_manifest_and_a_table(self, folder, expected):
        (table,) = (folder / "final").iterdir()
        for path in (folder / "manifest.json", table):
            path.write_bytes(b"?")
        with pytest.warns(cmdpax.CmdpaxWarning, match="is damaged") as caught:
            mended = cmdpax.sweep(specification(), folder)
        assert len(caught) == 2
        assert_same_results(mended, expected)

    def test_a_lost_manifest(self, folder, expected):
        path = folder / "manifest.json"
        path.unlink()
        with pytest.raises(cmdpax.FileError, match=re.escape(f"{path} does not exist")):
            cmdpax.results(folder)
        with pytest.raises(cmdpax.ParameterError, match="holds runs with num_episodes = 30"):
            cmdpax.sweep(specification(num_episodes=31), folder)
        other = {"environment": "random", "parameters": SMALL | {"seed": 3}}
        mended = cmdpax.sweep(specification(cmdps=[other]), folder)
        assert list(mended.cmdps)[:2] == list(expected.cmdps)
        assert len(mended.cmdps) == 3
        for fingerprint, cmdp in expected.cmdps.items():
            assert mended.cmdps[fingerprint].fingerprint == cmdp.fingerprint

    @staticmethod
    def check_warned(folder: Path, path: Path) -> cmdpax.Results:
        sentence = re.escape(f"{path} is damaged; ")
        with pytest.warns(cmdpax.CmdpaxWarning, match=sentence) as caught:
            mended = cmdpax.sweep(specification(), folder)
        assert [Path(warning.filename) for warning in caught] == [Path(__file__)]
        return mended

    @classmethod
    def check_named_and_mended(cls, folder: Path, path: Path, expected: cmdpax.Results) -> None:
        sentence = f"{path} is damaged; run the sweep again to recompute it."
        with pytest.raises(cmdpax.FileError, match=re.escape(sentence)):
            cmdpax.results(folder)
        assert_same_results(cls.check_warned(folder, path), expected)
        cmdpax.sweep(specification(), folder)  # no warning any more: it would raise
        assert set(contents(folder)) == set(contents(expected.path))


def test_only_the_damaged_batch_is_made_again(tmp_path, monkeypatch):
    monkeypatch.setattr("cmdpax.experiments.runs._BATCH_RUNS", 4)
    first = cmdpax.sweep(specification(), tmp_path)
    before = contents(tmp_path)
    damaged = sorted((tmp_path / "final").iterdir())[1]
    truncate(damaged)
    with pytest.warns(cmdpax.CmdpaxWarning, match="is damaged"):
        second = cmdpax.sweep(specification(), tmp_path)
    changed = {name for name, entry in contents(tmp_path).items() if entry[0] != before[name][0]}
    stem = damaged.stem
    assert changed == {f"final/{stem}.parquet", f"curves/{stem}.parquet", f"parts/{stem}.json"}
    assert_same_results(second, first)


@pytest.mark.whole
def test_damage_and_a_larger_specification(folder):
    """The runs come back in another batch; nothing of the damaged one stays."""
    (damaged,) = (folder / "curves").iterdir()
    truncate(damaged)
    with pytest.warns(cmdpax.CmdpaxWarning, match="is damaged"):
        results = cmdpax.sweep(specification(seeds=3), folder)
    assert len(results.final) == 12
    assert not [name for name in contents(folder) if damaged.stem in name]
    assert polars.read_parquet(f"{folder}/final/*.parquet")["run"].is_unique().all()


class TestNeighbours:
    @pytest.mark.kills
    def test_one_writer_at_a_time(self, folder, expected):
        before = contents(folder)
        with subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "locked\n"
            with pytest.raises(cmdpax.FileError, match="is being written by another process"):
                cmdpax.sweep(specification(seeds=3), folder)
            assert contents(folder) == before
            assert len(cmdpax.results(folder).final) == 8  # reading needs no lock
            holder.send_signal(signal.SIGKILL)
        assert len(cmdpax.sweep(specification(seeds=3), folder).final) == 12

    def test_leftovers_of_killed_writers_are_removed(self, folder, expected):
        aside = ".cmdpax-writing-0123456789ab-01234567"
        manifest = f".cmdpax-writing-{hashlib.sha256(b'manifest.json').hexdigest()[:12]}-01234567"
        leftovers = [
            manifest,
            *(f"{name}/{aside}" for name in ("cmdps", "final", "curves", "parts")),
            "final/0123456789abcdef.parquet",
            "curves/0123456789abcdef.parquet",
        ]
        before = contents(folder)
        for name in leftovers:
            (folder / name).write_bytes(b"half of a fi")
        assert cmdpax.results(folder).final.equals(expected.final)
        cmdpax.sweep(specification(seeds=3), folder)
        assert not set(leftovers) & set(contents(folder))
        assert set(before) < set(contents(folder))

    def test_a_folder_with_other_files_is_refused(self, tmp_path):
        (tmp_path / "thesis.tex").write_text("\\documentclass")
        with pytest.raises(cmdpax.FileError, match=r"holds other files such as thesis\.tex; use"):
            cmdpax.sweep(specification(), tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]

    def test_files_beside_results_stay(self, folder):
        (folder / "notes.txt").write_text("mine")
        cmdpax.sweep(specification(), folder)
        assert (folder / "notes.txt").read_text() == "mine"

    def test_folders_that_cannot_be_made(self, tmp_path):
        (tmp_path / "file").write_text("")
        for path in (tmp_path / "file", tmp_path / "file" / "below"):
            with pytest.raises(cmdpax.FileError, match=re.escape(f"cannot write to {path}")):
                cmdpax.sweep(specification(), path)

    def test_parents_are_made(self, tmp_path):
        assert len(cmdpax.sweep(specification(), tmp_path / "a" / "b").final) == 8

    def test_nothing_is_no_result(self, tmp_path):
        for path in (tmp_path, tmp_path / "absent"):
            with pytest.raises(cmdpax.FileError, match=r"holds no results: .*manifest\.json"):
                cmdpax.results(path)
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["run[1]", "a*b", "what?", "mit Leerzeichen, ü"])
def test_names_of_folders(name: str, tmp_path: Path) -> None:
    """They are names, not patterns: `run[1]` is not `run1`."""
    cmdpax.sweep(specification(num_episodes=29), tmp_path / "run1")
    found = cmdpax.sweep(specification(), tmp_path / name)
    assert set(found.final["num_episodes"]) == {30}
    assert found.curves.collect()["episode"].max() == 30


def test_another_process_may_write_while_cmdps_are_solved(tmp_path, monkeypatch):
    """What all runs share is checked by the only writer, too."""
    solve = sweeping.solve

    def slow(cmdp: cmdpax.CMDP) -> cmdpax.Solution:
        monkeypatch.setattr(sweeping, "solve", solve)
        cmdpax.sweep(specification(num_episodes=31), tmp_path)
        return solve(cmdp)

    monkeypatch.setattr(sweeping, "solve", slow)
    with pytest.raises(cmdpax.ParameterError, match="holds runs with num_episodes = 31"):
        cmdpax.sweep(specification(), tmp_path)
    assert set(cmdpax.results(tmp_path).final["num_episodes"]) == {31}


def test_interrupted_in_the_middle_of_a_batch(tmp_path: Path) -> None:
    """All groups of runs end at their next block, and nothing half-done is kept."""
    told = []

    def interrupt(stand: object) -> None:
        told.append(stand)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cmdpax.sweep(specification(num_episodes=20_000, record=5), tmp_path, progress=interrupt)
    assert len(told) <= 4  # at most two per thread
    assert len(cmdpax.results(tmp_path).final) == 0
