"""What an episode costs: timed, compilation apart."""

import time

import numpy as np

from cmdpax.learners import as_algorithm
from cmdpax.learners.optimism import as_optimism
from cmdpax.learning.learn import learn_batch
from cmdpax.learning.settings import Configuration, RunSettings
from cmdpax.paper.reproduction.experiment import REGULARIZATION, STEP_SIZE
from cmdpax.paper.reproduction.measured import Measured

_RUNS, _EPISODES, _REPEATS = 30, 1000, 5


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
