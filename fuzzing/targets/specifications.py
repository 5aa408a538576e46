"""Specifications of sweeps: TOML files and dicts, made into runs, and the smallest of them run."""

import json
from pathlib import Path
from random import Random
from typing import Any

from cmdpax.experiments.runs import make_batches, make_models, make_runs
from cmdpax.experiments.specification import Specification, read_specification
from fuzzing import trees
from fuzzing.cases import Entry, Input
from fuzzing.files import mutate_one
from fuzzing.targets.base import Target, require
from fuzzing.targets.command_line import run_command
from fuzzing.targets.folders import SPECIFICATION
from fuzzing.targets.models import SIZES, file_of, small_model
from fuzzing.values import mutate_values, read_value

_TOML, _JSON, _MODEL = "sweep.toml", "sweep.json", "model.npz"
_SWEEP_SHARE = 0.03
_FULL: dict[str, Any] = {
    "num_episodes": 20,
    "seeds": [3, 7],
    "observations": "bernoulli",
    "precision": "double",
    "record": 5,
    "unsafe_at": [0.01, 0.1],
    "stationary": False,
    "optimism": {"profile": "empirical", "scale": 0.5},
    "cmdps": [
        {"environment": "random", "parameters": SIZES | {"seed": [1, 2]}},
        {"file": _MODEL},
    ],
    "algorithms": [
        {
            "name": "regularized-primal-dual",
            "step_size": [0.1, "0.3*k^-0.2", {"initial": 0.3, "exponent": 0.5, "offset": 1.0}],
            "regularization": 0.02,
            "max_multiplier": [3.5, 6],
            "margin": "0.1*(k+3)^-0.25",
            "optimism": "live",
        }
    ],
}


def _samples() -> list[Input]:
    model = file_of(small_model(3), _MODEL)._replace(foreign=True)
    found = []
    for content in (_FULL, SPECIFICATION):
        toml = Entry(_TOML, trees.as_toml(content).encode())
        found.append(Input((toml, model), {"sweep": False}))
        found.append(Input((Entry(_JSON, json.dumps(content).encode()), model), {"sweep": False}))
    return [*found, found[2]._replace(arguments={"sweep": True})]


def _mutate(rng: Random, given: Input, donors: Any) -> Input:
    if any(entry.path == _JSON for entry in given.entries):
        plain = given._replace(entries=given.entries[:1])
        changed = mutate_values(rng, plain, donors)
        return changed._replace(entries=(*changed.entries, *given.entries[1:]))
    return mutate_one(rng, given, donors)._replace(arguments={"sweep": rng.random() < _SWEEP_SHARE})


def _run(folder: Path, arguments: dict[str, Any]) -> None:
    if (folder / _JSON).exists():
        given = read_value(_JSON)
        wanted = read_specification(given if isinstance(given, dict) else {"a": given})
    else:
        wanted = read_specification(_TOML)
    runs = _make(wanted)
    small = len(runs) <= 32 and wanted.num_episodes <= 100
    if arguments["sweep"] and small:
        run_command(["sweep", _TOML, "--out", "out.sweep"])


def _make(wanted: Specification) -> list[Any]:
    """Everything that is done before the first run."""
    models = make_models(wanted)
    runs = make_runs(wanted, models)
    batches = make_batches(runs, models, wanted, 0)
    require(sum(len(batch.runs) for batch in batches) == len(runs), "batches lose runs")
    recorded = wanted.settings.recorded
    require(recorded[-1] == wanted.num_episodes, "the last episode is not recorded")
    return runs


SPECIFICATIONS = Target("specifications", _samples, _run, _mutate, imports=True)
