"""The tables of environments as CMDPs, to be solved exactly.

`P[s][a]` of Gymnasium's toy-text environments is a list of `(probability, next state, reward,
terminated)`, one for each outcome of the action a in the state s. Others give a matrix of
transition probabilities by a method (`matrices`).
"""

import reprlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from cmdpax.checks import require_count
from cmdpax.errors import ModelError, ParameterError
from cmdpax.gymnasium.expectations import Signal, expectation, named_costs
from cmdpax.gymnasium.limits import warn_of_limit
from cmdpax.gymnasium.matrices import read_matrix, rewards_of
from cmdpax.gymnasium.outcomes import OUTCOME, assemble, expected, require_sums
from cmdpax.model.arrays import ArrayLike
from cmdpax.model.cmdp import CMDP
from cmdpax.model.toolbox import as_initial, require_words


def from_env(
    env: Any,
    horizon: int,
    *,
    costs: Signal | Sequence[Signal] | None = None,
    limits: ArrayLike | None = None,
    rewards: Signal | None = None,
    initial: ArrayLike | None = None,
    **words: Any,
) -> CMDP:
    """The CMDP of an environment that has a table: `env.unwrapped.P`, or a transition matrix.

    Rewards are in the environment's units. A state where episodes only ever end (a hole of
    FrozenLake, the goal of CliffWalking, a drop-off of Taxi) is absorbing, without reward and
    cost. If an episode may also end in a state where others go on, such ends lead to one more
    state, with the index S: the CMDP then has S + 1 states. Where episodes go on depends on where
    they start, so give another start here, as `initial`, instead of replacing it later.

    The table must be the whole truth: Taxi's `fickle_passenger` is not in it. A limit on time that
    wraps the environment is not in it either; a horizon beyond that limit is warned of.

    Without a table P, `get_transition_matrix()` is read, in whichever layout has rows that sum to
    1 (`[S, A, S]`, MASA-Safe-RL's `[S', S, A]`, and others), or MASA-Safe-RL's
    `get_successor_states_dict()`. They say nothing of ends: episodes go on to the horizon.

    Args:
        env: the environment, wrapped or not, with S states and A actions. One that has no table
            can be tried out, state by state (`enumerate_env`).
        horizon: H, the steps of an episode.
        costs: for one constraint, an array `[S]` (what acting in a state costs), `[S, A]` or
            `[S, A, S]`, or a function `cost(state, action, next_state)`, whose expectation is
            taken. A list of these for several constraints. None makes a plain MDP.
        limits: for each constraint, the largest allowed expected sum of its costs over the
            horizon; a number will do for one. Converted as `cmdpax.from_costs` does.
        rewards: in place of the environment's, the same as one cost. None takes those in P, or
            those of `get_reward_matrix()`.
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
    require_words("from_env", words)
    outcomes, shape, own = _read(env, rewards)
    listed, bounds = named_costs(costs, limits)
    start = _start(env, initial, shape[0])
    cmdp = assemble(
        outcomes,
        shape,
        start=start,
        begin=start > 0,
        horizon=horizon,
        rewards=lambda played: (
            expected(played, played["reward"], shape)
            if own is None
            else expectation("rewards", own, played, shape)
        ),
        costs=lambda played: np.array(
            [expectation(name, cost, played, shape) for name, cost in listed.items()]
        ).reshape(len(listed), *shape),
        limits=bounds,
        words=words,
    )
    warn_of_limit(env, horizon)
    return cmdp


def _read(env: Any, rewards: Any) -> tuple[np.ndarray, tuple[int, int], Any]:
    """The outcomes, (S, A), and the rewards that are not those of the outcomes."""
    table = getattr(getattr(env, "unwrapped", env), "P", None)
    if table is not None:
        return *_read_table(table), rewards
    found = read_matrix(env)
    if found is None:
        raise ParameterError(
            f"{env} has no table P of transitions and no get_transition_matrix(); from_env reads "
            'environments that do, such as gymnasium.make("FrozenLake-v1"), and '
            "cmdpax.gymnasium.enumerate_env tries others out."
        )
    return *found, rewards_of(env) if rewards is None else rewards


# ------------------------------------------------------------------------------------- the table P


def _read_table(table: Any) -> tuple[np.ndarray, tuple[int, int]]:
    """The outcomes of positive probability, a row for each, and (S, A)."""
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
    outcomes = np.empty(columns.shape[1], OUTCOME)
    for name, column in zip(OUTCOME.names or (), columns, strict=True):
        outcomes[name] = column
    outcomes = outcomes[outcomes["probability"] > 0]
    require_sums(outcomes, shape)
    return outcomes, shape


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
    for name, values, valid, wanted in checks:
        if not valid.all():
            wrong = int(np.argmin(valid))
            raise ModelError(
                f"P[{states[wrong]:.0f}][{actions[wrong]:.0f}] lists the {name} "
                f"{values[wrong]:g}, it must be {wanted}."
            )


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
