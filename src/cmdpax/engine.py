"""The engine: configurations in, NumPy arrays of their accounts out."""

import functools
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cmdpax.errors import ParameterError
from cmdpax.history import Log
from cmdpax.hyperparameters import is_constant
from cmdpax.learners.base import Hyperparameters
from cmdpax.model import CMDP, Sizes
from cmdpax.optimism import Optimism
from cmdpax.potential import Saddle, potential, saddle_of
from cmdpax.simulation import (
    Design,
    Entries,
    Progress,
    Runs,
    account_block,
    block_size,
    blocks,
    no_sums,
)

_CACHE_BYTES = 5 * 2**20  # of a core, for the models of its group of runs
_GROUP_RUNS = 64


class Configuration(NamedTuple):
    """One run: its seed and what the user chose for it."""

    seed: int
    hyperparameters: Hyperparameters
    optimism: Optimism


class Collected(NamedTuple):
    """NumPy arrays of all runs, which are the leading axis of everything."""

    entries: Entries  # [R, T, J]
    multipliers: np.ndarray  # [R, T, I]
    potential: np.ndarray | None  # [R, T]
    log: Log | None
    unsafe: np.ndarray  # counts, [R, E]
    capped: np.ndarray  # episodes with λ_i at its cap, [R, I]
    policy: np.ndarray  # [R, H, S, A]


class Task(NamedTuple):
    """What all runs of a batch share; a stacked design has a CMDP of the same shape for each."""

    design: Design
    cmdps: Sequence[CMDP]  # the one of all runs, or one per run
    optima: Sequence[float]  # V_r^{π*}, likewise
    recorded: np.ndarray
    num_episodes: int
    levels: tuple[float, ...]


def run_batch(
    task: Task,
    configurations: Sequence[Configuration],
    saddles: Sequence[Saddle] | None,
    report: Progress,
) -> Collected:
    """Run all configurations, in groups that fit the processor's caches, one thread per core.

    A run does not depend on its group: only the speed does. On an accelerator there is one group.
    """
    size, num_workers = _group_size(task, len(configurations))
    in_double = jnp.result_type(float) == jnp.float64  # the context is the thread's own
    done: dict[int, int] = {}
    stopped = threading.Event()

    def run(first: int) -> Collected:
        members = [min(first + i, len(configurations) - 1) for i in range(size)]  # last: padding

        def group_report(episodes: int, total: int) -> None:
            if stopped.is_set():
                raise KeyboardInterrupt
            done[first] = episodes
            num_groups = -(-len(configurations) // size)
            report(sum(done.values()) // num_groups, total)

        with jax.enable_x64(in_double):
            chosen = None if saddles is None else [saddles[i] for i in members]
            group = [configurations[i] for i in members]
            collected = _run_group(_part(task, members), group, chosen, group_report)
        real = min(size, len(configurations) - first)
        return jax.tree.map(lambda array: array[:real], collected)

    starts = range(0, len(configurations), size)
    if num_workers == 1 or len(starts) == 1:
        return _join([run(first) for first in starts])
    with ThreadPoolExecutor(num_workers) as pool:
        futures = [pool.submit(run, first) for first in starts]
        try:
            return _join([future.result() for future in futures])
        except BaseException:  # Ctrl-C, or a group that failed: the others end at their next block
            stopped.set()
            pool.shutdown(cancel_futures=True)
            raise


def _part(task: Task, members: Sequence[int]) -> Task:
    """The task of some of the runs."""
    if not task.design.stacked:
        return task
    chosen = [task.cmdps[i] for i in members]
    return task._replace(cmdps=chosen, optima=[task.optima[i] for i in members])


def _group_size(task: Task, num_runs: int) -> tuple[int, int]:
    """Runs per group, and threads: a group's model should fit a core's cache."""
    if jax.default_backend() != "cpu":
        return num_runs, 1
    num_workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    run_bytes = model_bytes(task.cmdps[0], task.design.stacked)
    fitting = max(1, min(_GROUP_RUNS, _CACHE_BYTES // run_bytes))
    num_rounds = -(-num_runs // (fitting * num_workers))
    return -(-num_runs // (num_rounds * num_workers)), num_workers


def model_bytes(cmdp: CMDP, stacked: bool) -> int:
    """Of one run: p̂ and the counts, and the true transitions where every run has its own."""
    _, horizon, num_states, num_actions = cmdp.sizes
    arrays = jax.tree.leaves(cmdp.transitions)
    row_length = arrays[-1].shape[-1]
    own = sum(array.nbytes for array in arrays) if stacked else 0
    return 12 * horizon * num_states * num_actions * int(row_length) + own


def _run_group(
    task: Task,
    configurations: Sequence[Configuration],
    saddles: Sequence[Saddle] | None,
    report: Progress,
) -> Collected:
    """Run all blocks of one compiled batch, and keep what is recorded."""
    design, cmdps, optima, recorded, num_episodes, levels = task
    dtype = jnp.result_type(float)
    num_runs, num_constraints = len(configurations), cmdps[0].num_constraints
    stack = jax.tree.map(lambda *arrays: np.stack(arrays), *cmdps) if design.stacked else cmdps[0]
    model = cast(stack, dtype)
    runs = stack_runs(cmdps[0].sizes, configurations, dtype)
    targets = jnp.asarray(np.broadcast_to(np.asarray(optima, float), num_runs), dtype)
    size = block_size(cmdps[0].sizes, num_runs, dtype)
    saddle = None
    if saddles is not None:
        saddle = cast(jax.tree.map(lambda *arrays: np.stack(arrays), *saddles), dtype)
    sums = no_sums(num_runs, 1 + num_constraints, len(levels), dtype)
    capped = jnp.zeros((num_runs, num_constraints), jnp.int32)
    kept: list[tuple[Any, ...]] = []
    for first, count, block in blocks(design, model, runs, num_episodes, size):
        sums, entries = account_block(
            model,
            targets,
            jnp.asarray(levels, dtype),
            block.policies,
            jnp.int32(count),
            sums,
            design.stacked,
        )
        caps = runs.hyperparameters.max_multiplier
        capped = capped + _count_capped(block.multipliers, caps, jnp.int32(count))
        distance = None
        if saddle is not None:
            distance = _potentials(saddle, block.log_policies, block.multipliers)
        places = recorded[(recorded >= first) & (recorded < first + count)] - first
        shown = _take((entries, block.multipliers, distance), places)
        kept.append((*shown, _take(block.log, np.arange(count))))
        last = block.policies[count - 1]
        report(first + count - 1, num_episodes)
    return _collected(kept, sums.unsafe, capped, last)


def _collected(kept: list[tuple[Any, ...]], unsafe: Any, capped: Any, last: Any) -> Collected:
    """The blocks one after the other, runs first."""
    joined = jax.tree.map(
        lambda *arrays: np.moveaxis(np.concatenate(arrays), 0, 1), *kept
    )  # episodes came first
    entries, multipliers, distance, log = joined
    return Collected(
        entries,
        multipliers,
        distance,
        None if log is None else Log(*log),
        np.asarray(unsafe),
        np.asarray(capped),
        np.array(last, dtype=np.float64),
    )


def _take(tree: Any, places: np.ndarray) -> Any:
    """Rows of the leading axis as NumPy arrays; few rows are picked before they are copied."""
    if len(places) == 0:
        return jax.tree.map(lambda array: np.zeros((0, *array.shape[1:])), tree)
    padded = np.resize(places, 1 << (len(places) - 1).bit_length())

    def pick(array: jax.Array) -> np.ndarray:
        if 4 * len(padded) < array.shape[0]:
            return np.asarray(array[padded])[: len(places)]
        return np.asarray(array)[places]

    return jax.tree.map(pick, tree)


def _join(pieces: Sequence[Any]) -> Any:
    """Groups of runs, one after the other."""
    return jax.tree.map(lambda *arrays: np.concatenate(arrays), *pieces)


@jax.jit
def _count_capped(multipliers: Any, caps: Any, count: Any) -> Any:
    played = (jnp.arange(multipliers.shape[0], dtype=jnp.int32) < count)[:, None, None]
    return jnp.sum((multipliers >= caps[None, :, None]) & played, axis=0, dtype=jnp.int32)


@jax.jit
def _potentials(saddle: Saddle, log_policies: Any, multipliers: Any) -> Any:
    return jax.vmap(jax.vmap(potential), in_axes=(None, 0, 0))(saddle, log_policies, multipliers)


def cast(tree: Any, dtype: Any) -> Any:
    """Floating arrays in the working precision, on the device."""

    def convert(array: Any) -> jax.Array:
        return jnp.asarray(array, dtype if np.asarray(array).dtype.kind == "f" else None)

    return jax.tree.map(convert, tree)


def stack_runs(sizes: Sizes, configurations: Sequence[Configuration], dtype: Any) -> Runs:
    """Stack the configurations; the key of a run is that of its seed alone."""
    seeds = jnp.asarray(np.array([c.seed for c in configurations], dtype=np.uint32))
    keys = jax.vmap(functools.partial(jax.random.key, impl="threefry2x32"))(seeds)
    numbers = {c.optimism: c.optimism.numbers(sizes) for c in configurations}
    bonuses = [numbers[c.optimism] for c in configurations]
    chosen = [c.hyperparameters for c in configurations]

    def stack(*numbers: float) -> jax.Array:
        return jnp.asarray(np.array(numbers), dtype)

    return Runs(keys, jax.tree.map(stack, *chosen), jax.tree.map(stack, *bonuses))


def find_saddles(cmdp: CMDP, configurations: Sequence[Configuration]) -> list[Saddle]:
    """The saddle point that each run approaches."""
    found: dict[tuple[float, float, float], Saddle] = {}
    result = []
    for _, chosen, _ in configurations:
        tau, margin = chosen.regularization, chosen.margin
        if not (is_constant(tau) and is_constant(margin) and tau.initial > 0):
            raise ParameterError("the potential is defined for a constant τ > 0 and margin.")
        key = (tau.initial, chosen.max_multiplier, margin.initial)
        if key not in found:
            found[key] = saddle_of(cmdp, *key)
        result.append(found[key])
    return result
