"""Checks of models and policies where they enter, with the offending index and value.

Nothing inside jitted code checks anything; a model is checked once, when it first meets a public
function, and policies whenever they are given.
"""

import weakref
from typing import Any

import numpy as np

from cmdpax.errors import ModelError, shown
from cmdpax.model.arrays import ROW_SUM_TOLERANCE, as_floats, normalised
from cmdpax.model.cmdp import CMDP
from cmdpax.model.transitions import Successors
from cmdpax.storage.limits import require_room

MOST_STEPS = 10_000_000
"""The largest horizon: a stationary model can declare any, and planning goes through every step."""

LARGEST_VALUE, SMALLEST_SCALE = 1e140, 1e-140
"""Sums of rewards may not exceed the first, and the largest reward, if it is not 0, must exceed the
second: beyond, multipliers and products of them would overflow or vanish."""

_CHECKED: "weakref.WeakSet[CMDP]" = weakref.WeakSet()  # models are immutable


def validate(cmdp: CMDP) -> CMDP:
    """Check that the arrays describe a CMDP, and return it.

    Shapes must agree, entries must be finite, rows of `transitions` and `initial` must be
    distributions, and successors must be states. Rewards may be any finite numbers.

    Raises:
        ModelError: one sentence with the array, the index, the value and what was expected.

    Examples:
        >>> import cmdpax
        >>> cmdp = cmdpax.environments.make("bandit")
        >>> cmdpax.validate(cmdp.replace(initial=[0.5]))
        Traceback (most recent call last):
        cmdpax.errors.ModelError: initial sums to 0.5, not to 1; divide it by its sum.
    """
    if not isinstance(cmdp, CMDP):
        raise ModelError(
            f"expected a cmdpax.CMDP, got {type(cmdp).__name__}; cmdpax.load reads one from a file."
        )
    if cmdp in _CHECKED:
        return cmdp
    if cmdp.horizon < 1:
        raise ModelError(f"horizon is {shown(cmdp.horizon)}, it must be at least 1.")
    if cmdp.horizon > MOST_STEPS:
        raise ModelError(f"horizon is {shown(cmdp.horizon)}, it must be at most {MOST_STEPS}.")
    num_states, num_actions = _check_transitions(cmdp.transitions, cmdp.horizon)
    pairs = (num_states, num_actions)
    _check_shape("rewards", cmdp.rewards, "(H, S, A)", (cmdp.horizon, *pairs), steps_axis=0)
    _check_constraints(cmdp, pairs)
    _check_available(cmdp, pairs)
    _check_shape("initial", cmdp.initial, "(S,)", (num_states,))
    _check_room(cmdp)
    for name in ("rewards", "constraint_rewards", "thresholds", "initial"):
        check_finite(name, getattr(cmdp, name))
    for name in ("rewards", "constraint_rewards"):
        _check_magnitudes(name, getattr(cmdp, name), cmdp.horizon)
    _check_magnitudes("thresholds", cmdp.thresholds, 1)
    _check_distributions("initial", cmdp.initial)
    _CHECKED.add(cmdp)
    return cmdp


def validate_policy(cmdp: CMDP, policy: Any) -> np.ndarray:
    """Check a policy of the model; returns it as float64 `[H, S, A]`.

    A leading axis of 1 is a stationary policy and is repeated. Rows that miss 1 by rounding are
    divided by their sums.
    """
    policy = normalised(as_floats("policy", policy))
    _, horizon, *pairs = cmdp.sizes
    _check_shape("policy", policy, "(H, S, A)", (horizon, *pairs), steps_axis=0)
    check_finite("policy", policy)
    _check_distributions("policy", policy)
    policy = np.broadcast_to(policy, (horizon, *pairs))
    if cmdp.available is not None:
        wrong = (policy > 0) & ~np.broadcast_to(cmdp.available, policy.shape)
        if wrong.any():
            step, state, action = first_index(wrong)
            raise ModelError(
                f"policy{[step, state, action]} is {policy[step, state, action]:.6g}, but "
                f"{cmdp.words.action(action)} is not available in {cmdp.words.state(state)} at "
                f"step {step}; give it probability 0."
            )
    return policy


def check_policy(policy: Any) -> np.ndarray:
    """Check an array as a policy of some model; returns it as float64 `[H, S, A]`."""
    policy = normalised(as_floats("policy", policy))
    if policy.ndim != 3 or 0 in policy.shape:
        raise ModelError(f"policy has shape {policy.shape}, expected (H, S, A).")
    check_finite("policy", policy)
    _check_distributions("policy", policy)
    return np.asarray(policy)


def _check_transitions(transitions: Any, horizon: int) -> tuple[int, int]:
    """Check either storage; returns (S, A)."""
    if not isinstance(transitions, Successors):
        if transitions.ndim != 4 or transitions.shape[1] != transitions.shape[3]:
            # Of three axes the first may be the states or, in toolboxes, the actions.
            fix = ""
            if transitions.ndim == 3:
                fix = ": for (S, A, S), the same at every step, give transitions[None]"
            raise ModelError(
                f"transitions has shape {transitions.shape}, expected (H, S, A, S){fix}."
            )
        _, num_states, num_actions, _ = transitions.shape
        _check_rows("transitions", transitions, horizon, num_states)
        return num_states, num_actions
    lists, probabilities = transitions
    if probabilities.ndim != 4 or lists.shape != probabilities.shape:
        raise ModelError(
            f"successors has shape {lists.shape} and probabilities "
            f"{probabilities.shape}, expected one shape (H, S, A, N) for both."
        )
    _, num_states, num_actions, num_slots = probabilities.shape
    _check_rows("probabilities", probabilities, horizon, num_slots)
    outside = (lists < 0) | (lists >= num_states)
    if outside.any():
        index = first_index(outside)
        raise ModelError(
            f"successors{index} is {lists[tuple(index)]}, but states are "
            f"0 … {num_states - 1}; give unused slots probability 0 and any valid state."
        )
    return num_states, num_actions


def _check_rows(name: str, rows: np.ndarray, horizon: int, width: int) -> None:
    if 0 in rows.shape:
        raise ModelError(
            f"{name} has shape {rows.shape}: a CMDP needs at least one state, one action "
            "and one step."
        )
    expected = (horizon, *rows.shape[1:3], width)
    _check_shape(name, rows, "(H, S, A, ·)", expected, steps_axis=0)
    check_finite(name, rows)
    _check_distributions(name, rows)


def _check_room(cmdp: CMDP) -> None:
    """Planning keeps the values of the objective and of every constraint, `[1 + I, H, S]`."""
    num_constraints, horizon, num_states, _ = cmdp.sizes
    require_room(
        f"planning with horizon {horizon} and {num_states} states",
        8 * (1 + num_constraints) * horizon * num_states,
        "shorten the horizon",
        ModelError,
    )


def _check_magnitudes(name: str, array: np.ndarray, horizon: int) -> None:
    """Values, the sums of a horizon, must be neither too large nor too small to compute with."""
    sizes = np.abs(array)
    too_large = sizes > LARGEST_VALUE / horizon
    if too_large.any():
        index = first_index(too_large)
        over = f", which over {horizon} steps" if horizon > 1 else ", which"
        raise ModelError(
            f"{name}{index} is {array[tuple(index)]:.3g}{over} exceeds {LARGEST_VALUE:.0e}; "
            "choose a larger unit."
        )
    largest = sizes.max(axis=(-3, -2, -1)) if array.ndim > 2 else np.ones(1)
    if ((largest > 0) & (largest < SMALLEST_SCALE)).any():
        raise ModelError(
            f"{name} has no entry above {largest[largest > 0].min():.3g}, which is below "
            f"{SMALLEST_SCALE:.0e}; choose a smaller unit."
        )


def _check_constraints(cmdp: CMDP, pairs: tuple[int, int]) -> None:
    thresholds, rewards = cmdp.thresholds, cmdp.constraint_rewards
    if thresholds.ndim != 1:
        raise ModelError(f"thresholds has shape {thresholds.shape}, expected (I,).")
    if rewards.ndim == 4 and thresholds.shape[0] != rewards.shape[0]:
        raise ModelError(
            f"thresholds has length {thresholds.shape[0]}, but constraint_rewards has "
            f"{rewards.shape[0]} of them (shape {rewards.shape}): give one threshold for each."
        )
    expected = (thresholds.shape[0], cmdp.horizon, *pairs)
    _check_shape("constraint_rewards", rewards, "(I, H, S, A)", expected, steps_axis=1)


def _check_available(cmdp: CMDP, pairs: tuple[int, int]) -> None:
    flags = cmdp.available
    if flags is None:
        return
    _check_shape("available", flags, "(H, S, A)", (cmdp.horizon, *pairs), steps_axis=0)
    stuck = ~flags.any(axis=-1)
    if stuck.any():
        step, state = first_index(stuck)
        when = f" at step {step}" if len(flags) > 1 else ""
        raise ModelError(
            f"{cmdp.words.state(state)} has no available action{when}; make one available, such as "
            "waiting there."
        )


def _check_shape(
    name: str,
    array: np.ndarray,
    axes: str,
    expected: tuple[int, ...],
    steps_axis: int | None = None,
) -> None:
    """Compare a shape with the expected one; the axis of steps may be 1."""
    allowed = [expected]
    if steps_axis is not None:
        stationary = list(expected)
        stationary[steps_axis] = 1
        allowed.append(tuple(stationary))
    if array.shape not in allowed:
        choices = " or ".join(str(shape) for shape in dict.fromkeys(allowed))
        raise ModelError(f"{name} has shape {array.shape}, expected {axes} = {choices}.")


def check_finite(name: str, array: np.ndarray) -> None:
    """Refuse an array with an entry that is infinite or no number."""
    wrong = ~np.isfinite(array)
    if wrong.any():
        index = first_index(wrong)
        raise ModelError(
            f"{name}{index} is {array[tuple(index)]}; every entry must be a finite number."
        )


def _check_distributions(name: str, array: np.ndarray) -> None:
    negative = array < 0
    if negative.any():
        index = first_index(negative)
        raise ModelError(
            f"{name}{index} is {array[tuple(index)]}; probabilities cannot be negative."
        )
    sums = array.sum(axis=-1)
    off = np.abs(sums - 1) > ROW_SUM_TOLERANCE
    if off.any():
        index = first_index(off)
        place, row = (f"{name}{index}", "the row") if index else (name, "it")
        total = float(sums[tuple(index)])
        fix = f"divide {row} by its sum"
        if total == 0 and len(index) == 3:
            fix = "if the action is not available there, say so with available="
        raise ModelError(f"{place} sums to {total:.12g}, not to 1; {fix}.")


def first_index(mask: np.ndarray | np.bool) -> list[int]:
    """Index of the first true entry."""
    return [int(i) for i in np.unravel_index(int(np.argmax(mask)), mask.shape)]
