"""What an episode costs: timed, compilation apart."""

import time

import numpy as np

from cmdpax.arguments import as_optimism
from cmdpax.engine import Configuration
from cmdpax.experiments import Results
from cmdpax.hyperparameters import hyperparameters
from cmdpax.learning import learn_batch
from cmdpax.options import Options
from cmdpax.reproduction.experiment import REGULARIZATION, STEP_SIZE

_RUNS, _EPISODES, _REPEATS = 30, 1000, 5


def seconds_per_episode(paper: Results, algorithms: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Of each algorithm on the first CMDP, several times over, in turns."""
    cmdp = paper.cmdps[next(iter(paper.cmdps))]
    chosen = hyperparameters(STEP_SIZE, REGULARIZATION, 6.0, 0.0, _EPISODES)
    profile = as_optimism("empirical", _EPISODES)
    runs = [Configuration(seed, chosen, profile) for seed in range(_RUNS)]
    options = Options(_EPISODES, record=[1])
    took: dict[str, list[float]] = {name: [] for name in algorithms}
    for repeat in range(_REPEATS + 1):
        for name in algorithms:
            start = time.perf_counter()
            learn_batch(cmdp, name, runs, options)
            if repeat:  # the first one compiles
                took[name].append(time.perf_counter() - start)
    return {name: np.array(times) / (_RUNS * _EPISODES) for name, times in took.items()}
