"""The built-in families under Gymnasium's ids: `cmdpax/<name>-v0`."""

from typing import Any

from gymnasium.envs.registration import register, registry

from cmdpax import environments
from cmdpax.gymnasium.environment import CMDPEnv

_ONE_STEP = frozenset({"bandit"})  # see `CMDPEnv`: what `check_env` makes of such episodes


def register_environments() -> None:
    """Register every family once; what is registered already stays as it is."""
    for name in environments.names():
        identifier = f"cmdpax/{name}-v0"
        if identifier not in registry:
            register(
                id=identifier,
                # In words, not the function itself: the specification can then be stored as JSON.
                entry_point="cmdpax.gymnasium.registration:make_family",
                nondeterministic=name in _ONE_STEP,
                kwargs={"family": name},
            )


def make_family(
    family: str, *, observe_step: bool = False, observations: str = "mean", **parameters: Any
) -> CMDPEnv:
    """The environment of a built-in family; what `gymnasium.make("cmdpax/<family>-v0")` calls.

    Args:
        family: one of `cmdpax.environments.names()`.
        observe_step: as for `make_env`.
        observations: as for `make_env`.
        parameters: those of the family, as for `cmdpax.environments.make`.

    Examples:
        >>> import gymnasium
        >>> import cmdpax.gymnasium
        >>> env = gymnasium.make("cmdpax/queue-v0", capacity=10)
        >>> env.observation_space, env.action_space
        (Discrete(11), Discrete(16))
    """
    cmdp = environments.make(family, **parameters)
    return CMDPEnv(cmdp, observe_step=observe_step, observations=observations)
