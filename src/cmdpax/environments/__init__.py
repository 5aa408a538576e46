"""Built-in CMDPs, by name.

Each family is one file with one function; its docstring gives the model and its source. Random
instances come from NumPy generators: the same name and parameters give the same fingerprint.
"""

import inspect
from collections.abc import Callable
from typing import Any

from cmdpax.environments.bandit import bandit
from cmdpax.environments.box import box
from cmdpax.environments.gridworld import gridworld
from cmdpax.environments.inventory import inventory
from cmdpax.environments.mars_rover import mars_rover
from cmdpax.environments.queue import queue
from cmdpax.environments.random import random
from cmdpax.environments.ring import ring
from cmdpax.environments.streaming import streaming
from cmdpax.errors import ParameterError, nearest_name, shown
from cmdpax.model.cmdp import CMDP
from cmdpax.model.validation import validate

__all__ = [
    "bandit",
    "box",
    "describe",
    "gridworld",
    "inventory",
    "make",
    "mars_rover",
    "names",
    "queue",
    "random",
    "ring",
    "streaming",
]

_FAMILIES: dict[str, Callable[..., CMDP]] = {
    family.__name__.replace("_", "-"): family
    for family in (bandit, box, gridworld, inventory, mars_rover, queue, random, ring, streaming)
}


def names() -> list[str]:
    """List the names that `make` knows, sorted.

    Examples:
        >>> import cmdpax
        >>> print(*cmdpax.environments.names())
        bandit box gridworld inventory mars-rover queue random ring streaming
    """
    return sorted(_FAMILIES)


def make(name: str, **parameters: Any) -> CMDP:
    """Make a built-in CMDP.

    Args:
        name: one of `names()`.
        parameters: those of the family's function, all optional.

    Examples:
        >>> import cmdpax
        >>> cmdpax.environments.make("random", num_states=8, num_constraints=2, seed=1)
        CMDP(S=8, A=5, H=5, I=2, dense)
    """
    family = _family(name)
    known = inspect.signature(family).parameters
    for parameter in parameters:
        if parameter not in known:
            raise ParameterError(
                f"environment {name!r} has no parameter {parameter!r}; "
                f"{nearest_name(parameter, known)}."
            )
    return validate(family(**parameters))


def describe(name: str) -> tuple[str, dict[str, Any]]:
    """Describe a family in one line, and list its parameters with their defaults."""
    family = _family(name)
    summary = (inspect.getdoc(family) or "").splitlines()[0]
    parameters = inspect.signature(family).parameters.values()
    return summary, {parameter.name: parameter.default for parameter in parameters}


def _family(name: str) -> Callable[..., CMDP]:
    if not isinstance(name, str) or name not in _FAMILIES:
        raise ParameterError(f"unknown environment {shown(name)}; {nearest_name(name, _FAMILIES)}.")
    return _FAMILIES[name]
