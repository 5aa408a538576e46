"""A policy as a table for people: state, steps, what is done, and how often it comes to that.

A row is a *run*: a state, and successive steps at which the same is decided there, to the digits
that are shown. So what does not change with the step is shown once.
"""

from typing import NamedTuple

import numpy as np

from cmdpax.errors import cut, plain
from cmdpax.model.words import Words

_MOST_ROWS = 36  # with head and remarks, some forty lines
_MOST_ACTIONS = 4  # of a row; the most probable ones
_LONGEST = 40  # characters of a name
_STEPS_OF_PERCENT = 1000  # what is shown: tenths of a percent


class _Runs(NamedTuple):
    """States with first and last steps, and the smallest and largest chance of being there.

    The chances are NaN if they are unknown.
    """

    states: np.ndarray
    firsts: np.ndarray
    lasts: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray

    def pick(self, chosen: np.ndarray) -> "_Runs":
        """Some of them."""
        return _Runs(*(array[chosen] for array in self))


def random_places(policy: np.ndarray) -> np.ndarray:
    """Where more than one action has a positive probability, flags `[H, S]`."""
    return np.asarray(np.count_nonzero(policy, axis=-1) > 1)


def make_table(
    policy: np.ndarray, words: Words, reached: np.ndarray | None, *, whole: bool = False
) -> list[str]:
    """The lines: a head, a line per row, and remarks on what is left out.

    Args:
        policy: `[H, S, A]`.
        words: the names.
        reached: the chance of being in a state at a step, `[H, S]`; None if it is unknown.
        whole: all rows; otherwise those that are ever reached, and of many those that are reached
            most.
    """
    runs, remarks = _find_runs(policy, reached), []
    never = runs.highest == 0
    if not whole and never.any():
        runs = runs.pick(~never)
        remarks.append(f"{_rows(int(never.sum()))} never reached, and left out")
    if not whole and len(runs.states) > _MOST_ROWS:
        more = f"… {_rows(len(runs.states) - _MOST_ROWS, 'more ')}"
        often = "" if reached is None else " reached less often, and"
        remarks.insert(0, f"{more}{often} left out; to_csv has all")
        # Sorting is stable: where nothing is known, these are the first ones.
        runs = runs.pick(np.sort(np.argsort(-runs.highest, kind="stable")[:_MOST_ROWS]))
    return _aligned(_cells(policy, words, runs)) + remarks


def make_change(
    before: np.ndarray, after: np.ndarray, words: Words, reached: np.ndarray | None
) -> list[str]:
    """The lines of a table of what differs between two policies, in the form of `make_table`."""
    runs = _find_runs(np.concatenate([before, after], axis=-1), reached)
    places = list(zip(runs.firsts.tolist(), runs.states.tolist(), strict=True))
    differ = [bool((before[place] != after[place]).any()) for place in places]
    runs, remarks = runs.pick(np.array(differ, bool)), []
    if len(runs.states) > _MOST_ROWS:
        remarks.append(f"… {_rows(len(runs.states) - _MOST_ROWS, 'more ')} left out")
        runs = runs.pick(np.sort(np.argsort(-runs.highest, kind="stable")[:_MOST_ROWS]))
    columns = _cells(before, words, runs)
    place = [column[0] for column in columns].index("action")
    rows = zip(runs.firsts.tolist(), runs.states.tolist(), strict=True)
    columns[place][0] = "before"
    columns.insert(place + 1, ["after", *(decision(after[at], words) for at in rows)])
    return _aligned(columns) + remarks


def _find_runs(policy: np.ndarray, reached: np.ndarray | None) -> _Runs:
    """All runs, by state and then by step."""
    horizon, num_states, _ = policy.shape
    shown, possible = np.rint(policy * _STEPS_OF_PERCENT).astype(np.int16), policy > 0
    begins = np.ones((horizon, num_states), bool)
    begins[1:] = (shown[1:] != shown[:-1]).any(-1) | (possible[1:] != possible[:-1]).any(-1)
    states, firsts = np.nonzero(begins.T)
    goes_on = np.append(states[1:] == states[:-1], False)
    lasts = np.where(goes_on, np.append(firsts[1:], 0), horizon) - 1
    chances = np.full(horizon * num_states, np.nan) if reached is None else reached.T.ravel()
    places = states * horizon + firsts
    lowest, highest = (one.reduceat(chances, places) for one in (np.minimum, np.maximum))
    return _Runs(states, firsts, lasts, lowest, highest)


def _cells(policy: np.ndarray, words: Words, runs: _Runs) -> list[list[str]]:
    """The columns, with their heads; that of the steps only where it says something."""
    rows = [*zip(runs.states.tolist(), runs.firsts.tolist(), runs.lasts.tolist(), strict=True)]
    horizon = len(policy)
    columns = [["state", *(_short(words.state(state)) for state, _, _ in rows)]]
    if any((first, last) != (0, horizon - 1) for _, first, last in rows):
        columns.append(["steps", *(_range(first, last, horizon) for _, first, last in rows)])
    columns.append(["action", *(decision(policy[step, s], words) for s, step, _ in rows)])
    if not np.isnan(runs.highest).any():
        pairs = zip(runs.lowest.tolist(), runs.highest.tolist(), strict=True)
        columns.append(["reached", *(_chances(low, high) for low, high in pairs)])
    return columns


def _aligned(columns: list[list[str]]) -> list[str]:
    """The columns side by side; "reached" has its numbers to the right."""
    padded = []
    for column in columns:
        width = max(map(len, column))
        right = column[0] == "reached"
        padded.append([cell.rjust(width) if right else cell.ljust(width) for cell in column])
    return ["  ".join(cells).rstrip() for cells in zip(*padded, strict=True)]


def _range(first: int, last: int, horizon: int) -> str:
    if (first, last) == (0, horizon - 1):
        return "all"
    return str(first) if first == last else f"{first}–{last}"


def decision(row: np.ndarray, words: Words) -> str:
    """The action, or the actions with their probabilities, the most probable ones first."""
    possible = np.flatnonzero(row)
    if len(possible) == 1:
        return _short(words.action(int(possible[0])))
    order = possible[np.argsort(-row[possible], kind="stable")].tolist()
    parts = [f"{_short(words.action(a))} {_percent(row[a])} %" for a in order[:_MOST_ACTIONS]]
    if len(order) > _MOST_ACTIONS:
        parts.append(f"{len(order) - _MOST_ACTIONS} more")
    return ", ".join(parts)


def _chances(low: float, high: float) -> str:
    if high == 0:
        return "never"
    ends = (_percent(low), _percent(high))
    if ends[0] == ends[1]:
        return f"{ends[1]} %"
    return f"up to {ends[1]} %" if ends[0] in ("0", "<0.1") else f"{'–'.join(ends)} %"


def _percent(chance: float) -> str:
    """Tenths of a percent, where "0" and "100" mean exactly that, but for rounding."""
    tenths = round(chance * _STEPS_OF_PERCENT)
    if tenths == 0 and chance > 0:
        return "<0.1"
    if tenths >= _STEPS_OF_PERCENT and chance < 1 - 1e-9:
        return ">99.9"
    return f"{tenths / 10:g}"


def _rows(count: int, which: str = "") -> str:
    return f"1 {which}row is" if count == 1 else f"{count} {which}rows are"


def _short(name: str) -> str:
    return cut(plain(name), _LONGEST)
