"""What a folder holds: a sweep, a reproduction, or nothing that a page could show."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cmdpax
from cmdpax.paper.reproduction.verdict import Claim, Quantity, as_record
from cmdpax.reporting.content import content
from damages import empty, truncate
from report_cases import invent
from sweep_cases import specification

BANDIT = specification(cmdps=[{"environment": "bandit"}], seeds=1)
CLAIM = Claim(
    1,
    "Regrets are <small>.",
    (
        Quantity("a difference", {"a": np.array([-1.0, -1.1]), "b": np.array([2.0])}, "below"),
        Quantity("a share", {"a": np.array([1 / 3]), "b": np.array([np.nan])}, "above", 0.5),
    ),
    "That is why.",
)
RECORD: dict[str, Any] = as_record(CLAIM)


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return invent(BANDIT, tmp_path_factory.mktemp("all") / "bandits & co").path


@pytest.fixture
def reproduction(sweep: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "again"
    for name in ("theory-123", "larger", "safety", "paper", "an other", "caps", "long"):
        shutil.copytree(sweep, folder / name)
    for part in (folder / "safety" / "parts").iterdir():  # not a run of it is finished
        part.unlink()
    (folder / "figures").mkdir()
    (folder / "verdict.md").write_text("# Verdict")
    return folder


class TestRefused:
    def test_there_is_nothing(self, tmp_path: Path) -> None:
        with pytest.raises(
            cmdpax.FileError, match=r"nowhere is not a folder; give one that `sweep"
        ):
            content(tmp_path / "nowhere")
        (tmp_path / "file").write_text("")
        with pytest.raises(cmdpax.FileError, match=r"file is not a folder; give"):
            content(tmp_path / "file")
        with pytest.raises(cmdpax.FileError, match=r"holds no results; give one that .* wrote\."):
            content(tmp_path)

    def test_no_run_is_finished(self, reproduction: Path) -> None:
        with pytest.raises(cmdpax.ParameterError, match="holds no finished runs; run the sweep"):
            content(reproduction / "safety")
        shutil.rmtree(reproduction / "paper" / "parts")
        with pytest.raises(cmdpax.ParameterError, match="paper holds no finished runs; run"):
            content(reproduction)

    @pytest.mark.parametrize("damage", [truncate, empty])
    @pytest.mark.parametrize("table", ["curves", "final", "cmdps"])
    def test_damaged_files(self, reproduction: Path, table: str, damage: Any) -> None:
        (path,) = (reproduction / "long" / table).iterdir()
        damage(path)
        with pytest.raises(cmdpax.FileError, match=path.stem):
            content(reproduction)

    def test_a_newer_format(self, reproduction: Path) -> None:
        path = reproduction / "paper" / "manifest.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 2}))
        with pytest.raises(cmdpax.FileError, match=r"by a newer cmdpax \(format 2\); upgrade"):
            content(reproduction)

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("", "Invalid JSON"),
            ("{}", "Input should be a valid array"),
            ('[{"number": 1}]', "0.sentence: Field required"),
            (json.dumps([RECORD | {"family": "maybe"}]), "0.family: Input should be"),
            (json.dumps([RECORD | {"number": "1"}]), "0.number: Input should be a valid integer"),
            (json.dumps([RECORD | {"more": 1}]), "0.more: Extra inputs"),
            (json.dumps([RECORD | {"quantities": [{"text": 1}]}]), "0.quantities.0.text: "),
            (json.dumps([RECORD]).replace("0.5", "NaN"), "0.quantities.1.bound"),
        ],
    )
    def test_a_damaged_verdict(self, reproduction: Path, text: str, reason: str) -> None:
        (reproduction / "verdict.json").write_text(text)
        with pytest.raises(cmdpax.FileError) as error:
            content(reproduction)
        sentence = str(error.value)
        assert sentence.startswith(f"{reproduction / 'verdict.json'} is damaged (")
        assert reason in sentence
        assert sentence.endswith("; run `cmdpax reproduce` again to write it anew.")

    @pytest.mark.parametrize("text", ["", "[]", "{}", '{"command": 3}', "3"])
    def test_a_damaged_command(self, reproduction: Path, text: str) -> None:
        (reproduction / "replay.json").write_text(text)
        with pytest.raises(cmdpax.FileError, match=r"replay\.json is damaged \("):
            content(reproduction)


class TestSweep:
    def test_is_named_like_its_folder(self, sweep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(sweep)
        for path in (sweep, str(sweep), ".", "../bandits & co/"):
            payload, _ = content(path)
            assert (payload["folder"], payload["kind"]) == ("bandits & co", "sweep")
            (found,) = payload["sweeps"]
            assert (found["name"], found["label"]) == ("bandits & co", "bandits & co")
            assert payload["claims"] is None


class TestReproduction:
    def test_has_its_sweeps_in_order(self, reproduction: Path) -> None:
        payload, _ = content(reproduction)
        assert payload["kind"] == "reproduction"
        assert [(sweep["name"], sweep["label"]) for sweep in payload["sweeps"]] == [
            ("paper", "The paper's experiment"),
            ("caps", "Caps on the multipliers"),
            ("larger", "Larger CMDPs"),
            ("long", "Long runs"),
            ("an other", "an other"),
            ("theory-123", "theory-123"),
        ]
        blocks = [group["block"] for sweep in payload["sweeps"] for group in sweep["groups"]]
        assert blocks == list(range(len(blocks)))

    def test_without_a_verdict(self, reproduction: Path) -> None:
        payload, _ = content(reproduction)
        assert payload["claims"] is None
        assert payload["replay"] == {
            "command": "cmdpax reproduce --out again",
            "specification": None,
            "notes": [],
        }

    def test_with_a_verdict(self, reproduction: Path) -> None:
        text = json.dumps([RECORD, RECORD], allow_nan=False)
        (reproduction / "verdict.json").write_text(text)
        command = "cmdpax reproduce --out again --quick"
        (reproduction / "replay.json").write_text(json.dumps({"command": command}))
        payload, _ = content(reproduction)
        assert payload["replay"]["command"] == command
        first, second = payload["claims"]
        assert first == second
        assert first["sentence"] == RECORD["sentence"]
        assert first["quantities"][1]["first_cmdp"] == {"mean": 0.3333333, "half": None, "size": 1}
        assert set(first) == set(RECORD)
        assert set(first["quantities"][0]) == set(RECORD["quantities"][0])
