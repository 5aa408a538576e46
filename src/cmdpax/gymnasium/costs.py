"""Where the costs of a step come from, and how an agent's declaration takes them."""

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


def cost_reader(costs: Any, agent: Agent) -> Callable[[Step], np.ndarray]:
    """What turns a step into the signals that the agent expects, `[I]`.

    Args:
        costs: None takes the sixth value of a step, `info["costs"]` or `info["cost"]`; a name is
            another entry of `info`; a function is called with (state, action, next_state); an
            array `[S]` or `[S, A]` is looked up; a list has one of these per constraint.
        agent: constraints of the sense "at most" take costs as they are, those "at least" with
            range (0, 1) take 1 - cost.
    """
    read = _several(costs) if isinstance(costs, list | tuple) else _one(costs)
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


def _several(costs: Sequence[Any]) -> Reader:
    readers = [_one(cost) for cost in costs]
    return lambda step: np.array([float(read(step)) for read in readers])


def _one(costs: Any) -> Reader:
    if costs is None:
        return _given
    if isinstance(costs, str):
        return lambda step: _entry(step.info, costs)
    if callable(costs):
        return lambda step: costs(step.state, step.action, step.next_state)
    table = np.asarray(costs)
    if table.dtype.kind not in "biuf" or table.ndim not in (1, 2):
        raise ParameterError(
            f"costs is {costs!r}; it must be a name in info, a function of (state, action, "
            "next_state), an array [S] or [S, A], or a list of these."
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
