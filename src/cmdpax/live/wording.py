"""What a terminal and a page say of an agent's file: its account, plan and policy, in words.

All of it is plain text, in which names from files can steer nothing, and of a bounded size.
"""

from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from cmdpax.errors import cut, plain
from cmdpax.learners import registered
from cmdpax.live.accounts import RECENT, AgentAccount, ConstraintAccount, roughly
from cmdpax.live.declaration import Declaration
from cmdpax.live.glimpse import RARELY, Glimpse
from cmdpax.model.words import Words

VERDICTS = ("these show", "this shows")
"""The rows of an account that have verdicts."""

_RUNS = 3  # of successive steps with one action
_LONGEST = 24  # characters of a name
_SURE = 99.5  # per cent: from here on an action is called certain


def short(name: str) -> str:
    """A name in a line, cut where it is long."""
    return cut(plain(name), _LONGEST)


# -------------------------------------------------------------------------------------- the account


class AccountRow(NamedTuple):
    """One quantity of an account: its name, that of the reward, and that of each constraint."""

    name: str
    objective: str
    constraints: list[str]


def account_rows(account: AgentAccount, algorithm: str) -> list[AccountRow]:
    """The rows of a table that has a column for the reward and for every constraint."""
    objective, constraints = account.objective, list(account)
    known = registered(algorithm)
    belief = "believed (of the plan)" if known and known.replans else "believed (optimistic)"
    recent = f"of the last {min(account.episodes, RECENT)}"
    waiting = any(one.always_verdict == "open" for one in constraints)
    rows: list[tuple[str, Any, Any]] = [
        ("threshold", "", lambda one: f"{one.sense} {one.threshold:.6g}"),
        ("mean return", objective.observed, lambda one: one.observed),
        (recent, objective.recent, lambda one: one.recent),
        (VERDICTS[0], "", lambda one: one.verdict),
        ("mean, valid every day", objective.always, lambda one: one.always),
        (VERDICTS[1], "", lambda one: one.always_verdict),
        *([("episodes until then", "", _left)] if waiting else []),
        ("episodes that missed", "", lambda one: f"{one.missed:,} of {one.episodes:,}"),
        (belief, "", lambda one: f"{one.optimistic:.6g}"),
        ("price in reward", "", lambda one: f"{one.price:.4g}"),
    ]
    return [
        AccountRow(name, str(of_reward), [str(of_each(one)) for one in constraints])
        for name, of_reward, of_each in rows
    ]


def _left(one: ConstraintAccount) -> str:
    """About how many episodes a verdict takes that may be looked at every day."""
    if one.episodes_left is None:
        return "?" if one.always_verdict == "open" else ""
    return f"about {roughly(one.episodes_left)}"


def labelled(name: str, unit: str) -> str:
    """A signal with its unit."""
    return plain(f"{name} [{unit}]" if unit else name)


# ------------------------------------------------------------------------------ plan and unexplored


class PlanLine(NamedTuple):
    """What is said about a plan, and whether it meets all constraints in its model."""

    text: str
    feasible: bool


def plan_line(glimpse: Glimpse) -> PlanLine | None:
    """A line on the plan; None for learners that do not plan."""
    if not len(glimpse.plan):
        return None
    number, feasible, remaining = glimpse.plan.tolist()
    played = "1 more episode" if remaining == 1 else f"{remaining:,} more episodes"
    found = "feasible in its model,"
    if not feasible:
        found = "no policy meets all constraints in its model, the nearest one is"
    return PlanLine(f"plan {number:,}: {found} played for {played}", bool(feasible))


def unexplored_lines(declared: Declaration, glimpse: Glimpse) -> list[str]:
    """Counts, and some names: what was never tried although its state was visited."""
    if not len(glimpse.explored):
        return []
    places, never, rarely, missed = glimpse.explored.tolist()
    shared = declared.stationary or declared.sizes.horizon == 1
    kind = "pairs of state and action" if shared else "triples of step, state and action"
    found = f"{never:,} of {places:,} {kind} were never tried, {rarely:,} only 1 to "
    found += f"{RARELY - 1} times"
    if not missed:
        return [found]
    names = [_place(declared.words, *place) for place in glimpse.untried.tolist()]
    more = "" if missed == len(names) else f" and {missed - len(names):,} more"
    return [found, f"never tried, though the state was visited: {', '.join(names)}{more}"]


def _place(words: Words, step: int, state: int, action: int) -> str:
    at = "" if step < 0 else f" at step {step}"
    return f"{short(words.action(action))} in {short(words.state(state))}{at}"


# --------------------------------------------------------------------------------------- the policy


class PolicyRows(NamedTuple):
    """What is done in the states that were visited most: heads, and rows of three cells."""

    heads: tuple[str, str, str]
    rows: list[tuple[str, str, str]]


def policy_rows(declared: Declaration, glimpse: Glimpse, most: int) -> PolicyRows | None:
    """At most so many rows; None if there would be none."""
    count = min(most, len(glimpse.states))
    if count < 1:
        return None
    steps = glimpse.actions.shape[1]
    visited = bool(glimpse.visits.any())
    columns = (glimpse.states.tolist()[:count], glimpse.visits.tolist())
    rows = [
        (
            short(declared.words.state(state)),
            f"{visits:,}" if visited else "",
            _decisions(declared.words, actions, percents),
        )
        for state, visits, actions, percents in zip(
            *columns, glimpse.actions, glimpse.percents, strict=False
        )
    ]
    head = "most visited" if visited else "begins in"
    until = "" if steps == declared.sizes.horizon else f" (steps 0–{steps - 1})"
    return PolicyRows((head, "visits", f"does most likely{until}"), rows)


def _decisions(words: Words, actions: np.ndarray, percents: np.ndarray) -> str:
    """Runs of successive steps with one action, where the state was visited then."""
    steps = np.flatnonzero(actions >= 0)
    runs = [list(run) for _, run in groupby(steps.tolist(), key=lambda step: int(actions[step]))]
    texts = []
    for number, run in enumerate(runs[:_RUNS]):
        told = short(words.action(int(actions[run[0]]))) + _chance(percents[run])
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
