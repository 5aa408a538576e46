"""Checkpoints: files that `learn` goes on from; and manifests that `repeat` makes runs of."""

import contextlib
import json
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import cmdpax
from fuzzing.cases import Entry, Input
from fuzzing.targets.base import Target, require
from fuzzing.targets.models import small_model
from fuzzing.values import mutate_values, read_value

_FILE, _MANIFEST = "checkpoint.npz", "manifest.json"
_EPISODES = 40
_ALGORITHM = "regularized-primal-dual"


def _learn(checkpoint: Path | None, progress: Any = False) -> cmdpax.History:
    return cmdpax.learn(
        small_model(),
        _ALGORITHM,
        num_episodes=_EPISODES,
        seeds=2,
        max_multiplier=60.0,
        checkpoint=checkpoint,
        progress=progress,
    )


def _interrupted(path: Path) -> None:
    """A file of runs that are not finished; such small ones have one block only, if left alone."""

    def stop(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    with (
        mock.patch("cmdpax.learning.group.block_size", return_value=_EPISODES // 2),
        contextlib.suppress(KeyboardInterrupt),
    ):
        _learn(path, stop)


def _samples() -> list[Input]:
    found = []
    for make in (_interrupted, _learn):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / _FILE
            make(path)
            found.append(Input((Entry(_FILE, path.read_bytes()),), {}))
    return found


def _run(folder: Path, arguments: dict[str, Any]) -> None:
    require_sound(_learn(folder / _FILE))


def require_sound(history: cmdpax.History) -> None:
    """All accounts are numbers, of all runs."""
    for name, values in history.summary().items():
        require(bool(np.isfinite(values).all()), f"{name} is {values}")
    require(bool(np.isfinite(history.value).all()), "a value is not finite")


CHECKPOINTS = Target("checkpoints", _samples, _run)


# ----------------------------------------------------------------------------------------- repeats


def _repeat_samples() -> list[Input]:
    manifest = _learn(None).manifest
    return [Input((Entry(_MANIFEST, json.dumps(manifest).encode()),), {})]


def _repeat(folder: Path, arguments: dict[str, Any]) -> None:
    manifest = read_value(_MANIFEST)
    if isinstance(manifest, dict) and _is_long(manifest.get("num_episodes")):
        return  # many episodes are no defect
    require_sound(cmdpax.repeat(small_model(), manifest))


def _is_long(count: Any) -> bool:
    return isinstance(count, int | float) and count > 10 * _EPISODES


REPEATS = Target("repeats", _repeat_samples, _repeat, mutate_values, weight=0.5)
