"""The CMDPs and runs that a specification asks for, and the batches in which they are run."""

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
from cmdpax.experiments.specification import Grids, Models, Specification, to_optimism
from cmdpax.learners import Algorithm, as_algorithm
from cmdpax.learners.optimism import Optimism
from cmdpax.learning.baseline import find_baselines
from cmdpax.learning.loop import model_bytes
from cmdpax.learning.settings import (
    RUN_BYTES,
    SAFEST,
    Configuration,
    RunSettings,
    as_seeds,
    require_countable,
)
from cmdpax.model.cmdp import CMDP
from cmdpax.model.files import load
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
    optimum: float = 0.0  # set when it is solved; trials do without


class Run(NamedTuple):
    """One run of a sweep."""

    identity: str  # a digest of everything that its numbers depend on
    fingerprint: str  # that of its CMDP
    configuration: Configuration
    configuration_name: str  # the same for all seeds and CMDPs

    @property
    def algorithm(self) -> str:
        """The name or the address of its algorithm."""
        return self.configuration.algorithm.name


class Batch(NamedTuple):
    """Runs that share one compiled program."""

    runs: Sequence[Run]
    seconds: float = 0.0  # about how long a worker takes; 0 where that was not measured

    @property
    def algorithm(self) -> str:
        """The algorithm of all runs."""
        return self.runs[0].algorithm

    @property
    def name(self) -> str:
        """A name that depends on the runs alone."""
        return batch_name([run.identity for run in self.runs])


def batch_name(identities: Sequence[str]) -> str:
    """The name of the batch of these runs."""
    return _digest(list(identities), 16)


# ------------------------------------------------------------------------------------------ models


def make_models(specification: Specification) -> dict[str, Model]:
    """The CMDPs by fingerprint, in the order of the specification."""
    found: dict[str, Model] = {}
    for index, entry in enumerate(specification.cmdps):
        try:
            for model in _models(entry):
                found.setdefault(model.cmdp.fingerprint, model)
        except (CmdpaxError, MemoryError) as error:
            raise ParameterError(f"cmdps[{index}]: {error}") from None
    return found


def _require_few(what: str, *lengths: int) -> None:
    """Refuse a grid that is too large for this machine, before it is made."""
    count = math.prod(lengths)
    require_room(f"the list of {count:,} {what}", count * RUN_BYTES, "make the grid smaller")


def combinations(parameters: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All choices of one value per parameter, where a list is a grid."""
    grid = {
        name: value if isinstance(value, list | tuple) else [value]
        for name, value in parameters.items()
    }
    _require_few("CMDPs", *map(len, grid.values()))
    for values in itertools.product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def _models(entry: Models) -> Iterator[Model]:
    if entry.file is not None:
        yield Model(Path(entry.file).stem, {"file": entry.file}, load(entry.file))
        return
    environment = str(entry.environment)
    for chosen in combinations(entry.parameters):
        listed = ", ".join(f"{name}={value}" for name, value in chosen.items())
        source = {"environment": environment, "parameters": chosen}
        name = f"{environment}({listed})" if listed else environment
        yield Model(name, source, environments.make(environment, **chosen))


# -------------------------------------------------------------------------------------------- runs


def make_runs(specification: Specification, models: Collection[str]) -> list[Run]:
    """All runs, algorithms × configurations × CMDPs × seeds, without repetitions."""
    found: dict[str, Run] = {}
    seeds, settings = as_seeds(specification.seeds), specification.settings
    baseline = _digest(settings.baseline or SAFEST, 16)  # of many numbers, perhaps
    for index, grids in enumerate(specification.algorithms):
        try:
            sizes = map(len, (*grids.parameters.values(), grids.optimism or (None,)))
            _require_few("runs", *sizes, len(models), len(seeds))
            algorithm = as_algorithm(grids.name)
            chosen = list(_configurations(specification, grids, algorithm))
        except CmdpaxError as error:
            raise ParameterError(f"algorithms[{index}]: {error}") from None
        for fingerprint in models:
            for (picked, optimism), seed in itertools.product(chosen, seeds):
                configuration = Configuration(seed, algorithm, picked, optimism)
                run = _run(settings, fingerprint, configuration, baseline)
                found.setdefault(run.identity, run)
    return list(found.values())


def _configurations(
    specification: Specification, grids: Grids, algorithm: Algorithm
) -> Iterator[tuple[Any, Optimism]]:
    """All combinations of an algorithm's parameters, in its own order, and of optimism."""
    num_episodes = specification.num_episodes
    require_countable(algorithm, specification.settings)
    values = [grids.parameters.get(name, (None,)) for name in algorithm.names]
    profiles = grids.optimism or (specification.optimism,)
    for *picked, profile in itertools.product(*values, profiles):
        given = dict(zip(algorithm.names, picked, strict=True))
        yield algorithm.choose(given, num_episodes), to_optimism(profile, num_episodes)


def _run(
    settings: RunSettings, fingerprint: str, configuration: Configuration, baseline: str
) -> Run:
    described = configuration.describe()
    seed = described.pop("seed")
    shared = {"algorithm": configuration.algorithm.name, **described}
    everything = {
        **shared,
        "cmdp": fingerprint,
        "seed": seed,
        "num_episodes": settings.num_episodes,
        "observations": settings.observations,
        "precision": settings.precision,
    }
    if settings.stationary:  # left out otherwise: runs of earlier versions keep their names
        everything["stationary"] = True
    if configuration.algorithm.needs_baseline:
        everything["baseline"] = baseline
    return Run(_digest(everything, 16), fingerprint, configuration, _digest(shared, 8))


def _digest(content: Any, length: int) -> str:
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def require_fitting(
    settings: RunSettings, runs: Iterable[Run], models: Mapping[str, Model]
) -> None:
    """Refuse models that an algorithm cannot handle, or in which its baseline is not safe.

    Raises:
        ParameterError: it says which model.
    """
    pairs = {(run.algorithm, run.fingerprint): run.configuration.algorithm for run in runs}
    for (_, fingerprint), algorithm in pairs.items():
        model = models[fingerprint]
        try:
            algorithm.require_constraints(model.cmdp.num_constraints)
            if algorithm.needs_baseline:
                find_baselines(algorithm, settings.baseline, [model.cmdp])
        except ParameterError as error:
            raise ParameterError(f"{model.name}: {error}") from None


# ----------------------------------------------------------------------------------------- batches


Kind: TypeAlias = tuple[Any, ...]
"""Runs of one kind share a compiled program and take the same time."""


def kind_of(run: Run, models: Mapping[str, Model]) -> Kind:
    """Everything on which the compiled program of a run depends."""
    cmdp = models[run.fingerprint].cmdp
    shapes = tuple(array.shape for array in jax.tree.leaves(cmdp))
    _, algorithm, chosen, optimism = run.configuration
    compiled = (algorithm.choices(chosen), algorithm.lengths(chosen))
    return (run.algorithm, optimism.rewards, cmdp.horizon, shapes, compiled)


def by_kind(runs: Iterable[Run], models: Mapping[str, Model]) -> dict[Kind, list[Run]]:
    """The runs of each kind, in their order."""
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
    """Put runs of one kind together, in batches that fit into memory.

    On a processor the runs of one CMDP share its arrays, if there are enough of them. The number
    of accelerators is that of this machine, unless it is given.
    """
    if num_accelerators is None:
        num_accelerators = 0 if jax.default_backend() == "cpu" else len(jax.local_devices())
    batches: list[Batch] = []
    for members in by_kind(runs, models).values():
        for part in [members] if num_accelerators else _by_cmdp(members):
            cmdp = models[part[0].fingerprint].cmdp
            most = _most_runs(cmdp, specification, num_accelerators)
            batches += map(Batch, evenly(part, most))
    return batches


def evenly(runs: Sequence[Run], most: int) -> list[Sequence[Run]]:
    """Cut runs into parts of about the same size, none larger than `most`."""
    size = math.ceil(len(runs) / math.ceil(len(runs) / most))
    return [runs[first : first + size] for first in range(0, len(runs), size)]


def _by_cmdp(runs: Sequence[Run]) -> list[Sequence[Run]]:
    """Give CMDPs with many runs a part of their own, and the others one together."""
    each: dict[str, list[Run]] = {}
    for run in runs:
        each.setdefault(run.fingerprint, []).append(run)
    large = [part for part in each.values() if len(part) >= _RUNS_OF_THEIR_OWN_BATCH]
    small = [run for part in each.values() if len(part) < _RUNS_OF_THEIR_OWN_BATCH for run in part]
    return [*large, *([small] if small else [])]


def _most_runs(cmdp: CMDP, specification: Specification, num_accelerators: int) -> int:
    """How many runs fit into memory, each with its model and the accounts of its episodes."""
    kept = len(episodes_in_memory(specification)) * (3 + 4 * cmdp.num_constraints) * 8
    each = model_bytes(cmdp, stacked=True) + 2 * kept
    if num_accelerators == 0:
        return max(1, min(_BATCH_RUNS, _BATCH_BYTES // each))
    fitting = min(_ACCELERATOR_BATCH_RUNS, _ACCELERATOR_BATCH_BYTES // each)
    return max(1, num_accelerators * fitting)  # a batch is spread over all of them


def episodes_in_memory(specification: Specification) -> np.ndarray:
    """The episodes whose accounts are kept while a batch runs: measures need more than `curves`."""
    settings = specification.settings
    every = dataclasses.replace(settings, record=None).recorded
    return np.union1d(every, settings.recorded)
