"""What is run: the paper's experiment, and the sweeps that its remarks need."""

from typing import Any

import numpy as np

from cmdpax.experiments.specification import Specification, read_specification
from cmdpax.schemes.presets import strict_safety

SEED = 123
VANILLA_STEP_SIZES = (0.05, 0.075, 0.1, 0.125, 0.15, 0.2)
REGULARIZED_STEP_SIZES = (0.05, 0.1, 0.2)
REGULARIZATIONS = (0.01, 0.02)
# One configuration of the grids, for the sweeps that vary something else.
STEP_SIZE, REGULARIZATION = 0.1, 0.02
DECAYING_STEP_SIZE = "0.5*k^-0.2"
DECAYING_REGULARIZATION = "0.1*k^-0.2"
CAPS = (6.0, 12.0, 24.0)
LARGER = (
    {"num_states": 10, "num_actions": 5, "horizon": 10},
    {"num_states": 20, "num_actions": 5, "horizon": 10},
)
SAFETY_EXPONENT = 0.5  # α: the strong violation grows like √K
PRIMAL_DUAL = ("vanilla-primal-dual", "regularized-primal-dual")
DUAL = ("vanilla-dual", "regularized-dual")
QUICK = {"num_episodes": 1000, "num_runs": 2, "long_episodes": 50_000, "long_runs": 2}


def cmdp_seeds(num_cmdps: int) -> list[int]:
    """Give the seeds of the first CMDPs of the family, the paper's first."""
    return list(range(SEED, SEED + num_cmdps))


def specifications(
    cmdps: list[int],
    *,
    num_episodes: int = 4000,
    num_runs: int = 5,
    long_episodes: int = 1_000_000,
    long_runs: int = 3,
) -> dict[str, Specification]:
    """Specify the sweeps on the CMDPs with these seeds, in the order in which they are run."""
    seeds = list(range(SEED, SEED + num_runs))
    long_seeds = list(range(SEED, SEED + long_runs))
    margin = strict_safety(num_episodes, SAFETY_EXPONENT)
    tuned = {"step_size": STEP_SIZE, "regularization": REGULARIZATION}
    capped = [
        {"name": PRIMAL_DUAL[0], "step_size": STEP_SIZE, "max_multiplier": CAPS},
        {"name": PRIMAL_DUAL[1], **tuned, "max_multiplier": CAPS},
    ]
    safe = [{"name": PRIMAL_DUAL[1], **tuned, "margin": [0.0, margin]}]
    larger = [entry for sizes in LARGER for entry in _random(cmdps, **sizes)]
    paper = [*_grids(*PRIMAL_DUAL), *_grids(*DUAL)]
    return {
        "paper": _sweep(num_episodes, seeds, _random(cmdps), paper),
        "caps": _sweep(num_episodes, seeds, _random(cmdps), capped),
        "safety": _sweep(num_episodes, seeds, _random(cmdps), safe),
        "larger": _sweep(num_episodes, seeds, larger, _grids(*PRIMAL_DUAL)),
        "long": _sweep(long_episodes, long_seeds, _random(cmdps), _long()),
    }


def _grids(vanilla: str, regularized: str) -> list[dict[str, Any]]:
    """Span six configurations of each algorithm."""
    return [
        {"name": vanilla, "step_size": VANILLA_STEP_SIZES},
        {
            "name": regularized,
            "step_size": REGULARIZED_STEP_SIZES,
            "regularization": REGULARIZATIONS,
        },
    ]


def _long() -> list[dict[str, Any]]:
    """Vary the decay of the step size without regularization, and that of τ with it."""
    vanilla, regularized = PRIMAL_DUAL
    return [
        {"name": vanilla, "step_size": [STEP_SIZE, DECAYING_STEP_SIZE]},
        {
            "name": regularized,
            "step_size": STEP_SIZE,
            "regularization": [REGULARIZATION, DECAYING_REGULARIZATION],
        },
    ]


def _random(seeds: list[int], **sizes: int) -> list[dict[str, Any]]:
    return [{"environment": "random", "parameters": {**sizes, "seed": seeds}}]


def _sweep(
    num_episodes: int, seeds: list[int], cmdps: list[dict[str, Any]], algorithms: list[Any]
) -> Specification:
    return read_specification(
        {
            "num_episodes": num_episodes,
            "seeds": seeds,
            "cmdps": cmdps,
            "algorithms": algorithms,
            "record": 1000 if num_episodes <= 100_000 else log_spaced(num_episodes),
        }
    )


def log_spaced(num_episodes: int) -> list[int]:
    """Pick five hundred episodes for logarithmic axes."""
    return [int(k) for k in np.unique(np.geomspace(1, num_episodes, 500).round())]
