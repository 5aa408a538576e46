"""The empirical CMDP of logged episodes: `estimate`.

With n_h(s, a) visits of a pair, of which n_h(s, a, t) went on to t,

    p̄_h(t | s, a) = n_h(s, a, t) / n_h(s, a),      r̄, ū = mean observations,

as in Eq. (8), but without bonuses. Pairs without a visit are where an estimate must choose.
"""

import math
from typing import Any

import numpy as np

from cmdpax.checks import check_choice, require_flag
from cmdpax.errors import ModelError, ParameterError
from cmdpax.model.arrays import as_available
from cmdpax.model.cmdp import CMDP
from cmdpax.model.log import (
    Log,
    check_played,
    reached,
    read_log,
    require_observed,
    unobserved,
)
from cmdpax.model.toolbox import (
    as_bounds,
    as_initial,
    as_lists,
    as_whole_number,
    require_words,
)
from cmdpax.model.transitions import Successors
from cmdpax.model.validation import first_index, validate
from cmdpax.model.words import ARGUMENTS, Words, as_senses
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
    log = read_log(log)
    played = log.actions != -1
    check_played(played)
    require_words("estimate", words)
    words = _kept_words(log.words) | {
        name: word for name, word in words.items() if word is not None
    }
    known = reached(played) & ~unobserved(log.states, played)
    sizes = (
        check_indices("states", log.states, known, _count(num_states, words, "state")),
        check_indices("actions", log.actions, played, _count(num_actions, words, "action")),
    )
    flags = as_available(available)
    _require_played_available(log, played, flags, sizes, words)
    stationary = require_flag("stationary", stationary)
    require_observed(log, played)
    observed = np.stack([log.rewards, *np.moveaxis(log.constraint_rewards, -2, 0)])[:, played]
    bounds = _bounds(thresholds, limits, len(observed) - 1)
    if limits is not None and senses is not None:
        raise ParameterError('limits say "at most" already; give senses with thresholds.')
    chosen = as_senses(senses if limits is None else "at most", len(bounds))
    horizon = played.shape[-1]
    shape = (1 if stationary else horizon, *sizes)
    num_slots = sizes[0] if storage == "dense" else 1
    room = 8 * math.prod(shape) * (num_slots + len(observed))
    require_room(f"the CMDP of {sizes[0]} states", room, 'choose storage="successors"')
    rows, following = _rows(log, played, shape), log.states[..., 1:][played]
    signals = _means(rows, observed, shape, ("at least", *chosen))
    followed = following >= 0  # the others were not observed
    led = rows[followed], following[followed]
    names = words.get("state_names")
    first = None if initial is None else as_initial(initial, sizes[0], names)
    return validate(
        CMDP(
            _lists(*led, shape)
            if storage == "successors"
            else _frequencies(*led, shape, unvisited),
            signals[0],
            signals[1:],
            bounds,
            _first_states(log, played, sizes[0]) if first is None else first,
            horizon,
            available=flags,
            senses=chosen,
            **words,
        )
    )


def _kept_words(words: Words) -> dict[str, Any]:
    """The names and units of a log, as far as it has any."""
    found = words._asdict()
    return {name: found[name] for name in ARGUMENTS if found[name] is not None}


def _count(given: int | None, words: dict[str, Any], kind: str) -> int | None:
    """How many states or actions there are: as said, or as many as names."""
    names = words.get(f"{kind}_names")
    return len(names) if given is None and names is not None else given


def _require_played_available(
    log: Log,
    played: np.ndarray,
    flags: np.ndarray | None,
    sizes: tuple[int, int],
    words: dict[str, Any],
) -> None:
    """Refuse a step with an action that is not available there."""
    if flags is None or flags.shape[1:] != sizes:
        return
    steps = np.arange(played.shape[-1]) % len(flags)
    states, actions = np.where(played, log.states[..., :-1], 0), np.where(played, log.actions, 0)
    wrong = played & ~flags[np.broadcast_to(steps, played.shape), states, actions]
    if wrong.any():
        index = first_index(wrong)
        named = Words(words.get("state_names"), words.get("action_names"))
        action = named.action(int(actions[tuple(index)]))
        raise ModelError(
            f"the log's actions{index} is {action}, which is not available in "
            f"{named.state(int(states[tuple(index)]))}; correct the log, or available."
        )


# ------------------------------------------------------------------------------------------ the log


def check_indices(name: str, indices: np.ndarray, read: np.ndarray, size: int | None) -> int:
    """Check the indices that are read; returns their number, by default the largest plus 1."""
    if size is None:
        size = max(1, int(indices[read].max()) + 1)
    size = as_whole_number(f"num_{name}", size)
    wrong = read & ((indices < 0) | (indices >= size))
    if wrong.any():
        index = first_index(wrong)
        others = ", or -1 where there was no step" if name == "actions" else ""
        raise ModelError(
            f"the log's {name}{index} is {indices[tuple(index)]}, but {name} are "
            f"0 … {size - 1}{others}; correct it, or num_{name}."
        )
    return size


def _bounds(thresholds: Any, limits: Any, num_constraints: int) -> np.ndarray:
    if thresholds is not None and limits is not None:
        raise ParameterError(
            "thresholds and limits (at most) are both given; give thresholds, with senses if some "
            "of the log's constraint rewards are costs."
        )
    if limits is not None:
        return as_bounds("limits", limits, num_constraints)
    if thresholds is None and num_constraints:
        raise ParameterError(
            f"the log has constraint rewards (I = {num_constraints}): give thresholds (at least), "
            "or limits (at most) if they are costs."
        )
    return as_bounds("thresholds", [] if thresholds is None else thresholds, num_constraints)


# ------------------------------------------------------------------------------------------- counts


def _rows(log: Log, played: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The row of `[H, S, A]` that each of the N steps belongs to, `[N]`."""
    steps = np.broadcast_to(np.arange(played.shape[-1]) % shape[0], played.shape)[played]
    return np.ravel_multi_index((steps, log.states[..., :-1][played], log.actions[played]), shape)


def _visits(rows: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """n_h(s, a), `[H, S, A]`."""
    return np.bincount(rows, minlength=math.prod(shape)).reshape(shape)


def _means(
    rows: np.ndarray, observed: np.ndarray, shape: tuple[int, ...], senses: tuple[str, ...]
) -> np.ndarray:
    """Mean observations, `[1+I, H, S, A]`; where there are none, 0 or the worst observation."""
    visits = _visits(rows, shape)
    means = []
    for signal, sense in zip(observed, senses, strict=True):
        sums = np.bincount(rows, weights=signal, minlength=visits.size).reshape(shape)
        worst = max(0.0, signal.max()) if sense == "at most" else min(0.0, signal.min())
        means.append(np.where(visits > 0, sums / np.maximum(visits, 1), worst))
    return np.stack(means)


def _frequencies(
    rows: np.ndarray, following: np.ndarray, shape: tuple[int, ...], unvisited: str
) -> np.ndarray:
    """Dense frequencies of the next states, `[H, S, A, S]`."""
    num_states, visits = shape[1], _visits(rows, shape)[..., None]
    counts = np.bincount(rows * num_states + following, minlength=visits.size * num_states)
    other = np.eye(num_states)[:, None] if unvisited == "absorbing" else 1 / num_states
    counts = counts.reshape(*shape, num_states)
    return np.where(visits > 0, counts / np.maximum(visits, 1), other)


def _lists(rows: np.ndarray, following: np.ndarray, shape: tuple[int, ...]) -> Successors:
    """The same frequencies as successor lists; pairs without a visit stay."""
    num_states, visits = shape[1], _visits(rows, shape).ravel()
    places, counts = np.unique(rows * num_states + following, return_counts=True)
    owners = places // num_states
    untried = np.flatnonzero(visits == 0)
    return as_lists(
        np.concatenate([owners, untried]),
        np.concatenate([places % num_states, np.unravel_index(untried, shape)[1]]),
        np.concatenate([counts / visits[owners], np.ones(len(untried))]),
        shape,
    )


def _first_states(log: Log, played: np.ndarray, num_states: int) -> np.ndarray:
    """How often each state was the first one of an episode."""
    first = log.states[..., 0][played[..., 0]]
    return np.bincount(first, minlength=num_states) / len(first)
