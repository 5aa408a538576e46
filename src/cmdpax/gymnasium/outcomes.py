"""Tables of outcomes as CMDPs: what `from_env` reads and `enumerate_env` finds.

An outcome of a state and an action has a probability, a next state, a reward, and may end the
episode. A CMDP does not terminate, so an episode that has ended *rests*: it stays where it ended,
and neither earns nor pays any more.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from cmdpax.errors import ModelError
from cmdpax.model.arrays import ROW_SUM_TOLERANCE
from cmdpax.model.cmdp import CMDP, from_costs
from cmdpax.model.toolbox import as_lists
from cmdpax.model.transitions import Successors
from cmdpax.model.validation import validate

OUTCOME = np.dtype(
    [
        ("state", np.int64),
        ("action", np.int64),
        ("probability", np.float64),
        ("successor", np.int64),
        ("reward", np.float64),
        ("terminated", np.bool),
    ]
)
"""A row for each outcome."""

Expectation = Callable[[np.ndarray], np.ndarray]
"""Expected signals `[…, S, A]` of outcomes, the rows of which need not be all."""


def assemble(
    outcomes: np.ndarray,
    shape: tuple[int, int],
    *,
    start: np.ndarray,
    begin: np.ndarray,
    horizon: int,
    rewards: Expectation,
    costs: Expectation,
    limits: np.ndarray,
    words: dict[str, Any],
) -> CMDP:
    """The CMDP of a table of outcomes, checked.

    Args:
        outcomes: a row for each; those of a pair sum to 1, and a pair that no episode reaches may
            have none.
        shape: (S, A).
        start: the distribution of the first state, `[S]`.
        begin: where episodes may begin, `[S]`; the start is part of it.
        horizon: H.
        rewards: expected rewards, `[S, A]`.
        costs: expected costs, `[I, S, A]`.
        limits: `[I]`.
        words: names and units, of S states; one more is named "ended".
    """
    alive = _alive(outcomes, begin)
    resting = _resting(outcomes, alive)
    played = outcomes[~resting[outcomes["state"]]]
    resting[: shape[0]] |= ~np.isin(np.arange(shape[0]), played["state"])  # nothing known of it
    more = len(resting) - shape[0]
    goes_on = ~resting[: shape[0], None]
    cmdp = from_costs(
        transitions=_transitions(played, alive, resting, shape[1]),
        rewards=np.pad(np.where(goes_on, rewards(played), 0.0), ((0, more), (0, 0)))[None],
        costs=np.pad(np.where(goes_on, costs(played), 0.0), ((0, 0), (0, more), (0, 0)))[:, None],
        limits=limits,
        initial=np.pad(start, (0, more)),
        horizon=horizon,
        **_with_ended(words, shape[0], len(resting)),
    )
    return validate(cmdp)


def expected(outcomes: np.ndarray, values: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """The expectation `[S, A]` of a value of each outcome; 0 for a pair without any."""
    pairs = outcomes["state"] * shape[1] + outcomes["action"]
    weights = outcomes["probability"] * values
    return np.bincount(pairs, weights, minlength=shape[0] * shape[1]).reshape(shape)


def require_sums(outcomes: np.ndarray, shape: tuple[int, int]) -> None:
    """Refuse a table P where the outcomes of a pair do not sum to 1."""
    sums = expected(outcomes, np.ones(len(outcomes)), shape)
    off = np.abs(sums - 1) > ROW_SUM_TOLERANCE
    if off.any():
        state, action = np.argwhere(off)[0]
        raise ModelError(
            f"the probabilities of P[{state}][{action}] sum to {sums[state, action]:.12g}, not "
            "to 1; divide them by their sum."
        )


def _with_ended(words: dict[str, Any], given: int, num_states: int) -> dict[str, Any]:
    """The words, with a name for the state in which episodes are that ended, if there is one."""
    names = words.get("state_names")
    if names is None or isinstance(names, str) or not (len(names) == given < num_states):
        return words
    return words | {"state_names": [*names, "ended"]}


# ------------------------------------------------------------------------------ where episodes end


def _alive(outcomes: np.ndarray, begin: np.ndarray) -> np.ndarray:
    """Whether an episode can be in a state without having ended, `[S]`."""
    continuing = outcomes[~outcomes["terminated"]]
    alive = begin
    while True:
        reached = alive.copy()
        reached[continuing["successor"][alive[continuing["state"]]]] = True
        if (reached == alive).all():
            return alive
        alive = reached


def _resting(outcomes: np.ndarray, alive: np.ndarray) -> np.ndarray:
    """Where ended episodes rest, `[S]`, or `[S + 1]` with the extra state.

    They rest where they ended. A state that is alive cannot also be one of rest: ends in such
    states go to the extra one.
    """
    ends = outcomes["successor"][outcomes["terminated"] & alive[outcomes["state"]]]
    resting = np.zeros(len(alive), dtype=bool)
    resting[ends] = True
    resting &= ~alive
    return np.append(resting, True) if alive[ends].any() else resting


def _transitions(
    played: np.ndarray, alive: np.ndarray, resting: np.ndarray, num_actions: int
) -> Successors:
    """Successor lists of the outcomes, and of states that never leave themselves."""
    num_states = len(resting)
    states, successors = played["state"], played["successor"]
    to_extra = played["terminated"] & alive[successors] & alive[states]
    targets = np.where(to_extra, num_states - 1, successors)
    stays = np.repeat(np.flatnonzero(resting), num_actions)
    actions = np.tile(np.arange(num_actions), int(resting.sum()))
    return _merged(
        np.append(states * num_actions + played["action"], stays * num_actions + actions),
        np.append(targets, stays),
        np.append(played["probability"], np.ones(len(stays))),
        (num_states, num_actions),
    )


def _merged(
    pairs: np.ndarray, targets: np.ndarray, probabilities: np.ndarray, shape: tuple[int, int]
) -> Successors:
    """Successor lists `[1, S, A, N]`, where each next state of a pair stands once.

    FrozenLake lists a next state twice where two directions lead to it.
    """
    num_states, _ = shape
    keys, places = np.unique(pairs * num_states + targets, return_inverse=True)
    pairs, targets = np.divmod(keys, num_states)
    return as_lists(pairs, targets, np.bincount(places, probabilities), (1, *shape))
