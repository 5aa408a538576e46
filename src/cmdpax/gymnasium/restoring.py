"""Ways to put an environment into a state in which it has been before."""

import copy
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import Space

from cmdpax.errors import ParameterError, in_line, shown

_SHARED = (np.random.Generator, np.random.RandomState, random.Random, Space, EnvSpec)
"""What copies of an environment share: a copied generator would repeat its numbers."""

_DRAWN = "pygame"
"""The package of windows and fonts, which are shared, too: they are no part of a state."""

_INSTEAD = (
    "give set_state(env, state), or let an agent play with interact(…, log=True) and take "
    "cmdpax.estimate of the log"
)


class Restorer(NamedTuple):
    """Saves where an environment is, and takes it back there.

    Attributes:
        save: called with the latest observation; returns what `restore` takes.
        restore: put the environment back, before its next step.
        means: what does it, for sentences.
        settable: whether `restore` takes states that were never saved.
        whole: whether an episode that is over goes on after `restore` without a reset.
    """

    save: Callable[[Any], Any]
    restore: Callable[[Any], None]
    means: str
    settable: bool
    whole: bool


def restorer_of(env: Any, set_state: Any, get_state: Any) -> Restorer:
    """How to restore an environment that has just been reset.

    Args:
        env: the environment.
        set_state: `set_state(env, state)`, "copy", or None for what the environment offers.
        get_state: `get_state(env)`; None takes the observation.
    """
    if get_state is not None and not (callable(get_state) and callable(set_state)):
        raise ParameterError(
            f"get_state is {shown(get_state)} and set_state is {shown(set_state)}; both must be "
            "functions, set_state(env, state) and get_state(env)."
        )
    if callable(set_state):
        return _by_function(env, set_state, get_state)
    if set_state is None:
        for name in ("s", "state"):
            if _can_set(getattr(env, "unwrapped", env), name):
                return _by_attribute(getattr(env, "unwrapped", env), name)
    elif set_state != "copy":
        raise ParameterError(
            f"set_state is {shown(set_state)}; it must be a function set_state(env, state), or "
            "'copy'."
        )
    return _by_copies(env)


def _by_function(env: Any, set_state: Any, get_state: Any) -> Restorer:
    def save(observation: Any) -> Any:
        return copy.deepcopy(observation if get_state is None else get_state(env))

    def restore(snapshot: Any) -> None:
        set_state(env, copy.deepcopy(snapshot))

    return Restorer(save, restore, "set_state", get_state is None, False)


def _can_set(base: Any, name: str) -> bool:
    """Whether an attribute may be a state: a value that can be set again."""
    value = getattr(base, name, None)
    if value is None or callable(value):
        return False
    try:
        setattr(base, name, value)
    except AttributeError:  # a property that can only be read
        return False
    return True


def _by_attribute(base: Any, name: str) -> Restorer:
    def save(observation: Any) -> Any:
        return copy.deepcopy(getattr(base, name))

    def restore(snapshot: Any) -> None:
        setattr(base, name, copy.deepcopy(snapshot))

    return Restorer(save, restore, f"env.unwrapped.{name}", True, False)


def _by_copies(env: Any) -> Restorer:
    """Everything that the layers of an environment hold is copied, and put back in place.

    The environment itself stays the object that it is, so that functions which hold it see the
    state, too.
    """
    layers = _layers(env)
    kept = {id(layer): layer for layer in layers}  # these are not copied

    def save(observation: Any) -> Any:
        kept.update((id(one), one) for one in _shared(layers))
        try:
            return copy.deepcopy([vars(layer) for layer in layers], dict(kept))
        except Exception as error:  # whatever the parts of an environment raise
            raise ParameterError(
                f"{shown(env)} cannot be put into a state: it has neither s nor state, and cannot "
                f"be copied ({in_line(error)}); {_INSTEAD}."
            ) from None

    def restore(snapshot: Any) -> None:
        values = copy.deepcopy(snapshot, dict(kept))
        for layer, own in zip(layers, values, strict=True):
            vars(layer).clear()
            vars(layer).update(own)

    return Restorer(save, restore, "a copy of the environment", False, True)


def _layers(env: Any) -> list[Any]:
    """The environment and what its wrappers wrap."""
    found: list[Any] = []
    while env is not None and not any(env is layer for layer in found):
        if not hasattr(env, "__dict__"):
            raise ParameterError(
                f"{shown(env)} cannot be put into a state: it has neither s nor state, and keeps "
                f"what it knows where it cannot be copied; {_INSTEAD}."
            )
        found.append(env)
        env = vars(env).get("env")
    return found


def _shared(layers: list[Any]) -> list[Any]:
    """What copies share of the layers, and of the objects that they hold."""
    values = [value for layer in layers for value in vars(layer).values()]
    own = {id(layer) for layer in layers}
    inner = [
        value
        for held in values
        if hasattr(held, "__dict__") and id(held) not in own and not isinstance(held, type)
        for value in vars(held).values()
    ]
    return [
        value
        for value in (*values, *inner)
        if isinstance(value, _SHARED) or type(value).__module__.partition(".")[0] == _DRAWN
    ]
