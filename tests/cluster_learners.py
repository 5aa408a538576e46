"""A learner that is slow or raises when a test says so, on workers only; its numbers are plain.

Workers import it by its address, `cluster_learners:troubled`. What shall happen is said in files of
a folder that the environment names; without one, nothing happens.
"""

import functools
import os
import time
import uuid
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cmdpax.learners import Hyperparameters, Knowledge, Learner, Trajectory
from cmdpax.learners.dual import DualState, vanilla_dual

FOLDER, NODE = "CMDPAX_TEST_FAULTS", "CMDPAX_TEST_NODE"
TROUBLED = "cluster_learners:troubled"
EPISODE = 310
"""When it happens: the trials, with which batches are cut, have 300 episodes."""


class Faults:
    """What shall happen on workers, and what did."""

    def __init__(self, folder: Path) -> None:
        """Nothing yet."""
        self.folder = folder
        folder.mkdir(exist_ok=True)

    def order(self, seconds: float = 0.0, step_size: float = -1.0, failures: int = 0) -> None:
        """Every batch sleeps; those with a step size raise so often. Forget what did happen."""
        for file in self.folder.iterdir():
            file.unlink()
        self.change(seconds, step_size, failures)

    def change(self, seconds: float = 0.0, step_size: float = -1.0, failures: int = 0) -> None:
        """The same, also for batches that sleep already; what did happen stays known."""
        aside = self.folder / "order.new"
        aside.write_text(f"{seconds} {step_size} {failures}")
        aside.rename(self.folder / "order")

    def happened(self, kind: str) -> list[str]:
        """The nodes on which batches "began" or "failed", in that order."""
        found = sorted(self.folder.glob(f"{kind}-*"), key=lambda file: file.stat().st_mtime_ns)
        return [file.read_text() for file in found]

    def meet(self, step_sizes: np.ndarray) -> None:
        """On a worker: do what was ordered."""
        self._note("began")
        begun = time.monotonic()
        while time.monotonic() - begun < float(self._ordered()[0]):
            time.sleep(0.02)
        _, step_size, failures = self._ordered()
        unlucky = np.isclose(step_sizes, float(step_size)).any()
        if unlucky and len(self.happened("failed")) < int(failures):
            self._note("failed")
            raise ValueError(f"no luck with {step_size}")

    def _ordered(self) -> list[str]:
        return (self.folder / "order").read_text().split()

    def _note(self, kind: str) -> None:
        aside = self.folder / uuid.uuid4().hex
        aside.write_text(os.environ[NODE])
        aside.rename(self.folder / f"{kind}-{aside.name}")


def troubled(knowledge: Knowledge, hyperparameters: Hyperparameters) -> Learner:
    """The vanilla dual algorithm, and what tests order besides."""
    plain = vanilla_dual(knowledge, hyperparameters)
    if FOLDER not in os.environ:
        return plain
    meet = functools.partial(_meet, Faults(Path(os.environ[FOLDER])))

    def update(state: DualState, trajectory: Trajectory, key: jax.Array) -> DualState:
        initial = jnp.asarray(hyperparameters.step_size.initial)
        kind = jax.ShapeDtypeStruct((), jnp.int32)
        nothing = jax.pure_callback(meet, kind, state.episode, initial, vmap_method="broadcast_all")
        return plain.update(state._replace(episode=state.episode + nothing), trajectory, key)

    return plain._replace(update=update)


def _meet(faults: Faults, episode: Any, step_sizes: Any) -> np.ndarray:
    episodes = np.asarray(episode)
    if (episodes == EPISODE).any():
        faults.meet(np.asarray(step_sizes))
    return np.zeros(episodes.shape, np.int32)
