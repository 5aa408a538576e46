"""A group of runs in one compiled batch, from its first block of episodes to its last.

Between two blocks all that the group needs to go on is its `Position`, a tree of arrays: it can be
kept in a file, and the group that goes on from it ends with the same numbers, bit for bit.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Integer

from cmdpax.jax_context import cast
from cmdpax.learners.contract import FLAWS, first_flaws, flaws_of, row_sums
from cmdpax.learners.statistics import Trajectory
from cmdpax.learning.history import Plans, Regret
from cmdpax.learning.loop import (
    Progress,
    Rows,
    Task,
    account_block,
    advance,
    block_size,
    no_sums,
    stack_runs,
    start,
)
from cmdpax.learning.settings import Configuration
from cmdpax.model.availability import stack_models
from cmdpax.model.cmdp import CMDP
from cmdpax.planning.saddle_point import RegularizedSolution
from cmdpax.schemes.potential import potential

Inspect = Callable[[np.ndarray], None]
"""Called with the flaws of some runs, `[R, 3]`, as `Collected` has them; may raise."""

_MOST_PIECES = 256  # blocks leave a little each, even those of which nothing is recorded


class Collected(NamedTuple):
    """NumPy arrays of all runs, which are the leading axis of everything."""

    rows: Rows  # [R, T, …]
    unsafe: np.ndarray  # counts, [R, E]
    capped: np.ndarray  # episodes with λ_i at its cap, [R, I]
    policy: np.ndarray  # [R, H, S, A]
    flaws: np.ndarray  # the first episode with each of the contract's flaws, 0 if none has, [R, 3]
    plans: Plans | None = None  # of learners that plan now and then

    @classmethod
    def nothing(cls, task: Task) -> "Collected":
        """Zeros in the place of one run's accounts."""
        count, length = task.cmdps[0].num_constraints, len(task.recorded)
        signals = np.zeros((1, length, 1 + count))
        return cls(
            rows=Rows(signals, signals, signals, signals[..., 1:]),
            unsafe=np.zeros((1, len(task.levels))),
            capped=np.zeros((1, count)),
            policy=np.zeros(0),
            flaws=np.zeros((1, len(FLAWS)), int),
            plans=Plans(np.zeros((1, 0), int), np.zeros((1, 0), bool), None)
            if task.design.algorithm.replans
            else None,
        )

    def accounts(self, task: Task) -> dict[str, Any]:
        """What `Account` holds, and the multipliers, by name, in the user's units and senses."""
        values, strong, weak, multipliers = (
            np.asarray(array, dtype=np.float64) for array in self.rows[:4]
        )
        horizon, stacked = task.cmdps[0].horizon, task.design.stacked
        maps = [one.outward(horizon) for one in task.rescalings]
        factors, offsets = (np.stack(parts)[:, None] for parts in zip(*maps, strict=True))
        scales, signs = np.abs(factors), np.sign(factors[:, 0, 1:])
        values, strong, weak = factors * values + offsets, scales * strong, scales * weak
        multipliers = multipliers * scales[..., :1] / scales[..., 1:]
        inside = [
            [optimum, *one.cmdp.thresholds]
            for optimum, one in zip(task.optima, task.rescalings, strict=True)
        ]
        targets = (factors * np.array(inside, dtype=np.float64)[:, None] + offsets)[:, 0]
        optima, thresholds = targets[:, 0], targets[:, 1:]
        return {
            "episodes": task.recorded,
            "value": values[..., 0],
            "constraint_values": values[..., 1:],
            "strong_regret": Regret.of(strong[..., 0], strong[..., 1:]),
            "weak_regret": Regret.of(weak[..., 0], weak[..., 1:]),
            "unsafe": self.unsafe / task.num_episodes,
            "unsafe_at": tuple(task.levels),
            "optimum": optima if stacked else float(optima[0]),
            "thresholds": thresholds if stacked else thresholds[0],
            "signs": signs if stacked else signs[0],
            "scales": scales[:, 0] if stacked else scales[0, 0],
            "multipliers": multipliers,
        }


class Position(NamedTuple):
    """Where a group is: what it needs to go on."""

    done: Any  # episodes
    states: Any  # of the learners
    sums: Any  # `Sums`; stretches are summed at the end
    capped: Integer[Array, "R I"]  # episodes with λ_i at its cap
    policy: Any  # the last that was played, [R, H, S, A]; stretches keep it with their states
    flaws: Any  # the first episode with each flaw, 0 where none has, [R, 3]
    kept: Any  # NumPy arrays: `Rows`, or `Stretches`


class Group:
    """The arrays of a group's runs, on the device."""

    def __init__(
        self,
        task: Task,
        configurations: Sequence[Configuration],
        saddles: Sequence[RegularizedSolution] | None,
    ) -> None:
        """Stack and send to the device."""
        dtype, cmdps = jnp.result_type(float), task.cmdps
        one = cmdps[0] if not task.design.stacked else stack_models(cmdps)
        optima = np.broadcast_to(np.asarray(task.optima, float), len(configurations))
        self.task = task
        self.model: CMDP = cast(one, dtype)  # stacked where the design is
        self.runs = stack_runs(
            cmdps[0].sizes, configurations, task.num_episodes, dtype, task.baselines
        )
        self.optima = jnp.asarray(optima, dtype)  # [R]
        self.saddle = None if saddles is None else cast(_stack(saddles), dtype)  # stacked

    def first_position(self) -> Position:
        """Before the first episode."""
        num_constraints, *pairs = self.task.cmdps[0].sizes
        num_runs, dtype = len(self.optima), self.optima.dtype
        return Position(
            done=0,
            states=start(self.task.design, self.model, self.runs),
            sums=no_sums(num_runs, 1 + num_constraints, len(self.task.levels), dtype),
            capped=jnp.zeros((num_runs, num_constraints), jnp.int32),
            policy=jnp.zeros((num_runs, *pairs), dtype),
            flaws=jnp.zeros((num_runs, len(FLAWS)), jnp.int32),
            kept=self._nothing_kept(),
        )

    def _nothing_kept(self) -> Rows:
        num_constraints, horizon, *_ = self.task.cmdps[0].sizes

        def nothing(*shape: int, dtype: Any = self.optima.dtype) -> Any:
            return np.zeros((0, len(self.optima), *shape), dtype)

        accounts = nothing(1 + num_constraints)
        log = Trajectory(
            nothing(horizon + 1, dtype=np.int32),
            nothing(horizon, dtype=np.int32),
            nothing(horizon),
            nothing(num_constraints, horizon),
        )
        return Rows(
            *(accounts, accounts, accounts),
            nothing(num_constraints),
            None if self.saddle is None else nothing(),
            log if self.task.design.keep_log else None,
        )

    def is_possible(self, position: Position) -> bool:
        """Whether as many episodes are kept as were to be recorded when so many were played."""
        done, kept = int(position.done), position.kept
        recorded = int(np.count_nonzero(self.task.recorded <= done))
        lengths = {len(array) for array in jax.tree.leaves(kept._replace(log=None))}
        logged = {len(array) for array in jax.tree.leaves(kept.log)}
        return lengths == {recorded} and logged <= {done}

    def block_size(self) -> int:
        """How many episodes a block has."""
        return block_size(self.task.cmdps[0].sizes, len(self.optima), self.optima.dtype)

    def go_on(self, position: Position, size: int) -> Position:
        """Play and account for the next block of at most `size` episodes."""
        design, _, _, recorded, num_episodes, levels, _ = self.task
        first = int(position.done) + 1
        count = min(size, num_episodes + 1 - first)
        states, (policies, log_policies, shown) = advance(
            design,
            self.model,
            self.runs,
            position.states,
            jnp.int32(first),
            jnp.int32(count),
            size,
        )
        sums, accounts = account_block(
            self.model,
            self.optima,
            jnp.asarray(levels, self.optima.dtype),
            policies,
            jnp.int32(count),
            position.sums,
            design.stacked,
            design.runs_last,
        )
        capped = position.capped
        if isinstance(caps := self.runs.parameters.get("max_multiplier"), jax.Array):
            capped = capped + _count_capped(shown.multipliers, caps, jnp.int32(count))
        block = (policies, shown.multipliers, jnp.int32(first), jnp.int32(count))
        flaws = _first_flaws(position.flaws, *block, self.model.available, design.runs_last)
        accounts = accounts._replace(multipliers=shown.multipliers)
        if self.saddle is not None:
            distances = _potentials(self.saddle, log_policies, shown.multipliers)
            accounts = accounts._replace(potential=distances)
        places = recorded[(recorded >= first) & (recorded < first + count)] - first
        kept: Rows = _take(accounts, places)
        kept = kept._replace(log=_take(shown.log, np.arange(count)))
        policy = jnp.moveaxis(policies[count - 1], design.axis, 0)
        return Position(first + count - 1, states, sums, capped, policy, flaws, kept)

    def collect(self, position: Position) -> Collected:
        """Everything with the runs first; NaN where nothing was played any more."""
        num_recorded = len(self.task.recorded)

        def whole(array: np.ndarray) -> np.ndarray:
            if missing := num_recorded - len(array):
                array = np.concatenate([array, np.full((missing, *array.shape[1:]), np.nan)])
            return np.moveaxis(array, 0, 1)

        log = jax.tree.map(lambda array: np.moveaxis(array, 0, 1), position.kept.log)
        kept: Rows = jax.tree.map(whole, position.kept._replace(log=None))
        return Collected(
            kept._replace(log=log),
            np.asarray(position.sums.unsafe),
            np.asarray(position.capped),
            np.array(position.policy, dtype=np.float64),
            np.asarray(position.flaws),
        )


def run_group(
    group: Group,
    position: Position,
    report: Progress,
    inspect: Inspect,
    offer: Callable[[Callable[[], Position], bool], None],
) -> Collected:
    """Run all blocks, and keep what is recorded.

    When every run has a flaw, the rest is not played: its accounts are NaN.

    Args:
        group: the runs.
        position: where it is.
        report: called with the episodes done and in all.
        inspect: called with the flaws so far, at first and after every block; it may raise.
        offer: after every block, called with a function that makes the position, and with
            whether it is the last.
    """
    pieces, num_episodes = [position.kept], group.task.num_episodes
    size = group.block_size()

    def whole() -> Position:
        pieces[:] = [_join(pieces)]
        return position._replace(kept=pieces[0])

    report(int(position.done), num_episodes)
    inspect(np.asarray(position.flaws))
    while position.done < num_episodes and not _all_flawed(position):
        position = group.go_on(position, size)
        inspect(np.asarray(position.flaws))
        pieces.append(position.kept)
        if len(pieces) == _MOST_PIECES:
            whole()
        offer(whole, position.done == num_episodes)
        report(int(position.done), num_episodes)
    return group.collect(whole())


def _all_flawed(position: Position) -> bool:
    return bool(np.asarray(position.flaws).any(axis=1).all())


def _stack(trees: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *arrays: np.stack(arrays), *trees)


def _join(pieces: Sequence[Any]) -> Any:
    """Blocks of episodes, one after the other."""
    joined = jax.tree.map(lambda *arrays: np.concatenate(arrays), *pieces)
    return joined


def _take(tree: Any, places: np.ndarray) -> Any:
    """Rows of the leading axis as NumPy arrays; few rows are picked before they are copied."""
    if len(places) == 0:
        return jax.tree.map(lambda array: np.zeros((0, *array.shape[1:]), array.dtype), tree)
    padded = np.resize(places, 1 << (len(places) - 1).bit_length())

    def pick(array: jax.Array) -> np.ndarray:
        if 4 * len(padded) < array.shape[0]:
            return np.asarray(array[padded])[: len(places)]
        return np.asarray(array)[places]

    return jax.tree.map(pick, tree)


@jax.jit
def _count_capped(multipliers: Any, caps: Any, count: Any) -> Any:
    played = (jnp.arange(multipliers.shape[0], dtype=jnp.int32) < count)[:, None, None]
    below = multipliers < caps[None, :, None]  # what is not a number is not
    return jnp.sum(~below & played, axis=0, dtype=jnp.int32)


@functools.partial(jax.jit, static_argnames="runs_last")
def _first_flaws(
    before: Any,
    policies: Any,
    multipliers: Any,
    first: Any,
    count: Any,
    available: Any,  # [H or 1, S, A], or one for each run
    runs_last: bool,
) -> Any:
    """The first episode with each flaw, those before this block included."""
    if available is not None:
        sums = row_sums(jnp.moveaxis(policies, -1, 1) if runs_last else policies, available)
    elif runs_last:
        sums = jnp.moveaxis(jnp.sum(policies, axis=-2), -1, 1)
    else:  # the processor sums short rows three times as fast in a product
        sums = policies @ jnp.ones(policies.shape[-1], policies.dtype)
    played = (jnp.arange(sums.shape[0], dtype=jnp.int32) < count)[:, None, None]
    here = first_flaws(flaws_of(sums, multipliers) & played, first)
    return jnp.where(before > 0, before, here)


@jax.jit
def _potentials(saddle: RegularizedSolution, log_policies: Any, multipliers: Any) -> Any:
    return jax.vmap(jax.vmap(potential), in_axes=(None, 0, 0))(saddle, log_policies, multipliers)
