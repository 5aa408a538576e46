"""A file from which a batch of runs goes on.

It holds the position of every group of runs, and the manifest of the runs. It is written aside and
renamed, so that there is always a whole one, and it goes on only with the runs, the versions and
the device that its manifest names: then the finished runs are those of an uninterrupted batch, bit
for bit. One process has it at a time, from the moment it is opened until it is closed.
"""

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cmdpax.errors import FileError
from cmdpax.learning.group import Group, Position
from cmdpax.storage.archives import read_npz
from cmdpax.storage.locking import lock_beside
from cmdpax.storage.paths import exists
from cmdpax.storage.texts import parse_json
from cmdpax.storage.trees import leaves_of, read_leaves, restore_tree, write_leaves
from cmdpax.storage.writing import remove_left_behind, require_target, write_atomically

FORMAT = 2
_SECONDS = 10.0
_WORTH = 20  # writing may take one part in so many


class Checkpoint:
    """The positions of a batch's groups, in memory and, now and then, in a file."""

    def __init__(
        self, path: str | Path, manifest: dict[str, Any], seconds: float = _SECONDS
    ) -> None:
        """Open a file that is there, or remember to write one.

        Args:
            path: the file.
            manifest: of the runs; another one's file is refused.
            seconds: how often it is written, at the most.
        """
        self.path = Path(path)
        self.group_size: int | None = None
        self._manifest = json.loads(json.dumps(manifest))
        self._seconds = seconds
        self._groups: dict[int, list[np.ndarray]] = {}
        self._lock = threading.Lock()
        self._written = time.monotonic()
        require_target(self.path)
        self._owned = lock_beside(self.path)  # before anything of a running process is touched
        try:
            remove_left_behind(self.path)
            if exists(self.path):
                self._read()
        except BaseException:
            self._owned.release()
            raise

    def __enter__(self) -> "Checkpoint":
        """It is open already."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let other processes have it."""
        self._owned.release()

    def restore(self, group: int, runs: Group) -> Position:
        """Where a group of runs was, or its first position."""
        first = runs.first_position()
        if group not in self._groups:
            return first
        try:
            position: Position = restore_tree(self._groups[group], first, _alike)
        except ValueError:
            raise self._damaged() from None
        if not runs.is_possible(position):
            raise self._damaged()
        # What is kept stays here, the rest goes to the device.
        states, sums, capped, policy, flaws = jax.tree.map(jnp.asarray, tuple(position)[1:-1])
        return Position(int(position.done), states, sums, capped, policy, flaws, position.kept)

    def offer(self, group: int, make: Callable[[], Position], *, now: bool = False) -> None:
        """Take a group's position, and write the file, if it is time (or `now`)."""
        with self._lock:
            if not now and time.monotonic() - self._written < self._seconds:
                return
            begun = time.monotonic()
            self._groups[group] = leaves_of(make())
            self._write()
            self._written = time.monotonic()
            self._seconds = max(self._seconds, _WORTH * (self._written - begun))

    def _write(self) -> None:
        head = {"format": FORMAT, "group_size": self.group_size, "manifest": self._manifest}
        arrays: dict[str, Any] = {}
        for group, leaves in self._groups.items():
            arrays |= write_leaves(f"{group}.", leaves)
        head["leaves"] = {group: len(leaves) for group, leaves in self._groups.items()}
        text = np.array(json.dumps(head))
        write_atomically(self.path, lambda file: np.savez(file, checkpoint=text, **arrays))

    def _read(self) -> None:
        try:
            entries = read_npz(self.path)
            head = parse_json(str(entries["checkpoint"]))
            if head["format"] != FORMAT:
                raise FileError(
                    f"{self.path} has the checkpoint format {head['format']}, this version of "
                    f"cmdpax reads {FORMAT}; go on with the version that wrote it."
                )
            self._require_same(head["manifest"])
            self.group_size = self._checked_size(head["group_size"])
            self._groups = {
                int(group): read_leaves(f"{group}.", count, entries)
                for group, count in head["leaves"].items()
            }
            for done, *_ in self._groups.values():
                if not 0 <= int(done) <= self._manifest["num_episodes"]:
                    raise self._damaged()
        except FileError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            raise self._damaged() from None

    def _checked_size(self, size: Any) -> int:
        """Runs per group: no more than there are, or their arrays would be made all the same."""
        if type(size) is not int or not 1 <= size <= len(self._manifest["runs"]):
            raise self._damaged()
        return size

    def _require_same(self, manifest: dict[str, Any]) -> None:
        for name, here in self._manifest.items():
            there = manifest.get(name)
            if there != here:
                shown = "" if isinstance(here, list) else f" ({there}, here {here})"
                raise FileError(
                    f"{self.path} is the checkpoint of other runs: their {name} differs{shown}; "
                    "give another file, or delete this one to begin anew."
                )

    def _damaged(self) -> FileError:
        return FileError(
            f"{self.path} is not a readable checkpoint; delete it to begin anew, or give another."
        )


def _alike(found: np.ndarray, first: Any) -> bool:
    """The same kind of array; only the recorded episodes, of which the first has 0, vary."""
    wanted = np.asarray(first)
    shape = wanted.shape if wanted.size else found.shape[:1] + wanted.shape[1:]
    return found.dtype == wanted.dtype and found.shape == shape
