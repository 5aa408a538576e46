"""The folder of a reproduction: files of somebody else are neither replaced nor removed."""

import re
from pathlib import Path
from typing import Any

import pytest

import cmdpax
from cmdpax.paper.reproduction import output, reproducing
from report_cases import invent
from storage_cases import tree
from sweep_cases import specification


class BegunError(Exception):
    """A reproduction got as far as its first sweep."""


@pytest.fixture(autouse=True)
def _no_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def begin(*_: Any, **__: Any) -> None:
        raise BegunError

    monkeypatch.setattr(reproducing, "sweep", begin)


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """A reproduction as an earlier version left it."""
    folder = tmp_path / "earlier"
    invent(specification(), folder / "paper")
    (folder / "paper" / ".lock").write_bytes(b"")
    (folder / "theory-123").mkdir()
    (folder / "figures").mkdir()
    (folder / "figures" / "iterates.png").write_text("a picture")
    for name in output.FILES:
        (folder / name).write_text("{}")
    return folder


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("verdict.md", "verdict.md"),
        ("report.html", "report.html"),
        ("figures/iterates.png", "figures/iterates.png"),
        ("thesis.tex", "thesis.tex"),
        ("paper/draft.tex", "paper"),
        ("paper/manifest.json", "paper"),
        (".lock", ".lock"),
    ],
)
def test_foreign_files_are_refused(tmp_path: Path, name: str, named: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    before = tree(tmp_path)
    sentence = re.escape(f"{tmp_path} holds other files such as {named}; use a new folder.")
    with pytest.raises(cmdpax.FileError, match=sentence):
        cmdpax.reproduce(tmp_path)
    assert tree(tmp_path) == before


def test_a_sweep_is_no_reproduction_nor_the_other_way_round(tmp_path: Path) -> None:
    invent(specification(), tmp_path / "sweep")
    with pytest.raises(cmdpax.FileError, match="holds other files such as cmdps"):
        cmdpax.reproduce(tmp_path / "sweep")
    with pytest.raises(BegunError):
        cmdpax.reproduce(tmp_path / "reproduction")
    with pytest.raises(cmdpax.FileError, match=r"holds other files such as figures"):
        cmdpax.sweep(specification(), tmp_path / "reproduction")


def test_new_folders_are_signed_and_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    for _ in range(2):
        with pytest.raises(BegunError):
            cmdpax.reproduce(folder)
        (folder / "notes.txt").write_text("mine")
    assert (folder / ".lock").read_text().startswith("cmdpax reproduction folder, format 1, ")
    assert (folder / "notes.txt").read_text() == "mine"


def test_folders_of_earlier_versions_go_on(earlier: Path) -> None:
    with pytest.raises(BegunError):
        cmdpax.reproduce(earlier)
    assert (earlier / ".lock").stat().st_size > 0


def test_other_files_beside_earlier_ones_are_refused(earlier: Path) -> None:
    """Without a signature nothing says that the verdict is not the user's."""
    (earlier / "thesis.tex").write_text("mine")
    with pytest.raises(cmdpax.FileError, match="holds other files such as configurations"):
        cmdpax.reproduce(earlier)


@pytest.mark.parametrize("name", ["figures", "verdict.md", "report.html", "figures/iterates.png"])
def test_links_are_not_followed(earlier: Path, tmp_path: Path, name: str) -> None:
    (earlier / name).rename(tmp_path / "target")
    (earlier / name).symlink_to(tmp_path / "target")
    before = tree(tmp_path)
    sentence = re.escape(f"{earlier / name} is a symbolic link")
    with pytest.raises(cmdpax.FileError, match=sentence):
        cmdpax.reproduce(earlier)
    assert tree(tmp_path) == before


@pytest.mark.parametrize("count", [0, -1, "2", 2.5, None])
def test_a_family_has_members(tmp_path: Path, count: Any) -> None:
    with pytest.raises(cmdpax.ParameterError, match="num_cmdps is "):
        cmdpax.reproduce(tmp_path, num_cmdps=count)


def test_a_family_fits_in_memory(tmp_path: Path) -> None:
    with pytest.raises(cmdpax.ParameterError, match="with 2,000,000,000 CMDPs would take"):
        cmdpax.reproduce(tmp_path, num_cmdps=2_000_000_000)
    assert list(tmp_path.iterdir()) == []
