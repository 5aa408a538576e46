"""The finite-horizon constrained Markov decision process.

States S, actions A, horizon H, transitions p_h(s' | s, a), rewards r_h(s, a), I constraint
rewards u_{i,h}(s, a) with thresholds c_i, and an initial distribution μ. A policy π_h(a | s)
collects V_r^π = E[Σ_h r_h(s_h, a_h)] and V_{u_i}^π likewise, and the problem, Eq. (1), is

    max_π V_r^π   subject to   V_{u_i}^π ≥ c_i for every i.

The convention is the same everywhere: constraint *rewards* that reach *at least* a threshold.
What must stay *at most* at a limit is converted at the border (`words`), and results are converted
back: users read them in the senses, names and units that they gave.
"""

import functools
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from cmdpax.errors import ModelError, ParameterError, nearest_name
from cmdpax.model.arrays import (
    ArrayLike,
    as_available,
    as_floats,
    as_horizon,
    fill_unavailable,
    frozen,
    kept_floats,
    kept_initial,
    kept_transitions,
    longest,
)
from cmdpax.model.transitions import Successors
from cmdpax.model.words import ARGUMENTS as WORDS
from cmdpax.model.words import PLAIN, Words, make_words


class Sizes(NamedTuple):
    """The sizes of a CMDP: static integers, in the order of the axes of `[I, H, S, A]`."""

    num_constraints: int
    horizon: int
    num_states: int
    num_actions: int


@jax.tree_util.register_pytree_node_class
class CMDP:
    """A constrained Markov decision process, immutable.

    The arrays are kept as read-only NumPy arrays of float64 (integers for successor lists), by
    the convention above whatever the senses are. The constructor converts, `cmdpax.validate`
    checks; every public function that takes a CMDP validates it. As a JAX pytree its leaves are
    the arrays and `horizon` is static, so models of one shape can be stacked and vmapped; words
    are left behind.

    Args:
        transitions: p, `[H, S, A, S]`, or `cmdpax.Successors(successors, probabilities)`, where
            `[S, A, N]` will do for lists that are the same at every step. Rows that miss 1 by
            rounding, as in single precision, are divided by their sums.
        rewards: r, `[H, S, A]`.
        constraint_rewards: u, `[I, H, S, A]`; an empty list for a plain MDP. Costs, where the sense
            is "at most".
        thresholds: c, `[I]`, in the senses of the constraints.
        initial: μ, `[S]`, a distribution, or the name of the first state.
        horizon: H; None takes the largest leading axis. Transitions, rewards and constraint
            rewards may each have 1 in place of H: the same at every step.
        available: which actions there are, `[S, A]` or `[H, S, A]`; None: all of them. What the
            other arrays have for an action that is not available is not read.
        senses: "at least" or "at most", for all constraints or for each.
        state_names: a text for each state; likewise `action_names` and `constraint_names`.
        action_names: a text for each action.
        constraint_names: a text for each constraint.
        objective_name: what the rewards sum to.
        units: a mapping from the names of the objective and of constraints to their units, or a
            list of 1 + I texts.

    Examples:
        >>> import cmdpax
        >>> cmdp = cmdpax.CMDP(
        ...     transitions=[[[[1.0], [1.0], [1.0]]]],
        ...     rewards=[[[1.0, 0.2, 0.6]]],
        ...     constraint_rewards=[[[[9.0, 1.0, 5.0]]]],
        ...     thresholds=[5.0],
        ...     initial=[1.0],
        ...     senses="at most",
        ...     constraint_names=["energy"],
        ...     units={"energy": "kWh"},
        ... )
        >>> cmdp
        CMDP(S=1, A=3, H=1, I=1, dense)
        >>> print(cmdp)
        CMDP(S=1, A=3, H=1, I=1, dense)
        maximise value
        energy at most 5 kWh
    """

    ARRAYS = ("transitions", "rewards", "constraint_rewards", "thresholds", "initial")

    transitions: Any  # [H, S, A, S] or Successors
    rewards: Any  # [H, S, A]
    constraint_rewards: Any  # [I, H, S, A]
    thresholds: Any  # [I]
    initial: Any  # [S]
    horizon: int
    available: Any  # [H or 1, S, A] of flags, or None
    words: Words

    def __init__(
        self,
        transitions: ArrayLike | Successors,
        rewards: ArrayLike,
        constraint_rewards: ArrayLike,
        thresholds: ArrayLike,
        initial: ArrayLike | str,
        horizon: int | None = None,
        *,
        available: ArrayLike | None = None,
        senses: str | Sequence[str] | None = None,
        state_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
        constraint_names: Sequence[str] | None = None,
        objective_name: str | None = None,
        units: Mapping[str, str] | Sequence[str] | None = None,
    ) -> None:
        """Convert the arrays; nothing is checked beyond being numbers."""
        said = {
            "state_names": state_names,
            "action_names": action_names,
            "constraint_names": constraint_names,
            "objective_name": objective_name,
            "units": units,
        }
        fields: dict[str, Any] = {
            "transitions": kept_transitions(transitions),
            "rewards": kept_floats("rewards", rewards),
            "constraint_rewards": kept_floats("constraint_rewards", constraint_rewards),
            "thresholds": kept_floats("thresholds", thresholds),
        }
        fields["initial"] = kept_initial(initial, state_names)
        fields["horizon"] = longest(fields) if horizon is None else as_horizon(horizon)
        empty, pairs = fields["constraint_rewards"].shape, fields["rewards"].shape[1:]
        if empty == (0,) or (empty[:1] == (0,) and empty[2:] == pairs):  # I = 0, in one shape
            fields["constraint_rewards"] = frozen(np.zeros((0, 1, *pairs)))
        fields["available"] = as_available(available)
        if fields["available"] is not None:
            fill_unavailable(fields)
        fields["words"] = _say(fields, senses, said)
        self.__dict__.update(fields)

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse: models are immutable, `replace` makes a changed copy."""
        raise AttributeError(f"a CMDP is immutable; use cmdp.replace({name}=…).")

    def __delattr__(self, name: str) -> None:
        """Refuse: models are immutable."""
        raise AttributeError(f"a CMDP is immutable; {name} cannot be deleted.")

    def tree_flatten(self) -> tuple[tuple[Any, ...], int]:
        """The arrays as children, the horizon as static data."""
        return tuple(getattr(self, name) for name in (*self.ARRAYS, "available")), self.horizon

    @classmethod
    def tree_unflatten(cls, horizon: int, children: tuple[Any, ...]) -> "CMDP":
        """A CMDP of these leaves as they are: tracers, JAX arrays, axis numbers."""
        cmdp = object.__new__(cls)
        cmdp.__dict__.update(zip(cls.ARRAYS, children, strict=False), horizon=horizon, words=PLAIN)
        # None stands for all actions, and may be left out.
        cmdp.__dict__["available"] = children[5] if len(children) > 5 else None
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

    @property
    def bounds(self) -> np.ndarray:
        """The thresholds as users read them, `[I]`: what each constraint must reach, or not exceed.

        `thresholds` has them as constraint rewards that must be reached.
        """
        return self.words.turn(self.thresholds, self.horizon)

    @property
    def signals(self) -> np.ndarray:
        """What the constraints sum up, as users read it, `[I, H or 1, S, A]`: costs, if "at most".

        `constraint_rewards` has it as constraint rewards. `replace` takes what `signals` and
        `bounds` show.
        """
        return self.words.turn_signals(self.constraint_rewards)

    @functools.cached_property
    def fingerprint(self) -> str:
        """A stable hash of the content: the same model gives the same 64 hex digits.

        Equal arrays (as stored), horizon, senses and available actions give equal fingerprints, on
        every machine and through every file format. Names and units do not matter.
        """
        digest = hashlib.sha256(b"cmdpax.CMDP.1")
        digest.update(f"horizon={self.horizon}".encode())
        if self.words.senses is not None:
            digest.update(f"senses={','.join(self.words.senses)}".encode())
        for name, array in self.named_arrays().items():
            kind = "<i8" if array.dtype.kind in "iub" else "<f8"
            # Adding 0 turns -0.0 into 0.0: equal numbers, equal bytes.
            content = np.ascontiguousarray(array.astype(kind) + 0)
            digest.update(f"{name}{list(array.shape)}".encode())
            digest.update(content.tobytes())
        return digest.hexdigest()

    def named_arrays(self) -> dict[str, np.ndarray]:
        """The arrays by their names in files; successor lists are two of them."""
        arrays: dict[str, np.ndarray] = {}
        for name in (*self.ARRAYS, "available"):
            value = getattr(self, name)
            if isinstance(value, Successors):
                arrays.update(value._asdict())
            elif value is not None:
                arrays[name] = value
        return arrays

    def replace(self, **changes: Any) -> "CMDP":
        """A copy with some arguments changed, such as `cmdp.replace(thresholds=[0.3])`.

        Constraint rewards and thresholds are those of the constructor: costs and limits, where the
        sense is "at most", as `signals` and `bounds` show them.
        """
        words, fields = self.words, {name: getattr(self, name) for name in _ARGUMENTS}
        for name in changes:
            if name not in fields and name not in _WORDS:
                hint = nearest_name(name, (*fields, *_WORDS))
                raise ParameterError(f"a CMDP has no array {name!r}; {hint}.")
        if words.senses is not None:
            fields["constraint_rewards"] = self.signals
            fields["thresholds"] = self.bounds
        given = fields | {name: getattr(words, name) for name in _WORDS} | changes
        if len(given["thresholds"]) != self.num_constraints:  # they are others now
            given |= {"constraint_names": None, "units": None, "senses": None} | changes
        return CMDP(**given)

    def with_arrays(self, **changes: Any) -> "CMDP":
        """A copy without words, with some arrays changed as they are stored."""
        cmdp = object.__new__(CMDP)
        cmdp.__dict__.update({name: getattr(self, name) for name in _ARGUMENTS}, words=PLAIN)
        for name, array in changes.items():
            cmdp.__dict__[name] = kept_floats(name, array)
        return cmdp

    def with_words(self, words: Words) -> "CMDP":
        """The same arrays, with other words."""
        cmdp = self.with_arrays()
        cmdp.__dict__["words"] = words
        return cmdp

    def __repr__(self) -> str:
        """The sizes and the storage."""
        storage = "successors" if isinstance(self.transitions, Successors) else "dense"
        sizes = (self.num_states, self.num_actions, self.horizon, self.num_constraints)
        return "CMDP(S={}, A={}, H={}, I={}, {})".format(*sizes, storage)

    def __str__(self) -> str:
        """The sizes, what is maximised, and a line for each constraint."""
        words, lines = self.words, [repr(self), f"maximise {self.words.label()}"]
        for index, bound in enumerate(self.bounds.tolist()):
            amount = words.amount(bound, 1 + index)
            lines.append(f"{words.constraint(index)} {words.sense(index)} {amount}")
        if self.available is not None:
            share = 100 * (1 - float(self.available.mean()))
            lines.append(f"{share:.3g} % of the pairs of a state and an action are not available")
        return "\n".join(lines)


_ARGUMENTS = (*CMDP.ARRAYS, "horizon", "available")
_WORDS = ("senses", *WORDS)


def from_costs(
    transitions: ArrayLike | Successors,
    rewards: ArrayLike,
    costs: ArrayLike,
    limits: ArrayLike,
    initial: ArrayLike | str,
    horizon: int | None = None,
    **words: Any,
) -> CMDP:
    """A CMDP from costs with upper limits: max V_r subject to V_{cost_i} ≤ limit_i.

    This is `CMDP(…, senses="at most")`. With costs in [0, 1], u = 1 - cost and c = H - limit are
    stored. Costs that leave [0, 1] are taken from their maximum instead of from 1: u_i = m_i -
    cost_i, c_i = H m_i - limit_i. Either way V_{u_i} - c_i = limit_i - V_{cost_i}: same optimum,
    same multipliers. Results are in terms of the costs.

    Args:
        transitions: p, `[H, S, A, S]` or successor lists.
        rewards: r, `[H, S, A]`.
        costs: `[I, H, S, A]`.
        limits: `[I]`, the largest allowed expected sum of each cost.
        initial: μ, `[S]`.
        horizon: H, as for `CMDP`.
        words: names, units and available actions, as for `CMDP`.

    Examples:
        >>> import cmdpax
        >>> cmdp = cmdpax.from_costs(
        ...     transitions=[[[[1.0], [1.0]]]], rewards=[[[1.0, 0.0]]],
        ...     costs=[[[[0.9, 0.1]]]], limits=[0.5], initial=[1.0],
        ... )
        >>> cmdp.constraint_rewards.round(3).tolist(), cmdp.thresholds.tolist()
        ([[[[0.1, 0.9]]]], [0.5])
        >>> cmdpax.solve(cmdp).constraint_values.round(6).tolist()
        [0.5]
    """
    cost, limit = as_floats("costs", costs), as_floats("limits", limits)
    if cost.size and (cost.ndim != 4 or limit.shape != cost.shape[:1]):
        raise ModelError(
            f"costs has shape {cost.shape} and limits {limit.shape}, expected "
            "(I, H, S, A) and (I,)."
        )
    given = {"senses": "at most" if cost.size else None} | words
    return CMDP(transitions, rewards, costs, limits, initial, horizon, **given)


def ceilings(signals: np.ndarray) -> np.ndarray:
    """m, `[I]`, that turns costs `[I, H, S, A]` into constraint rewards m - cost, and back.

    1 for signals in [0, 1], otherwise the largest.
    """
    lowest, highest = signals.min(axis=(1, 2, 3)), signals.max(axis=(1, 2, 3))
    return np.where((lowest >= 0) & (highest <= 1), 1.0, highest)


def _say(fields: dict[str, Any], senses: Any, said: dict[str, Any]) -> Words:
    """The words; what is "at most" becomes constraint rewards and their thresholds."""
    if senses is None and all(entry is None for entry in said.values()):
        return PLAIN
    signals, bounds = fields["constraint_rewards"], fields["thresholds"]
    if senses is not None and (signals.ndim != 4 or bounds.shape != signals.shape[:1]):
        raise ModelError(
            f"constraint_rewards has shape {signals.shape} and thresholds {bounds.shape}, expected "
            "(I, H, S, A), or (I, 1, S, A) if they are the same at every step, and (I,)."
        )
    pairs = fields["rewards"].shape[-2:] if fields["rewards"].ndim > 1 else (1, 1)
    sizes = (*pairs, len(np.atleast_1d(bounds)))
    highest = ceilings(signals) if senses is not None and signals.size else None
    words = make_words(sizes, **said, senses=senses, ceilings=highest)
    if words.senses is not None:
        highest = np.where(words.signs < 0, np.array(words.ceilings), 0.0)
        words = words._replace(ceilings=tuple(highest.tolist()))
        fields["constraint_rewards"] = frozen(words.turn_signals(signals))
        fields["thresholds"] = frozen(words.turn(bounds, fields["horizon"]))
    return words
