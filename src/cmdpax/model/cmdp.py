"""The finite-horizon constrained Markov decision process.

States S, actions A, horizon H, transitions p_h(s' | s, a), rewards r_h(s, a), I constraint
rewards u_{i,h}(s, a) with thresholds c_i, and an initial distribution μ. A policy π_h(a | s)
collects V_r^π = E[Σ_h r_h(s_h, a_h)] and V_{u_i}^π likewise, and the problem, Eq. (1), is

    max_π V_r^π   subject to   V_{u_i}^π ≥ c_i for every i.

The convention is the same everywhere: constraint *rewards* that reach *at least* a threshold.
Costs with upper limits are converted at the border, by `from_costs`.
"""

import functools
import hashlib
from typing import Any, NamedTuple

import jax
import numpy as np
import numpy.typing as npt

from cmdpax.checks import whole_number
from cmdpax.errors import ModelError, ParameterError, in_line, nearest_name, shown
from cmdpax.model.transitions import Successors

ArrayLike = npt.ArrayLike | jax.Array


class Sizes(NamedTuple):
    """The sizes of a CMDP: static integers, in the order of the axes of `[I, H, S, A]`."""

    num_constraints: int
    horizon: int
    num_states: int
    num_actions: int


@jax.tree_util.register_pytree_node_class
class CMDP:
    """A constrained Markov decision process, immutable.

    The arrays are kept as read-only NumPy arrays of float64 (integers for successor lists).
    The constructor converts, `cmdpax.validate` checks; every public function that takes a CMDP
    validates it. As a JAX pytree its leaves are the arrays and `horizon` is static, so models of
    one shape can be stacked and vmapped.

    Args:
        transitions: p, `[H, S, A, S]`, or `cmdpax.Successors(successors, probabilities)`.
        rewards: r, `[H, S, A]`.
        constraint_rewards: u, `[I, H, S, A]`; an empty list for a plain MDP.
        thresholds: c, `[I]`.
        initial: μ, `[S]`, a distribution.
        horizon: H; None takes the largest leading axis. Transitions, rewards and constraint
            rewards may each have 1 in place of H: the same at every step.

    Examples:
        >>> import cmdpax
        >>> cmdp = cmdpax.CMDP(
        ...     transitions=[[[[1.0], [1.0], [1.0]]]],
        ...     rewards=[[[1.0, 0.2, 0.6]]],
        ...     constraint_rewards=[[[[0.1, 0.9, 0.5]]]],
        ...     thresholds=[0.5],
        ...     initial=[1.0],
        ... )
        >>> cmdp
        CMDP(S=1, A=3, H=1, I=1, dense)
    """

    ARRAYS = ("transitions", "rewards", "constraint_rewards", "thresholds", "initial")

    transitions: Any  # [H, S, A, S] or Successors
    rewards: Any  # [H, S, A]
    constraint_rewards: Any  # [I, H, S, A]
    thresholds: Any  # [I]
    initial: Any  # [S]
    horizon: int

    def __init__(
        self,
        transitions: ArrayLike | Successors,
        rewards: ArrayLike,
        constraint_rewards: ArrayLike,
        thresholds: ArrayLike,
        initial: ArrayLike,
        horizon: int | None = None,
    ) -> None:
        """Convert the arrays; nothing is checked beyond being numbers."""
        fields: dict[str, Any] = {
            "transitions": _as_transitions(transitions),
            "rewards": _as_floats("rewards", rewards),
            "constraint_rewards": _as_floats("constraint_rewards", constraint_rewards),
            "thresholds": _as_floats("thresholds", thresholds),
            "initial": _as_floats("initial", initial),
        }
        fields["horizon"] = _longest(fields) if horizon is None else _as_int(horizon)
        empty, pairs = fields["constraint_rewards"].shape, fields["rewards"].shape[1:]
        if empty == (0,) or (empty[:1] == (0,) and empty[2:] == pairs):  # I = 0, in one shape
            fields["constraint_rewards"] = _frozen(np.zeros((0, 1, *pairs)))
        self.__dict__.update(fields)

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse: models are immutable, `replace` makes a changed copy."""
        raise AttributeError(f"a CMDP is immutable; use cmdp.replace({name}=…).")

    def __delattr__(self, name: str) -> None:
        """Refuse: models are immutable."""
        raise AttributeError(f"a CMDP is immutable; {name} cannot be deleted.")

    def tree_flatten(self) -> tuple[tuple[Any, ...], int]:
        """The arrays as children, the horizon as static data."""
        return tuple(getattr(self, name) for name in self.ARRAYS), self.horizon

    @classmethod
    def tree_unflatten(cls, horizon: int, children: tuple[Any, ...]) -> "CMDP":
        """A CMDP of these leaves as they are: tracers, JAX arrays, axis numbers."""
        cmdp = object.__new__(cls)
        cmdp.__dict__.update(zip(cls.ARRAYS, children, strict=True), horizon=horizon)
        return cmdp

    @property
    def num_states(self) -> int:
        """S, the number of states."""
        return int(self.initial.shape[-1])

    @property
    def num_actions(self) -> int:
        """A, the number of actions."""
        return int(self.rewards.shape[-1])

    @property
    def num_constraints(self) -> int:
        """I, the number of constraints."""
        return int(self.thresholds.shape[-1])

    @property
    def sizes(self) -> Sizes:
        """(I, H, S, A)."""
        return Sizes(self.num_constraints, self.horizon, self.num_states, self.num_actions)

    @property
    def row_length(self) -> int:
        """The entries of a stored row of transitions: S, or the slots of the lists."""
        lists = isinstance(self.transitions, Successors)
        stored = self.transitions.probabilities if lists else self.transitions
        return int(stored.shape[-1])

    @functools.cached_property
    def fingerprint(self) -> str:
        """A stable hash of the content: the same model gives the same 64 hex digits.

        Equal arrays (as stored) and horizon give equal fingerprints, on every machine and
        through every file format.
        """
        digest = hashlib.sha256(b"cmdpax.CMDP.1")
        digest.update(f"horizon={self.horizon}".encode())
        for name, array in self.named_arrays().items():
            kind = "<i8" if array.dtype.kind in "iu" else "<f8"
            # Adding 0 turns -0.0 into 0.0: equal numbers, equal bytes.
            content = np.ascontiguousarray(array.astype(kind) + 0)
            digest.update(f"{name}{list(array.shape)}".encode())
            digest.update(content.tobytes())
        return digest.hexdigest()

    def named_arrays(self) -> dict[str, np.ndarray]:
        """The arrays by their names in files; successor lists are two of them."""
        arrays: dict[str, np.ndarray] = {}
        for name in self.ARRAYS:
            value = getattr(self, name)
            if isinstance(value, Successors):
                arrays.update(value._asdict())
            else:
                arrays[name] = value
        return arrays

    def replace(self, **changes: Any) -> "CMDP":
        """A copy with some arrays changed, such as `cmdp.replace(thresholds=[0.3])`."""
        fields = {name: getattr(self, name) for name in (*self.ARRAYS, "horizon")}
        for name in changes:
            if name not in fields:
                hint = nearest_name(name, fields)
                raise ParameterError(f"a CMDP has no array {name!r}; {hint}.")
        return CMDP(**(fields | changes))

    def __repr__(self) -> str:
        """The sizes and the storage."""
        storage = "successors" if isinstance(self.transitions, Successors) else "dense"
        sizes = (self.num_states, self.num_actions, self.horizon, self.num_constraints)
        return "CMDP(S={}, A={}, H={}, I={}, {})".format(*sizes, storage)


def from_costs(
    transitions: ArrayLike | Successors,
    rewards: ArrayLike,
    costs: ArrayLike,
    limits: ArrayLike,
    initial: ArrayLike,
    horizon: int | None = None,
) -> CMDP:
    """A CMDP from costs with upper limits: max V_r subject to V_{cost_i} ≤ limit_i.

    With costs in [0, 1] this is u = 1 - cost and c = H - limit. Costs that leave [0, 1] are
    taken from their maximum instead of from 1: u_i = m_i - cost_i, c_i = H m_i - limit_i. Either
    way V_{u_i} - c_i = limit_i - V_{cost_i}: same optimum, same multipliers.

    Args:
        transitions: p, `[H, S, A, S]` or successor lists.
        rewards: r, `[H, S, A]`.
        costs: `[I, H, S, A]`.
        limits: `[I]`, the largest allowed expected sum of each cost.
        initial: μ, `[S]`.
        horizon: H, as for `CMDP`.

    Examples:
        >>> import cmdpax
        >>> cmdp = cmdpax.from_costs(
        ...     transitions=[[[[1.0], [1.0]]]], rewards=[[[1.0, 0.0]]],
        ...     costs=[[[[0.9, 0.1]]]], limits=[0.5], initial=[1.0],
        ... )
        >>> cmdp.constraint_rewards.round(3).tolist(), cmdp.thresholds.tolist()
        ([[[[0.1, 0.9]]]], [0.5])
    """
    cost_model = CMDP(transitions, rewards, costs, limits, initial, horizon)
    cost, limit = cost_model.constraint_rewards, cost_model.thresholds
    if cost.ndim != 4 or limit.shape != cost.shape[:1]:
        raise ModelError(
            f"costs has shape {cost.shape} and limits {limit.shape}, expected "
            "(I, H, S, A) and (I,)."
        )
    if cost.size == 0:
        return cost_model
    ceiling = ceilings(cost)
    return cost_model.replace(
        constraint_rewards=ceiling[:, None, None, None] - cost,
        thresholds=cost_model.horizon * ceiling - limit,
    )


def ceilings(signals: np.ndarray) -> np.ndarray:
    """m, `[I]`, that turns costs `[I, H, S, A]` into constraint rewards m - cost, and back.

    1 for signals in [0, 1], otherwise the largest.
    """
    lowest, highest = signals.min(axis=(1, 2, 3)), signals.max(axis=(1, 2, 3))
    return np.where((lowest >= 0) & (highest <= 1), 1.0, highest)


def _frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def _is_frozen(array: object, dtype: type) -> bool:
    """Whether an array may be kept as it is: nobody can change it any more."""
    if not isinstance(array, np.ndarray) or array.dtype != dtype:
        return False
    return not array.flags.writeable and (array.base is None)


def _as_floats(name: str, value: Any) -> Any:
    if isinstance(value, jax.core.Tracer) or _is_frozen(value, np.float64):
        return value
    return _frozen(as_floats(name, value, copy=True))


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


def _as_indices(value: Any) -> Any:
    if isinstance(value, jax.core.Tracer) or _is_frozen(value, np.int32):
        return value
    array = as_indices("successors", value)
    if array.size and (array.max() > 2**31 - 1 or array.min() < -(2**31)):
        return _frozen(array)  # left for validate to name the entry
    return _frozen(array.astype(np.int32))


def _as_transitions(value: Any) -> Any:
    if isinstance(value, Successors):
        return Successors(
            _as_indices(value.successors),
            _as_floats("probabilities", value.probabilities),
        )
    return _as_floats("transitions", value)


def _as_int(horizon: Any) -> int:
    number = whole_number(horizon)
    if number is None:
        raise ModelError(f"horizon must be a whole number, got {shown(horizon)}.")
    return number


def _longest(fields: dict[str, Any]) -> int:
    """The largest leading axis of transitions, rewards and constraint rewards."""
    transitions = fields["transitions"]
    if isinstance(transitions, Successors):
        transitions = transitions.probabilities
    lengths = [array.shape[:1] for array in (transitions, fields["rewards"])]
    lengths.append(fields["constraint_rewards"].shape[1:2])
    return max((length[0] for length in lengths if length), default=1)
