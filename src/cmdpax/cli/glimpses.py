"""What `cmdpax watch` shows of an agent's plan, its policy, and what is unexplored."""

from itertools import groupby
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text

from cmdpax.cli.output import table
from cmdpax.errors import cut, plain

ROWS = 8
"""The states that are shown, where there is room."""

_RUNS = 3  # of successive steps with one action, in a row
_LONGEST = 24  # characters of a name
_SURE = 99.5  # per cent: from here on an action is called certain


def plan_lines(declared: Any, glimpse: Any) -> list[Text]:
    """A line on the plan, and one or two on what is unexplored."""
    lines = []
    if len(glimpse.plan):
        number, feasible, remaining = glimpse.plan.tolist()
        played = f"played for {_episodes(remaining)}"
        if feasible:
            lines.append(Text(f"plan {number:,}: feasible in its model, {played}"))
        else:
            why = "no policy meets all constraints in its model, the nearest one is"
            lines.append(Text(f"plan {number:,}: {why} {played}", style="yellow"))
    if len(glimpse.explored):
        lines += [Text(plain(line)) for line in _unexplored(declared, glimpse)]
    return lines


def _episodes(count: int) -> str:
    return "1 more episode" if count == 1 else f"{count:,} more episodes"


def _unexplored(declared: Any, glimpse: Any) -> list[str]:
    """Counts, and some names: what was never tried although its state was visited."""
    from cmdpax.live.glimpse import RARELY

    places, never, rarely, missed = glimpse.explored.tolist()
    shared = declared.stationary or declared.sizes.horizon == 1
    kind = "pairs of state and action" if shared else "triples of step, state and action"
    found = f"unexplored: {never:,} of {places:,} {kind} were never tried, {rarely:,} only 1 to "
    found += f"{RARELY - 1} times"
    if not missed:
        return [found]
    names = [_place(declared.words, *place) for place in glimpse.untried.tolist()]
    more = "" if missed == len(names) else f" and {missed - len(names):,} more"
    return [found, f"never tried, though the state was visited: {', '.join(names)}{more}"]


def _place(words: Any, step: int, state: int, action: int) -> str:
    at = "" if step < 0 else f" at step {step}"
    return f"{_short(words.action(action))} in {_short(words.state(state))}{at}"


def policy_table(declared: Any, glimpse: Any, rows: int = ROWS) -> Table | None:
    """What is done in the states that were visited most; None where there is no room."""
    count = min(rows, len(glimpse.states))
    if count < 1:
        return None
    steps = glimpse.actions.shape[1]
    visited = bool(glimpse.visits.any())
    listed = [
        (
            _short(declared.words.state(state)),
            f"{visits:,}" if visited else "",
            _decisions(declared.words, actions, percents),
        )
        for state, visits, actions, percents in zip(
            glimpse.states.tolist()[:count],
            glimpse.visits.tolist(),
            glimpse.actions,
            glimpse.percents,
            strict=False,
        )
    ]
    head = "most visited" if visited else "begins in"
    until = "" if steps == declared.sizes.horizon else f" (steps 0–{steps - 1})"
    result = table("", (head, "visits", f"does most likely{until}"), listed)
    result.title = None
    result.columns[2].justify = "left"
    return result


def _decisions(words: Any, actions: np.ndarray, percents: np.ndarray) -> str:
    """Runs of successive steps with one action, where the state was visited then."""
    steps = np.flatnonzero(actions >= 0)
    runs = [list(run) for _, run in groupby(steps.tolist(), key=lambda step: int(actions[step]))]
    texts = []
    for number, run in enumerate(runs[:_RUNS]):
        told = _short(words.action(int(actions[run[0]]))) + _chance(percents[run])
        where = f"{run[0]}" if len(run) == 1 else f"{run[0]}–{run[-1]}"
        kind = "" if number else "step " if len(run) == 1 else "steps "
        texts.append(told if len(runs) == 1 else f"{told} at {kind}{where}")
    more = len(runs) - _RUNS
    return ", ".join(texts) + (f", … ({more} more)" if more > 0 else "")


def _chance(percents: np.ndarray) -> str:
    """Empty where it is certain."""
    low, high = int(percents.min()), int(percents.max())
    if low >= _SURE:
        return ""
    return f" {low} %" if low == high else f" {low}–{high} %"


def _short(name: str) -> str:
    return cut(plain(name), _LONGEST)
