"""CMDPs from the layout of MDP toolboxes: transitions `P[A, S, S]`, rewards `R[S, A]`.

There the action comes first, models are stationary, matrices may be sparse, and a reward may
depend on the next state, R(s, a, t). Only the expectation of such a reward matters:

    r(s, a) = Σ_t P(t | s, a) R(s, a, t).
"""

import math
from typing import Any, TypeAlias

import numpy as np

from cmdpax.checks import whole_number
from cmdpax.errors import ModelError, ParameterError, nearest_name, shown
from cmdpax.model.arrays import ROUNDING, as_available, as_floats, kept_initial
from cmdpax.model.cmdp import CMDP
from cmdpax.model.transitions import Successors
from cmdpax.model.validation import check_finite, validate
from cmdpax.model.words import ARGUMENTS as WORDS
from cmdpax.model.words import as_senses

Entries: TypeAlias = tuple[np.ndarray, np.ndarray]
"""The entries of a matrix `[S, S]` that are not 0: places s·S + t, ascending, and values."""
Matrices: TypeAlias = np.ndarray | list[Entries]
"""One matrix `[S, S]` per action: dense `[A, S, S]`, or the entries of each."""


def from_arrays(
    transitions: Any,
    rewards: Any,
    *,
    horizon: int,
    initial: Any,
    constraint_rewards: Any = None,
    thresholds: Any = None,
    costs: Any = None,
    limits: Any = None,
    senses: Any = None,
    available: Any = None,
    **words: Any,
) -> CMDP:
    """A stationary CMDP from the arrays of an MDP toolbox, with the action first.

    A *signal* (the rewards, a constraint reward, a cost) is an array `[S]` or `[S, A]`, or depends
    on the transition: `[A, S, S]`, or a sequence of A matrices `[S, S]`, dense or sparse. Then its
    expectation is taken; entries where the probability is 0 do not matter.

    Constraints are constraint rewards with thresholds (at least, or as `senses` says), costs with
    limits (at most), or both: the costs then come last. Without either the CMDP is a plain MDP. **A
    list or a
    tuple is several signals, anything else is one**: `costs=array` or `costs=[first, second]`. One
    signal that is a sequence of matrices stands in a list: `costs=[[matrix_0, matrix_1]]`.

    Args:
        transitions: `[A, S, S]` with `P[a, s, t]`, or a sequence of A matrices `[S, S]`. If some of
            them are sparse (SciPy's, or anything with `tocoo`), the CMDP has successor lists and
            no sparse matrix is made dense.
        rewards: one signal.
        horizon: H.
        initial: a state, or a distribution `[S]`.
        constraint_rewards: one signal, or a list of them.
        thresholds: a number for each, or just the number where there is one.
        costs: one signal, or a list of them.
        limits: a number for each, likewise.
        senses: "at least" or "at most", for all of `constraint_rewards` or for each.
        available: which actions there are, `[S, A]` or `[H, S, A]`; None: all of them. Rows of
            actions that are not available are not read.
        words: names and units, as for `cmdpax.CMDP`.

    Raises:
        ModelError: the arrays do not describe a CMDP; places are those of the arrays as given.
        ParameterError: arguments do not go together, or the initial state does not exist.

    Examples:
        >>> import numpy as np
        >>> from cmdpax.model.toolbox import from_arrays
        >>> run, repair = [[0.8, 0.2], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]]
        >>> from_arrays(
        ...     [run, repair],
        ...     rewards=[[1.0, 0.0], [0.5, 0.0]],
        ...     costs=np.array([[0.0, 0.0], [1.0, 0.0]]),
        ...     limits=0.1,
        ...     initial=0,
        ...     horizon=5,
        ... )
        CMDP(S=2, A=2, H=5, I=1, dense)
    """
    _check_kinds(
        constraint_rewards=constraint_rewards, thresholds=thresholds, costs=costs, limits=limits
    )
    require_words("from_arrays", words)
    flags = as_available(available)
    matrices, there = _read_transitions(transitions, flags)
    pairs = there.shape
    kinds = (
        ("constraint_rewards", constraint_rewards, "thresholds", thresholds, senses),
        ("costs", costs, "limits", limits, "at most"),
    )
    signals: list[np.ndarray] = []
    bounds: list[float] = []
    chosen: list[str] = []
    for name, given, bounds_name, bound, sense in kinds:
        if given is not None:
            tables = [_expectation(*named, matrices, there) for named in _separate(name, given)]
            signals += tables
            bounds += as_bounds(bounds_name, bound, len(tables)).tolist()
            chosen += as_senses(sense, len(tables))
    return validate(
        CMDP(
            _stored(matrices, pairs),
            _expectation("rewards", rewards, matrices, there)[None],
            np.reshape(signals, (len(signals), 1, *pairs)),
            bounds,
            as_initial(initial, pairs[0], words.get("state_names")),
            as_whole_number("horizon", horizon),
            available=flags,
            senses=chosen,
            **words,
        )
    )


def require_words(function: str, words: dict[str, Any]) -> None:
    """Refuse keyword arguments that are no words of a model."""
    for name in words:
        if name not in WORDS:
            hint = nearest_name(name, (*WORDS, "senses", "available"))
            raise ParameterError(f"{function} has no argument {name!r}; {hint}.")


# ------------------------------------------------------------------- numbers, where they come in


def as_whole_number(name: str, value: Any) -> int:
    """A whole number that is at least 1."""
    number = whole_number(value)
    if number is None or number < 1:
        raise ParameterError(f"{name} must be a whole number, at least 1, got {shown(value)}.")
    if number >= 2**31:
        raise ParameterError(f"{name} is {shown(value)}, it must be below 2^31.")
    return number


def as_bounds(name: str, value: Any, num_signals: int) -> np.ndarray:
    """Thresholds or limits: a number for each signal, or the number of the only one."""
    bounds = np.atleast_1d(as_floats(name, value))
    if bounds.shape != (num_signals,):
        raise ModelError(
            f"{name} has shape {bounds.shape}, expected (I,) = {(num_signals,)}: one number for "
            "each signal."
        )
    check_finite(name, bounds)
    return bounds


def as_initial(initial: Any, num_states: int, state_names: Any = None) -> np.ndarray:
    """The distribution of the first state, from a state (or its name) or a distribution."""
    if isinstance(initial, str):
        return np.asarray(kept_initial(initial, state_names))
    state = whole_number(initial)
    if state is None:
        distribution = as_floats("initial", initial)
        if distribution.ndim:
            return distribution
        raise ParameterError(
            f"initial must be a state (a whole number) or a distribution over the "
            f"{num_states} states, got {shown(initial)}."
        )
    if not 0 <= state < num_states:
        raise ParameterError(f"initial is {state}, but states are 0 … {num_states - 1}.")
    return np.eye(1, num_states, state)[0]


# ---------------------------------------------------------------------------------------- matrices


def _read(name: str, value: Any) -> np.ndarray | list[Any]:
    """An array of numbers, or a list of matrices if some of them are sparse."""
    if hasattr(value, "tocoo"):
        raise ModelError(
            f"{name} is one sparse matrix, of shape {value.shape}: give a sequence of A matrices "
            "(S, S), or an array, such as its toarray()."
        )
    if isinstance(value, np.ndarray) and value.dtype == object and value.ndim == 1:
        value = list(value)  # how toolboxes keep sparse matrices
    if isinstance(value, list | tuple) and any(hasattr(matrix, "tocoo") for matrix in value):
        return [
            matrix if hasattr(matrix, "tocoo") else as_floats(f"{name}[{index}]", matrix)
            for index, matrix in enumerate(value)
        ]
    return as_floats(name, value)


def _entries(name: str, matrix: Any, num_states: int) -> Entries:
    """The entries of a matrix; those that are given twice are added up."""
    shape = np.shape(matrix)
    if shape != (num_states, num_states):
        raise ModelError(f"{name} has shape {shape}, expected (S, S) = {(num_states, num_states)}.")
    if not hasattr(matrix, "tocoo"):
        return _dense_entries(matrix)
    listed = matrix.tocoo()
    values = as_floats(name, listed.data)
    places, which = np.unique(
        listed.row.astype(np.int64) * num_states + listed.col, return_inverse=True
    )
    values = np.bincount(which, weights=values, minlength=len(places))
    return places[values != 0], values[values != 0]


def _dense_entries(matrix: np.ndarray) -> Entries:
    values = matrix.ravel()
    places = np.flatnonzero(values)
    return places, values[places]


def _read_transitions(transitions: Any, flags: np.ndarray | None) -> tuple[Matrices, np.ndarray]:
    """The matrices of all actions, checked where the action is available, and where that is."""
    given = _read("transitions", transitions)
    matrices: Matrices
    if isinstance(given, list):
        num_states = max((1, *np.shape(given[0])))
        matrices = [_entries(f"transitions[{a}]", m, num_states) for a, m in enumerate(given)]
    else:
        _check_axes(given)
        matrices, num_states = given, given.shape[1]
    there = np.ones((num_states, len(matrices)), bool)
    if flags is not None and flags.shape[1:] == there.shape:
        there = np.asarray(flags.any(axis=0))
    for action, matrix in enumerate(matrices):
        entries = _dense_entries(matrix) if isinstance(matrix, np.ndarray) else matrix
        _check_rows(f"transitions[{action}]", entries, there[:, action])
    return matrices, there


def _check_axes(transitions: np.ndarray) -> None:
    shape = transitions.shape
    if transitions.ndim == 3 and shape[1] == shape[2] and 0 not in shape:
        return
    hint = "one matrix P[a] of rows P[a, s] for each action"
    if transitions.ndim == 3 and shape[0] == shape[2]:
        hint = "the action comes first, so for P[s, a, t] give np.swapaxes(P, 0, 1)"
    elif transitions.ndim == 4:
        hint = "for (H, S, A, S) use cmdpax.CMDP"
    raise ModelError(f"transitions has shape {shape}, expected (A, S, S): {hint}.")


def _check_rows(name: str, entries: Entries, there: np.ndarray) -> None:
    """Each row that counts is a distribution; sentences name the places of the given matrix."""
    places, values = entries
    num_states = len(there)
    rows, columns = np.divmod(places, num_states)
    wrong = there[rows] & (~(values >= 0) | np.isinf(values))
    if wrong.any():
        first = int(np.argmax(wrong))
        raise ModelError(
            f"{name}[{rows[first]}, {columns[first]}] is {values[first]}; probabilities are "
            "finite and not negative."
        )
    sums = np.bincount(rows, weights=values, minlength=num_states)
    off = there & (np.abs(sums - 1) > ROUNDING)
    if not off.any():
        return
    state = int(np.argmax(off))
    columns_sum = np.bincount(columns, weights=values, minlength=num_states)
    fix = "divide the row by its sum"
    if np.all(np.abs(columns_sum - 1) <= ROUNDING):
        fix = "its columns do, so give it transposed"
    elif sums[state] == 0:
        fix = "if the action is not available there, say so with available="
    raise ModelError(f"{name}[{state}] sums to {sums[state]:.12g}, not to 1; {fix}.")


def _stored(matrices: Matrices, pairs: tuple[int, ...]) -> np.ndarray | Successors:
    """The transitions as a CMDP has them: `[1, S, A, S]`, or lists of the entries."""
    if isinstance(matrices, np.ndarray):
        return np.swapaxes(matrices, 0, 1)[None]
    num_states, num_actions = pairs
    rows, columns = np.divmod(np.concatenate([places for places, _ in matrices]), num_states)
    actions = np.repeat(np.arange(num_actions), [len(places) for places, _ in matrices])
    values = np.concatenate([values for _, values in matrices])
    return as_lists(rows * num_actions + actions, columns, values, (1, *pairs))


def as_lists(
    owners: np.ndarray, successors: np.ndarray, probabilities: np.ndarray, shape: tuple[int, ...]
) -> Successors:
    """Successor lists of entries `[M]`: the row that has it, where it leads, how probable it is.

    Rows are counted through `shape`, which is `[H, S, A]`. Unused slots lead to state 0.
    """
    order = np.argsort(owners, kind="stable")
    owners = owners[order]
    counts = np.bincount(owners, minlength=math.prod(shape))
    slots = np.arange(len(owners)) - (np.cumsum(counts) - counts)[owners]
    lists = np.zeros((len(counts), counts.max()), np.int64)
    chances = np.zeros(lists.shape)
    lists[owners, slots] = successors[order]
    chances[owners, slots] = probabilities[order]
    return Successors(lists.reshape(*shape, -1), chances.reshape(*shape, -1))


# ----------------------------------------------------------------------------------------- signals


def _check_kinds(**given: Any) -> None:
    """Constraint rewards come with thresholds, costs with limits."""
    kinds = (("constraint_rewards", "thresholds"), ("costs", "limits"))
    for kind in kinds:
        missing = [name for name in kind if given[name] is None]
        if len(missing) == 1:
            there = kind[0] if missing == [kind[1]] else kind[1]
            raise ParameterError(
                f"{there} is given without {missing[0]}; constraint_rewards go with thresholds (at "
                "least), costs with limits (at most)."
            )


def _separate(name: str, signals: Any) -> list[tuple[str, Any]]:
    """One signal or several, each with its name: a list or a tuple is several."""
    if isinstance(signals, list | tuple):
        return [(f"{name}[{index}]", signal) for index, signal in enumerate(signals)]
    return [(name, signals)]


def _expectation(name: str, signal: Any, matrices: Matrices, there: np.ndarray) -> np.ndarray:
    """A signal in any layout as `[S, A]`; 0 where the action is not available."""
    num_states, num_actions = pairs = there.shape
    given = _read(name, signal)
    if isinstance(given, list):
        if len(given) != num_actions:
            raise ModelError(
                f"{name} has length {len(given)}, expected A = {num_actions} matrices."
            )
        given_entries = [_entries(f"{name}[{a}]", m, num_states) for a, m in enumerate(given)]
        table = _mean(matrices, given_entries, num_states)
    elif given.shape == (num_states,):
        table = np.repeat(given[:, None], num_actions, axis=1)
    elif given.shape == pairs:
        table = given
    elif given.shape == (num_actions, num_states, num_states):
        table = _mean(matrices, given, num_states)
    else:
        hint = "" if name == "rewards" else "; a list is several signals, anything else is one"
        raise ModelError(
            f"{name} has shape {given.shape}, expected (S,) = {(num_states,)}, (S, A) = {pairs} or "
            f"(A, S, S) = {(num_actions, num_states, num_states)}{hint}."
        )
    table = np.where(there, table, 0.0)
    wrong = ~np.isfinite(table)
    if wrong.any():
        state, action = (int(i) for i in np.argwhere(wrong)[0])
        raise ModelError(
            f"{name} is {table[state, action]} for state {state} and action {action}; every entry "
            "must be a finite number."
        )
    return table


def _mean(matrices: Matrices, signal: Matrices, num_states: int) -> np.ndarray:
    """Σ_t P[a, s, t] R[a, s, t] as `[S, A]`, over the transitions that are possible."""
    columns = []
    for matrix, earned in zip(matrices, signal, strict=True):
        places, weights = _dense_entries(matrix) if isinstance(matrix, np.ndarray) else matrix
        found = earned.ravel()[places] if isinstance(earned, np.ndarray) else _at(places, *earned)
        rows = places // num_states
        columns.append(np.bincount(rows, weights=weights * found, minlength=num_states))
    return np.stack(columns, axis=1)


def _at(wanted: np.ndarray, places: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The values of a sparse matrix at the wanted places; 0 where it has none."""
    if not places.size:
        return np.zeros(len(wanted))
    at = np.minimum(np.searchsorted(places, wanted), places.size - 1)
    return np.where(places[at] == wanted, values[at], 0.0)
