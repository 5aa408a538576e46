"""The manifest: everything that makes a batch of runs again, as JSON can hold it."""

import contextlib
import platform
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from cmdpax.errors import ParameterError
from cmdpax.learners import Algorithm, Named, address_of, as_algorithm, registered
from cmdpax.learners.optimism import Optimism
from cmdpax.learning.settings import Configuration, RunSettings, as_seeds
from cmdpax.learning.workers import num_cores
from cmdpax.model.cmdp import CMDP
from cmdpax.model.transitions import Successors
from cmdpax.planning.solution import Solution
from cmdpax.version import __version__


def write_manifest(
    cmdp: CMDP,
    configurations: Sequence[Configuration],
    settings: RunSettings,
    solution: Solution,
) -> dict[str, Any]:
    """Everything that makes the numbers again."""
    return {
        "cmdp": cmdp.fingerprint,
        "algorithm": configurations[0].algorithm.name,
        **settings.to_dict(),
        "support": "known" if isinstance(cmdp.transitions, Successors) else "all states",
        "optimum": solution.value,
        "optimal_multipliers": solution.multipliers.tolist(),
        "runs": [configuration.describe() for configuration in configurations],
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


def read_manifest(
    manifest: dict[str, Any], given: Named | None
) -> tuple[list[Configuration], RunSettings]:
    """The runs and the settings that a manifest describes; one's own algorithm must be given."""
    try:
        settings = RunSettings.from_dict(manifest)
        if not all(isinstance(manifest[name], str) for name in ("cmdp", "algorithm")):
            raise TypeError("cmdp and algorithm must be texts")
        algorithm = algorithm_of_runs(manifest["algorithm"], given)
        configurations = [
            read_configuration(run, algorithm, settings.num_episodes) for run in manifest["runs"]
        ]
        as_seeds([run.seed for run in configurations])
        return configurations, settings
    except (KeyError, TypeError, AttributeError) as error:
        raise ParameterError(f"this is not a manifest of `learn`: {error!r}.") from None


def algorithm_of_runs(name: str, given: Named | None) -> Algorithm:
    """Runs are made again with the algorithm that made them; one's own must be given."""
    if given is None:
        found = registered(name)
        if found is None:
            raise ParameterError(
                f"the runs were made with the algorithm {name!r}, which cmdpax does not have; give "
                "it as algorithm=, a factory or its address."
            )
        return found
    found = as_algorithm(given)
    known = {found.name}
    with contextlib.suppress(ParameterError):  # it stands in no module
        known.add(address_of(given))
    if name not in known:
        raise ParameterError(
            f"the runs were made with the algorithm {name!r}, not with {found.name!r}; give "
            "the one that made them."
        )
    return found


def read_configuration(
    run: dict[str, Any], algorithm: Algorithm, num_episodes: int
) -> Configuration:
    """One run, as a configuration describes itself."""
    chosen = algorithm.restore(run, num_episodes)
    return Configuration(run["seed"], algorithm, chosen, Optimism(**run["optimism"]))
