"""Transition matrices that environments give by a method, as tables of outcomes.

There is no standard for them. `get_transition_matrix()` returns `[S, A, S]` in most places, the
next state first, `[S', S, A]`, in MASA-Safe-RL, and sometimes `[A, S, S]`; the layout is the one
in which every row is a distribution. Where there is no matrix, MASA-Safe-RL's
`get_successor_states_dict()` returns the states that may follow each state, and the probability of
each of them for every pair of a state and an action.
"""

from typing import Any

import numpy as np

from cmdpax.errors import ModelError, ParameterError
from cmdpax.gymnasium.outcomes import OUTCOME
from cmdpax.model.arrays import ROUNDING, as_floats

_LAYOUTS = {  # to [S, A, S']
    "[S, A, S']": (0, 1, 2),
    "[A, S, S']": (1, 0, 2),
    "[S, S', A]": (0, 2, 1),
    "[S', S, A]": (1, 2, 0),
}


def read_matrix(env: Any) -> tuple[np.ndarray, tuple[int, int]] | None:
    """The outcomes of positive probability, without rewards and ends, and (S, A); None: none."""
    base = getattr(env, "unwrapped", env)
    matrix = _called(base, "get_transition_matrix")
    if matrix is not None:
        rows = _as_rows(matrix, _sizes(env))
        states, actions, successors = np.nonzero(rows)
        probabilities = rows[states, actions, successors]
        shape = np.array(rows.shape)
    else:
        lists = _called(base, "get_successor_states_dict")
        if lists is None:
            return None
        states, actions, successors, probabilities, shape = _from_lists(lists)
    outcomes = np.zeros(len(states), OUTCOME)
    outcomes["state"], outcomes["action"] = states, actions
    outcomes["successor"], outcomes["probability"] = successors, probabilities
    return outcomes, (int(shape[0]), int(shape[1]))


def rewards_of(env: Any) -> Any:
    """What `get_reward_matrix()` returns, where there is one."""
    rewards = _called(getattr(env, "unwrapped", env), "get_reward_matrix")
    if rewards is None:
        raise ParameterError(
            f"{env} has a transition matrix and no rewards; give rewards=, an array [S], [S, A] or "
            "[S, A, S], or a function of (state, action, next_state)."
        )
    return rewards


def _called(base: Any, name: str) -> Any:
    method = getattr(base, name, None)
    return method() if callable(method) else None


def _sizes(env: Any) -> tuple[int | None, int | None]:
    """(S, A), where the spaces say so."""
    spaces = (getattr(env, name, None) for name in ("observation_space", "action_space"))
    states, actions = (getattr(space, "n", None) for space in spaces)
    return None if states is None else int(states), None if actions is None else int(actions)


def _as_rows(matrix: Any, sizes: tuple[int | None, int | None]) -> np.ndarray:
    """The matrix as `[S, A, S']`, in the one layout that fits."""
    given = as_floats("what get_transition_matrix() returns", matrix)
    fitting: dict[str, np.ndarray] = {}
    for layout, axes in _LAYOUTS.items() if given.ndim == 3 else ():
        rows = given.transpose(axes)
        if _fits(rows, sizes) and not any(np.array_equal(rows, one) for one in fitting.values()):
            fitting[layout] = rows
    if not fitting:
        wanted = " and ".join(
            f"{size} {what}"
            for size, what in zip(sizes, ("states", "actions"), strict=True)
            if size is not None
        )
        raise ModelError(
            f"get_transition_matrix() returns an array of shape {given.shape}, which has rows that "
            f"sum to 1 in none of the layouts {', '.join(_LAYOUTS)}"
            f"{f' for {wanted}' if wanted else ''}; build the model with cmdpax.from_arrays."
        )
    if len(fitting) > 1:
        raise ModelError(
            f"what get_transition_matrix() returns, of shape {given.shape}, can be read as "
            f"{' and as '.join(fitting)}; build the model with cmdpax.from_arrays, which takes "
            "[A, S, S']."
        )
    (rows,) = fitting.values()
    return np.asarray(rows / rows.sum(axis=-1, keepdims=True))


def _fits(rows: np.ndarray, sizes: tuple[int | None, int | None]) -> bool:
    num_states, num_actions, num_following = rows.shape
    return (
        num_states == num_following
        and num_actions > 0
        and sizes[0] in (None, num_states)
        and sizes[1] in (None, num_actions)
        and bool((rows >= 0).all())
        and bool((np.abs(rows.sum(axis=-1) - 1) <= ROUNDING).all())
    )


def _from_lists(lists: Any) -> tuple[np.ndarray, ...]:
    """States, actions, next states, probabilities and (S, A), from MASA-Safe-RL's two mappings."""
    try:
        following, chances = lists
        num_states = len(following)
        num_actions = 1 + max(int(action) for _, action in chances)
        rows = [
            (s, a, t, p)
            for s in range(num_states)
            for a in range(num_actions)
            for t, p in zip(following[s], chances[s, a], strict=True)
        ]
        columns = np.array(rows, dtype=float).T
        states, actions, successors = columns[:3].astype(np.int64)
        probabilities = columns[3]
    except (LookupError, TypeError, ValueError, OverflowError):
        raise ModelError(
            "what get_successor_states_dict() returns cannot be read; it must be the states that "
            "follow each state, and for each (state, action) a probability for each of them."
        ) from None
    sums = np.bincount(states * num_actions + actions, probabilities, num_states * num_actions)
    wrong = (probabilities < 0).any() or (np.abs(sums - 1) > ROUNDING).any()
    if wrong or not ((successors >= 0) & (successors < num_states)).all():
        raise ModelError(
            "get_successor_states_dict() gives no distributions over the states "
            f"0 … {num_states - 1}; the sums are between {sums.min():.6g} and {sums.max():.6g}."
        )
    used = probabilities > 0
    parts = (part[used] for part in (states, actions, successors, probabilities))
    return (*parts, np.array([num_states, num_actions]))
