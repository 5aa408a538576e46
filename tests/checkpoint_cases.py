"""What several tests of checkpoints share: runs of five small blocks, and what a file holds."""

import functools
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cmdpax
from cmdpax.learning.checkpoint import Checkpoint
from learning_cases import ALGORITHM, NO_WARNING, model
from storage_cases import contents as contents

NUM_EPISODES, BLOCK = 70, 16


def write_often(patch: pytest.MonkeyPatch) -> None:
    """Five blocks, three groups for two threads, and a file after every block."""
    patch.setattr("cmdpax.learning.group.block_size", lambda *sizes: BLOCK)
    patch.setattr("cmdpax.learning.workers._GROUP_RUNS", 2)
    patch.setattr("cmdpax.learning.workers.num_cores", lambda: 2)
    patch.setattr(Checkpoint.__init__, "__defaults__", (0.0,))
    patch.setattr("cmdpax.learning.checkpoint._WORTH", 0)


small = functools.partial(model, 1, horizon=2)


def learn(
    algorithm: str = ALGORITHM, cmdp: cmdpax.CMDP | None = None, **changes: Any
) -> cmdpax.History:
    arguments: dict[str, Any] = {
        "num_episodes": NUM_EPISODES,
        "seeds": 5,
        "max_multiplier": NO_WARNING,
        "log": True,
        "potential": algorithm.startswith("regularized"),
    }
    return cmdpax.learn(small() if cmdp is None else cmdp, algorithm, **(arguments | changes))


class Interrupting:
    """As `progress`: Ctrl-C at the n-th report."""

    def __init__(self, reports: int) -> None:
        self.left, self.told = reports, 0

    def __call__(self, done: int, total: int) -> None:
        self.left, self.told = self.left - 1, max(self.told, done)
        if self.left <= 0:
            raise KeyboardInterrupt


def interrupt(path: Path, reports: int, **changes: Any) -> int:
    """Returns how many episodes of each run were reported."""
    progress = Interrupting(reports)
    with pytest.raises(KeyboardInterrupt):
        learn(checkpoint=path, progress=progress, **changes)
    return progress.told


def arrays_in(content: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def episodes_in(content: bytes) -> list[int]:
    """How far each of its groups is."""
    arrays = arrays_in(content)
    return [int(arrays[name]) for name in arrays if name.endswith(".0")]


def head_of(path: Path) -> dict[str, Any]:
    return json.loads(str(arrays_in(path.read_bytes())["checkpoint"]))
