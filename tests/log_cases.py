"""Logs for tests of tables and files, and what happened in them, read slowly."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np

import cmdpax
from cmdpax.model.words import PLAIN, Words

NAMES = st.text(min_size=1, max_size=12).filter(str.strip)
TABLE = """\
episode,step,state,action,reward,energy,parts
a,1,cold,low,3.0,6.0,0.2
a,2,warm,high,16.0,12.0,0.9
a,3,hot,,,,
b,1,cold,off,0.5,0.0,0.0
"""
"""The first episode ends in `hot`, the second is cut short and its end was not observed."""

COLUMNS = {
    "episode": [7, 7, 8],
    "step": [0, 1, 0],
    "state": ["cold", "warm", "cold"],
    "action": ["low", "off", "low"],
    "reward": [3.0, 2.0, 3.0],
    "energy": [6.0, 0.0, 6.5],
}


def changed(**columns: Any) -> dict[str, Any]:
    """Two short episodes, with other columns."""
    return COLUMNS | columns


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="")
    return path


@st.composite
def logs(draw: Any, *, named: bool | None = None, most_runs: int = 2) -> cmdpax.Log:
    """Episodes that may be cut short, whose ends may be unobserved, with names or without."""
    runs, count, horizon = (draw(st.integers(low, 3)) for low in (0, 1, 1))
    lead = (min(runs, most_runs), count) if 0 < runs <= most_runs else (count,)
    num_states, num_actions, num_constraints = (draw(st.integers(low, 4)) for low in (1, 1, 0))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    lengths = generator.integers(0, horizon + 1, lead)
    lengths.flat[0] = max(1, lengths.flat[0])
    played = np.arange(horizon) < lengths[..., None]
    states = generator.integers(0, num_states, (*lead, horizon + 1))
    ends = np.arange(horizon + 1) == lengths[..., None]
    states[ends & (generator.random((*lead, 1)) < 0.5)] = -1
    actions = np.where(played, generator.integers(0, num_actions, played.shape), -1)
    numbers = st.floats(allow_nan=False, allow_infinity=False)
    pool = np.array(draw(st.lists(numbers, min_size=1, max_size=5)))
    words = PLAIN
    if draw(st.booleans()) if named is None else named:
        sizes = (num_states, num_actions, num_constraints)
        taken = [*sizes[:2], num_constraints]
        lists = [draw(st.lists(NAMES, min_size=n, max_size=n, unique=True)) for n in taken]
        words = Words(tuple(lists[0]), tuple(lists[1]), tuple(f"c{one}" for one in lists[2]))
        words = words._replace(constraint_names=words.constraint_names or None)
    return cmdpax.Log(
        states,
        actions,
        generator.choice(pool, actions.shape),
        generator.choice(pool, (*lead, num_constraints, horizon)),
        words=words,
    )


def happened(log: cmdpax.Log) -> list[tuple[list[Any], ...]]:
    """Each episode that has a step: states, actions, rewards and constraints, in words."""
    horizon = log.actions.shape[-1]
    states = np.reshape(log.states, (-1, horizon + 1))
    actions = np.reshape(log.actions, (-1, horizon))
    rewards = np.reshape(log.rewards, (-1, horizon))
    num_constraints = np.shape(log.constraint_rewards)[-2]
    others = np.reshape(log.constraint_rewards, (len(actions), num_constraints, horizon))
    found = []
    for k in range(len(actions)):
        steps = [h for h in range(horizon) if actions[k, h] != -1]
        if not steps:
            continue
        reached = [states[k, h] for h in (*steps, steps[-1] + 1)]
        found.append(
            (
                [None if s == -1 else log.words.state(s) for s in reached],
                [log.words.action(actions[k, h]) for h in steps],
                [float(rewards[k, h]).hex() for h in steps],
                [[float(others[k, i, h]).hex() for h in steps] for i in range(num_constraints)],
            )
        )
    return found


def read_slowly(path: Path, constraints: Sequence[str]) -> list[tuple[list[Any], ...]]:
    """The same from a table with names: row by row, with the standard library alone."""
    found: list[tuple[list[Any], ...]] = []
    label = None
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["episode"] != label:
                found.append(([], [], [], [[] for _ in constraints]))
                label = row["episode"]
            states, actions, rewards, others = found[-1]
            if states and states[-1] is None:
                states.pop()
            if len(states) == len(actions):
                states.append(row["state"])
            if row["action"]:
                actions.append(row["action"])
                rewards.append(float(row["reward"]).hex())
                for numbers, name in zip(others, constraints, strict=True):
                    numbers.append(float(row[name]).hex())
                states.append(row.get("next_state") or None)
    return found
