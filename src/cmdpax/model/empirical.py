"""The empirical CMDP of logged episodes: `estimate`.

With n_h(s, a) visits of a pair, of which n_h(s, a, t) went on to t,

    p̄_h(t | s, a) = n_h(s, a, t) / n_h(s, a),      r̄, ū = mean observations,

as in Eq. (8), but without bonuses. Pairs without a visit are where an estimate must choose.
"""

from typing import Any

import numpy as np

from cmdpax.checks import check_choice
from cmdpax.errors import ParameterError
from cmdpax.model.cmdp import CMDP
from cmdpax.model.log import Log
from cmdpax.model.observations import Observations, bounds_of, observe
from cmdpax.model.toolbox import as_initial, as_lists, require_words
from cmdpax.model.transitions import Successors
from cmdpax.model.validation import validate
from cmdpax.storage.limits import require_room

_UNVISITED = ("absorbing", "uniform")
_STORAGES = ("dense", "successors")


def estimate(
    log: Log,
    *,
    num_states: int | None = None,
    num_actions: int | None = None,
    thresholds: Any = None,
    limits: Any = None,
    initial: Any = None,
    stationary: bool = False,
    unvisited: str = "uniform",
    storage: str = "dense",
    senses: Any = None,
    available: Any = None,
    **words: Any,
) -> CMDP:
    """The empirical CMDP of logged episodes: frequencies of transitions, means of observations.

    An episode that was cut short has the action -1 at every step that did not happen; what the
    log has there for states, rewards and constraint rewards is not read. Where the state after the
    last step is -1, what the step earned counts, but where it led is unknown. Runs are pooled.

    A pair (h, s, a) without a visit earns, for every signal, 0 or the worst observation, whichever
    is worse: no more than 0 for rewards and constraint rewards, and the largest cost that was seen.
    Otherwise a planner would flee to where nothing is known. So a state in which episodes end for
    good should be logged up to step H, with any one action and 0 for everything. A pair that was
    visited, but never seen to lead anywhere, leads where a pair without a visit does.

    Args:
        log: the episodes, `.states [K, H+1]`, `.actions [K, H]`, `.rewards [K, H]` and
            `.constraint_rewards [K, I, H]`, or `[R, K, …]` for several runs, such as `history.log`.
        num_states: S; None takes the largest state that was reached, plus 1.
        num_actions: A; None takes the largest action that was played, plus 1.
        thresholds: `[I]`, or a number: what constraint rewards must reach, in their senses.
        limits: `[I]`, or a number, if all of the log's constraint rewards are costs: what they may
            reach at most. One of the two is needed if I > 0.
        initial: a state, its name, or a distribution `[S]`; None takes the frequencies of the first
            states.
        stationary: whether the steps share their counts; the CMDP is then stationary.
        unvisited: where a pair without a visit leads: "uniform" to any state, as in the
            learners' empirical models, or "absorbing" to the state itself.
        storage: "dense", or "successors" with the states that were seen to follow, which needs
            `unvisited="absorbing"`.
        senses: "at least" or "at most", for all constraints or for each; with `thresholds`.
        available: which actions there are, `[S, A]` or `[H, S, A]`; None: all of them.
        words: names and units, as for `cmdpax.CMDP`; by default those of the log. Without
            `num_states` and `num_actions` there are as many as names.

    Raises:
        ModelError: the arrays are not a log; places are those of the log.
        ParameterError: an unknown name, sizes out of range, or arguments that do not go together.

    Examples:
        >>> import cmdpax
        >>> from cmdpax.model.empirical import estimate
        >>> log = cmdpax.Log(
        ...     states=[[0, 0, 1], [0, 1, -1]],  # the second episode ended early
        ...     actions=[[0, 0], [0, -1]],
        ...     rewards=[[1.0, 0.5], [0.0, 0.0]],
        ...     constraint_rewards=[[[1.0, 1.0]], [[0.0, 0.0]]],
        ... )
        >>> cmdp = estimate(log, thresholds=1.0, stationary=True, num_actions=2)
        >>> cmdp
        CMDP(S=2, A=2, H=2, I=1, dense)
        >>> cmdp.transitions[0, 0].round(3).tolist()  # action 1 was never played
        [[0.333, 0.667], [0.5, 0.5]]
        >>> cmdp.rewards[0, 0].tolist()
        [0.5, 0.0]
    """
    check_choice("unvisited", unvisited, _UNVISITED)
    check_choice("storage", storage, _STORAGES)
    if storage == "successors" and unvisited == "uniform":
        raise ParameterError(
            'storage="successors" cannot hold unvisited="uniform", whose rows have all states; '
            'choose unvisited="absorbing" or storage="dense".'
        )
    require_words("estimate", words)
    found = observe(
        log,
        num_states=num_states,
        num_actions=num_actions,
        stationary=stationary,
        available=available,
        words=words,
    )
    bounds, chosen = bounds_of(thresholds, limits, senses, found.num_constraints)
    num_slots = found.shape[1] if storage == "dense" else 1
    room = 8 * found.num_rows * (num_slots + len(found.signals))
    require_room(f"the CMDP of {found.shape[1]} states", room, 'choose storage="successors"')
    transitions = _lists(found) if storage == "successors" else seen_frequencies(found, unvisited)
    signals = _means(found, ("at least", *chosen))
    return make_model(found, transitions, signals, bounds, chosen, initial)


def make_model(
    found: Observations,
    transitions: np.ndarray | Successors,
    signals: np.ndarray,
    bounds: np.ndarray,
    senses: tuple[str, ...],
    initial: Any,
) -> CMDP:
    """The model of arrays that were made of observations, in their words."""
    num_states = found.shape[1]
    start = found.first / found.first.sum()
    if initial is not None:
        start = as_initial(initial, num_states, found.words.get("state_names"))
    return validate(
        CMDP(
            transitions,
            signals[0],
            signals[1:],
            bounds,
            start,
            found.horizon,
            available=found.available,
            senses=senses,
            **found.words,
        )
    )


# ------------------------------------------------------------------------------------------- counts


def _means(found: Observations, senses: tuple[str, ...]) -> np.ndarray:
    """Mean observations, `[1+I, H, S, A]`; where there are none, 0 or the worst observation."""
    visits = found.visits()
    means = []
    for signal, sense in zip(found.signals, senses, strict=True):
        sums = np.bincount(found.rows, weights=signal, minlength=visits.size)
        worst = max(0.0, signal.max()) if sense == "at most" else min(0.0, signal.min())
        means.append(np.where(visits > 0, sums / np.maximum(visits, 1), worst))
    return np.stack(means).reshape(-1, *found.shape)


def seen_frequencies(found: Observations, unvisited: str = "absorbing") -> np.ndarray:
    """Dense frequencies of the next states, `[H or 1, S, A, S]`."""
    num_states = found.shape[1]
    counts = found.counts().reshape(*found.shape, num_states)
    visits = counts.sum(axis=-1, keepdims=True)
    other = np.eye(num_states)[:, None] if unvisited == "absorbing" else 1 / num_states
    return np.where(visits > 0, counts / np.maximum(visits, 1), other)


def _lists(found: Observations) -> Successors:
    """The same frequencies as successor lists; pairs without a visit stay."""
    rows, following = found.followed()
    num_states, visits = found.shape[1], np.bincount(rows, minlength=found.num_rows)
    places, counts = np.unique(rows * num_states + following, return_counts=True)
    owners = places // num_states
    untried = np.flatnonzero(visits == 0)
    return as_lists(
        np.concatenate([owners, untried]),
        np.concatenate([places % num_states, np.unravel_index(untried, found.shape)[1]]),
        np.concatenate([counts / visits[owners], np.ones(len(untried))]),
        found.shape,
    )
