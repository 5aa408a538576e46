"""The tables of Gymnasium's toy-text environments as CMDPs, to be solved exactly.

`P[s][a]` is a list of `(probability, next state, reward, terminated)`, one for each outcome of the
action a in the state s.

A CMDP does not terminate, so an episode that has ended *rests*: it stays where it ended, and
neither earns nor pays any more.
"""

import math
import reprlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cmdpax.checks import require_count
from cmdpax.errors import ModelError, ParameterError, shown
from cmdpax.model.arrays import ROW_SUM_TOLERANCE, ArrayLike
from cmdpax.model.cmdp import CMDP, from_costs
from cmdpax.model.toolbox import as_initial, as_lists, require_words
from cmdpax.model.transitions import Successors
from cmdpax.model.validation import validate

Cost = ArrayLike | Callable[[int, int, int], float]
"""An array `[S]` or `[S, A]`, or a function `cost(state, action, next_state)`."""

_OUTCOME = np.dtype(
    [
        ("state", np.int64),
        ("action", np.int64),
        ("probability", np.float64),
        ("successor", np.int64),
        ("reward", np.float64),
        ("terminated", np.bool),
    ]
)


def from_env(
    env: Any,
    horizon: int,
    *,
    costs: Cost | Sequence[Cost] | None = None,
    limits: ArrayLike | None = None,
    initial: ArrayLike | None = None,
    **words: Any,
) -> CMDP:
    """The CMDP of a toy-text environment, from its table `env.unwrapped.P`.

    Rewards are in the environment's units. A state where episodes only ever end (a hole of
    FrozenLake, the goal of CliffWalking, a drop-off of Taxi) is absorbing, without reward and
    cost. If an episode may also end in a state where others go on, such ends lead to one more
    state, with the index S: the CMDP then has S + 1 states. Where episodes go on depends on where
    they start, so give another start here, as `initial`, instead of replacing it later.

    The table must be the whole truth: Taxi's `fickle_passenger` is not in it.

    Args:
        env: the environment, wrapped or not, with S states and A actions.
        horizon: H, the steps of an episode; a limit on time that wraps the environment is not read.
        costs: for one constraint, an array `[S]` (what acting in a state costs) or `[S, A]`, or a
            function `cost(state, action, next_state)`, whose expectation is taken. A list of
            these for several constraints. None makes a plain MDP.
        limits: for each constraint, the largest allowed expected sum of its costs over the
            horizon; a number will do for one. Converted as `cmdpax.from_costs` does.
        initial: a state, or a distribution `[S]`; None takes the environment's.
        words: names and units, as for `cmdpax.CMDP`, of S states; one more is named "ended".

    Examples:
        >>> import cmdpax, gymnasium
        >>> from cmdpax.gymnasium import from_env
        >>> lake = gymnasium.make("FrozenLake-v1")
        >>> holes = {5, 7, 11, 12}
        >>> careful = from_env(lake, 100, costs=lambda s, a, t: t in holes, limits=0.1)
        >>> careful
        CMDP(S=16, A=4, H=100, I=1, successors)
        >>> best, safe = cmdpax.solve(from_env(lake, 100)), cmdpax.solve(careful)
        >>> print(f"the goal is reached with {best.value:.4f}, safely with {safe.value:.4f}")
        the goal is reached with 0.7442, safely with 0.4667
    """
    horizon = require_count("horizon", horizon)
    outcomes, pairs = _read_outcomes(env)
    listed, bounds = _constraints(costs, limits)
    start = _start(env, initial, pairs[0])
    alive = _alive(outcomes, start)
    resting = _resting(outcomes, alive)
    played = outcomes[~resting[outcomes["state"]]]
    shape = (len(resting), pairs[1])
    expected_costs = np.zeros((len(listed), 1, *shape))
    for i, (name, cost) in enumerate(listed.items()):
        mean = _expected_cost(name, cost, played, pairs)
        expected_costs[i, 0, : pairs[0]] = np.where(resting[: pairs[0], None], 0.0, mean)
    cmdp = from_costs(
        transitions=_transitions(played, alive, resting, pairs[1]),
        rewards=_expected(played, played["reward"], shape)[None],
        costs=expected_costs,
        limits=bounds,
        initial=np.pad(start, (0, len(resting) - pairs[0])),
        horizon=horizon,
        **_with_ended(words, pairs[0], len(resting)),
    )
    return validate(cmdp)


def _with_ended(words: dict[str, Any], given: int, num_states: int) -> dict[str, Any]:
    """The words, with a name for the state in which episodes are that ended, if there is one."""
    require_words("from_env", words)
    names = words.get("state_names")
    if names is None or isinstance(names, str) or not (len(names) == given < num_states):
        return words
    return words | {"state_names": [*names, "ended"]}


# ---------------------------------------------------------------------------------------- outcomes


def _read_outcomes(env: Any) -> tuple[np.ndarray, tuple[int, int]]:
    """The outcomes of positive probability, a row for each, and (S, A)."""
    table = getattr(getattr(env, "unwrapped", env), "P", None)
    if table is None:
        raise ParameterError(
            f"{env} has no table P of transitions; from_env reads toy-text environments, such as "
            'gymnasium.make("FrozenLake-v1").'
        )
    try:
        widths = [len(table[s]) for s in range(len(table))]
        listed = [
            (s, a, *outcome)
            for s, width in enumerate(widths)
            for a in range(width)
            for outcome in table[s][a]
        ]
        columns = np.array(listed, dtype=np.float64).reshape(-1, 6).T
    except (LookupError, TypeError, ValueError, OverflowError):
        raise ModelError(
            "P cannot be read; P[s][a] must be a list of (probability, next state, reward, "
            "terminated), for states s and actions a that count from 0."
        ) from None
    shape = _shape(widths)
    _check_columns(columns, shape)
    outcomes = np.empty(columns.shape[1], _OUTCOME)
    for name, column in zip(_OUTCOME.names or (), columns, strict=True):
        outcomes[name] = column
    outcomes = outcomes[outcomes["probability"] > 0]
    _check_sums(outcomes, shape)
    return outcomes, shape


def _expected(outcomes: np.ndarray, values: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """The expectation `[S, A]` of a value of each outcome; 0 for a pair without any."""
    pairs = outcomes["state"] * shape[1] + outcomes["action"]
    weights = outcomes["probability"] * values
    return np.bincount(pairs, weights, minlength=shape[0] * shape[1]).reshape(shape)


def _shape(widths: list[int]) -> tuple[int, int]:
    """(S, A), where every state has the same number of actions."""
    found = sorted(set(widths))
    if len(found) != 1 or found == [0]:
        numbers = " or ".join(str(width) for width in found) or "no states with"
        raise ModelError(
            f"P has {numbers} actions; it needs a state, and the same actions in every state."
        )
    return len(widths), found[0]


def _check_columns(columns: np.ndarray, shape: tuple[int, int]) -> None:
    """Refuse numbers that no outcome can have."""
    states, actions, probabilities, successors, rewards, _ = columns
    last = shape[0] - 1
    is_state = (successors >= 0) & (successors <= last) & (np.floor(successors) == successors)
    checks = (
        ("probability", probabilities, probabilities >= 0, "a number of at least 0"),
        ("next state", successors, is_state, f"one of 0 … {last}"),
        ("reward", rewards, np.isfinite(rewards), "a finite number"),
    )
    for name, values, valid, expected in checks:
        if not valid.all():
            wrong = int(np.argmin(valid))
            raise ModelError(
                f"P[{states[wrong]:.0f}][{actions[wrong]:.0f}] lists the {name} "
                f"{values[wrong]:g}, it must be {expected}."
            )


def _check_sums(outcomes: np.ndarray, shape: tuple[int, int]) -> None:
    sums = _expected(outcomes, np.ones(len(outcomes)), shape)
    off = np.abs(sums - 1) > ROW_SUM_TOLERANCE
    if off.any():
        state, action = np.argwhere(off)[0]
        raise ModelError(
            f"the probabilities of P[{state}][{action}] sum to {sums[state, action]:.12g}, not "
            "to 1; divide them by their sum."
        )


# ------------------------------------------------------------------------------ where episodes end


def _start(env: Any, initial: Any, num_states: int) -> np.ndarray:
    """The initial distribution, `[S]`; that it is one is checked with the CMDP."""
    if initial is None:
        initial = getattr(getattr(env, "unwrapped", env), "initial_state_distrib", None)
    if initial is None:
        raise ParameterError(
            f"{env} has no initial_state_distrib; give initial, a state or a distribution."
        )
    start = as_initial(initial, num_states)
    if start.shape != (num_states,):
        raise ParameterError(
            f"initial is {reprlib.repr(initial)}, it must be one of the states "
            f"0 … {num_states - 1}, or a probability for each of them."
        )
    return start


def _alive(outcomes: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Whether an episode can be in a state without having ended, `[S]`."""
    continuing = outcomes[~outcomes["terminated"]]
    alive = start > 0
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


# ------------------------------------------------------------------------------------------- costs


def _constraints(costs: Any, limits: Any) -> tuple[dict[str, Any], np.ndarray]:
    """The costs by their names in messages, and one limit for each."""
    if (costs is None) != (limits is None):
        given, missing = ("costs", "limits") if limits is None else ("limits", "costs")
        raise ParameterError(f"{given} came without {missing}; give both or neither.")
    if costs is None:
        return {}, np.zeros(0)
    # A list of numbers is one array; any other list holds one cost for each constraint.
    several = isinstance(costs, list | tuple) and not (costs and np.isscalar(costs[0]))
    named = {f"costs[{i}]": cost for i, cost in enumerate(costs)} if several else {"costs": costs}
    bounds = np.atleast_1d(_as_numbers("limits", limits))
    if bounds.shape != (len(named),):
        raise ParameterError(
            f"limits is {reprlib.repr(limits)}, but the number of costs is {len(named)}; give one "
            "limit for each."
        )
    if not np.isfinite(bounds).all():
        raise ParameterError(f"limits is {shown(limits)}; every limit must be a finite number.")
    return named, bounds


def _expected_cost(name: str, cost: Any, played: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """The expected cost of every pair, `[S, A]`."""
    if callable(cost):
        triples = played[["state", "action", "successor"]].tolist()
        values = [_call(name, cost, *triple) for triple in triples]
        return _expected(played, np.array(values), shape)
    array = _as_numbers(name, cost)
    if array.shape not in (shape[:1], shape):
        raise ParameterError(
            f"{name} has shape {array.shape}, expected (S,) = {shape[:1]} or (S, A) = {shape}."
        )
    finite = np.isfinite(array)
    if not finite.all():
        index = [int(i) for i in np.argwhere(~finite)[0]]
        raise ParameterError(
            f"{name} at {index} is {array[tuple(index)]}; every cost must be a finite number."
        )
    return np.broadcast_to(array.reshape(shape[0], -1), shape)


def _call(
    name: str, cost: Callable[[int, int, int], Any], state: int, action: int, next_state: int
) -> float:
    value = cost(state, action, next_state)
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ParameterError(
            f"{name} is {shown(value)} for (state, action, next_state) = "
            f"({state}, {action}, {next_state}); every cost must be a finite number."
        )
    return number


def _as_numbers(name: str, value: Any) -> np.ndarray:
    try:
        return np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(
            f"{name} is {reprlib.repr(value)}, which cannot be read as an array of numbers."
        ) from None
