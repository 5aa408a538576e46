"""Limits on time: environments that cut their episodes after some steps."""

import warnings
from typing import Any, NamedTuple

from cmdpax.checks import whole_number
from cmdpax.errors import CmdpaxWarning


class TimeLimit(NamedTuple):
    """After how many steps every episode is truncated, and the argument that says so."""

    steps: int
    argument: str


def time_limit(env: Any) -> TimeLimit | None:
    """The shortest limit of an environment and its wrappers, as far as they tell.

    `TimeLimit` keeps it as `_max_episode_steps`, a specification as `max_episode_steps`, and
    MiniGrid's environments as `max_steps`.
    """
    found = [
        TimeLimit(steps, argument)
        for given, argument in _told(env)
        if (steps := whole_number(given)) is not None and steps > 0
    ]
    return min(found, default=None)


def _told(env: Any) -> list[tuple[Any, str]]:
    """What the specification says, and what every layer of wrappers does."""
    specification = getattr(env, "spec", None)
    told = [(getattr(specification, "max_episode_steps", None), "max_episode_steps")]
    seen: set[int] = set()
    while env is not None and id(env) not in seen:
        seen.add(id(env))
        kept = getattr(env, "__dict__", {})  # wrappers forward names that they do not have
        told.append((kept.get("_max_episode_steps"), "max_episode_steps"))
        told.append((kept.get("max_steps"), "max_steps"))
        env = kept.get("env")
    return told


def warn_of_limit(env: Any, horizon: int, *, stacklevel: int = 3) -> int | None:
    """Warn of a limit below the horizon; returns it where there is one."""
    limit = time_limit(env)
    if limit is None or limit.steps >= horizon:
        return None
    warnings.warn(
        f"the environment cuts every episode after {limit.steps} steps, but the horizon is "
        f"{horizon}, so what is planned for later steps never comes; take {limit.steps} as the "
        f"horizon, or make the environment with {limit.argument}={horizon}.",
        CmdpaxWarning,
        stacklevel=stacklevel,
    )
    return limit.steps
