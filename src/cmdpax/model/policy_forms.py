"""A baseline as the user has it: a table, actions, a mapping, or a function of the state."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cmdpax.errors import CmdpaxError, ParameterError, shown
from cmdpax.model.arrays import is_single
from cmdpax.model.cmdp import Sizes
from cmdpax.model.policy import Policy
from cmdpax.model.words import Words

_ROUNDING = 1e-12  # of a sum of probabilities, which is left as it is
_FORMS = (
    "give a policy [H, S, A] or [S, A] of probabilities, an action for every state, or a function "
    "of the state"
)


def baseline_of(
    given: Any, sizes: Sizes, words: Words, available: np.ndarray | None
) -> np.ndarray | None:
    """The probabilities of a baseline's actions, `[H, S, A]`.

    Args:
        given: a policy, `[H, S, A]`, `[1, S, A]` or `[S, A]`; an action for every state, `[S]` or
            a mapping; or a function of the state, or of the state and the step, that returns an
            action or the probabilities of all actions. States and actions go by their names where
            they have names.
        sizes: I, H, S, A.
        words: the names.
        available: which actions there are, `[H or 1, S, A]`; None: all of them.
    """
    if given is None:
        return None
    _, horizon, num_states, num_actions = sizes
    if callable(given) and not isinstance(given, np.ndarray):
        table = _tabulated(given, sizes, words)
    else:
        table = _table(given, sizes, words)
    if table.ndim == 2:
        table = table[None]
    if table.ndim != 3 or table.shape[0] not in (1, horizon) or table.shape[1:] != sizes[2:]:
        raise ParameterError(
            f"baseline has shape {table.shape}, expected ({horizon}, {num_states}, {num_actions}) "
            f"or ({num_states}, {num_actions}); {_FORMS}."
        )
    policy = np.broadcast_to(table, sizes[1:]).copy()
    _require_probabilities(policy, words)
    if available is not None:
        _require_available(policy, available, words)
    sums = policy.sum(axis=-1, keepdims=True)
    policy = np.where(np.abs(sums - 1) <= _ROUNDING, policy, policy / sums)  # once and for all
    policy.setflags(write=False)
    return policy


def _table(given: Any, sizes: Sizes, words: Words) -> np.ndarray:
    """What was given as numbers or names."""
    if isinstance(given, Mapping):
        return np.stack(_rows_of(given, sizes, words))
    if isinstance(given, Policy):
        given = _in_order(given, words)
    listed = isinstance(given, list | tuple) and len(given) == sizes.num_states
    if listed and all(map(is_single, given)):  # perhaps with names among them
        given = np.array(given, dtype=object)
    try:
        array = np.asarray(given)
        if array.ndim != 1 or len(array) != sizes.num_states:
            if array.dtype.kind not in "biuf":
                raise TypeError
            return np.asarray(array, dtype=float)
    except (TypeError, ValueError):
        raise ParameterError(f"baseline is {shown(given)}; {_FORMS}.") from None
    return np.stack([_row(action, sizes.num_actions, words) for action in array.tolist()])


def _rows_of(given: Mapping[Any, Any], sizes: Sizes, words: Words) -> list[np.ndarray]:
    """What a mapping from states, by their names or indices, gives for each."""
    rows: dict[int, np.ndarray] = {}
    for state, action in given.items():
        index = words.index_of("state", state, sizes.num_states)
        rows[index] = _row(action, sizes.num_actions, words)
    for index in range(sizes.num_states):
        if index not in rows:
            raise ParameterError(
                f"baseline has no entry for {words.state(index)}; give an action for each state."
            )
    return [rows[index] for index in range(sizes.num_states)]


def _in_order(policy: Policy, words: Words) -> np.ndarray:
    """A policy whose states and actions are in the order of the declared names."""
    array = np.asarray(policy)
    for axis, kind in ((1, "state"), (2, "action")):
        theirs, ours = (getattr(one, f"{kind}_names") for one in (policy.words, words))
        if theirs is None or ours is None or theirs == ours:
            continue
        if set(theirs) != set(ours):
            other = sorted(set(theirs) ^ set(ours))[0]
            owner = "baseline" if other in theirs else "model"
            raise ParameterError(
                f"only the {owner} has the {kind} {shown(other)}; give both the same {kind}s."
            )
        array = np.take(array, [theirs.index(name) for name in ours], axis=axis)
    return array


def _tabulated(rule: Callable[..., Any], sizes: Sizes, words: Words) -> np.ndarray:
    """A function of the state, or of the state and the step, called for each."""
    by_step, rows = _takes_steps(rule), []
    for step in range(sizes.horizon if by_step else 1):
        for index in range(sizes.num_states):
            state = words.state(index) if words.state_names else index
            try:
                found = rule(state, step) if by_step else rule(state)
            except CmdpaxError:
                raise
            except Exception as error:
                said = f"{type(error).__name__}: {error}"
                raise ParameterError(
                    f"baseline({shown(state)}) failed with {said}; it must return an action for "
                    "every state."
                ) from error
            rows.append(_row(found, sizes.num_actions, words))
    return np.array(rows).reshape(-1, sizes.num_states, sizes.num_actions)


def _takes_steps(rule: Callable[..., Any]) -> bool:
    """Whether a second argument is needed, or is called a step; others keep their defaults."""
    try:
        parameters = list(inspect.signature(rule).parameters.values())
    except (TypeError, ValueError):  # some built-in functions have no signature
        return False
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    second = [one for one in parameters if one.kind in places][1:2]
    return any(one.default is one.empty or one.name == "step" for one in second)


def _row(given: Any, num_actions: int, words: Words) -> np.ndarray:
    """The probabilities of the actions in a state."""
    if isinstance(given, str):
        index = words.index_of("action", given, num_actions)
        return np.eye(num_actions)[index]
    try:
        array = np.asarray(given)
    except ValueError:  # lists of various lengths
        array = np.array(None)
    if array.ndim == 0 and array.dtype.kind in "iu" and 0 <= array < num_actions:
        return np.eye(num_actions)[int(array)]
    if array.shape == (num_actions,) and array.dtype.kind in "biuf":
        return array.astype(float)
    raise ParameterError(
        f"baseline gives {shown(given)} for a state; give one of the actions 0 … {num_actions - 1}"
        f"{' or their names' if words.action_names else ''}, or {num_actions} probabilities."
    )


def _require_probabilities(policy: np.ndarray, words: Words) -> None:
    sums = policy.sum(axis=-1)
    wrong = ~(np.isfinite(policy).all(axis=-1) & (policy >= 0).all(axis=-1))
    wrong |= ~(np.abs(sums - 1) <= 1e-6)
    if wrong.any():
        step, state = (int(index) for index in np.argwhere(wrong)[0])
        raise ParameterError(
            f"baseline has {shown(policy[step, state].tolist())} in {words.state(state)} at step "
            f"{step}; its probabilities must be at least 0 and sum to 1."
        )


def _require_available(policy: np.ndarray, available: np.ndarray, words: Words) -> None:
    wrong = (policy > 0) & ~np.broadcast_to(available, policy.shape)
    if wrong.any():
        step, state, action = (int(index) for index in np.argwhere(wrong)[0])
        raise ParameterError(
            f"baseline plays {words.action(action)} in {words.state(state)} at step {step}, where "
            "it is not available; correct the baseline, or declare the action as available."
        )
