"""Files as this version of the library writes them, and what going on from them gives.

`write` makes the folder `tests/earlier`, `go_on` opens everything in such a folder and returns the
arrays that its `numbers.npz` holds, so that a later version can show that it still reads the files.
"""

import json
import shutil
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

import cmdpax
from fixed_experiments import tables
from fixed_runs import BLOCK, Interrupting
from fixed_systems import System, after, draws, play
from named_arrays import AGENT, HISTORY, Arrays, chosen, compare_all, named_arrays

FILES = (
    "model.npz",
    "history.npz",
    "manifest.json",
    "checkpoint.npz",
    "agent.npz",
    "sweep.toml",
    "calls.json",
    "numbers.npz",
)
MODEL = {"num_states": 3, "num_actions": 2, "horizon": 3, "num_constraints": 2, "seed": 4}
UNITS = {
    "reward_range": [-2.0, 3.0],
    "constraint_ranges": [[0.0, 20.0], [-1.0, 1.0]],
    "senses": ["at most", "at least"],
}
CALLS: dict[str, Any] = {
    "note": "{'power': [x, y, z]} stands for cmdpax.schedules.power(x, y, z)",
    "learn": {
        "algorithm": "regularized-primal-dual",
        "arguments": {
            "num_episodes": 40,
            "seeds": [3, 11],
            "step_size": 0.2,
            "regularization": 0.05,
            "log": True,
            "potential": True,
        },
    },
    "checkpoint": {
        "algorithm": "regularized-dual",
        "arguments": {
            "num_episodes": BLOCK + 200,
            "seeds": [3, 11],
            "optimism": "live",
            "step_size": {"power": [0.3, 0.2, 2.0]},
            "max_multiplier": 9.0,
            "margin": 0.02,
            "record": list(range(40, BLOCK + 200, 40)),
        },
    },
    "agent": {
        "algorithm": "regularized-primal-dual",
        "declaration": {
            "num_states": 3,
            "num_actions": 2,
            "horizon": 3,
            "initial": 0,
            "seed": 11,
            "names": ["energy", "comfort"],
            "step_size": {"power": [0.3, 0.2, 0.0]},
            "regularization": 0.05,
            "margin": 0.01,
            **UNITS,
        },
        "saved_after": {"episodes": 12, "steps": 1, "expects": "observe"},
        "goes_on_until": {"episodes": 20},
    },
    "sweep": {"goes_on_with": {"seeds": 3}},
}
REPLANNING: dict[str, Any] = {
    "agent": {
        "algorithm": "replanning",
        "declaration": {
            "num_states": 3,
            "num_actions": 2,
            "horizon": 3,
            "initial": 0,
            "seed": 12,
            "names": ["energy", "comfort"],
            "state_names": ["low", "mid", "high"],
            "action_names": ["rest", "work"],
            **UNITS,
        },
        "saved_after": {"episodes": 12, "steps": 1, "expects": "observe"},
        "goes_on_until": {"episodes": 20},
    },
}
"""An agent that plans, in a folder of its own beside the other files."""
SWEEP = """\
num_episodes = 60
seeds = 2
record = 5

[[cmdps]]
environment = "random"
parameters = { num_states = 3, num_actions = 2, horizon = 3, num_constraints = 2, seed = 4 }

[[algorithms]]
name = "regularized-primal-dual"
step_size = "0.3*k^-0.2"
regularization = [0.05, { initial = 0.3, exponent = 0.4, offset = 10 }]

[[algorithms]]
name = "vanilla-dual"
optimism = { profile = "live", scale = 0.1 }
"""


def write(folder: Path) -> None:
    """Write all files, and check that going on from them gives the numbers of whole runs."""
    if (folder / "sweep").exists():
        raise SystemExit(f"{folder} has such files already; give another folder.")
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        cmdp = cmdpax.environments.make("random", **MODEL)
        (scratch / "calls.json").write_text(json.dumps(_calls(cmdp), indent=1) + "\n")
        (scratch / "sweep.toml").write_text(SWEEP)
        cmdpax.save(cmdp, scratch / "model.npz")
        numbers = _write_runs(scratch) | _write_agent(scratch) | _write_sweep(scratch)
        np.savez_compressed(scratch / "numbers.npz", **numbers)
        differences = compare_all(numbers, go_on(scratch))
        if not all(one.kind == "equal" for one in differences.values()):
            raise SystemExit("going on from the files does not give the numbers of whole runs.")
        folder.mkdir(parents=True, exist_ok=True)
        for file in FILES:  # and not the locks beside them
            shutil.copy(scratch / file, folder / file)
        shutil.copytree(scratch / "sweep", folder / "sweep")
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        print(f"{path.stat().st_size:7,} {path.relative_to(folder)}")


def write_replanning(folder: Path) -> None:
    """Write the file of an agent that plans, with the numbers that go on from it."""
    folder.mkdir(parents=True)
    cmdp = cmdpax.environments.make("random", **MODEL)
    (folder / "calls.json").write_text(json.dumps(_calls(cmdp, REPLANNING), indent=1) + "\n")
    cmdpax.save(cmdp, folder / "model.npz")
    np.savez_compressed(folder / "numbers.npz", **_write_agent(folder))


def _calls(cmdp: cmdpax.CMDP, calls: dict[str, Any] = CALLS) -> dict[str, Any]:
    """All calls; the agent is also told the model's thresholds, in its own units."""
    thresholds = System(cmdp, draws(1, cmdp.horizon), **UNITS).thresholds()
    agent = calls["agent"]
    declared = agent["declaration"] | {"thresholds": thresholds.tolist()}
    return calls | {"agent": agent | {"declaration": declared}}


def go_on(folder: Path) -> Arrays:
    """Open all files of a folder, go on from each, and return the arrays of `numbers.npz`.

    It works on copies: a sweep and a checkpoint that go on are written anew.
    """
    with tempfile.TemporaryDirectory() as name:
        copy = Path(shutil.copytree(folder, Path(name) / "copy"))
        return (
            repeated(copy)
            | resumed(copy)
            | continued(copy, cmdpax.Agent.load(copy / "agent.npz"))
            | enlarged(copy)
        )


def called(folder: Path, name: str) -> Any:
    """The arguments of a call, with its schedules."""

    def decode(entry: dict[str, Any]) -> Any:
        return cmdpax.schedules.power(*entry["power"]) if "power" in entry else entry

    return json.loads((folder / "calls.json").read_text(), object_hook=decode)[name]


# -------------------------------------------------------------------------------------------- runs


def _write_runs(folder: Path) -> Arrays:
    """A history with its manifest, and the checkpoint of an interrupted run."""
    cmdp, call = cmdpax.load(folder / "model.npz"), called(folder, "learn")
    history = cmdpax.learn(cmdp, call["algorithm"], **call["arguments"])
    history.save(folder / "history.npz")
    (folder / "manifest.json").write_text(json.dumps(history.manifest, indent=1) + "\n")
    call = called(folder, "checkpoint")
    whole = cmdpax.learn(cmdp, call["algorithm"], **call["arguments"])
    try:
        cmdpax.learn(
            cmdp,
            call["algorithm"],
            **call["arguments"],
            checkpoint=folder / "checkpoint.npz",
            progress=Interrupting(),
        )
    except KeyboardInterrupt:
        numbers = named_arrays("history", chosen(history, HISTORY))
        return numbers | named_arrays("checkpoint", chosen(whole, HISTORY))
    raise RuntimeError("the run ended before it was interrupted.")


def repeated(folder: Path) -> Arrays:
    """The runs of `manifest.json`, which are those of `history.npz`, made again."""
    manifest = json.loads((folder / "manifest.json").read_text())
    history = cmdpax.repeat(cmdpax.load(folder / "model.npz"), manifest)
    return named_arrays("history", chosen(history, HISTORY))


def resumed(folder: Path) -> Arrays:
    """The run of `checkpoint.npz`, to its end."""
    cmdp, call = cmdpax.load(folder / "model.npz"), called(folder, "checkpoint")
    history = cmdpax.learn(
        cmdp, call["algorithm"], **call["arguments"], checkpoint=folder / "checkpoint.npz"
    )
    return named_arrays("checkpoint", chosen(history, HISTORY))


# ------------------------------------------------------------------------------------------- agent


def _write_agent(folder: Path) -> Arrays:
    """An agent in the middle of an episode, after an action that was not answered yet."""
    call, cmdp = called(folder, "agent"), cmdpax.load(folder / "model.npz")
    uniforms = draws(call["goes_on_until"]["episodes"], cmdp.horizon)
    np.savez_compressed(folder / "numbers.npz", **{"agent/uniforms": uniforms})
    system = System(cmdp, uniforms, **UNITS)
    agent = cmdpax.Agent(call["algorithm"], **call["declaration"])
    middle = after(call["saved_after"]["episodes"], call["saved_after"]["steps"])
    play(agent, system, lambda now: middle(now) and now.expects == "observe")
    agent.save(folder / "agent.npz")
    return continued(folder, agent)


def continued(folder: Path, agent: cmdpax.Agent) -> Arrays:
    """The agent as it was saved, its further actions, and where they lead."""
    with np.load(folder / "numbers.npz") as archive:
        uniforms = archive["agent/uniforms"]
    system = System(cmdpax.load(folder / "model.npz"), uniforms, **UNITS)
    saved = chosen(agent, ("policy", "multipliers", "num_episodes", "step", "expects"))
    until = called(folder, "agent")["goes_on_until"]["episodes"]
    actions = play(agent, system, after(until))
    found = {"uniforms": uniforms, "saved": saved, "actions": actions, "end": chosen(agent, AGENT)}
    return named_arrays("agent", found)


# ------------------------------------------------------------------------------------------- sweep


def _write_sweep(folder: Path) -> Arrays:
    """A sweep, and what a larger one gives; that one is made in a copy."""
    cmdpax.sweep(folder / "sweep.toml", folder / "sweep")
    with tempfile.TemporaryDirectory() as name:
        return enlarged(Path(shutil.copytree(folder, Path(name) / "copy")))


def enlarged(folder: Path) -> Arrays:
    """The runs that are there, and the tables after more seeds were added."""
    there = sorted(cmdpax.results(folder / "sweep").final["run"])
    specification = tomllib.loads((folder / "sweep.toml").read_text())
    larger = specification | called(folder, "sweep")["goes_on_with"]
    found = {"there": there} | tables(cmdpax.sweep(larger, folder / "sweep"))
    return named_arrays("sweep", found)
