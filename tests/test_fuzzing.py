"""The fuzzer finds what it is there for, keeps it and replays it; its inputs follow from seeds."""

import bz2
import hashlib
import json
import os
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

import fuzzing_planted
from fuzzing import archives
from fuzzing.cases import Case, Failure, keep, kept
from fuzzing.targets import TARGETS, command_line
from fuzzing.targets.base import UnsoundError, generate

ROOT = Path(__file__).parents[1]
CHEAP = ("models", "policies", "log-tables", "specifications", "commands", "calls")
"""Targets whose valid inputs are made in no time."""


def fuzz(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Of planted defects, within limits that these exceed soon."""
    limits = ("--case-seconds", "1", "--case-mebibytes", "128", "--folder", str(folder))
    command = (sys.executable, "-m", "fuzzing", "--module", "fuzzing_planted", *limits, *arguments)
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=300
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """One case of every target, on one worker."""
    folder = tmp_path_factory.mktemp("kept")
    ended = fuzz(folder, "--seed", "7", "--cases", "1", "--workers", "1")
    assert "cases/s" in ended.stdout, ended.stderr
    assert ended.returncode == 1
    assert "seed 7" in ended.stdout
    return folder, ended.stdout


@pytest.mark.kills
def test_every_planted_defect_is_found_and_nothing_else(run: tuple[Path, str]) -> None:
    folder, told = run
    found = {}
    for path in folder.glob("*.json"):
        failure, _ = kept(path)
        found[failure.case.target] = failure.kind
        assert f"replay {path}" in told
    assert found == {function.__name__: kind for function, kind in fuzzing_planted.EXPECTED.items()}


@pytest.mark.kills
def test_a_defect_is_told_with_its_place_and_its_last_words(run: tuple[Path, str]) -> None:
    folder, told = run
    assert "ValueError: raw" in told
    failure, _ = kept(folder / "hangs-7-0.json")
    assert "fuzzing_planted.py" in failure.text  # where it hung
    failure, _ = kept(folder / "crashes-7-0.json")
    assert "Segmentation fault" in failure.text


@pytest.mark.kills
def test_failures_are_replayed_from_their_files(run: tuple[Path, str]) -> None:
    folder, _ = run
    broken = folder / "changes_a_foreign_file-7-0.json"
    mended = folder / "mended" / "passes-7-0.json"
    mended.parent.mkdir()
    mended.write_text(json.dumps(json.loads(broken.read_text()) | {"target": "passes"}))
    again = fuzz(folder, "replay", str(broken), str(mended))
    assert again.returncode == 1
    assert f"{broken}: found a foreign file is changed" in again.stdout
    assert f"{mended}: passed" in again.stdout


# ------------------------------------------------------------------------------------------ inputs

DIGEST = """
import sys
from test_fuzzing import digests
print(*digests(int(sys.argv[1])))
"""


def digests(seed: int) -> list[str]:
    """Of the first inputs of some targets."""
    found = []
    for name in CHEAP:
        samples = TARGETS[name].samples()
        for number in range(20):
            given = generate(TARGETS[name], Case(name, seed, number), samples)
            found.append(hashlib.sha256(repr(given).encode(errors="replace")).hexdigest())
    return found


@pytest.mark.kills
def test_a_seed_gives_the_same_inputs_in_every_process() -> None:
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    ended = subprocess.run(
        (sys.executable, "-c", DIGEST, "3"),
        env=os.environ | {"PYTHONPATH": path, "PYTHONHASHSEED": "5"},
        capture_output=True,
        text=True,
        check=True,
    )
    here = digests(3)
    assert ended.stdout.split() == here
    assert len(set(here)) > 0.8 * len(here)
    assert len(set(here) & set(digests(4))) < 0.2 * len(here)


def test_bombs_are_what_they_declare() -> None:
    for bomb, unpacker in (
        (archives.bzip2_bomb("a"), bz2.BZ2Decompressor()),
        (archives.deflated_bomb("a"), zlib.decompressobj(-15)),
    ):
        assert len(bomb.data) < bomb.size / 500
        header = unpacker.decompress(bomb.data, 128)
        assert header.startswith(b"\x93NUMPY")
        assert str(archives.BOMB_BLOCKS * 2**17).encode() in header


def test_a_failure_is_kept_with_its_whole_input(tmp_path: Path) -> None:
    for name in CHEAP:
        samples = TARGETS[name].samples()
        for number in range(20):
            case = Case(name, 3, number)
            given = generate(TARGETS[name], case, samples)
            failure = Failure(case, "ValueError", "files.py:1", "a\nb")
            path = keep(failure, given, tmp_path)
            assert repr(kept(path)) == repr((failure, given))  # NaN differs from itself


# ------------------------------------------------------------------------------------ command line


def say(monkeypatch: pytest.MonkeyPatch, out: str, error: str, code: object) -> None:
    def main() -> None:
        print(out)
        print(error, file=sys.stderr)
        sys.exit(code)  # type: ignore[arg-type]

    monkeypatch.setattr(command_line, "main", main)


@pytest.mark.parametrize(
    ("out", "error", "code"),
    [
        ("\x1b[31mred", "", 0),
        ("", "error: \x9b2J.", 1),
        ("", "Traceback (most recent call last):\nerror: no.", 1),
        ("", "", 1),
        ("", "error: one.\nerror: two.", 1),
        ("", "error: one.\nand more", 1),
        ("", "error: no.", 3),
    ],
)
def test_a_command_that_does_not_end_as_promised_is_unsound(
    monkeypatch: pytest.MonkeyPatch, out: str, error: str, code: int
) -> None:
    say(monkeypatch, out, error, code)
    with pytest.raises(UnsoundError):
        command_line.run_command(["any"])


def test_a_command_may_succeed_or_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    say(monkeypatch, "done", "warning: look", 0)
    assert command_line.run_command(["any"]) == "done\n"
    say(monkeypatch, "", "warning: look\nerror: it is refused.", 1)
    with pytest.raises(command_line.RefusedError):
        command_line.run_command(["any"])


def test_a_text_that_no_terminal_can_show_ends_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    say(monkeypatch, "\ud800", "", 0)
    with pytest.raises(UnicodeEncodeError):
        command_line.run_command(["any"])
