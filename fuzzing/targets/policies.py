"""Policies: arrays and nested lists, checked, evaluated and accounted for."""

from pathlib import Path
from typing import Any

import numpy as np

import cmdpax
from fuzzing.cases import Input
from fuzzing.targets.base import Target, require
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
