"""Runs to make, as `learn` describes them to its batches."""

from typing import Any

import cmdpax
from cmdpax.learners import Named, as_algorithm
from cmdpax.learning.loop import Design
from cmdpax.learning.settings import Configuration

ALGORITHM = "regularized-primal-dual"


def configured(
    algorithm: Named = ALGORITHM,
    seed: int = 0,
    *,
    optimism: cmdpax.Optimism | None = None,
    num_episodes: int = 1000,
    **parameters: Any,
) -> Configuration:
    """One run; what is not given is the algorithm's default."""
    known = as_algorithm(algorithm)
    chosen = known.choose(parameters, num_episodes)
    return Configuration(seed, known, chosen, optimism or cmdpax.Optimism.empirical())


def designed(configuration: Configuration, **changes: Any) -> Design:
    """The compiled program of a run, with mean observations and nothing kept."""
    algorithm = configuration.algorithm
    plain = Design(
        algorithm,
        configuration.optimism.rewards == "known",
        choices=algorithm.choices(configuration.parameters),
    )
    return plain._replace(**changes)
