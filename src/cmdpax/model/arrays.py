"""Arrays where they enter a model: converted, normalised and frozen.

Rows that miss 1 by rounding, as in single precision, are divided by their sums; what is further off
is left for `validate`, which names the place. Actions that are not available keep their place in
all arrays and take the entries of an action that is, so that every row is a distribution and no
signal leaves its range; nothing ever reads them.
"""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import numpy.typing as npt

from cmdpax.checks import whole_number
from cmdpax.errors import ModelError, ParameterError, in_line, nearest_name, shown
from cmdpax.model.transitions import Successors

ArrayLike = npt.ArrayLike | jax.Array

ROW_SUM_TOLERANCE = 1e-8
"""How far a distribution may be from summing to one, and is kept as it is."""

ROUNDING = 1e-6
"""How far it may be, and is divided by its sum: what rounding to single precision explains."""


def frozen(array: np.ndarray) -> np.ndarray:
    """The array, which nobody can change any more."""
    array.flags.writeable = False
    return array


def is_frozen(array: object, dtype: type) -> bool:
    """Whether an array may be kept as it is: nobody can change it any more."""
    if not isinstance(array, np.ndarray) or array.dtype != dtype:
        return False
    return not array.flags.writeable and (array.base is None)


def kept_floats(name: str, value: Any) -> Any:
    """A frozen array of doubles; one that is frozen already is kept as it is."""
    if isinstance(value, jax.core.Tracer) or is_frozen(value, np.float64):
        return value
    return frozen(as_floats(name, value, copy=True))


def as_floats(name: str, value: Any, *, copy: bool | None = None) -> np.ndarray:
    """An array of real numbers, copied only if needed or asked for; raises a `ModelError`."""
    try:
        array = np.asarray(value)
        _require_real(array)
        return np.array(array, dtype=np.float64, copy=copy)
    except (TypeError, ValueError, OverflowError) as error:
        reason = in_line(error).rstrip(".")
        raise ModelError(f"{name} cannot be read as an array of real numbers: {reason}.") from None


def is_single(value: Any) -> bool:
    """Whether it is one thing, and not a list or an array of several."""
    try:
        return np.ndim(value) == 0
    except (TypeError, ValueError):  # lists of various lengths
        return False


def _require_real(array: np.ndarray) -> None:
    """NumPy would read words, dates and times as numbers, and drop imaginary parts."""
    kind = array.dtype.kind
    if kind == "O" and any(isinstance(entry, str | bytes | complex) for entry in array.flat):
        raise TypeError("some of them are words or complex")
    if kind in "SUMmc" or array.dtype.type is np.void:  # JAX's short floats are of kind V, too
        raise TypeError(f"they are {array.dtype}")


def as_indices(name: str, value: Any) -> np.ndarray:
    """A copy as an array of integers; raises a `ModelError`."""
    try:
        array = np.array(value)
    except (TypeError, ValueError, OverflowError) as error:
        reason = in_line(error).rstrip(".")
        raise ModelError(f"{name} cannot be read as an array of integers: {reason}.") from None
    if array.dtype.kind not in "iu":
        raise ModelError(f"{name} must be integers (state indices), got {array.dtype}.")
    return array


def kept_indices(value: Any) -> Any:
    """A frozen array of successors."""
    if isinstance(value, jax.core.Tracer) or is_frozen(value, np.int32):
        return value
    array = as_indices("successors", value)
    if array.size and (array.max() > 2**31 - 1 or array.min() < -(2**31)):
        return frozen(array)  # left for validate to name the entry
    return frozen(array.astype(np.int32))


def kept_transitions(value: Any) -> Any:
    """Transitions in either storage, frozen, with rows that sum to 1 but for rounding."""
    if isinstance(value, Successors):
        lists = kept_indices(value.successors)
        probabilities = normalised(kept_floats("probabilities", value.probabilities))
        if np.ndim(lists) == np.ndim(probabilities) == 3:  # [S, A, N]: the same at every step
            lists, probabilities = frozen(np.array(lists[None])), frozen(probabilities[None].copy())
        return Successors(lists, probabilities)
    return normalised(kept_floats("transitions", value))


def normalised(array: Any) -> Any:
    """Rows that miss 1 by no more than rounding explains, divided by their sums."""
    if isinstance(array, jax.core.Tracer) or not np.ndim(array):
        return array
    with np.errstate(all="ignore"):  # `validate` names what is infinite or no number
        sums = array.sum(axis=-1)
        missed = np.abs(sums - 1)
    rounded = (missed > ROW_SUM_TOLERANCE) & (missed <= ROUNDING)
    if not rounded.any():
        return array
    return frozen(array / np.where(rounded, sums, 1.0)[..., None])


def kept_initial(initial: Any, state_names: Sequence[str] | None) -> Any:
    """The distribution of the first state, or certainty of a state that is given by its name."""
    if not isinstance(initial, str):
        return normalised(kept_floats("initial", initial))
    if state_names is None:
        raise ParameterError(
            f"initial is {shown(initial)}, but the states have no names; give state_names, or a "
            "distribution."
        )
    names = list(state_names)
    if initial not in names:
        raise ParameterError(f"initial is {shown(initial)}; {nearest_name(initial, names)}.")
    return frozen(np.eye(1, len(names), names.index(initial))[0])


def as_available(available: Any) -> Any:
    """Flags `[H or 1, S, A]`, from `[S, A]` or `[H, S, A]`; None where every action is there."""
    if available is None or isinstance(available, jax.core.Tracer):
        return available
    array = np.array(available) if isinstance(available, bool | np.bool) else None
    if array is None:
        array = as_floats("available", available)
    if array.ndim not in (2, 3) or not np.isin(array, (0, 1)).all():
        raise ModelError(
            f"available must be flags, (S, A) or (H, S, A), got {shown(np.asarray(available))}."
        )
    flags = array.astype(bool)[None] if array.ndim == 2 else array.astype(bool)
    return None if flags.all() else frozen(flags)


def fill_unavailable(fields: dict[str, Any]) -> None:
    """Give actions that are not available the entries of the first action that is."""
    flags = fields["available"]
    transitions = fields["transitions"]
    if isinstance(transitions, Successors):
        fields["transitions"] = Successors(*(fill_pairs(array, flags, 0) for array in transitions))
    else:
        fields["transitions"] = fill_pairs(transitions, flags, 0)
    fields["rewards"] = fill_pairs(fields["rewards"], flags, 0)
    fields["constraint_rewards"] = fill_pairs(fields["constraint_rewards"], flags, 1)


def fill_pairs(array: np.ndarray, flags: np.ndarray, axis: int) -> np.ndarray:
    """One array, whose axes (H, S, A) begin at `axis`; `validate` names shapes that do not fit."""
    length, *pairs = array.shape[axis : axis + 3] or (0,)
    if tuple(pairs) != flags.shape[1:] or (len(flags) > 1 and length not in (1, len(flags))):
        return array
    # One row for all steps is read wherever the action is there at some step.
    there = flags if length == len(flags) else flags.any(axis=0, keepdims=True)
    if there.all():
        return array
    others = np.where(there, np.arange(there.shape[-1]), there.argmax(axis=-1)[..., None])
    before, after = (1,) * axis, (1,) * (array.ndim - axis - 3)
    index = others.reshape(*before, *others.shape, *after)
    return frozen(np.take_along_axis(array, index, axis=axis + 2))


def as_horizon(horizon: Any) -> int:
    """H, a whole number."""
    number = whole_number(horizon)
    if number is None:
        raise ModelError(f"horizon must be a whole number, got {shown(horizon)}.")
    return number


def longest(fields: dict[str, Any]) -> int:
    """The largest leading axis of transitions, rewards and constraint rewards."""
    transitions = fields["transitions"]
    if isinstance(transitions, Successors):
        transitions = transitions.probabilities
    lengths = [array.shape[:1] for array in (transitions, fields["rewards"])]
    lengths.append(fields["constraint_rewards"].shape[1:2])
    return max((length[0] for length in lengths if length), default=1)
