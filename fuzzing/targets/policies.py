"""Policies: arrays and nested lists, checked, evaluated and accounted for; and their files."""

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
from fuzzing.targets.models import SIZES, small_model
from fuzzing.values import file_of_value, mutate_values, read_value

_FUNCTIONS = ("validate_policy", "evaluate", "account")


def _samples() -> list[Input]:
    shape = (SIZES["horizon"], SIZES["num_states"], SIZES["num_actions"])
    uniform = np.full(shape, 1 / SIZES["num_actions"])
    certain = np.eye(SIZES["num_actions"])[np.zeros(shape[:2], int)]
    found = []
    for function in _FUNCTIONS:
        for policy in (uniform, certain):
            given = np.stack([policy] * 2) if function == "account" else policy
            for name, value in (("policy.npy", given), ("policy.json", given.tolist())):
                found.append(Input((file_of_value(name, value),), {"function": function}))
    return found


def _run(folder: Path, arguments: dict[str, Any]) -> None:
    (file,) = folder.iterdir()
    policy, cmdp = read_value(file.name), small_model()
    if arguments["function"] == "validate_policy":
        found = cmdpax.model.validation.validate_policy(cmdp, policy)
        require(bool((abs(found.sum(axis=-1) - 1) < 1e-6).all()), "a policy's rows do not sum to 1")
        require(bool((found >= 0).all()), "a policy has negative entries")
    elif arguments["function"] == "evaluate":
        values = cmdpax.evaluate(cmdp, policy)
        numbers = np.append(values.constraint_values, values.value)
        require(_within(numbers, cmdp.horizon), f"values are {numbers}")
    else:
        account = cmdpax.account(cmdp, policy)
        numbers = np.append(account.constraint_values.ravel(), account.value)
        require(_within(numbers, cmdp.horizon), f"values are {numbers}")
        require(bool(np.isfinite(account.unsafe).all()), f"shares are {account.unsafe}")


def _within(numbers: np.ndarray, horizon: int) -> bool:
    """Rewards lie in [0, 1], so values lie in [0, H]."""
    return bool((numbers > -1e-6).all() and (numbers < horizon + 1e-6).all())


POLICIES = Target("policies", _samples, _run, mutate_values, weight=0.5)


# ------------------------------------------------------------------------------------------- files

_FILES = ("policy.npz", "policy.json", "policy.csv")
_COMMAND_SHARE = 0.05


def _plain_model() -> cmdpax.CMDP:
    return small_model().with_arrays()


def _named_model() -> cmdpax.CMDP:
    names = [f"state, {index}" for index in range(SIZES["num_states"])]
    return small_model().replace(state_names=names)


def _file_of(policy: cmdpax.Policy, name: str) -> Entry:
    with tempfile.TemporaryDirectory() as folder:
        policy.save(Path(folder) / name)
        return Entry(name, (Path(folder) / name).read_bytes())


def _file_samples() -> list[Input]:
    """With the model, and without; a table with names needs it."""
    found = []
    for cmdp in (_plain_model(), _named_model()):
        policy = cmdpax.solve(cmdp).policy
        for name in _FILES:
            entry, named = _file_of(policy, name), policy.words.state_names is not None
            for model in (False, True) if name != "policy.csv" or not named else (True,):
                given = {"file": name, "model": model, "named": named, "command": "load"}
                found.append(Input((entry,), given))
    plain = [sample for sample in found if not sample.arguments["named"]]
    commands = (("inspect", plain[0]), ("policy", plain[2]))
    return found + [
        sample._replace(arguments=sample.arguments | {"command": command})
        for command, sample in commands
    ]


def _mutate_file(rng: Random, given: Input, donors: Any) -> Input:
    """Most cases only load: a command takes longer."""
    command = rng.choice(("inspect", "policy")) if rng.random() < _COMMAND_SHARE else "load"
    changed = mutate_one(rng, given, donors)
    return changed._replace(arguments=given.arguments | {"command": command})


def _run_file(folder: Path, arguments: dict[str, Any]) -> None:
    if arguments["command"] != "load":
        run_command([arguments["command"], arguments["file"]])
        return
    cmdp = _named_model() if arguments["named"] else _plain_model()
    policy = cmdpax.load_policy(arguments["file"], cmdp if arguments["model"] else None)
    require(len(str(policy).split("\n")) <= 40, "the table has more than 40 lines")
    require(bool((abs(policy.sum(axis=-1) - 1) < 1e-6).all()), "a row does not sum to 1")
    for name in ("out.npz", "out.json") + ("out.csv",) * arguments["model"]:
        policy.save(name)
        again = cmdpax.load_policy(name, cmdp if arguments["model"] else None)
        require(np.array_equal(again, policy), f"{name} holds another policy than was saved")
        require(again.words == policy.words, f"{name} has other names than were saved")


POLICY_FILES = Target("policy-files", _file_samples, _run_file, _mutate_file, weight=0.5)
