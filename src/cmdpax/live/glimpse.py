"""What a file shows of an agent without its learner: its plan, its policy, what is unexplored.

All of it is of a bounded size, however large the system is: the states that were visited most, the
action that is taken there most likely at each of the first steps, and counts.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from cmdpax.live.declaration import Declaration
from cmdpax.live.episode import Episode

MOST_STATES = 12
MOST_STEPS = 200
MOST_UNTRIED = 5
RARELY = 5
"""What was tried fewer times than this was tried rarely."""

_PREFIX = "shown_"


class Glimpse(NamedTuple):
    """Arrays of whole numbers; empty where the learner shows nothing of it.

    Attributes:
        plan: how many plans were made, whether the last is feasible in its model, and how many
            episodes it is still played, `[3]`.
        explored: how many actions of states there are (of states and steps, where steps do not
            share counts), how many of them were never tried, how many rarely, and how many never
            although their state was visited, `[4]`.
        untried: some of the last ones, the most visited states first: step (-1 where steps share
            counts), state and action, `[at most 5, 3]`.
        states: the most visited ones, or, before the first episode, where episodes begin, `[N]`.
        visits: how often, `[N]`.
        actions: the most likely one at each step; -1 where the state was never visited then,
            `[N, H or fewer]`.
        percents: how likely it is.
    """

    plan: np.ndarray
    explored: np.ndarray
    untried: np.ndarray
    states: np.ndarray
    visits: np.ndarray
    actions: np.ndarray
    percents: np.ndarray


def entries_of_glimpse(declared: Declaration, coming: Episode) -> dict[str, np.ndarray]:
    """What a file is given; an episode that was itself read from one has no policy."""
    found = coming.glimpse if coming.policy is None else make_glimpse(declared, coming)
    return {} if found is None else {_PREFIX + name: one for name, one in found._asdict().items()}


def make_glimpse(declared: Declaration, coming: Episode) -> Glimpse:
    """What is shown of an agent with this coming or open episode."""
    visits = None if coming.visits is None else np.asarray(coming.visits)
    total = np.zeros(declared.sizes.num_states) if visits is None else visits.sum(axis=(0, 2))
    weights = total if total.any() else declared.initial
    order = np.argsort(-weights, kind="stable")[:MOST_STATES]
    states = order[weights[order] > 0]
    policy = np.asarray(coming.policy)[:MOST_STEPS, states]
    actions = policy.argmax(axis=-1)
    if visits is not None and len(visits) > 1 and total.any():
        actions = np.where(visits[:MOST_STEPS, states].any(axis=-1), actions, -1)
    explored, untried = _explored(declared, visits)
    return Glimpse(
        _plan((coming.plans, coming.feasible, coming.remaining)),
        explored,
        untried,
        states.astype(np.int32),
        total[states].astype(np.int64),
        actions.T.astype(np.int32),
        np.rint(100 * policy.max(axis=-1)).T.astype(np.uint8),
    )


def _plan(shown: Any) -> np.ndarray:
    """Empty for learners that tell nothing about plans, or something else."""
    if any(np.size(one) != 1 or one is None for one in shown):
        return np.zeros(0, np.int64)
    return np.array([int(one) for one in shown], np.int64)


def _explored(declared: Declaration, visits: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    if visits is None:
        return np.zeros(0, np.int64), np.zeros((0, 3), np.int32)
    possible = np.ones_like(visits, dtype=bool)
    if declared.available is not None:
        flags = np.asarray(declared.available)
        possible &= flags.any(axis=0, keepdims=True) if len(visits) == 1 else flags
    never = possible & (visits == 0)
    rarely = possible & (visits > 0) & (visits < RARELY)
    of_state = np.broadcast_to(visits.sum(axis=-1, keepdims=True), visits.shape)
    missed = np.argwhere(never & (of_state > 0))
    often = of_state[tuple(missed.T)]
    untried = missed[np.argsort(-often, kind="stable")[:MOST_UNTRIED]].astype(np.int32)
    if len(visits) == 1:
        untried[:, 0] = -1
    counts = [one.sum() for one in (possible, never, rarely)]
    return np.array([*counts, len(missed)], np.int64), untried


def read_glimpse(declared: Declaration, entries: Mapping[str, Any]) -> Glimpse | None:
    """What a file shows; None for earlier files, which show nothing.

    Raises:
        ValueError: it is not what `make_glimpse` makes.
    """
    if not any(name.startswith(_PREFIX) for name in entries):
        return None
    found = Glimpse(*(entries[_PREFIX + name] for name in Glimpse._fields))
    if not _is_possible(found, declared):
        raise ValueError("what is shown cannot be")
    return found


def _is_possible(found: Glimpse, declared: Declaration) -> bool:
    """Whether every number is in its range, so that names can be given."""
    _, horizon, num_states, num_actions = declared.sizes
    rows, steps = len(found.states), min(horizon, MOST_STEPS)
    shapes = [(rows,), (rows,), (rows, steps), (rows, steps)]
    ranges = (
        (found.states, 0, num_states),
        (found.actions, -1, num_actions),
        (found.percents, 0, 101),
        (found.untried, (-1, 0, 0), (horizon, num_states, num_actions)),
        *((one, 0, np.inf) for one in (found.plan, found.explored, found.visits)),
    )
    return (
        all(one.dtype.kind in "iu" for one in found)
        and rows <= MOST_STATES
        and [one.shape for one in found[3:]] == shapes
        and found.plan.shape in ((0,), (3,))
        and found.explored.shape in ((0,), (4,))
        and found.untried.shape[1:] == (3,)
        and len(found.untried) <= MOST_UNTRIED
        and all(bool(((one >= low) & (one < high)).all()) for one, low, high in ranges)
    )
