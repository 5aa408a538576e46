"""Tables of logged episodes: files and mappings, loaded, saved again, and estimated from."""

import csv
import io
import json
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import polars

import cmdpax
from cmdpax.model.words import Words
from fuzzing import hostile
from fuzzing.cases import Entry, Input
from fuzzing.files import mutate_one
from fuzzing.targets.base import Target, require
from fuzzing.targets.command_line import run_command
from fuzzing.values import mutate_values, read_value

_FILES = ("log.csv", "log.parquet", "log.npz")
_COMMAND_SHARE, _CELLS_SHARE = 0.05, 0.7
_WORDS = Words(("cold", "warm", "hot"), ("off", "low"), ("energy",))
_OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"constraints": ["energy"]},
    {"constraints": [], "horizon": 4},
    {"state_names": ["hot", "warm", "cold"], "action_names": ["low", "off", "high"]},
    {"columns": {"next_state": "state", "reward": "energy"}},
)
_CELLS = ("", " ", "0", "-1", "1.5", "2", "1e400", "nan", "1_0", "9" * 400, "cold", '"', "True")


def _log(words: Words) -> cmdpax.Log:
    generator = np.random.default_rng(1)
    log = cmdpax.Log(
        generator.integers(0, 3, (3, 4)),
        generator.integers(0, 2, (3, 3)),
        generator.random((3, 3)),
        generator.random((3, 1, 3)),
        words=words,
    )
    log.actions[1, 2:], log.states[2, -1] = -1, -1
    return log


def _samples() -> list[Input]:
    found = []
    for words in (_WORDS, Words()):
        log = _log(words)
        for name in _FILES:
            with tempfile.TemporaryDirectory() as folder:
                log.save(Path(folder) / name)
                entry = Entry(name, (Path(folder) / name).read_bytes())
            found.append(_input(entry, {}))
        frame = log.frame().to_dict(as_series=False)
        found.append(_input(Entry("log.json", json.dumps(frame).encode()), {}))
    (table,) = found[0].entries
    command = _input(table, {})._replace(arguments=found[0].arguments | {"command": "estimate"})
    return [*found, *(_input(table, one) for one in _OPTIONS[1:4]), command]


def _input(entry: Entry, options: dict[str, Any]) -> Input:
    return Input((entry,), {"file": entry.path, "options": options, "command": "load"})


def _mutate(rng: Random, given: Input, donors: Any) -> Input:
    """Most cases only load: a command takes longer."""
    (entry,) = given.entries
    if entry.path == "log.csv" and rng.random() < _CELLS_SHARE:
        changed = given.with_entry(entry._replace(content=_other_cells(rng, entry.content)))
    elif entry.path == "log.json":
        changed = mutate_values(rng, given, donors)
    else:
        changed = mutate_one(rng, given, donors)
    is_command = rng.random() < _COMMAND_SHARE and entry.path != "log.json"
    options = rng.choice(_OPTIONS) if rng.random() < 0.3 else given.arguments["options"]
    command = "estimate" if is_command else "load"
    return changed._replace(arguments={"file": entry.path, "options": options, "command": command})


def _other_cells(rng: Random, content: bytes) -> bytes:
    """A table in which some cells, rows or columns are others."""
    rows = list(csv.reader(io.StringIO(content.decode())))
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(rows))
        row = rows[at]
        way = rng.randrange(8)
        if way < 4 and row:
            text = rng.choice((*_CELLS, rng.choice(hostile.TEXTS), rng.choice(row)))
            row[rng.randrange(len(row))] = text
        elif way == 4:
            rows.insert(rng.randrange(len(rows) + 1), list(row))
        elif way == 5 and len(rows) > 1:
            del rows[at]
        elif way == 6:
            other = rng.randrange(len(rows))
            rows[at], rows[other] = rows[other], rows[at]
        else:
            row.extend(rng.choices(_CELLS, k=rng.choice((1, 2, 50))))
    text = io.StringIO()
    csv.writer(text, lineterminator=rng.choice(("\n", "\r\n"))).writerows(rows)
    return text.getvalue().encode("utf-8", "surrogatepass")


def _run(folder: Path, arguments: dict[str, Any]) -> None:
    file, options = arguments["file"], arguments["options"]
    if arguments["command"] == "estimate":
        run_command(["estimate", file, "--at-most", "energy=2", "--out", "out.npz", "--json"])
        return
    log = cmdpax.load_log(read_value(file) if file == "log.json" else file, **options)
    require(bool(np.isfinite(log.rewards).all()), "a reward is not finite")
    played = log.actions != -1
    require(bool((log.states[..., :-1][played] >= 0).all()), "a state of a step is unknown")
    if len(log.words.state_names or ()) * log.actions.shape[-1] < 1000:
        cmdpax.estimate(log, thresholds=np.zeros(log.constraint_rewards.shape[-2]))
    expected = _steps(log)
    for name in ("out.npz", "out.parquet", "out.csv"):
        log.save(name)
        names = {} if name != "out.csv" else _names(log.words)
        again = cmdpax.load_log(name, **names)
        require(_steps(again).equals(expected), f"{name} holds another log than was saved")


def _steps(log: cmdpax.Log) -> polars.DataFrame:
    """The table of a log; in a file the episodes without a step are missing."""
    return log.frame().with_columns(polars.col("episode").rank("dense"))


def _names(words: Words) -> dict[str, Any]:
    """What a `.csv` does not hold."""
    return {"state_names": words.state_names, "action_names": words.action_names}


LOG_TABLES = Target("log-tables", _samples, _run, _mutate)
