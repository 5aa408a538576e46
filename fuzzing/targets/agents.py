"""Agents: their files, loaded, played with, saved again, watched and reported."""

import tempfile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import cmdpax
from fuzzing.cases import Entry, Input
from fuzzing.files import mutate_one
from fuzzing.targets.base import Target, require
from fuzzing.targets.command_line import run_command
from fuzzing.targets.models import SIZES

AGENT = "agent.npz"
_COMMANDS = (["watch", "--once"], ["watch", "--json"], ["report", "--out", "out.html"])


def _make(**changes: Any) -> cmdpax.Agent:
    arguments: dict[str, Any] = {"thresholds": [0.5], "initial": 0, "names": ["energy"]}
    return cmdpax.Agent("regularized-primal-dual", **(SIZES | arguments | changes))


def _play(agent: cmdpax.Agent, steps: int) -> None:
    """So many steps of an episode from the beginning; all of them end it."""
    agent.start(0)
    for _ in range(steps):
        agent.act(agent.state)  # type: ignore[arg-type]
        agent.observe(0.5, [0.25] * len(agent.account), 0)
    if steps == SIZES["horizon"]:
        agent.end()


def _file(agent: cmdpax.Agent) -> Entry:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / AGENT
        agent.save(path)
        return Entry(AGENT, path.read_bytes())


def small_agent_file() -> Entry:
    """An agent that has played an episode."""
    agent = _make()
    _play(agent, SIZES["horizon"])
    return _file(agent)


def small_agent(folder: Path) -> cmdpax.Agent:
    """The agent of a case."""
    return cmdpax.Agent.load(folder / AGENT)


def _samples() -> list[Input]:
    fresh, open_one = _make(), _make()
    _play(open_one, SIZES["horizon"])
    _play(open_one, 1)
    known = _make(rewards=np.full((3, 3, 2), 0.5), constraint_rewards=np.full((1, 1, 3, 2), 0.5))
    listed = _make(successors=np.zeros((1, 3, 2, 1), int))
    files = [_file(agent) for agent in (fresh, open_one, known, listed)]
    found = [Input((file,), {"command": None}) for file in files]
    return found + [Input((files[1],), {"command": command}) for command in _COMMANDS]


def _mutate(rng: Random, given: Input, donors: Any) -> Input:
    command = None if rng.random() < 0.6 else rng.choice(_COMMANDS)
    return mutate_one(rng, given, donors)._replace(arguments={"command": command})


def _run(folder: Path, arguments: dict[str, Any]) -> None:
    if arguments["command"] is not None:
        run_command([*arguments["command"], AGENT])
        return
    agent = cmdpax.Agent.load(AGENT)
    require(bool(np.isfinite(agent.policy).all()), "the agent's policy is not finite")
    if agent.state is not None:
        agent.end()
    agent.save("out.npz")
    again = cmdpax.Agent.load("out.npz")
    require(str(again.record) == str(agent.record), "a saved agent has another record")
    require(again.num_episodes == agent.num_episodes, "a saved agent has other episodes")
    require(bool((again.policy == agent.policy).all()), "a saved agent has another policy")


AGENTS = Target("agents", _samples, _run, _mutate)
