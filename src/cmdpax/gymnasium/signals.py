"""Where the signals of the constraints come from, step by step, in the agent's declared units."""

import numbers
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cmdpax.errors import CmdpaxWarning, ParameterError, shown
from cmdpax.live import Agent

Reader = Callable[[int, int, int, Mapping[str, Any]], Any]
"""What a step has for the constraints, by state, action, next state and `info`."""


class Signals:
    """Turns what an environment gives at a step into the signals that an agent expects.

    Costs are converted where a constraint is "at least" its threshold: u = 1 - cost.
    """

    def __init__(self, costs: Any, signals: Any, agent: Agent, num_states: int) -> None:
        """Read the arguments of `interact`.

        Args:
            costs: None takes what the environment gives; else as for `interact`.
            signals: the same, taken as they are by every constraint.
            agent: what was declared.
            num_states: of the environment; the agent may have one more.
        """
        if costs is not None and signals is not None:
            raise ParameterError(
                "give costs or signals, not both: costs are converted, signals not."
            )
        self._declared = agent.declaration
        low, high, self._at_most = (array[1:] for array in self._declared.units)
        self._unit = (low == 0) & (high == 1)
        self._checked = False
        self._rewarded = False  # the environment gives constraint rewards, not only costs
        self._rest: np.ndarray | None = None
        self._converts, source = signals is None, costs if signals is None else signals
        if costs is not None:
            self._require_convertible()
        pairs = (num_states, self._declared.sizes.num_actions)
        self._read = None if source is None else _reader(source, pairs)

    def read(
        self, state: int, action: int, following: int, cost: Any, info: Mapping[str, Any]
    ) -> np.ndarray:
        """The signals of a step, `[I]`; `cost` is that of a step with six values, else None."""
        if not self._at_most.size:
            return np.zeros(0)
        if self._read is None:
            return self._one_each(self._given(cost, info))
        found = self._one_each(self._read(state, action, following, info))
        return self._from_costs(found) if self._converts else found

    def nothing(self) -> np.ndarray:
        """The signals of a step after the end, `[I]`, refused where a range does not allow them."""
        if self._rest is None:
            free = ~self._at_most & self._unit & self._converts & (not self._rewarded)
            rest = np.where(free, 1.0, 0.0)
            self._require_allowed(rest)
            self._rest = rest
        return self._rest

    def _require_allowed(self, nothing: np.ndarray) -> None:
        units, names = self._declared.units, ("reward", *self._declared.names)
        for index, value in enumerate((0.0, *nothing)):
            low, high = units.low[index], units.high[index]
            if not low <= value <= high:
                raise ParameterError(
                    "the environment terminated, and steps after that have no reward and no cost, "
                    f"but the declared range of {names[index]} is [{low:g}, {high:g}]; declare one "
                    f"that has {value:g}, or give on_termination='end'."
                )

    def _one_each(self, found: Any) -> np.ndarray:
        """One number per constraint."""
        numbers, count = np.atleast_1d(np.asarray(found, dtype=float)), self._at_most.size
        if numbers.shape != (count,):
            raise ParameterError(
                f"a step has costs of shape {numbers.shape}, the agent has {count} thresholds; "
                "give one cost for each."
            )
        return numbers

    def _given(self, cost: Any, info: Mapping[str, Any]) -> np.ndarray:
        """What the environment gives: costs, and constraint rewards where they are wanted."""
        rewards = info.get("constraint_rewards")
        if rewards is None or self._at_most.all():
            return self._from_costs(_cost_of(cost, info))
        self._rewarded = True
        costs = _cost_of(cost, info) if self._at_most.any() else 0.0
        return np.where(self._at_most, costs, rewards)

    def _from_costs(self, costs: Any) -> np.ndarray:
        """Costs as they are, or 1 - cost."""
        self._require_convertible()
        numbers = np.asarray(costs, dtype=float)
        return np.where(self._at_most, numbers, 1 - numbers)

    def _require_convertible(self) -> None:
        """Refuse constraints that cannot take costs; warn where a limit seems to be meant."""
        if self._checked:
            return
        self._checked = True
        for index, name in enumerate(self._declared.names):
            if not self._at_most[index]:
                self._require_one(index, name)

    def _require_one(self, index: int, name: str) -> None:
        low, high = (array[1 + index] for array in self._declared.units[:2])
        if not self._unit[index]:
            raise ParameterError(
                f"{name} must be at least its threshold and has the range [{low:g}, {high:g}], but "
                "gets costs; give signals= in place of costs=, or declare senses='at most' with "
                "the limit and the range of the cost."
            )
        threshold, horizon = self._declared.thresholds[index], self._declared.sizes.horizon
        if threshold < horizon / 2:
            warnings.warn(
                f"{name} must be at least {threshold:g} and gets 1 - cost, so more than half of "
                f"the {horizon} steps may cost 1; if {threshold:g} is the limit of the cost, "
                "declare senses='at most'.",
                CmdpaxWarning,
                stacklevel=7,
            )


def _reader(source: Any, pairs: tuple[int, int]) -> Reader:
    """As for `from_env`: a list has one entry per constraint, unless it is a list of numbers."""
    if not isinstance(source, list | tuple) or all(isinstance(c, numbers.Real) for c in source):
        return _one(source, pairs)
    return _several(source, pairs)


def _several(source: Sequence[Any], pairs: tuple[int, int]) -> Reader:
    readers = [_one(cost, pairs) for cost in source]
    return lambda *step: np.array([float(read(*step)) for read in readers])


def _one(source: Any, pairs: tuple[int, int]) -> Reader:
    if isinstance(source, str):
        return lambda state, action, following, info: _entry(info, source)
    if callable(source):
        return lambda state, action, following, info: source(state, action, following)
    table = np.array(source)
    if table.dtype.kind not in "biuf" or table.ndim not in (1, 2):
        raise ParameterError(
            f"costs is {shown(source)}; it must be a name in info, a function of (state, action, "
            "next_state), an array [S] or [S, A], or a list of these."
        )
    if table.shape != pairs[: table.ndim]:
        raise ParameterError(
            f"costs has shape {table.shape}, expected {pairs[:1]} or {pairs}: a number for every "
            "state, or for every state and action."
        )
    if table.ndim == 1:
        return lambda state, action, following, info: table[state]
    return lambda state, action, following, info: table[state, action]


def _cost_of(cost: Any, info: Mapping[str, Any]) -> Any:
    """The cost of a step with six values, or what `info` has."""
    if cost is not None:
        return cost
    name = "costs" if "costs" in info else "cost"
    if name not in info:
        raise ParameterError(
            f"the environment's info has neither 'costs' nor 'cost' (it has {sorted(info)}); "
            "say with costs= or signals= where they come from."
        )
    return info[name]


def _entry(info: Mapping[str, Any], name: str) -> Any:
    if name not in info:
        raise ParameterError(
            f"the environment's info has no {name!r}, it has {sorted(info)}; name one of these."
        )
    return info[name]
