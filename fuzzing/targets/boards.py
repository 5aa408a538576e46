"""Boards: stored results, and the record of a folder; shown and reported."""

import json
from pathlib import Path
from random import Random
from typing import Any

from cmdpax.board import SUITES, Board
from cmdpax.board.cells import CURVES, MEASURES, SETTINGS, Block, Cell
from cmdpax.experiments.records import sealed_text
from fuzzing import sealing
from fuzzing.cases import Entry, Input
from fuzzing.files import mutate_one
from fuzzing.targets.base import Target
from fuzzing.targets.command_line import run_command

_STORED, _FOLDER = "stored.json", "board"
_RECORD = f"{_FOLDER}/board.json"
_COMMANDS = {
    "show": ["show", _STORED, "--alone"],
    "by": ["show", _STORED, "--by", "weak", "--setting", "published", "--alone"],
    "report": ["report", _STORED, "--out", "out.html", "--alone"],
    "store": ["store", _STORED, "--out", "out.json"],
    "folder": ["show", _FOLDER, "--alone"],
}
_REPORT_SHARE = 0.1


def _stored() -> str:
    means = dict.fromkeys(MEASURES, 1.0)
    curves = dict.fromkeys(CURVES, (0.5, 1.0))
    cells = tuple(
        Cell("K", "a", name, setting, state, "x 1", "", 2, means, {"strong": 0.5}, curves)
        for name, state in (("one", "done"), ("two", "failed"), ("three", "skipped"))
        for setting in SETTINGS
    )
    block = Block("K", "a", 10, 1, (1, 2, 3), "Models.")
    traits = {name: {"summary": "A learner.", "plans": True} for name in ("one", "two", "three")}
    made = {"versions": {"cmdpax": "1"}, "device": "cpu"}
    suite = SUITES["quick"]
    return Board("quick", suite.digest, (block,), {"K": (1, 10)}, traits, cells, made).to_json()


def _record() -> str:
    entry = {
        "tables": [{}],
        "traits": {"plans": False},
        "chosen": {"K300": [{"digest": "0" * 8, "words": "x 1"}]},
    }
    suite = SUITES["quick"]
    content = {"format": 1, "suite": "quick", "digest": suite.digest, "entries": {"one": entry}}
    return sealed_text(json.loads(json.dumps(content)))


def _samples() -> list[Input]:
    entries = (Entry(_STORED, _stored().encode()), Entry(_RECORD, _record().encode()))
    return [Input(entries, {"command": command}) for command in _COMMANDS]


def _mutate(rng: Random, given: Input, donors: Any) -> Input:
    """Either file changed; the record has a seal that fits for half of them."""
    commands = [name for name in _COMMANDS if name != "report"]
    command = "report" if rng.random() < _REPORT_SHARE else rng.choice(commands)
    changed = mutate_one(rng, given, donors)
    if rng.random() < 0.5:
        changed = sealing.reseal(changed, _RECORD)
    return changed._replace(arguments=given.arguments | {"command": command})


def _run(folder: Path, arguments: dict[str, Any]) -> None:
    run_command(["board", *_COMMANDS[arguments["command"]]])


BOARDS = Target("boards", _samples, _run, _mutate)
