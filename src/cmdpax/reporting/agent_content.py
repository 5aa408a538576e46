"""What a page shows of an agent's file, bounded in size however large the system is."""

import datetime
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cmdpax.errors import cut, plain
from cmdpax.live.accounts import AgentAccount, ConstraintAccount
from cmdpax.live.record import AgentRecord, Moving, moving_means
from cmdpax.live.saving import Position, read
from cmdpax.live.wording import labelled
from cmdpax.reporting.encoding import all_rounded, rounded
from cmdpax.storage.paths import require_file

MOST_CONSTRAINTS = 24
"""With more constraints, those that are missed or open come first."""
LONGEST = 60
"""Characters of a name."""

_WINDOW = 100
_FORMAT = 1
_URGENT = ("missed", "open", "met")


class AgentContent(NamedTuple):
    """An agent's file, read, and what the page chooses of it."""

    name: str
    saved: str  # when, for people
    position: Position
    account: AgentAccount
    record: AgentRecord
    moving: Moving | None  # None before the first whole episode
    chosen: list[int]  # constraints that are shown

    @property
    def signals(self) -> list[int]:
        """The reward, 0, and the constraints that are shown."""
        return [0, *(1 + index for index in self.chosen)]

    @property
    def constraints(self) -> list[ConstraintAccount]:
        """The constraints that are shown."""
        return [self.account[index] for index in self.chosen]

    def label(self, signal: int) -> str:
        """The name of a signal and its unit, cut where it is long."""
        one = self.account[signal - 1] if signal else None
        pair = ("reward", self.account.objective.unit) if one is None else (one.name, one.unit)
        return cut(labelled(*pair), LONGEST)


def read_agent(path: Path) -> AgentContent:
    """Read an agent's file.

    Raises:
        FileError: it is damaged, not an agent's, or from another version.
    """
    written = datetime.datetime.fromtimestamp(require_file(path).st_mtime, datetime.UTC)
    position = read(path)
    account, record = position.account, position.record
    moving = None
    if record.whole.any():
        window = max(1, min(_WINDOW, int(record.episodes.sum()) // 4))
        moving = moving_means(record, window)
    saved = f"{written.day} {written:%B %Y at %H:%M} UTC"
    name = cut(plain(path.name or os.fspath(path)), LONGEST)
    return AgentContent(name, saved, position, account, record, moving, _choose(account))


def _choose(account: AgentAccount) -> list[int]:
    """The constraints that are shown: where there are too many, the most urgent ones."""

    def urgency(index: int) -> int:
        one = account[index]
        return min(_URGENT.index(one.verdict), _URGENT.index(one.always_verdict))

    return sorted(sorted(range(len(account)), key=urgency)[:MOST_CONSTRAINTS])


def chart_data(content: AgentContent) -> dict[str, Any]:
    """What the charts draw, for JSON: at most 512 numbers in a row."""
    record, moving = content.record, content.moving
    if moving is None:
        return {"format": _FORMAT, "signals": []}
    return {
        "format": _FORMAT,
        "length": int(record.episodes[0]),
        "first": record.first.tolist(),
        "last": record.last.tolist(),
        "window": moving.window,
        "episodes": moving.episodes.tolist(),
        "signals": [_signal(content, record, moving, signal) for signal in content.signals],
    }


def _signal(
    content: AgentContent, record: AgentRecord, moving: Moving, signal: int
) -> dict[str, Any]:
    one = content.account[signal - 1] if signal else None
    return {
        "label": content.label(signal),
        "sense": None if one is None else one.sense,
        "threshold": None if one is None else rounded(one.threshold),
        "low": all_rounded(record.low[:, signal]),
        "high": all_rounded(record.high[:, signal]),
        "mean": all_rounded(moving.mean[:, signal]),
        "half": all_rounded(np.asarray(moving.half[:, signal])),
    }
