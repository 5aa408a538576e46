"""Logs: estimated, replayed, and fed to an agent."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import cmdpax
from cmdpax.model.empirical import estimate
from fuzzing.cases import Input
from fuzzing.targets.agents import AGENT, small_agent, small_agent_file
from fuzzing.targets.base import Target, require
from fuzzing.targets.models import SIZES, small_model
from fuzzing.values import file_of_value, mutate_values, read_value

_LOG, _OPTIONS = "log", "options.json"
_KNOWN = {
    "estimate": (
        *("num_states", "num_actions", "thresholds", "limits", "initial"),
        *("stationary", "unvisited", "storage"),
    ),
    "replay": ("optimism", "step_size", "regularization", "max_multiplier", "margin"),
    "feed": ("own",),
}


def _samples() -> list[Input]:
    generator = np.random.default_rng(1)
    horizon, episodes = SIZES["horizon"], 4
    log = {
        "states": generator.integers(0, 2, (episodes, horizon + 1)),
        "actions": generator.integers(0, SIZES["num_actions"], (episodes, horizon)),
        "rewards": generator.random((episodes, horizon)),
        "constraint_rewards": generator.random((episodes, 1, horizon)),
    }
    plain = {name: array.tolist() for name, array in log.items()}
    options: dict[str, dict[str, Any]] = {
        "estimate": {
            "thresholds": [0.5],
            "num_states": 3,
            "num_actions": 2,
            "unvisited": "uniform",
        },
        "replay": {"step_size": 0.1, "max_multiplier": 6.0, "optimism": "empirical"},
        "feed": {"own": True},
    }
    found = []
    for function, chosen in options.items():
        for entry in (file_of_value(f"{_LOG}.npz", log), file_of_value(f"{_LOG}.json", plain)):
            agent = (small_agent_file(),) if function == "feed" else ()
            entries = (entry, file_of_value(_OPTIONS, chosen), *agent)
            found.append(Input(entries, {"function": function}))
    return found


def _mutate(rng: Any, given: Input, donors: Any) -> Input:
    """The agent stays what it is."""
    kept = tuple(entry for entry in given.entries if entry.path == AGENT)
    others = given._replace(entries=tuple(one for one in given.entries if one.path != AGENT))
    changed = mutate_values(rng, others, donors)
    return changed._replace(entries=(*changed.entries, *kept))


def _run(folder: Path, arguments: dict[str, Any]) -> None:
    (file,) = folder.glob(f"{_LOG}.*")
    fields, options = read_value(file.name), read_value(_OPTIONS)
    log: Any = SimpleNamespace(**fields) if isinstance(fields, dict) else fields
    function = arguments["function"]
    # An unknown keyword is Python's own error, not one of the library's.
    given = options if isinstance(options, dict) else {}
    chosen = {name: value for name, value in given.items() if name in _KNOWN[function]}
    if function == "estimate":
        cmdpax.validate(estimate(log, **chosen))
    elif function == "replay":
        found = cmdpax.replay(small_model(), "regularized-primal-dual", log, **chosen)
        require(bool(np.isfinite(found.policies).all()), "a replayed policy is not finite")
    else:
        agent = small_agent(folder)
        agent.feed(log, **chosen)
        require(bool(np.isfinite(agent.policy).all()), "the agent's policy is not finite")


LOGS = Target("logs", _samples, _run, _mutate)
