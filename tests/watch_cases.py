"""What the tests of `cmdpax watch` share: a saved agent, and the cells of what is shown."""

import re
from pathlib import Path
from typing import Any

import cmdpax
from live_cases import make, play

NAMES = ["empty hours", "comfort"]


def watched(num_episodes: int, path: str | Path = "a.npz", **changes: Any) -> cmdpax.Agent:
    """An agent with a cost and a signal that is wanted, saved; every third episode is short."""
    senses, ranges = ["at most", "at least"], [(0, 10), (-1, 1)]
    declared = {"senses": senses, "constraint_ranges": ranges, "names": NAMES}
    agent = play(make(**(declared | {"thresholds": [12.5, -0.25]} | changes)), num_episodes)
    agent.save(path)
    return agent


def cells(out: str, row: str) -> list[str]:
    """The cells of a row of the table."""
    (line,) = [line for line in out.splitlines() if row in line]
    return [cell.strip() for cell in re.split("[│┃]", line)[2:-1]]
