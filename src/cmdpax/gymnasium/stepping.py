"""One step of an environment, checked; and rewards that are vectors.

Environments with several objectives (mo-gymnasium) return a vector as the reward. One component
is the objective here, or a combination of some; what the others must reach is a matter of
constraints. As in mo-gymnasium's own wrappers, `info["vector_reward"]` has the vector.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from cmdpax.checks import real_number, whole_number
from cmdpax.errors import ParameterError, shown

VECTOR = "vector_reward"


class Taken(NamedTuple):
    """What a step returned."""

    observation: Any
    reward: float
    components: np.ndarray | None  # of a vector reward, those that are not the objective
    cost: Any  # of a step with six values; else None
    terminated: bool
    truncated: bool
    info: Mapping[str, Any]


class Objective:
    """Which part of a vector reward is maximised.

    Args:
        given: the index of a component, a weight for each component, or a function of the vector;
            None, if rewards are numbers.
    """

    def __init__(self, given: Any) -> None:
        """Read the argument; how many components there are is seen with the first step."""
        self._function: Callable[[Any], Any] | None = given if callable(given) else None
        self._weights: np.ndarray | None = None
        self._index = whole_number(given)
        if given is None or self._function is not None or self._index is not None:
            return
        try:
            self._weights = np.asarray(given)
        except ValueError:  # lists of various lengths
            self._weights = np.array(None)
        weights = self._weights
        if weights.dtype.kind not in "iuf" or weights.ndim != 1 or not np.isfinite(weights).all():
            raise ParameterError(
                f"objective is {shown(given)}; it must be the index of a component of the reward, "
                "a weight for each of them, or a function of the reward."
            )

    def split(self, reward: Any) -> tuple[float, np.ndarray | None, np.ndarray | None]:
        """The objective, the other components, and the vector; None, None where it is a number."""
        try:
            vector = np.asarray(reward)
        except ValueError:
            vector = np.array(None)
        told = self._index is not None or self._weights is not None or self._function is not None
        if vector.size == 1 and not (told and vector.ndim):
            return self._number(vector.item(), told), None, None
        if vector.ndim != 1 or vector.dtype.kind not in "biuf":
            raise ParameterError(f"the reward is {shown(reward)}; it must be a number.")
        if not told:
            raise ParameterError(
                f"the reward is {shown(vector.tolist())}, {len(vector)} numbers; say with "
                "objective= which of them is maximised, such as objective=0, and the others are "
                "for the constraints."
            )
        vector = vector.astype(float)
        if self._function is not None:
            return self._number(self._function(vector), False), None, vector
        weights = self._weights_of(len(vector))
        return float(weights @ vector), vector[weights == 0], vector

    def _number(self, value: Any, told: bool) -> float:
        if told:
            raise ParameterError(
                f"the reward is {shown(value)}, a number, and has no components; leave out "
                "objective=."
            )
        number = real_number(value)
        if np.isnan(number) and not (isinstance(value, float | np.floating) and np.isnan(value)):
            raise ParameterError(f"the reward is {shown(value)}; it must be a number.")
        return number

    def _weights_of(self, count: int) -> np.ndarray:
        if self._weights is None:
            index = self._index
            if index is None or not 0 <= index < count:
                raise ParameterError(
                    f"objective is {index}, but the reward has the components 0 … {count - 1}."
                )
            return np.eye(count)[index]
        if len(self._weights) != count:
            raise ParameterError(
                f"objective has {len(self._weights)} weights, but the reward has {count} "
                "components; give one for each."
            )
        return self._weights


def reset(env: Any, seed: int | None) -> Any:
    """The first observation of an episode."""
    try:
        values = env.reset() if seed is None else env.reset(seed=seed)
    except TypeError as error:
        if seed is None or "seed" not in str(error):
            raise
        raise ParameterError("the environment's reset takes no seed; give seed=None.") from None
    if not isinstance(values, tuple) or len(values) != 2:
        raise ParameterError(
            f"the environment's reset returns {shown(values)}; it must return an observation "
            "and an info (Gymnasium)."
        )
    return values[0]


def take(env: Any, action: Any, objective: Objective) -> Taken:
    """One step, with the environment's own action."""
    values = env.step(action)
    if len(values) not in (5, 6):
        raise ParameterError(
            f"the environment's step returns {len(values)} values; it must return five "
            "(Gymnasium) or six (Safety-Gymnasium)."
        )
    cost = values[2] if len(values) == 6 else None
    observation, given, *_ = values
    terminated, truncated, info = values[-3:]
    reward, components, vector = objective.split(given)
    if vector is not None:
        info = {VECTOR: vector, **info}
    return Taken(observation, reward, components, cost, bool(terminated), bool(truncated), info)
