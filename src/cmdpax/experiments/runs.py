"""From a specification to single runs, each with an identity, and to batches of them."""

import dataclasses
import hashlib
import itertools
import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import jax
import numpy as np

from cmdpax import environments
from cmdpax.errors import CmdpaxError, ParameterError
from cmdpax.experiments.specification import Grids, Specification, to_optimism
from cmdpax.learners import Algorithm, as_algorithm
from cmdpax.learners.optimism import Optimism
from cmdpax.learning.loop import model_bytes
from cmdpax.learning.settings import RUN_BYTES, Configuration, RunSettings, as_seeds
from cmdpax.model.cmdp import CMDP
from cmdpax.model.files import load
from cmdpax.model.rescaling import require_unit_rewards
from cmdpax.storage.limits import require_room

_BATCH_BYTES = 2**30
_BATCH_RUNS = 64
_ACCELERATOR_BATCH_BYTES = 2**32
_ACCELERATOR_BATCH_RUNS = 32_768
_RUNS_OF_THEIR_OWN_BATCH = 8


class Model(NamedTuple):
    """A CMDP of a sweep, and where it came from."""

    name: str
    source: dict[str, Any]
    cmdp: CMDP


class Run(NamedTuple):
    """One run of a sweep."""

    identity: str  # of everything that its numbers depend on
    fingerprint: str  # of its CMDP
    algorithm: str
    configuration: Configuration
    configuration_name: str  # the same for all seeds and CMDPs


# ------------------------------------------------------------------------------------------ models


def make_models(specification: Specification) -> dict[str, Model]:
    """The CMDPs by fingerprint, in the order of the specification."""
    found: dict[str, Model] = {}
    for index, entry in enumerate(specification.cmdps):
        place = f"cmdps[{index}]"
        try:
            for model in _models(entry.environment, entry.parameters, entry.file):
                require_unit_rewards(model.cmdp)
                found.setdefault(model.cmdp.fingerprint, model)
        except (CmdpaxError, MemoryError) as error:
            raise ParameterError(f"{place}: {error}") from None
    return found


def _require_few(what: str, *lengths: int) -> None:
    """Count what a grid makes before it is made."""
    count = math.prod(lengths)
    require_room(f"the list of {count:,} {what}", count * RUN_BYTES, "make the grid smaller")


def combinations(parameters: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """One value of every parameter; a list is a grid."""
    grid = {
        name: value if isinstance(value, list | tuple) else [value]
        for name, value in parameters.items()
    }
    _require_few("CMDPs", *map(len, grid.values()))
    for values in itertools.product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def _models(
    environment: str | None, parameters: dict[str, Any], file: str | None
) -> Iterable[Model]:
    if environment is None:
        assert file is not None
        yield Model(Path(file).stem, {"file": file}, load(file))
        return
    for chosen in combinations(parameters):
        listed = ", ".join(f"{name}={value}" for name, value in chosen.items())
        source = {"environment": environment, "parameters": chosen}
        name = f"{environment}({listed})" if listed else environment
        yield Model(name, source, environments.make(environment, **chosen))


# -------------------------------------------------------------------------------------------- runs


def make_runs(specification: Specification, models: Collection[str]) -> list[Run]:
    """All runs: algorithms × configurations × CMDPs × seeds, each once."""
    found: dict[str, Run] = {}
    seeds, settings = as_seeds(specification.seeds), specification.settings
    for index, grids in enumerate(specification.algorithms):
        try:
            _require_few("runs", _num_configurations(grids), len(models), len(seeds))
            algorithm = as_algorithm(grids.name)
            chosen = list(_configurations(specification, grids, algorithm))
        except CmdpaxError as error:
            raise ParameterError(f"algorithms[{index}]: {error}") from None
        for fingerprint in models:
            for (picked, optimism), seed in itertools.product(chosen, seeds):
                configuration = Configuration(seed, algorithm, picked, optimism)
                run = _run(settings, fingerprint, grids.name, configuration)
                found.setdefault(run.identity, run)
    return list(found.values())


def _num_configurations(grids: Grids) -> int:
    """How many combinations of parameters there are."""
    return math.prod(map(len, (*grids.parameters.values(), grids.optimism or (None,))))


def _configurations(
    specification: Specification, grids: Grids, algorithm: Algorithm
) -> Iterable[tuple[Any, Optimism]]:
    """All combinations of an algorithm's parameters, in the order in which it has them."""
    num_episodes = specification.num_episodes
    values = [grids.parameters.get(name, (None,)) for name in algorithm.names]
    profiles = grids.optimism or (specification.optimism,)
    for *picked, profile in itertools.product(*values, profiles):
        given = dict(zip(algorithm.names, picked, strict=True))
        yield algorithm.choose(given, num_episodes), to_optimism(profile, num_episodes)


def _run(
    settings: RunSettings, fingerprint: str, algorithm: str, configuration: Configuration
) -> Run:
    described = configuration.describe()
    seed = described.pop("seed")
    shared = {"algorithm": algorithm, **described}
    everything = {
        **shared,
        "cmdp": fingerprint,
        "seed": seed,
        "num_episodes": settings.num_episodes,
        "observations": settings.observations,
        "precision": settings.precision,
    }
    if settings.stationary:  # said only where it is: older folders keep their names
        everything["stationary"] = True
    return Run(_digest(everything, 16), fingerprint, algorithm, configuration, _digest(shared, 8))


def _digest(content: Any, length: int) -> str:
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:length]


# ----------------------------------------------------------------------------------------- batches


class Batch(NamedTuple):
    """Runs that share one compiled program."""

    algorithm: str
    runs: Sequence[Run]

    @property
    def name(self) -> str:
        """A name that depends on its runs alone."""
        return batch_name([run.identity for run in self.runs])


Kind: TypeAlias = tuple[Any, ...]
"""Runs of one kind share a compiled program, and take the same time."""


def kind_of(run: Run, models: Mapping[str, Model]) -> Kind:
    """Its algorithm first."""
    cmdp = models[run.fingerprint].cmdp
    shapes = tuple(array.shape for array in jax.tree.leaves(cmdp))
    _, algorithm, chosen, optimism = run.configuration
    return (run.algorithm, optimism.rewards, cmdp.horizon, shapes, algorithm.choices(chosen))


def batch_name(identities: Sequence[str]) -> str:
    """The name of the batch of these runs."""
    return _digest(list(identities), 16)


def by_kind(runs: Iterable[Run], models: Mapping[str, Model]) -> dict[Kind, list[Run]]:
    """Runs of one kind together, in their order."""
    grouped: dict[Kind, list[Run]] = {}
    for run in runs:
        grouped.setdefault(kind_of(run, models), []).append(run)
    return grouped


def make_batches(
    runs: Sequence[Run],
    models: Mapping[str, Model],
    specification: Specification,
    num_accelerators: int | None = None,
) -> list[Batch]:
    """Runs of one algorithm and size together, cut so that memory stays bounded.

    On the processor the runs of one CMDP share its arrays, if there are enough of them. Without
    a number of accelerators, for those of this machine.
    """
    if num_accelerators is None:
        num_accelerators = 0 if jax.default_backend() == "cpu" else len(jax.local_devices())
    batches = []
    for (algorithm, *_), members in by_kind(runs, models).items():
        for part in [members] if num_accelerators else _by_cmdp(members):
            cmdp = models[part[0].fingerprint].cmdp
            most = _most_runs(cmdp, specification, num_accelerators)
            batches += [Batch(algorithm, runs) for runs in evenly(part, most)]
    return batches


def evenly(runs: Sequence[Run], most: int) -> list[Sequence[Run]]:
    """So many at most in each part, and about as many in all of them."""
    size = math.ceil(len(runs) / math.ceil(len(runs) / most))
    return [runs[first : first + size] for first in range(0, len(runs), size)]


def _by_cmdp(runs: Sequence[Run]) -> list[Sequence[Run]]:
    """CMDPs with many runs on their own, the others together."""
    each: dict[str, list[Run]] = {}
    for run in runs:
        each.setdefault(run.fingerprint, []).append(run)
    large = [part for part in each.values() if len(part) >= _RUNS_OF_THEIR_OWN_BATCH]
    small = [run for part in each.values() if len(part) < _RUNS_OF_THEIR_OWN_BATCH for run in part]
    return [*large, *([small] if small else [])]


def _most_runs(cmdp: CMDP, specification: Specification, num_accelerators: int) -> int:
    """As many as memory allows: of each the model, and the accounts of its recorded episodes."""
    kept = len(episodes_in_memory(specification)) * (3 + 4 * cmdp.num_constraints) * 8
    each = model_bytes(cmdp, stacked=True) + 2 * kept
    if num_accelerators == 0:
        return max(1, min(_BATCH_RUNS, _BATCH_BYTES // each))
    fitting = min(_ACCELERATOR_BATCH_RUNS, _ACCELERATOR_BATCH_BYTES // each)
    return max(1, num_accelerators * fitting)  # a batch is spread over all of them


def episodes_in_memory(specification: Specification) -> np.ndarray:
    """The episodes that accounts are kept of while a batch runs: the measures need most of them."""
    settings = specification.settings
    every = dataclasses.replace(settings, record=None).recorded
    return np.union1d(every, settings.recorded)
