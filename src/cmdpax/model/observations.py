"""What a log tells about a model, step by step: the checked input of estimates.

Every step belongs to a *row* of `[H or 1, S, A]`: the place where its transition and its
observations are counted. Steps that did not happen are left out here.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from cmdpax.checks import require_flag
from cmdpax.errors import ModelError, ParameterError
from cmdpax.model.arrays import as_available
from cmdpax.model.log import Log, check_played, reached, read_log, require_observed, unobserved
from cmdpax.model.toolbox import as_bounds, as_whole_number
from cmdpax.model.validation import first_index
from cmdpax.model.words import ARGUMENTS, Words, as_senses


class Observations(NamedTuple):
    """The N steps of a log.

    Attributes:
        shape: (H, S, A), with 1 in place of H where the steps share their counts.
        horizon: H.
        rows: the row of each step, `[N]`, counted through `shape`.
        following: the state that came next, `[N]`; -1 where nobody saw it.
        signals: the rewards and what the constraints sum up, `[1 + I, N]`, as observed.
        begun: the first state of each episode that has a step.
        available: which actions there are, `[H or 1, S, A]`; None: all of them.
        words: names and units by their arguments, as far as there are any.
    """

    shape: tuple[int, int, int]
    horizon: int
    rows: np.ndarray
    following: np.ndarray
    signals: np.ndarray
    begun: np.ndarray
    available: np.ndarray | None
    words: dict[str, Any]

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return math.prod(self.shape)

    @property
    def first(self) -> np.ndarray:
        """How often each state was the first one of an episode, `[S]`; S is not yet bounded."""
        return np.bincount(self.begun, minlength=self.shape[1])

    @property
    def num_constraints(self) -> int:
        """I."""
        return len(self.signals) - 1

    @property
    def named(self) -> Words:
        """The names of states and actions."""
        return Words(self.words.get("state_names"), self.words.get("action_names"))

    def visits(self) -> np.ndarray:
        """n of each row, `[rows]`."""
        return np.bincount(self.rows, minlength=self.num_rows)

    def followed(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows and the next states of the steps whose next state was seen."""
        seen = self.following >= 0
        return self.rows[seen], self.following[seen]

    def counts(self) -> np.ndarray:
        """How often each state followed each row, `[rows, S]`."""
        rows, following = self.followed()
        num_states = self.shape[1]
        flat = np.bincount(rows * num_states + following, minlength=self.num_rows * num_states)
        return flat.reshape(self.num_rows, num_states)


def observe(
    log: Log,
    *,
    num_states: int | None,
    num_actions: int | None,
    stationary: bool,
    available: Any,
    words: dict[str, Any],
) -> Observations:
    """Check a log, and put its steps in rows; the arguments are those of `cmdpax.estimate`.

    Raises:
        ModelError: the arrays are not a log; places are those of the log.
        ParameterError: an unknown name, or sizes out of range.
    """
    log = read_log(log)
    played = log.actions != -1
    check_played(played)
    said = {name: word for name, word in words.items() if word is not None}
    words = _kept_words(log.words) | said
    known = reached(played) & ~unobserved(log.states, played)
    sizes = (
        check_indices("states", log.states, known, _count(num_states, words, "state")),
        check_indices("actions", log.actions, played, _count(num_actions, words, "action")),
    )
    flags = as_available(available)
    _require_fitting(available, played.shape[-1], sizes)
    _require_played_available(log, played, flags, words)
    stationary = require_flag("stationary", stationary)
    require_observed(log, played)
    horizon = played.shape[-1]
    shape = (1 if stationary else horizon, *sizes)
    return Observations(
        shape,
        horizon,
        _rows(log, played, shape),
        log.states[..., 1:][played],
        np.stack([log.rewards, *np.moveaxis(log.constraint_rewards, -2, 0)])[:, played],
        log.states[..., 0][played[..., 0]],
        flags,
        words,
    )


def _kept_words(words: Words) -> dict[str, Any]:
    """The names and units of a log, as far as it has any."""
    found = words._asdict()
    return {name: found[name] for name in ARGUMENTS if found[name] is not None}


def _count(given: int | None, words: dict[str, Any], kind: str) -> int | None:
    """How many states or actions there are: as said, or as many as names."""
    names = words.get(f"{kind}_names")
    return len(names) if given is None and names is not None else given


def _rows(log: Log, played: np.ndarray, shape: tuple[int, int, int]) -> np.ndarray:
    steps = np.broadcast_to(np.arange(played.shape[-1]) % shape[0], played.shape)[played]
    return np.ravel_multi_index((steps, log.states[..., :-1][played], log.actions[played]), shape)


def _require_fitting(available: Any, horizon: int, sizes: tuple[int, int]) -> None:
    """Refuse flags of other sizes; a single flag speaks of all actions."""
    shape = () if available is None else np.shape(available)
    if shape and (shape[-2:] != sizes or shape[:-2] not in ((), (1,), (horizon,))):
        raise ModelError(
            f"available has shape {shape}, expected (S, A) = {sizes}, or (H, S, A) with "
            f"H = {horizon}."
        )


def _require_played_available(
    log: Log,
    played: np.ndarray,
    flags: np.ndarray | None,
    words: dict[str, Any],
) -> None:
    """Refuse a step with an action that is not available there."""
    if flags is None:
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


# ----------------------------------------------------------------------------------------- bounds


def bounds_of(
    thresholds: Any, limits: Any, senses: Any, num_constraints: int
) -> tuple[np.ndarray, tuple[str, ...]]:
    """What constraints must reach, or not exceed, `[I]`, and their senses."""
    if thresholds is not None and limits is not None:
        raise ParameterError(
            "thresholds and limits (at most) are both given; give thresholds, with senses if some "
            "of the log's constraint rewards are costs."
        )
    if limits is not None:
        if senses is not None:
            raise ParameterError('limits say "at most" already; give senses with thresholds.')
        return as_bounds("limits", limits, num_constraints), as_senses("at most", num_constraints)
    if thresholds is None and num_constraints:
        raise ParameterError(
            f"the log has constraint rewards (I = {num_constraints}): give thresholds (at least), "
            "or limits (at most) if they are costs."
        )
    bounds = as_bounds("thresholds", [] if thresholds is None else thresholds, num_constraints)
    return bounds, as_senses(senses, num_constraints)
