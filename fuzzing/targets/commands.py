"""The command line's own arguments: names, numbers, schedules, `key=value`, paths."""

from pathlib import Path
from random import Random
from typing import Any

import cmdpax
from fuzzing import hostile, trees
from fuzzing.cases import Entry, Input
from fuzzing.targets.base import Target
from fuzzing.targets.command_line import run_command
from fuzzing.targets.models import file_of, small_model

_MODEL = "model.npz"
_LINES = (
    "env list",
    "env make random -p num_states=3 -p num_actions=2 -p horizon=3 -p seed=7 --out out.npz",
    "env make gridworld -p horizon=5 --out out.json",
    "inspect model.npz --json",
    "solve model.npz --method column-generation --out out.npz",
    "policy policy.json --model model.npz --all",
    "frontier model.npz --constraint 0 --points 3 --from 0.1 --to 0.2 --out out.csv",
    "iterate model.npz --scheme primal-dual --iterations 3 -p step_size=0.1 -p max_multiplier=6",
    "iterate model.npz --scheme augmented-lagrangian --iterations 3 -p penalty=2 -p inner_steps=2",
    "learn model.npz --algorithm regularized-primal-dual --episodes 5 --seeds 2 -p step_size=0.1",
    "learn model.npz --algorithm vanilla-primal-dual --episodes 5 --seeds 3,4 -p margin=0.1*k^-1"
    " --optimism live --out out.npz",
    "algorithms replanning opse",
    "schemes",
)
_COUNTS = ("--episodes", "--iterations", "--points", "--seeds")
_FEW = ("0", "-1", "1", "nan", "1e3", "x", "", "2.5", "1,", "3,x", "9" * 400)
"""Counts that are refused, or that take no time."""
_PATHS = ("", ".", "/", "nowhere/out.npz", "out", "out.xyz", "pipe", "link.npz", "x" * 300 + ".npz")


def _samples() -> list[Input]:
    entries = (
        file_of(small_model(), _MODEL)._replace(foreign=True),
        Entry("policy.json", _policy(), foreign=True),
        Entry("pipe", kind="pipe", foreign=True),
        Entry("link.npz", kind="link", leads_to="out.linked.npz", foreign=True),
    )
    return [Input(entries, {"line": line.split(" ")}) for line in _LINES]


def _policy() -> bytes:
    """A policy of the model, as a file."""
    return str(cmdpax.solve(small_model()).policy.to_json()).encode()


def _mutate(rng: Random, given: Input, donors: Any) -> Input:
    line = list(given.arguments["line"])
    for _ in range(rng.choice((1, 1, 2))):
        line = _changed(rng, line)
    return given._replace(arguments={"line": [_possible(token) for token in line]})


def _changed(rng: Random, line: list[str]) -> list[str]:
    at = rng.randrange(len(line))
    way = rng.randrange(10)
    if way == 0:
        return line[:at] + line[at + 1 :] or ["--version"]
    if way == 1:
        return [*line[:at], line[at], *line[at:]]
    if way == 2:
        return [*line[:at], rng.choice(hostile.TEXTS), *line[at:]]
    return [*line[:at], _token(rng, line[at - 1] if at else "", line[at]), *line[at + 1 :]]


def _token(rng: Random, option: str, token: str) -> str:
    """Another token in the place of this one, after an option."""
    if option in _COUNTS:
        return rng.choice((*_FEW, "2000000000") if option == "--seeds" else _FEW)
    key, equals, value = token.partition("=")
    if equals and rng.random() < 0.8:
        other = trees.as_json(hostile.value(rng)) if rng.random() < 0.7 else _text(rng)
        return f"{key}={other}" if rng.random() < 0.9 else f"{_text(rng)}={value}"
    return rng.choice(
        (*_PATHS, token.upper(), token[:-1], _text(rng), str(rng.choice(hostile.NUMBERS)))
    )


def _text(rng: Random) -> str:
    return rng.choice(hostile.TEXTS)


def _possible(token: str) -> str:
    """No process can be given a null, nor half of a character; and nobody types a book."""
    return token.replace("\x00", "").replace("\ud800", "\udcff")[:10_000]


def _run(folder: Path, arguments: dict[str, Any]) -> None:
    run_command(arguments["line"])


COMMANDS = Target("commands", _samples, _run, _mutate, imports=True)
