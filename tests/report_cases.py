"""What several tests of the page's content share: sweeps of invented runs, and a slow decoder."""

import base64
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cmdpax
from cmdpax.experiments import executing
from cmdpax.learning.group import Collected
from cmdpax.learning.loop import Rows, Task
from sweep_cases import SMALL

SCHEDULE = "0.5*(k+2)^-0.2"
ALGORITHMS = [
    {"name": "regularized-primal-dual", "step_size": [0.2, SCHEDULE], "regularization": 0.05},
    {"name": "vanilla-primal-dual", "step_size": [0.2, 0.4], "max_multiplier": 9.0},
]


def random_cmdps(**parameters: Any) -> list[dict[str, Any]]:
    """Small CMDPs for a specification."""
    return [{"environment": "random", "parameters": SMALL | parameters}]


def invent(specification: dict[str, Any], out: Path) -> cmdpax.Results:
    """A sweep whose runs are random numbers: nothing has to be compiled for them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(executing, "run_batch", invented)
        return cmdpax.sweep(specification, out)


def invented(task: Task, configurations: Sequence[Any], *_: Any) -> Collected:
    """Accounts of runs that oscillate around the optimum, and calm down."""
    count, length = len(configurations), len(task.recorded)
    models = task.cmdps if task.design.stacked else [task.cmdps[0]] * count
    optima = task.optima if task.design.stacked else [task.optima[0]] * count
    targets = np.stack(
        [np.append(best, model.thresholds) for model, best in zip(models, optima, strict=True)]
    )
    seeds = [[one.seed, zlib.crc32(one.words.encode())] for one in configurations]
    noise = [np.random.default_rng(seed).normal(0.02, 0.3, (length, 9)) for seed in seeds]
    calm = np.linspace(1.0, 0.2, length)[:, None]
    errors = (np.stack(noise) * calm)[..., : targets.shape[1]]
    multipliers = np.abs(np.stack(noise))[..., 1 : targets.shape[1]]
    return Collected(
        Rows(
            targets[:, None] - errors,
            np.maximum(errors, 0.0).cumsum(axis=1),
            errors.cumsum(axis=1),
            multipliers,
        ),
        np.ones((count, len(task.levels))),
        np.zeros((count, targets.shape[1] - 1)),
        np.zeros(0),
        np.zeros((count, 3), int),
    )


def decode(group: dict[str, Any], block: str) -> tuple[list[int], dict[str, np.ndarray]]:
    """A block, number by number: episodes, and every series' rows `[N, kept]`."""
    planes = zlib.decompress(base64.b64decode(block))
    quarter, kept = len(planes) // 4, group["kept"]
    table: list[list[int]] = []
    for place in range(quarter):
        if place % kept == 0:
            table.append([])
        coded = sum(planes[plane * quarter + place] << (8 * plane) for plane in range(4))
        difference = coded // 2 if coded % 2 == 0 else -(coded + 1) // 2
        before = table[-1][-1] if table[-1] else 0
        table[-1].append((before + difference) % 2**32)
    numbers = np.array(
        [[struct.unpack("<f", struct.pack("<I", n << 7))[0] for n in row] for row in table[1:]]
    )
    each = 2 + len(group["shown"]) if group["units"] > 1 else 1
    assert len(numbers) == each * len(group["series"])
    return table[0], dict(zip(group["series"], numbers.reshape(-1, each, kept), strict=True))
