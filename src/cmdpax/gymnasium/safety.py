"""Safety-Gymnasium's interface: a step with a cost of its own."""

from typing import Any, SupportsFloat

import numpy as np
from gymnasium.core import Env, Wrapper
from gymnasium.utils import RecordConstructorArgs

from cmdpax.errors import ParameterError


class SafetyGymnasium(Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """An environment whose `step` returns six values, as Safety-Gymnasium's do.

    They are `(observation, reward, cost, terminated, truncated, info)`. The cost is
    `info["cost"]`, a number, for one constraint, and the vector `info["costs"]` for several.
    Gymnasium's own wrappers expect five values: put them inside, this one outermost.

    Examples:
        >>> import cmdpax
        >>> from cmdpax.gymnasium import SafetyGymnasium, make_env
        >>> env = SafetyGymnasium(make_env(cmdpax.environments.make("bandit")))
        >>> observation, info = env.reset(seed=0)
        >>> env.step(0)[:5]
        (0, 1.0, 0.9, False, True)
    """

    def __init__(self, env: Env[Any, Any]) -> None:
        """Wrap an environment whose `info` holds costs."""
        RecordConstructorArgs.__init__(self)  # so that `env.spec` can make it again
        super().__init__(env)

    def step(  # type: ignore[override]
        self, action: Any
    ) -> tuple[Any, SupportsFloat, float | np.ndarray, bool, bool, dict[str, Any]]:
        """Take an action; returns the six values."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward, _cost(info), terminated, truncated, info


def _cost(info: dict[str, Any]) -> float | np.ndarray:
    for name in ("cost", "costs"):
        if name in info:
            return info[name]
    raise ParameterError(
        'the environment puts neither "cost" nor "costs" into info; '
        "cmdpax.gymnasium.make_env makes one that does."
    )
