"""What takes time: an episode, and compilation."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np

from cmdpax.learners import as_algorithm
from cmdpax.learners.optimism import as_optimism
from cmdpax.learning.learn import learn_batch
from cmdpax.learning.settings import Configuration, RunSettings
from cmdpax.paper.reproduction.experiment import REGULARIZATION, STEP_SIZE
from cmdpax.paper.reproduction.measured import Measured

_RUNS, _EPISODES, _REPEATS = 30, 1000, 5
_EVENTS = (
    "/jax/core/compile/jaxpr_trace_duration",
    "/jax/core/compile/jaxpr_to_mlir_module_duration",
    "/jax/core/compile/backend_compile_duration",
)


def cost_ratios(paper: Measured, first: str, second: str) -> dict[str, np.ndarray]:
    """Measure several times, on every CMDP, what the first algorithm takes over the second."""
    given = {"step_size": STEP_SIZE, "regularization": REGULARIZATION}
    profile = as_optimism("empirical", _EPISODES)

    def runs(name: str) -> list[Configuration]:
        algorithm = as_algorithm(name)
        chosen = algorithm.choose(given, _EPISODES)
        return [Configuration(seed, algorithm, chosen, profile) for seed in range(_RUNS)]

    def ratios(cmdp: str) -> np.ndarray:
        model = paper.results.cmdps[paper.cmdps[cmdp]]
        took: dict[str, list[float]] = {first: [], second: []}
        for repeat in range(_REPEATS + 1):
            for (
                name,
                times,
            ) in took.items():  # in turns, so that both meet the same load of the machine
                start = time.perf_counter()
                learn_batch(model, runs(name), RunSettings(_EPISODES, record=[1]))
                if repeat:  # the first one compiles
                    times.append(time.perf_counter() - start)
        return np.array(took[first]) / np.array(took[second])

    return paper.each(ratios)


@contextmanager
def compilation_times() -> Iterator[list[float]]:
    """Collect the seconds of every tracing, lowering and compiling, in all threads."""
    seconds: list[float] = []

    def listen(event: str, duration_secs: float, **_: Any) -> None:
        if event in _EVENTS:
            seconds.append(duration_secs)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield seconds
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
