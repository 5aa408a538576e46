"""Folders of sweeps: read, drawn, compared, reported and run again."""

import contextlib
import json
import re
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import polars

import cmdpax
from fuzzing import sealing, trees
from fuzzing.cases import Entry, Input
from fuzzing.fiddling import fiddle
from fuzzing.files import changed
from fuzzing.targets.base import Target, require
from fuzzing.targets.command_line import run_command
from fuzzing.targets.models import SIZES

SPECIFICATION: dict[str, Any] = {
    "num_episodes": 20,
    "seeds": 2,
    "record": 5,
    "cmdps": [{"environment": "random", "parameters": SIZES | {"seed": [1, 2]}}],
    "algorithms": [{"name": "regularized-primal-dual"}, {"name": "vanilla-primal-dual"}],
}
_FOLDER, _TOML, _REPRODUCTION = "sweep", "sweep.toml", "reproduction"
_COMMANDS: dict[str, list[str]] = {
    "compare": ["compare", _FOLDER, "regularized-primal-dual", "vanilla-primal-dual"],
    "sweep": ["sweep", _TOML, "--out", _FOLDER],
    "estimate": ["sweep", _TOML, "--out", _FOLDER, "--dry-run"],
    "report": ["report", _FOLDER, "--out", "out.html"],
    "plot": ["plot", _FOLDER, "--kind", "regret", "--out", "out.png"],
    "page": ["report", _REPRODUCTION, "--out", "out.html"],
}
_SHARES = {
    "results": 0.5,
    "compare": 0.15,
    "sweep": 0.2,
    "estimate": 0.02,
    "report": 0.1,
    "plot": 0.03,
}
_TOLERANCE = 1e-9


def _samples() -> list[Input]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / _FOLDER
        found = cmdpax.sweep(SPECIFICATION, path)
        final = found.final.select("run", "strong_objective").rows()
        files = [
            Entry(f"{_FOLDER}/{file.relative_to(path)}", file.read_bytes())
            for file in sorted(path.rglob("*"))
            if file.is_file()
        ]
    toml = Entry(_TOML, trees.as_toml(SPECIFICATION).encode())
    given = Input((toml, *files), {"expected": dict(final), "sealed": False})
    commands = ("results", "repeat", *_COMMANDS)
    return [_for_command(given, command) for command in commands]


def _for_command(given: Input, command: str) -> Input:
    """The page of a reproduction needs a folder of its own."""
    chosen = given._replace(arguments=given.arguments | {"command": command})
    if command != "page":
        return chosen
    entries = [
        entry._replace(path=entry.path.replace(f"{_FOLDER}/", f"{_REPRODUCTION}/paper/", 1))
        for entry in given.entries
        if entry.path != _TOML
    ]
    more = (
        ("verdict.json", [_CLAIM]),
        ("replay.json", {"command": "cmdpax reproduce --out again"}),
    )
    entries += [Entry(f"{_REPRODUCTION}/{name}", json.dumps(x).encode()) for name, x in more]
    return chosen._replace(entries=tuple(entries))


_INTERVAL = {"mean": 0.5, "half": 0.25, "size": 2}
_CLAIM = {
    "number": 1,
    "sentence": "Regularization helps.",
    "first_cmdp": "holds",
    "family": "undecided",
    "cmdps": 2,
    "cmdps_held": 1,
    "remark": "",
    "quantities": [
        {
            "text": "ratio",
            "side": "below",
            "bound": 1.0,
            "first_cmdp": _INTERVAL,
            "family": _INTERVAL,
            "cmdps_held": 1,
        }
    ],
}


def _mutate(rng: Random, given: Input, donors: Any) -> Input:
    """Files or the folder itself changed, for any command; seals made anew for half of them."""
    arguments = given.arguments
    if arguments["command"] != "page":
        names = list(_SHARES)
        command = rng.choices(names, [_SHARES[name] for name in names])[0]
        given = given._replace(arguments=arguments | {"command": command})
    for _ in range(rng.choice((1, 1, 2, 3))):
        given = fiddle(rng, given) if rng.random() < 0.4 else _one_file(rng, given, donors)
    return given


def _one_file(rng: Random, given: Input, donors: Any) -> Input:
    files = [one for one in given.entries if one.kind == "file" and one.path != _TOML]
    files = [one for one in files if not one.foreign and one.path.endswith(_KINDS)]
    if not files:
        return given
    # As often the manifest as all tables together, of which there are more.
    kinds = sorted({one.path.rpartition("/")[0] for one in files})
    kind = rng.choice(kinds)
    entry = rng.choice([one for one in files if one.path.rpartition("/")[0] == kind])
    given = given.with_entry(changed(rng, entry, donors))
    if rng.random() < 0.5:
        given = sealing.reseal(given, entry.path)
        return given._replace(arguments=given.arguments | {"sealed": True})
    return given


_KINDS = (".json", ".npz", ".parquet", ".lock")


# --------------------------------------------------------------------------------------------- run


def _run(folder: Path, arguments: dict[str, Any]) -> None:
    command = arguments["command"]
    if command not in ("results", "repeat"):
        run_command(_COMMANDS[command])
    if command == "page":
        return
    found = cmdpax.results(_FOLDER)
    if not arguments["sealed"]:  # whoever makes seals can say what he likes
        _require_numbers(found, arguments["expected"], whole=command == "sweep")
    if command == "results" and len(found.final):
        found.best()
        _collect(found, arguments["sealed"])
        for fingerprint in found.cmdps:
            require(found.cmdps[fingerprint].fingerprint == fingerprint, "another CMDP is read")
    if command == "repeat" and len(found.final):
        run = found.final["run"][0]
        history = found.repeat(run)
        error = abs(float(history.summary()["strong_objective"][0]) - arguments["expected"][run])
        require(error < _TOLERANCE, f"a repeated run differs by {error}")


def _collect(found: cmdpax.Results, sealed: bool) -> None:
    """The curves are a lazy frame: only Polars sees a table whose checksum was made to fit."""
    curves = found.curves
    allowed = (polars.exceptions.PolarsError, polars.exceptions.PanicException) if sealed else ()
    with contextlib.suppress(*allowed):
        curves.collect()


def _require_numbers(found: cmdpax.Results, expected: dict[str, float], *, whole: bool) -> None:
    """The numbers of the sweep, and nothing else."""
    rows = found.final.select("run", "strong_objective").rows() if len(found.final) else []
    for run, number in rows:
        require(run in expected, f"run {run} is none of the sweep's")
        error = abs(number - expected[run])
        require(error < _TOLERANCE, f"the regret of run {run} is {number}, not {expected[run]}")
    if whole:
        require(len(rows) == len(expected), f"{len(rows)} of {len(expected)} runs are there")


FOLDERS = Target(
    "folders", _samples, _run, _mutate, weight=3.0, outputs=re.compile(r"out\.|sweep(/|$)")
)
