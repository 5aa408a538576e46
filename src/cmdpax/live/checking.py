"""Checks of the parts of a declaration, with sentences for what is wrong with them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cmdpax.checks import require_index, require_share
from cmdpax.errors import ModelError, ParameterError, shown
from cmdpax.learners.algorithm import Algorithm
from cmdpax.live.units import ROUNDING, Units
from cmdpax.model.arrays import as_floats, as_indices, fill_pairs, is_single
from cmdpax.model.cmdp import CMDP, Sizes
from cmdpax.model.transitions import Successors
from cmdpax.model.validation import validate
from cmdpax.model.words import Words
from cmdpax.schemes.schedules import Schedule, is_constant

_USUAL_CONFIDENCE = 0.9


def stand_in_of(
    sizes: Sizes,
    words: Words,
    thresholds: np.ndarray,
    initial: Any,
    rewards: Any,
    constraint_rewards: Any,
    available: Any,
) -> CMDP:
    """A CMDP whose states stay, so that the arrays are checked as those of any model."""
    num_constraints, horizon, num_states, num_actions = sizes
    if is_single(initial):
        index = (
            words.index_of("state", initial, num_states) if isinstance(initial, str) else initial
        )
        state = require_index("initial", index, num_states, "states")
        initial = np.eye(num_states)[state]
    pairs = (1, num_states, num_actions)
    if rewards is None:
        rewards, constraint_rewards = np.zeros(pairs), np.zeros((num_constraints, *pairs))
    elif constraint_rewards is None:
        constraint_rewards = []
    stay = np.broadcast_to(np.arange(num_states)[None, :, None, None], (*pairs, 1))
    transitions = Successors(stay, np.ones((*pairs, 1)))
    arrays = (transitions, rewards, constraint_rewards, thresholds, initial)
    return validate(CMDP(*arrays, horizon=horizon, available=available).with_words(words))


def require_in_range(model: CMDP, units: Units) -> None:
    """Known rewards must lie in the ranges that are declared."""
    named = [("rewards", model.rewards)]
    named += [(f"constraint_rewards[{i}]", u) for i, u in enumerate(model.constraint_rewards)]
    for index, (name, signal) in enumerate(named):
        low, high = float(signal.min()), float(signal.max())
        room = ROUNDING * units.scale[index]
        if low < units.low[index] - room or high > units.high[index] + room:
            which = f"constraint_ranges[{index - 1}]" if index else "reward_range"
            raise ParameterError(
                f"{name} lies in [{low:g}, {high:g}], {which} is "
                f"[{units.low[index]:g}, {units.high[index]:g}]; declare the range that they have."
            )


def require_margin(margin: Schedule, units: Units, thresholds: np.ndarray, horizon: int) -> None:
    """Refuse a margin that loosens thresholds, or with which no episode can meet them."""
    if margin.initial < 0:
        raise ParameterError(f"margin is {margin}, it must not be negative.")
    inside = units.thresholds_inward(thresholds, horizon)
    if is_constant(margin) and (inside + margin.initial > horizon * (1 + ROUNDING)).any():
        raise ParameterError(
            f"margin is {margin}, with which a threshold is out of reach (margins are in signals "
            "that are scaled to [0, 1]); give a smaller one."
        )


def margins_of(
    given: Any, units: Units, thresholds: np.ndarray, words: Words, horizon: int
) -> np.ndarray:
    """By how much each threshold is made stricter, in the user's units, `[I]`."""
    count = len(thresholds)
    try:
        numbers = real_numbers(0.0 if given is None else given)
    except (TypeError, ValueError, OverflowError):
        numbers = np.array([np.nan])
    fits = numbers.shape in ((1,), (count,)) and np.isfinite(numbers).all()
    if not fits or not (numbers >= 0).all():
        raise ParameterError(
            f"margin is {shown(given)}, it must be one number, or one for each of {count} "
            "constraints, in their units and not negative."
        )
    margins = np.broadcast_to(numbers, count).copy()
    low, high, at_most, declared = (array[1:] for array in units)
    room = np.where(at_most, thresholds - horizon * low, horizon * high - thresholds)
    over = declared & (margins > room + ROUNDING * units.scale[1:] * horizon)
    for index in np.flatnonzero(over).tolist():
        raise ParameterError(
            f"the margin of {words.constraint(index)} is "
            f"{words.amount(margins[index], 1 + index)}, and at most "
            f"{words.amount(room[index], 1 + index)} is possible: its sums of {horizon} steps lie "
            f"in [{horizon * low[index]:g}, {horizon * high[index]:g}]; give a smaller one."
        )
    margins.setflags(write=False)
    return margins


def listed_successors(
    successors: Any, available: np.ndarray | None, sizes: Sizes, stationary: bool
) -> np.ndarray:
    """The states that may follow, -1 for unused slots."""
    _, horizon, num_states, num_actions = sizes
    told = isinstance(successors, Successors)
    lists = as_indices("successors", successors.successors if told else successors)
    fits = lists.ndim == 4 and lists.shape[0] in (1, horizon)
    if not fits or lists.shape[1:3] != (num_states, num_actions):
        raise ModelError(
            f"successors has shape {lists.shape}, expected "
            f"({horizon} or 1, {num_states}, {num_actions}, N), -1 for unused slots."
        )
    if told:
        probabilities = as_floats("probabilities", successors.probabilities)
        if probabilities.shape != lists.shape:
            raise ModelError(
                f"probabilities has shape {probabilities.shape}, but successors {lists.shape}; "
                "give one for each."
            )
        lists = np.where(probabilities > 0, lists, -1)
    if available is not None:
        lists = fill_pairs(lists, available, 0)
    if stationary and lists.shape[0] != 1:
        raise ModelError(
            f"stationary is true, but successors are listed for {lists.shape[0]} steps; list them "
            "once (a leading axis of 1), or declare stationary=False."
        )
    if (
        not lists.size
        or lists.max() >= num_states
        or lists.min() < -1
        or not (lists >= 0).any(axis=-1).all()
    ):
        raise ModelError(
            f"successors must be states 0 … {num_states - 1} or -1, at least one state for every "
            "pair of a state and an action."
        )
    found = lists.astype(np.int32)
    found.setflags(write=False)
    return found


def confidence_of(given: Any, baseline: Any) -> float | None:
    """With which probability every episode's policy must meet all constraints."""
    if baseline is None:
        if given is not None:
            raise ParameterError(
                f"confidence is {shown(given)}, but there is no baseline; give baseline=, the "
                "policy that is played while data are few."
            )
        return None
    return _USUAL_CONFIDENCE if given is None else require_share("confidence", given)


def require_baseline(algorithm: Algorithm, given: Mapping[str, Any]) -> None:
    """Refuse a learner without the baseline that it starts from, or with what it has no use for."""
    name, values = algorithm.name, given["baseline_values"]
    if not algorithm.needs_baseline:
        if values is not None:
            raise ParameterError(
                f"baseline_values was given, but {name} does not start from a baseline; leave it "
                "out."
            )
        return
    for argument in ("baseline", "baseline_values"):
        if given[argument] is None:
            raise ParameterError(
                f"{name} starts from a policy that is known to be safe; give baseline=, that "
                "policy, and baseline_values=, what its episodes bring on average in each "
                f"constraint ({argument} is missing)."
            )
    if given["confidence"] is not None:
        raise ParameterError(
            f"confidence is {shown(given['confidence'])}, but {name} decides by itself when the "
            "baseline is played; leave confidence out."
        )


def baseline_values_of(
    given: Any, units: Units, thresholds: np.ndarray, margins: np.ndarray, words: Words
) -> np.ndarray | None:
    """What a baseline reaches in each constraint, `[I]`, in the user's units.

    It must have slack: learners that start from it divide by it.
    """
    if given is None:
        return None
    count = len(thresholds)
    try:
        values = real_numbers(given)
    except (TypeError, ValueError, OverflowError):
        values = np.array([np.nan])
    if count == 0 and np.size(given) == 0:
        values = np.zeros(0)
    if values.shape != (count,) or not np.isfinite(values).all():
        raise ParameterError(
            f"baseline_values is {shown(given)}, it must be {count} numbers: what an episode of "
            "the baseline brings on average in each constraint, in its unit."
        )
    at_most = units.at_most[1:]
    stricter = thresholds + np.where(at_most, -margins, margins)
    slack = np.where(at_most, stricter - values, values - stricter)
    for index in np.flatnonzero(slack <= 0)[:1].tolist():
        raise ParameterError(
            f"the baseline reaches {words.amount(values[index], 1 + index)} in "
            f"{words.constraint(index)}, which must be {units.senses[index]} "
            f"{words.amount(stricter[index], 1 + index)}: its slack is "
            f"{words.amount(slack[index], 1 + index)}; give a baseline with slack in every "
            "constraint."
        )
    values.setflags(write=False)
    return values


def asks_of(approve: Any) -> bool:
    """Whether somebody approves plans before they are played."""
    if approve is not None and not callable(approve):
        raise ParameterError(
            f"approve is {shown(approve)}, it must be a function of a PolicyChange that returns "
            "True or False."
        )
    return approve is not None


def either_names(names: Any, constraint_names: Any) -> Any:
    """The names of the constraints, which have two arguments."""
    if names is not None and constraint_names is not None:
        raise ParameterError(
            f"names is {shown(names)} and constraint_names {shown(constraint_names)}, which mean "
            "the same; give one of them."
        )
    return names if constraint_names is None else constraint_names


def constraint_names_of(given: Sequence[str] | None, num_constraints: int) -> tuple[str, ...]:
    """A name for each constraint."""
    if given is None:
        return tuple(f"constraint {i}" for i in range(num_constraints))
    names = list(given) if isinstance(given, Sequence | np.ndarray) else [given]
    words = not isinstance(given, str) and all(isinstance(name, str) for name in names)
    if not words or len(names) != num_constraints or len(set(names)) < len(names):
        raise ParameterError(
            f"names is {shown(given)}, it must be {num_constraints} different words, one for each "
            "threshold."
        )
    return tuple(map(str, names))


def thresholds_of(given: Any) -> np.ndarray:
    """Thresholds as an array of numbers."""
    try:
        return real_numbers(given)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(
            f"thresholds is {shown(given)}, it must be a list of numbers, one for each constraint."
        ) from None


def real_numbers(given: Any) -> np.ndarray:
    """Real numbers as an array with one axis; words are refused, even those that look like one."""
    array = np.atleast_1d(np.asarray(given))
    if array.dtype.kind == "O":  # integers of any size, decimals, fractions
        array = np.array([float(entry) for entry in array.ravel()]).reshape(array.shape)
    if array.dtype.kind not in "biuf":
        raise TypeError
    return array.astype(float)
