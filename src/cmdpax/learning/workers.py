"""The engine: a batch of runs in groups, on all cores or all accelerators."""

import contextlib
import contextvars
import functools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

import jax
import jax.numpy as jnp
import numpy as np

from cmdpax.errors import ParameterError
from cmdpax.jax_context import drop_programs_if_many
from cmdpax.learning.checkpoint import Checkpoint
from cmdpax.learning.group import Collected, Group, Inspect, Position, run_group
from cmdpax.learning.loop import Progress, Task, model_bytes
from cmdpax.learning.settings import Configuration
from cmdpax.learning.stretch_group import StretchGroup
from cmdpax.model.cmdp import CMDP
from cmdpax.planning.saddle_point import RegularizedSolution
from cmdpax.schemes.potential import saddle_of
from cmdpax.schemes.schedules import as_schedule, is_constant

_CACHE_BYTES = 5 * 2**20  # of a core, for the models of its group of runs
_GROUP_RUNS = 64
_OF_A_SADDLE = ("regularization", "max_multiplier", "margin")


def run_batch(
    task: Task,
    configurations: Sequence[Configuration],
    saddles: Sequence[RegularizedSolution] | None,
    report: Progress,
    checkpoint: Checkpoint | None = None,
    inspect: Callable[[int, np.ndarray], None] = lambda first, flaws: None,
) -> Collected:
    """Run all configurations in groups: on processors of a size that fits the caches, one thread
    per core; on accelerators one group per device.

    A run does not depend on its group: only the speed does. Ctrl-C ends all groups after their
    next block, and what they have done goes to the checkpoint.

    `inspect` is called after every block of a group, with the place of its first run and the
    flaws of its runs so far; it may raise, which ends all groups too.
    """
    drop_programs_if_many()
    size, num_workers = _group_size(task, len(configurations))
    if checkpoint is not None:
        size = checkpoint.group_size = checkpoint.group_size or size
    starts = range(0, len(configurations), size)
    stopped = threading.Event()
    telling = _Telling(report, len(starts), stopped)
    in_double = jnp.result_type(float) == jnp.float64  # the context is the thread's own
    kind = StretchGroup if task.design.algorithm.replans else Group

    def run(index: int) -> Collected:
        first = starts[index]
        members = [min(first + i, len(configurations) - 1) for i in range(size)]  # last: padding
        chosen = None if saddles is None else [saddles[i] for i in members]
        with _numerics(in_double, index):
            group = kind(
                _on_accelerator(task.part(members)), [configurations[i] for i in members], chosen
            )
            watch = functools.partial(inspect, first)
            collected = _run(group, index, telling, watch, checkpoint)
        real = min(size, len(configurations) - first)
        return jax.tree.map(lambda array: array[:real], collected)

    if checkpoint is None and (num_workers == 1 or len(starts) == 1):
        return _join([run(index) for index in range(len(starts))])
    with ThreadPoolExecutor(num_workers) as pool:
        futures = [pool.submit(run, index) for index in range(len(starts))]
        try:
            for future in wait(futures, return_when=FIRST_EXCEPTION).done:
                future.result()  # raises what a group raised, while others still run
            return _join([future.result() for future in futures])
        except BaseException:  # Ctrl-C, or a group that failed: the others end at their next block
            stopped.set()
            pool.shutdown(cancel_futures=True)
            raise


def _run(
    group: Group,
    index: int,
    telling: "_Telling",
    inspect: Inspect,
    checkpoint: Checkpoint | None,
) -> Collected:
    """One group, from where the checkpoint has it; interrupted, it leaves its position there."""
    report = functools.partial(telling, index)
    if checkpoint is None:
        start = group.first_position()
        return run_group(group, start, report, inspect, lambda make, finished: None)
    latest: Callable[[], Position] | None = None

    def offer(make: Callable[[], Position], finished: bool) -> None:
        nonlocal latest
        latest = make
        checkpoint.offer(index, make, now=finished)

    position = checkpoint.restore(index, group)
    try:
        return run_group(group, position, report, inspect, offer)
    except KeyboardInterrupt:  # reports raise it, between two blocks
        if latest is not None:
            checkpoint.offer(index, latest, now=True)
        raise


class _Telling:
    """Progress of all groups as one; a user's function is called by one thread at a time."""

    def __init__(self, report: Progress, num_groups: int, stopped: threading.Event) -> None:
        self._report, self._num_groups, self._stopped = report, num_groups, stopped
        self._done: dict[int, int] = {}
        self._lock = threading.Lock()

    def __call__(self, index: int, episodes: int, total: int) -> None:
        if self._stopped.is_set():
            raise KeyboardInterrupt
        with self._lock:
            self._done[index] = episodes
            self._report(sum(self._done.values()) // self._num_groups, total)


@contextlib.contextmanager
def _numerics(in_double: bool, index: int) -> Iterator[None]:
    """The precision and the device of a group; both are the thread's own.

    Products of matrices are full products: accelerators round them to eleven bits if not told,
    which is an error of 10⁻³ in every account.
    """
    devices = jax.local_devices()
    with (
        jax.enable_x64(in_double),
        jax.default_matmul_precision("highest"),
        jax.default_device(devices[index % len(devices)]),
    ):
        yield


def _on_accelerator(task: Task) -> Task:
    """With runs as the last axis neighbouring threads read neighbouring numbers.

    Learners that plan hand their models to a planner that moves the runs there itself.
    """
    runs_last = jax.default_backend() != "cpu" and not task.design.algorithm.replans
    return task._replace(design=task.design._replace(runs_last=runs_last))


def _group_size(task: Task, num_runs: int) -> tuple[int, int]:
    """Runs per group, and threads: a group's model should fit a core's cache."""
    if jax.default_backend() != "cpu":
        num_workers = min(num_runs, len(jax.local_devices()))
        return -(-num_runs // num_workers), num_workers
    num_workers = num_cores()
    run_bytes = model_bytes(task.cmdps[0], task.design.stacked)
    fitting = max(1, min(_GROUP_RUNS, _CACHE_BYTES // run_bytes))
    num_rounds = -(-num_runs // (fitting * num_workers))
    return -(-num_runs // (num_rounds * num_workers)), num_workers


_ONE_CORE = contextvars.ContextVar("one_core", default=False)


@contextlib.contextmanager
def one_core(wanted: bool = True) -> Iterator[None]:
    """Use one core, where others have been promised to somebody else."""
    token = _ONE_CORE.set(wanted)
    try:
        yield
    finally:
        _ONE_CORE.reset(token)


def num_cores() -> int:
    """The cores that this process may use."""
    if _ONE_CORE.get():
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def _join(pieces: Sequence[Collected]) -> Collected:
    """Groups of runs, one after the other; runs with fewer plans than others get empty ones."""
    longest = max(0 if one.plans is None else one.plans.episodes.shape[1] for one in pieces)

    def widened(plans: np.ndarray) -> np.ndarray:
        missing = [(0, 0)] * plans.ndim
        missing[1] = (0, longest - plans.shape[1])
        return np.pad(plans, missing)

    pieces = [one._replace(plans=jax.tree.map(widened, one.plans)) for one in pieces]
    joined: Collected = jax.tree.map(lambda *arrays: np.concatenate(arrays), *pieces)
    return joined


def find_saddles(cmdp: CMDP, configurations: Sequence[Configuration]) -> list[RegularizedSolution]:
    """The saddle point that each run approaches."""
    found: dict[tuple[float, float, float], RegularizedSolution] = {}
    result = []
    for configuration in configurations:
        key = _saddle_key(configuration)
        if key is None:
            raise ParameterError("the potential is defined for a constant τ > 0 and margin.")
        if key not in found:
            found[key] = saddle_of(cmdp, *key)
        result.append(found[key])
    return result


def _saddle_key(configuration: Configuration) -> tuple[float, float, float] | None:
    """(τ, λ_max, margin), where they are constants and τ > 0; None for all other learners."""
    if not set(_OF_A_SADDLE) <= set(configuration.algorithm.names):
        return None
    tau, cap, margin = (
        as_schedule(name, getattr(configuration.parameters, name)) for name in _OF_A_SADDLE
    )
    if not (all(map(is_constant, (tau, cap, margin))) and tau.initial > 0):
        return None
    return tau.initial, cap.initial, margin.initial
