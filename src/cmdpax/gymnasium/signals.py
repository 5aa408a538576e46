"""Where the signals of the constraints come from, step by step, in the agent's declared units."""

import numbers
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cmdpax.errors import CmdpaxWarning, ParameterError, shown
from cmdpax.live import Agent


class ObservedStep(NamedTuple):
    """One step of an environment, with states for observations."""

    state: int
    action: int
    next_state: int
    cost: Any  # of a step with six values, else None
    info: Mapping[str, Any]


Reader = Callable[[ObservedStep], Any]


class Signals(NamedTuple):
    """What turns a step into the signals that an agent expects."""

    read: Callable[[ObservedStep], np.ndarray]  # [I]
    nothing: Callable[[], np.ndarray]  # [I], of a step after an episode has terminated


def signals_of(costs: Any, signals: Any, agent: Agent, num_states: int) -> Signals:
    """The source of the signals.

    Args:
        costs: None takes what the environment gives; a name is another entry of `info`; a function
            is called with (state, action, next_state); an array `[S]` or `[S, A]` is looked up; a
            list has one of these per constraint. Constraints of the sense "at most" take costs as
            they are, those "at least" with range (0, 1) take 1 - cost.
        signals: the same, taken as they are by every constraint.
        agent: what was declared.
        num_states: of the environment; the agent may have one more.
    """
    if costs is not None and signals is not None:
        raise ParameterError("give costs or signals, not both: costs are converted, signals not.")
    count, *_, num_actions = agent.declaration.sizes
    pairs = (num_states, num_actions)
    conversion = _Conversion(agent)
    if signals is not None:
        return Signals(_checked(_reader(signals, pairs), count), lambda: np.zeros(count))
    if costs is None:
        return Signals(_checked(conversion.given, count), conversion.nothing)
    conversion.require()
    read = _checked(_reader(costs, pairs), count)
    return Signals(lambda step: conversion.of_costs(read(step)), conversion.nothing)


def require_nothing_allowed(agent: Agent, nothing: np.ndarray) -> None:
    """Refuse to stay where an episode terminated, if nothing is not in the declared ranges."""
    units, names = agent.declaration.units, ("reward", *agent.declaration.names)
    for index, value in enumerate((0.0, *nothing)):
        low, high = units.low[index], units.high[index]
        if not low <= value <= high:
            raise ParameterError(
                "the environment terminated, and steps after that have no reward and no cost, but "
                f"the declared range of {names[index]} is [{low:g}, {high:g}]; declare one that "
                f"has {value:g}, or give on_termination='end'."
            )


class _Conversion:
    """Costs as the declared signals: u = 1 - cost at the border, where constraints are rewards."""

    def __init__(self, agent: Agent) -> None:
        self._declared = agent.declaration
        low, high, self._at_most = (array[1:] for array in self._declared.units)
        self._unit = (low == 0) & (high == 1)
        self._checked = False
        self._rewarded = False  # the environment gives constraint rewards, not only costs

    def nothing(self) -> np.ndarray:
        """No cost, or no constraint reward, whichever the environment gives."""
        free = ~self._at_most & self._unit & (not self._rewarded)
        return np.where(free, 1.0, 0.0)

    def given(self, step: ObservedStep) -> np.ndarray:
        """What the environment gives: costs, and constraint rewards where they are wanted."""
        if not self._at_most.size:
            return np.zeros(0)
        rewards = step.info.get("constraint_rewards")
        if rewards is None or self._at_most.all():
            return self.of_costs(_cost_of(step))
        self._rewarded = True
        return np.where(self._at_most, _cost_of(step) if self._at_most.any() else 0.0, rewards)

    def of_costs(self, costs: Any) -> np.ndarray:
        """Costs as they are, or 1 - cost."""
        self.require()
        numbers = np.asarray(costs, dtype=float)
        return np.where(self._at_most, numbers, 1 - numbers)

    def require(self) -> None:
        """Refuse constraints that costs cannot be converted for; warn of what is hardly meant."""
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


def _checked(read: Reader, count: int) -> Callable[[ObservedStep], np.ndarray]:
    """One number per constraint."""

    def signals(step: ObservedStep) -> np.ndarray:
        found = np.atleast_1d(np.asarray(read(step), dtype=float))
        if found.shape != (count,):
            raise ParameterError(
                f"a step has costs of shape {found.shape}, the agent has {count} thresholds; give "
                "one cost for each."
            )
        return found

    return signals if count else lambda step: np.zeros(0)


def _reader(source: Any, pairs: tuple[int, int]) -> Reader:
    """As for `from_env`: a list has one entry per constraint, unless it is a list of numbers."""
    if not isinstance(source, list | tuple) or all(isinstance(c, numbers.Real) for c in source):
        return _one(source, pairs)
    return _several(source, pairs)


def _several(source: Sequence[Any], pairs: tuple[int, int]) -> Reader:
    readers = [_one(cost, pairs) for cost in source]
    return lambda step: np.array([float(read(step)) for read in readers])


def _one(source: Any, pairs: tuple[int, int]) -> Reader:
    if isinstance(source, str):
        return lambda step: _entry(step.info, source)
    if callable(source):
        return lambda step: source(step.state, step.action, step.next_state)
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
        return lambda step: table[step.state]
    return lambda step: table[step.state, step.action]


def _cost_of(step: ObservedStep) -> Any:
    """The cost of a step with six values, or what `info` has."""
    if step.cost is not None:
        return step.cost
    name = "costs" if "costs" in step.info else "cost"
    if name not in step.info:
        raise ParameterError(
            f"the environment's info has neither 'costs' nor 'cost' (it has {sorted(step.info)}); "
            "say with costs= or signals= where they come from."
        )
    return step.info[name]


def _entry(info: Mapping[str, Any], name: str) -> Any:
    if name not in info:
        raise ParameterError(
            f"the environment's info has no {name!r}, it has {sorted(info)}; name one of these."
        )
    return info[name]
