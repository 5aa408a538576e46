"""`cmdpax board`: what the commands print, and their sentences."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import cmdpax
from board_cases import LEARNERS, TINY, invent
from cmdpax import board
from cmdpax.board import leaderboard, reading
from cmdpax.board.folder import BoardFolder
from cmdpax.experiments import executing
from report_cases import invented

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tiny suite stands in the place of "quick", and its runs are invented."""
    monkeypatch.setitem(board.SUITES, "tiny", TINY)
    monkeypatch.setattr(executing, "run_batch", invented)


def rows(out: str) -> dict[str, list[str]]:
    """The cells of the printed table by algorithm."""
    lines = [line.split("│") for line in out.splitlines() if line.startswith("│")]
    return {line[1].strip(): [cell.strip() for cell in line[2:-1]] for line in lines}


def test_run_shows_the_leaderboard(run: Run, tmp_path: Path) -> None:
    chosen = [word for name in LEARNERS for word in ("--algorithm", name)]
    code, out, err = run("board", "run", "--suite", "tiny", *chosen, "--out", "b")
    assert code == 0
    found = leaderboard(board.read("b"))[0]
    printed = rows(out)
    assert list(printed) == [row.algorithm for row in found]
    for row in found:
        assert printed[row.algorithm][0] == f"{row.ratio:.3g}"
        assert printed[row.algorithm][2] == f"{row.rank:.3g}"
    assert printed["uopt-rpgpd"][4] == "2, 1 cannot"
    assert "K30: " in err
    assert err.count("on cpu") == 1
    assert "uopt-rpgpd: uopt-rpgpd handles 1 constraint, the CMDP has 2" in err
    assert re.search(r"ranks over 2 blocks \(p = [\d.e-]+\); differences below", err)
    assert "tiny in b, " in err


def test_show_by_any_account(run: Run, tmp_path: Path) -> None:
    found = invent(tmp_path / "b")
    chosen = ["--by", "weak", "--setting", "published", "--part", "K30", "--json"]
    code, out, _ = run("board", "show", "b", *chosen)
    said = json.loads(out)
    expected, ranked = leaderboard(found, "weak", setting="published", parts=["K30"])
    assert code == 0
    assert (said["suite"], said["by"], said["setting"]) == ("tiny", "weak", "published")
    assert [row["algorithm"] for row in said["rows"]] == [row.algorithm for row in expected]
    assert said["rows"][0]["ratio"] == expected[0].ratio
    assert said["rows"][0]["seconds"] is None or said["rows"][0]["seconds"] > 0
    assert said["ranking"]["mean_ranks"] == ranked.mean_ranks.tolist()
    code, out, _ = run("board", "show", "b", "--family", "pair", "--algorithm", "crpo")
    pair = next(block for block in found.blocks if block.family == "pair")
    cell = found.cell(pair, "crpo", "tuned")
    spread = f"{cell.means['strong']:.4g} ± {cell.halves['strong']:.2g}"
    assert rows(out) == {
        "crpo": ["1", spread, "1", rows(out)["crpo"][3], "1", *rows(out)["crpo"][5:]]
    }


def test_stored_results_stand_beside_ones_own(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    invent(tmp_path / "others", LEARNERS[:2])
    invent(tmp_path / "mine", LEARNERS[2:])
    code, _, err = run("board", "store", "others", "--out", "others.json")
    assert (code, err) == (0, "wrote others.json\n")
    code, out, _ = run("board", "show", "mine", "others.json")
    assert code == 0
    assert set(rows(out)) == set(LEARNERS)
    folder = tmp_path / "package"
    (folder / "stored").mkdir(parents=True)
    (tmp_path / "others.json").rename(folder / "stored" / "tiny.json")
    monkeypatch.setattr(reading, "files", lambda package: folder)
    assert set(rows(run("board", "show", "mine")[1])) == set(LEARNERS)
    assert list(rows(run("board", "show", "mine", "--alone")[1])) == ["uopt-rpgpd"]
    code, out, _ = run(
        *("board", "run", "--suite", "tiny", "--algorithm", "uopt-rpgpd", "--out", "mine")
    )
    assert set(rows(out)) == set(LEARNERS)


def test_the_results_that_come_with_cmdpax(run: Run) -> None:
    code, out, _ = run("board", "show")
    assert code == 0
    assert {"replanning", "opt-lp-bonus"} < set(rows(out)) <= set(cmdpax.algorithms())
    code, _, err = run("board", "report", "--out", "quick.html")
    assert (code, err[:17]) == (0, "wrote quick.html,")


def test_report_writes_the_page(run: Run, tmp_path: Path) -> None:
    invent(tmp_path / "b")
    code, out, err = run("board", "report", "b", "--out", "page.html")
    assert (code, out) == (0, "")
    assert err.startswith("wrote page.html, ")
    assert "uopt-rpgpd" in Path("page.html").read_text(encoding="utf-8")
    assert cmdpax.report("b", "same.html").read_bytes() == Path("page.html").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["run", "--suite", "v2", "--out", "b"],
            "unknown suite 'v2'; did you mean 'v1'? known: quick",
        ),
        (["run", "--suite", "quick", "--out", "b"], "b has results of the suite 'tiny', not"),
        (["run", "--suite", "tiny", "--part", "K31", "--out", "b"], "did you mean 'K30'"),
        (["run", "--suite", "tiny", "--algorithm", "no:one", "--out", "b"], "cannot be imported"),
        (["show", "nowhere"], "nowhere holds no board"),
        (["show", "b", "--by", "stron"], "there is no account 'stron'; did you mean 'strong'"),
        (["show", "b", "--family", "trio"], "the board has no family 'trio'"),
        (["show", "--suite", "tiny"], "no results of the suite 'tiny' come with cmdpax; run it"),
        (["report", "b", "--out", "page.png"], "page.png has the ending '.png'"),
        (["report", "empty", "--out", "page.html"], "the board has no results yet"),
    ],
)
def test_sentences(run: Run, tmp_path: Path, arguments: list[str], sentence: str) -> None:
    invent(tmp_path / "b", LEARNERS[:1], parts=["K50"])
    if "empty" in arguments:
        BoardFolder(tmp_path / "empty").path.mkdir()
        BoardFolder(tmp_path / "empty").write(BoardFolder(tmp_path / "empty").record_of(TINY))
    code, out, err = run("board", *arguments)
    assert (code, out) == (1, "")
    assert "error: " in err
    assert sentence in err
    assert len(err.splitlines()) == 1
