"""Models: `.npz` and `.json` files, loaded, saved again, inspected and solved."""

import tempfile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import cmdpax
from fuzzing.cases import Entry, Input
from fuzzing.files import mutate_one
from fuzzing.targets.base import Target, require
from fuzzing.targets.command_line import run_command

SIZES = {"num_states": 3, "num_actions": 2, "horizon": 3}
"""Of the models of all targets: programs are compiled once."""
_COMMANDS = ("load", "inspect", "solve", "solve --method linear-program")
_COMMAND_SHARE = 0.05


def small_model(seed: int = 1) -> cmdpax.CMDP:
    """A model that solves in no time."""
    return cmdpax.environments.make("random", **SIZES, seed=seed)


def file_of(cmdp: cmdpax.CMDP, name: str) -> Entry:
    """A model as a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        cmdpax.save(cmdp, path)
        return Entry(name, path.read_bytes())


def _samples() -> list[Input]:
    dense, bandit = small_model(), cmdpax.environments.make("bandit")
    listed = cmdpax.environments.make("queue", capacity=3, horizon=3)
    free = bandit.replace(constraint_rewards=np.zeros((0, 1, 1, 3)), thresholds=np.zeros(0))
    found = []
    for cmdp in (dense, listed, bandit, free):
        for name in ("model.npz", "model.json"):
            found.append(Input((file_of(cmdp, name),), {"file": name, "command": "load"}))
    commands = [found[0]._replace(arguments={"file": "model.npz", "command": "inspect"})]
    commands += [found[2]._replace(arguments={"file": "model.npz", "command": "solve"})]
    return found + commands


def _mutate(rng: Random, given: Input, donors: Any) -> Input:
    """Most cases only load: a command takes longer."""
    changed = mutate_one(rng, given, donors)
    if rng.random() < _COMMAND_SHARE:
        command = rng.choice(("inspect", "solve"))
        return changed._replace(arguments=given.arguments | {"command": command})
    return changed._replace(arguments=given.arguments | {"command": "load"})


def _run(folder: Path, arguments: dict[str, Any]) -> None:
    file = arguments["file"]
    if arguments["command"] != "load":
        run_command([arguments["command"], file])
        return
    cmdp = cmdpax.load(file)
    cmdpax.validate(cmdp)
    for name in ("out.npz", "out.json"):
        cmdpax.save(cmdp, name)
        again = cmdpax.load(name)
        require(again.fingerprint == cmdp.fingerprint, f"{name} holds another model than was saved")
        require(again.sizes == cmdp.sizes, f"{name} has other sizes than were saved")


MODELS = Target("models", _samples, _run, _mutate)
