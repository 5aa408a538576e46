"""A group of runs whose learners keep their policies for stretches of episodes.

It goes on stretch by stretch, and each run has stretches of its own, so that the accounts of the
recorded episodes are made at the end: those of episode k are the values of its stretch's policy,
and sums over the stretches before it.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cmdpax.learners.contract import FLAWS
from cmdpax.learning.episodes import draw_episodes
from cmdpax.learning.group import Collected, Group, Position
from cmdpax.learning.history import Plans
from cmdpax.learning.loop import Rows, start
from cmdpax.learning.stretches import Running, Stretches, advance_stretches
from cmdpax.model.log import Log

_STRETCHES_PER_BLOCK = 64
_BLOCK_BYTES = 2**26  # of what is kept of a block's stretches


class StretchGroup(Group):
    """The arrays of a group's runs, on the device."""

    def first_position(self) -> Position:
        """Before the first episode."""
        task, num_runs = self.task, len(self.optima)
        num_constraints, *pairs = task.cmdps[0].sizes
        states = start(task.design, self.model, self.runs)
        nobody = jnp.zeros(num_runs, jnp.result_type(int))
        running = (states, nobody, jnp.zeros((num_runs, *pairs), self.optima.dtype))
        arguments = self._arguments(running, self.block_size())
        _, block = advance_stretches.eval_shape(*arguments)  # type: ignore[no-untyped-call]
        return Position(
            done=0,
            states=running,
            sums=None,
            capped=jnp.zeros((num_runs, num_constraints), jnp.int32),
            policy=None,
            flaws=jnp.zeros((num_runs, len(FLAWS)), nobody.dtype),
            kept=jax.tree.map(lambda array: np.zeros((0, *array.shape[1:]), array.dtype), block),
        )

    def _arguments(self, running: Running, size: int) -> tuple[Any, ...]:
        """Of `advance_stretches`: what it returns is asked for first, and traced once."""
        count = jnp.asarray(self.task.num_episodes, jnp.result_type(int))
        return self.task.design, self.model, self.runs, running, count, size

    def is_possible(self, position: Position) -> bool:
        """Whether the stretches that are kept have as many episodes as were played."""
        _, played, _ = position.states
        done = np.asarray(played)
        return bool(
            done.min() == position.done and (position.kept.length.sum(axis=0) == done).all()
        )

    def block_size(self) -> int:
        """How many stretches a block has."""
        design, cmdp = self.task.design, self.task.cmdps[0]
        _, *pairs = cmdp.sizes
        row_length = cmdp.row_length if design.keep_log else 1
        stretch_bytes = 8 * len(self.optima) * math.prod(pairs) * row_length
        return max(1, min(_STRETCHES_PER_BLOCK, _BLOCK_BYTES // stretch_bytes))

    def go_on(self, position: Position, size: int) -> Position:
        """Play the next stretches of every run."""
        running, block = advance_stretches(*self._arguments(position.states, size))
        _, done, _ = running
        kept: Stretches = jax.tree.map(np.asarray, block)
        played = kept.length > 0
        kept = jax.tree.map(lambda array: array[: played.any(axis=1).sum()], kept)
        found = np.where(kept.flaws & (kept.length > 0)[..., None], kept.first[..., None], 0)
        first = np.where(found > 0, found, np.iinfo(found.dtype).max).min(axis=0)
        here = np.where((found > 0).any(axis=0), first, 0)
        before = np.asarray(position.flaws)
        return position._replace(
            done=int(np.asarray(done).min()),
            states=running,
            flaws=np.where(before > 0, before, here),
            kept=kept,
        )

    def collect(self, position: Position) -> Collected:
        """The accounts of the recorded episodes, with the runs first."""
        kept: Stretches = jax.tree.map(lambda array: np.moveaxis(array, 0, 1), position.kept)
        _, _, policy = position.states
        num_runs = len(self.optima)
        thresholds = np.stack([cmdp.thresholds for cmdp in self.task.cmdps])
        thresholds = np.broadcast_to(thresholds, (num_runs, thresholds.shape[1]))
        targets = np.column_stack([np.asarray(self.optima), thresholds])
        runs = [self._accounts(kept, targets[run], run) for run in range(num_runs)]
        rows, unsafe = zip(*runs, strict=True)
        stacked: Rows = jax.tree.map(lambda *arrays: np.stack(arrays), *rows)
        return Collected(
            stacked._replace(log=self._log(kept) if kept.counted is not None else None),
            np.stack(unsafe),
            np.asarray(position.capped),
            np.array(policy, dtype=np.float64),
            np.asarray(position.flaws),
            Plans(np.where(kept.length > 0, kept.first, 0), kept.feasible, kept.policies),
        )

    def _accounts(self, kept: Stretches, targets: np.ndarray, run: int) -> tuple[Rows, np.ndarray]:
        """Of one run: its rows, and how many episodes are unsafe at each level."""
        counts, values = kept.length[run], kept.values[run]
        missing = targets - values
        ends = np.cumsum(counts)
        places = np.searchsorted(ends, self.task.recorded)
        places = np.minimum(places, len(ends) - 1)
        within = self.task.recorded - (ends - counts)[places]  # episodes of the stretch so far

        def summed(terms: np.ndarray) -> np.ndarray:
            """Over all episodes up to the recorded ones; n times the same number is a product."""
            whole = np.cumsum(counts[:, None] * terms, axis=0)
            before = np.concatenate([np.zeros((1, terms.shape[1])), whole])[places]
            return before + within[:, None] * terms[places]

        levels = np.asarray(self.task.levels)
        safe = (missing[:, 1:, None] < levels).all(axis=1)
        rows = Rows(
            values[places],
            summed(np.maximum(missing, 0)),
            summed(missing),
            kept.multipliers[run][places],
        )
        unplayed = self.task.recorded > ends[-1]  # after a flaw
        rows = jax.tree.map(lambda rows: np.where(unplayed[:, None], np.nan, rows), rows)
        return rows, np.asarray((counts[:, None] * ~safe).sum(axis=0))

    def _log(self, kept: Stretches) -> Log:
        """The episodes one by one, run by run."""
        keys = np.asarray(jax.random.key_data(self.runs.keys))
        logs = []
        for run, key in enumerate(keys):
            model = self.task.cmdps[run if self.task.design.stacked else 0]
            of_run: Any = jax.tree.map(lambda array, at=run: array[at], kept)
            logs.append(draw_episodes(model, of_run, key.tolist(), self.task.design.bernoulli))
        return Log(*(np.stack(arrays) for arrays in zip(*logs, strict=True)))
