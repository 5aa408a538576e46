"""Whose files a sweep touches: those that it wrote, in a folder that says so, and no others."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import cmdpax
from cmdpax.experiments import estimate
from cmdpax.experiments.folder import Folder
from report_cases import invent
from storage_cases import contents, copied, tree
from sweep_cases import assert_same_results, specification, toml

WITHOUT_RIGHTS = """
import contextlib, ctypes, io, json, os, sys
if os.geteuid() == 0:  # root may do everything, unless it gives that up
    nothing = (ctypes.c_uint32 * 6)()
    assert ctypes.CDLL(None).capset((ctypes.c_uint32 * 2)(0x20080522, 0), nothing) == 0
from cmdpax.cli import main
for arguments in json.loads(sys.argv[1]):
    sys.argv[1:] = arguments
    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    print(json.dumps([code, out.getvalue(), error.getvalue()]))
"""


def call(folder: Path, commands: list[tuple[str, ...]]) -> list[tuple[int, str, str]]:
    """Commands in one process that has no more rights than a user: how each of them ended."""
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT_RIGHTS, json.dumps(commands)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return [tuple(json.loads(line)) for line in ended.stdout.splitlines()]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> cmdpax.Results:
    """A finished sweep."""
    return invent(specification(), tmp_path_factory.mktemp("made") / "sweep")


@pytest.fixture
def folder(made: cmdpax.Results, tmp_path: Path) -> Path:
    """A copy of it."""
    return copied(made.path, tmp_path / "sweep")


class TestForeignFolders:
    def test_a_package_with_a_manifest(
        self, run: Callable[..., tuple[int, str, str]], tmp_path: Path
    ) -> None:
        """Files of another program that has a `manifest.json`, too."""
        out = tmp_path / "d"
        (out / "final").mkdir(parents=True)
        (out / "manifest.json").write_text('{"manifest_version":3}\n')
        (out / "final" / "thesis.parquet").write_text("x\n")
        (out / ".package.json.bak").write_text("y\n")
        (tmp_path / "small.toml").write_text(
            'num_episodes = 5\n[[cmdps]]\nenvironment = "bandit"\n'
            '[[algorithms]]\nname = "vanilla-dual"\n'
        )
        before = tree(out)
        for options in ((), ("--dry-run",)):
            code, _, error = run("sweep", "small.toml", "--out", "d", *options)
            assert code == 1
            assert (
                error == "error: d holds other files such as .package.json.bak; use a new folder.\n"
            )
            assert tree(out) == before

    @pytest.mark.parametrize(
        ("files", "named"),
        [
            ({"notes.txt": ""}, "notes.txt"),
            ({".lock": "mine"}, ".lock"),
            ({"manifest.json": "{}"}, "manifest.json"),
            ({"manifest.json": json.dumps({"format": 1, "specification": {}, "cmdps": {}})}, "man"),
            ({"manifest.json": '{"format": 3}'}, "manifest.json"),
            ({"parts/0123456789abcdef.json": "{}"}, "parts/0123456789abcdef.json"),
            ({"parts/notes.json": "{}", ".lock": ""}, "parts/notes.json"),
            ({"final/0123456789abcdef.parquet": "x"}, "final/0123456789abcdef.parquet"),
            ({"cmdps/mine.npz": "x"}, "cmdps/mine.npz"),
        ],
    )
    def test_are_refused_and_stay_as_they_are(
        self, files: dict[str, str], named: str, tmp_path: Path
    ) -> None:
        for name, content in files.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(content)
        before = tree(tmp_path)
        sentence = re.escape(f"{tmp_path} holds other files such as {named}")
        with pytest.raises(cmdpax.FileError, match=sentence):
            cmdpax.sweep(specification(), tmp_path)
        with pytest.raises(cmdpax.FileError, match=sentence):
            estimate(specification(), tmp_path)
        assert tree(tmp_path) == before

    def test_what_a_process_left_that_was_killed_at_its_start_is_taken(self, tmp_path: Path):
        for name in ("cmdps", "final", "curves", "parts"):
            (tmp_path / name).mkdir()
        (tmp_path / ".lock").write_bytes(b"")
        assert len(invent(specification(), tmp_path).final) == 8

    def test_paths_that_are_no_folder(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        (tmp_path / "nowhere").symlink_to(tmp_path / "absent")
        os.mkfifo(tmp_path / "pipe")
        for name, sentence in (
            ("file", "it is not a folder"),
            ("pipe", "it is not a folder"),
            ("nowhere", "it is a link to nothing"),
            ("a\0b", "null character"),
            ("n" * 300, "too long"),
            ("half \ud800", "is not Unicode"),
            ("byte \udcff", "is not Unicode"),
        ):
            for call in (cmdpax.sweep, estimate):
                with pytest.raises(cmdpax.FileError, match=sentence):
                    call(specification(), tmp_path / name)
            with pytest.raises(cmdpax.FileError):
                cmdpax.results(tmp_path / name)
            with pytest.raises(cmdpax.FileError):
                cmdpax.report(tmp_path / name, tmp_path / "page.html")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "nowhere", "pipe"]


class TestOwnFolders:
    def test_are_signed_first(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Killed at any later moment, the folder is known."""

        def killed(*_: Any) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(Folder, "_sweep_away", killed)
        with pytest.raises(KeyboardInterrupt):
            cmdpax.sweep(specification(), tmp_path / "new")
        monkeypatch.undo()
        (tmp_path / "new" / "cmdps" / "half.npz").write_text("")
        assert len(invent(specification(), tmp_path / "new").final) == 8

    @pytest.mark.parametrize("lost", [".lock", "manifest.json", "parts"])
    def test_are_known_by_what_is_left(self, folder: Path, lost: str) -> None:
        """Signature, manifest or batches: one of them is enough."""
        lock = folder / ".lock"
        if lost == "parts":
            next((folder / "parts").iterdir()).unlink()
        else:
            (folder / lost).unlink()
        if lost != ".lock":
            lock.write_bytes(b"")
        invent(specification(seeds=3), folder)
        assert len(cmdpax.results(folder).final) == 12
        assert lock.read_text().startswith("cmdpax sweep folder, format 1, ")

    def test_foreign_files_in_them_stay(self, folder: Path) -> None:
        """Only exact names are ours: of tables without a batch, and of files being written."""
        mine = {
            "notes.txt",
            ".manifest.json.bak",
            ".cmdpax-writing-0123456789ab-01234567",  # of a page that is written meanwhile
            "final/thesis.parquet",
            "final/.thesis.parquet.bak",
            "final/0123456789abcdef.parquet.bak",
            "curves/0123456789ABCDEF.parquet",
            "curves/.cmdpax-writing-mine",
            "parts/notes.json",
            "cmdps/mine.npz",
        }
        for name in mine:
            (folder / name).write_text("mine")
        (folder / "final" / "fedcba9876543210.parquet").mkdir()
        invent(specification(seeds=3), folder)
        assert {name for name in mine if (folder / name).read_text() == "mine"} == mine
        assert (folder / "final" / "fedcba9876543210.parquet").is_dir()
        assert len(cmdpax.results(folder).final) == 12


class TestLinks:
    @pytest.mark.parametrize(
        "name", ["cmdps", "final", "curves", "parts", "manifest.json", ".lock"]
    )
    def test_out_of_the_folder_are_refused(self, folder: Path, tmp_path: Path, name: str) -> None:
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "0123456789abcdef.parquet").write_text("mine")
        target = elsewhere / name
        (folder / name).rename(target)
        (folder / name).symlink_to(target)
        before = tree(tmp_path)
        sentence = re.escape(f"{folder / name} is a symbolic link")
        with pytest.raises(cmdpax.FileError, match=sentence):
            cmdpax.sweep(specification(seeds=3), folder)
        assert tree(tmp_path) == before
        assert len(cmdpax.results(folder).final) == 8  # reading is allowed
        assert len(cmdpax.sweep(specification(), folder).final) == 8  # nothing to do
        assert tree(tmp_path) == before

    def test_in_the_place_of_files_are_replaced_and_their_targets_stay(
        self, folder: Path, tmp_path: Path, made: cmdpax.Results
    ) -> None:
        targets = []
        for name in contents(folder):
            if "/" in name:
                targets.append(tmp_path / name.replace("/", " "))
                targets[-1].write_text("mine")
                (folder / name).unlink()
                (folder / name).symlink_to(targets[-1])
        with pytest.warns(cmdpax.CmdpaxWarning, match="is damaged"):
            mended = invent(specification(), folder)
        assert_same_results(mended, made)
        assert {path.read_text() for path in targets} == {"mine"}
        assert not [path for path in folder.rglob("*") if path.is_symlink()]

    def test_to_the_folder_itself_are_followed(self, folder: Path, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(folder)
        assert len(invent(specification(seeds=3), tmp_path / "link").final) == 12
        assert len(cmdpax.results(folder).final) == 12


@pytest.mark.kills
class TestReadOnly:
    @pytest.fixture
    def closed(self, folder: Path) -> Iterator[Path]:
        """A folder that nobody may write."""
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        for seeds in (2, 3):
            (folder.parent / f"{seeds}.toml").write_text(toml(seeds))
        yield folder
        folder.chmod(0o755)
        for path in folder.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)

    def commands(self, folder: Path) -> list[tuple[str, ...]]:
        path, name = str(folder), "regularized-primal-dual"
        return [
            ("sweep", "2.toml", "--out", path),
            ("sweep", "2.toml", "--out", path, "--dry-run"),
            ("report", path, "--out", "page.html"),
            ("plot", path, "--kind", "regret", "--out", "regret.png"),
            ("compare", path, name, name),
        ]

    def test_a_finished_sweep_is_read_reported_and_run_again(self, closed: Path) -> None:
        before = contents(closed)
        more = ("sweep", "3.toml", "--out", str(closed))
        *ended, refused = call(closed.parent, [*self.commands(closed), more])
        assert [code for code, _, _ in ended] == [0] * 5, ended
        assert "best configurations by strong regret" in ended[0][1]
        assert refused == (1, "", f"error: cannot write to {closed}: Permission denied.\n")
        assert contents(closed) == before

    def test_folders_that_may_not_be_searched(self, closed: Path) -> None:
        closed.chmod(0o444)
        inside = ("sweep", f"{closed}/spec.toml", "--out", "new")
        for ended in call(closed.parent, [*self.commands(closed), inside]):
            assert ended[:2] == (1, "")
            assert re.fullmatch(r"error: .*Permission denied\.\n", ended[2]), ended[2]


class TestManifest:
    @staticmethod
    def change(folder: Path, change: Callable[[dict[str, Any]], None], *, sealed: bool) -> Path:
        path = folder / "manifest.json"
        content = json.loads(path.read_bytes())
        change(content)
        if not sealed:
            del content["seal"]
        path.write_text(json.dumps(content))
        return path

    @pytest.mark.parametrize("sealed", [True, False])
    @pytest.mark.parametrize("key", ["optimum", "multipliers", "slater_gap", "name", "source"])
    @pytest.mark.parametrize("value", [0.9, [0.9], None, "other", {"file": "x"}])
    def test_another_description_of_a_cmdp_is_damage(
        self, folder: Path, made: cmdpax.Results, key: str, value: Any, sealed: bool
    ) -> None:
        """Regrets of new rows would be wrong."""
        before = next(iter(made.manifest["cmdps"].values()))[key]
        if value == before:
            pytest.skip("it is that already")

        def change(content: dict[str, Any]) -> None:
            next(iter(content["cmdps"].values()))[key] = value

        path = self.change(folder, change, sealed=sealed)
        for read in (cmdpax.results, lambda f: cmdpax.report(f, f.parent / "page.html")):
            with pytest.raises(cmdpax.FileError, match=re.escape(f"{path} is damaged (")):
                read(folder)
        with pytest.warns(cmdpax.CmdpaxWarning, match=re.escape(f"{path} is damaged; it is")):
            mended = invent(specification(), folder)
        assert mended.manifest == made.manifest
        invent(specification(), folder)  # no warning any more: it would raise

    @pytest.mark.parametrize("sealed", [True, False])
    @pytest.mark.parametrize("value", [None, 31, "30", [30]])
    def test_another_setting_is_damage(self, folder: Path, value: Any, sealed: bool) -> None:
        def change(content: dict[str, Any]) -> None:
            content["specification"]["num_episodes"] = value

        path = self.change(folder, change, sealed=sealed)
        with pytest.raises(cmdpax.FileError, match=re.escape(f"{path} is damaged (")):
            cmdpax.results(folder)

    @pytest.mark.parametrize(
        "key", ["format", "specification", "cmdps", "versions", "device", "seal"]
    )
    def test_null_is_damage(self, folder: Path, key: str) -> None:
        path = self.change(folder, lambda content: content.update({key: None}), sealed=True)
        with pytest.raises(cmdpax.FileError, match=re.escape(f"{path} is damaged (")):
            cmdpax.results(folder)

    def test_an_optimum_that_no_batch_confirms_is_solved_again(
        self, folder: Path, made: cmdpax.Results
    ) -> None:
        """The manifest of an earlier version has no seal."""
        fingerprints = list(made.manifest["cmdps"])

        def change(content: dict[str, Any]) -> None:
            for fingerprint in fingerprints:
                content["cmdps"][fingerprint]["optimum"] = 0.9

        self.change(folder, change, sealed=False)
        for path in (*(folder / "parts").iterdir(), *(folder / "final").iterdir()):
            path.unlink()
        mended = invent(specification(), folder)
        assert mended.manifest["cmdps"] == made.manifest["cmdps"]
        assert_same_results(mended, made)

    def test_of_a_newer_version(self, folder: Path) -> None:
        self.change(folder, lambda content: content.update(format=2), sealed=True)
        for call in (cmdpax.results, lambda path: cmdpax.sweep(specification(), path)):
            with pytest.raises(cmdpax.FileError, match=r"a newer cmdpax \(format 2\); upgrade"):
                call(folder)
