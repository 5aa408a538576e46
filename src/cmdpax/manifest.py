"""The manifest: everything that makes a batch of runs again, as JSON can hold it."""

import platform
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from cmdpax.arguments import Algorithm
from cmdpax.engine import Configuration
from cmdpax.errors import ParameterError
from cmdpax.learners.base import Hyperparameters
from cmdpax.model import CMDP
from cmdpax.optimism import Optimism
from cmdpax.options import Options
from cmdpax.planning.solution import Solution
from cmdpax.schedules import Schedule
from cmdpax.version import __version__


def name_of(algorithm: Algorithm) -> str:
    """The registered name, or the name of the user's own factory."""
    return algorithm if isinstance(algorithm, str) else getattr(algorithm, "__qualname__", "own")


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
    return str(jax.devices()[0].device_kind)


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
        options = Options(**{name: manifest[name] for name in Options.__dataclass_fields__})
        return [_configuration(run) for run in manifest["runs"]], options
    except (KeyError, TypeError) as error:
        raise ParameterError(f"this is not a manifest of `learn`: {error!r}.") from None


def _configuration(run: dict[str, Any]) -> Configuration:
    chosen = Hyperparameters(
        Schedule(*run["step_size"]),
        Schedule(*run["regularization"]),
        run["max_multiplier"],
        Schedule(*run["margin"]),
    )
    return Configuration(run["seed"], chosen, Optimism(**run["optimism"]))
