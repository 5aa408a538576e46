"""The manifest: everything that makes a batch of runs again, as JSON can hold it."""

import platform
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from cmdpax.arguments import Algorithm, as_seeds, name_of
from cmdpax.batch import Configuration
from cmdpax.engine import num_cores
from cmdpax.errors import ParameterError
from cmdpax.hyperparameters import hyperparameters
from cmdpax.learners.base import Hyperparameters
from cmdpax.model import CMDP
from cmdpax.optimism import Optimism
from cmdpax.options import Options
from cmdpax.planning.solution import Solution
from cmdpax.schedules import Schedule
from cmdpax.transitions import Successors
from cmdpax.version import __version__


def write_manifest(
    cmdp: CMDP,
    algorithm: Algorithm,
    configurations: Sequence[Configuration],
    options: Options,
    solution: Solution,
) -> dict[str, Any]:
    """Everything that makes the numbers again."""
    return {
        "cmdp": cmdp.fingerprint,
        "algorithm": name_of(algorithm),
        **options._asdict(),
        "support": "known" if isinstance(cmdp.transitions, Successors) else "all states",
        "optimum": solution.value,
        "optimal_multipliers": solution.multipliers.tolist(),
        "runs": [describe(configuration) for configuration in configurations],
        "versions": versions(),
        "device": device(),
    }


def versions() -> dict[str, str]:
    """Of what the numbers depend on."""
    return {
        "cmdpax": __version__,
        "jax": jax.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def device() -> str:
    """What the numbers were computed on."""
    return str(jax.local_devices()[0].device_kind)


def devices() -> str:
    """All that is computed on, in words: `cpu, 2 cores` or `2 × NVIDIA H200`."""
    found = jax.local_devices()
    if jax.default_backend() == "cpu":
        return f"cpu, {num_cores()} core{'s' if num_cores() > 1 else ''}"
    return f"{len(found)} × {device()}" if len(found) > 1 else device()


def describe(configuration: Configuration) -> dict[str, Any]:
    """One run; schedules are (initial, exponent, offset)."""
    seed, chosen, optimism = configuration
    return {
        "seed": seed,
        "step_size": list(chosen.step_size),
        "regularization": list(chosen.regularization),
        "max_multiplier": chosen.max_multiplier,
        "margin": list(chosen.margin),
        "optimism": optimism._asdict(),
    }


def read_manifest(manifest: dict[str, Any]) -> tuple[list[Configuration], Options]:
    """The runs and the options that a manifest describes."""
    try:
        known = {"stationary": False} | manifest  # manifests of 0.1 do not have it
        options = Options(**{name: known[name] for name in Options.__dataclass_fields__})
        if not all(isinstance(manifest[name], str) for name in ("cmdp", "algorithm")):
            raise TypeError("cmdp and algorithm must be texts")
        configurations = [read_configuration(run) for run in manifest["runs"]]
        as_seeds([seed for seed, _, _ in configurations])
        for _, chosen, _ in configurations:
            hyperparameters(*chosen, options.num_episodes)
        return configurations, options
    except (KeyError, TypeError, AttributeError) as error:
        raise ParameterError(f"this is not a manifest of `learn`: {error!r}.") from None


def read_configuration(run: dict[str, Any]) -> Configuration:
    """One run, as `describe` tells it."""
    chosen = Hyperparameters(
        Schedule(*run["step_size"]),
        Schedule(*run["regularization"]),
        run["max_multiplier"],
        Schedule(*run["margin"]),
    )
    return Configuration(run["seed"], chosen, Optimism(**run["optimism"]))
