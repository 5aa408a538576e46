"""Where the costs of a step come from, and how an agent's declaration takes them."""

import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cmdpax.errors import ParameterError
from cmdpax.live import Agent


class Step(NamedTuple):
    """One step of an environment, with states for observations."""

    state: int
    action: int
    next_state: int
    cost: Any  # of a step with six values, else None
    info: Mapping[str, Any]


Reader = Callable[[Step], Any]


def cost_reader(
    costs: Any, agent: Agent, end_state: int | None = None
) -> Callable[[Step], np.ndarray]:
    """What turns a step into the signals that the agent expects, `[I]`.

    Args:
        costs: None takes the sixth value of a step, `info["costs"]` or `info["cost"]`; a name is
            another entry of `info`; a function is called with (state, action, next_state); an
            array `[S]` or `[S, A]` is looked up; a list has one of these per constraint.
        agent: constraints of the sense "at most" take costs as they are, those "at least" with
            range (0, 1) take 1 - cost.
        end_state: the state that the agent has more than the environment, if it has one.
    """
    _, _, num_states, num_actions = agent.declaration.sizes
    pairs = (num_states if end_state is None else end_state, num_actions)
    read = _several(costs, pairs) if _is_several(costs) else _one(costs, pairs)
    convert = _conversion(agent)
    count = agent.declaration.sizes.num_constraints

    def signals(step: Step) -> np.ndarray:
        if not count:
            return np.zeros(0)
        found = np.atleast_1d(np.asarray(read(step), dtype=float))
        if found.shape != (count,):
            raise ParameterError(
                f"a step has costs of shape {found.shape}, the agent has {count} thresholds; give "
                "one cost for each."
            )
        return convert(found)

    return signals


def _is_several(costs: Any) -> bool:
    """As for `from_env`: a list has one entry per constraint, unless it is a list of numbers."""
    if not isinstance(costs, list | tuple):
        return False
    return not all(isinstance(cost, numbers.Real) for cost in costs)


def no_cost(agent: Agent) -> np.ndarray:
    """The signals of a step that costs nothing, as the agent expects them."""
    return _conversion(agent)(np.zeros(agent.declaration.sizes.num_constraints))


def _conversion(agent: Agent) -> Callable[[np.ndarray], np.ndarray]:
    """Costs as the declared signals: u = 1 - cost at the border, where constraints are rewards."""
    units, names = agent.declaration.units, agent.declaration.names
    low, high, at_most = (array[1:] for array in units)
    for index, name in enumerate(names):
        if not at_most[index] and (low[index], high[index]) != (0, 1):
            raise ParameterError(
                f"{name} must be at least its threshold and has the range [{low[index]:g}, "
                f"{high[index]:g}], but environments give costs; declare it with senses='at most', "
                "the limit of its cost and the cost's range."
            )
    return lambda costs: np.where(at_most, costs, 1 - costs)


def require_nothing_allowed(agent: Agent) -> None:
    """Refuse to stay where an episode terminated, if 0 is not among the declared numbers."""
    units, names = agent.declaration.units, ("reward", *agent.declaration.names)
    for name, low, high in zip(names, units.low, units.high, strict=True):
        if not low <= 0 <= high:
            raise ParameterError(
                f"the environment terminated, and steps after that have no reward and no cost, but "
                f"the declared range of {name} is [{low:g}, {high:g}]; declare one that has 0, or "
                "give on_termination='end'."
            )


def _several(costs: Sequence[Any], pairs: tuple[int, int]) -> Reader:
    readers = [_one(cost, pairs) for cost in costs]
    return lambda step: np.array([float(read(step)) for read in readers])


def _one(costs: Any, pairs: tuple[int, int]) -> Reader:
    if costs is None:
        return _given
    if isinstance(costs, str):
        return lambda step: _entry(step.info, costs)
    if callable(costs):
        return lambda step: costs(step.state, step.action, step.next_state)
    table = np.array(costs)
    if table.dtype.kind not in "biuf" or table.ndim not in (1, 2):
        raise ParameterError(
            f"costs is {costs!r}; it must be a name in info, a function of (state, action, "
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


def _given(step: Step) -> Any:
    """The sixth value of a step, or what `info` has."""
    if step.cost is not None:
        return step.cost
    if "costs" in step.info:
        return step.info["costs"]
    return _entry(step.info, "cost")


def _entry(info: Mapping[str, Any], name: str) -> Any:
    if name not in info:
        raise ParameterError(
            f"the environment's info has no {name!r} (it has {sorted(info)}); say with costs= "
            "where the costs come from."
        )
    return info[name]
