"""CMDPs as Gymnasium environments, and Gymnasium's tables as CMDPs.

`interact` lets a `cmdpax.Agent` decide in an environment, with encoders for observations that are
no states. `make_env` turns any CMDP into an environment, `SafetyGymnasium` gives it that package's
step, and `from_env` reads the table of a toy-text environment into a CMDP, to be solved exactly.
Importing this package registers the built-in families: `gymnasium.make("cmdpax/queue-v0")`.

It needs the extra: `pip install 'cmdpax[gymnasium]'`.
"""

from cmdpax.errors import MissingPackageError

try:
    import gymnasium as _gymnasium  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "gymnasium":
        raise  # something that gymnasium itself needs
    raise MissingPackageError(
        "cmdpax.gymnasium needs the package gymnasium; run `pip install 'cmdpax[gymnasium]'`."
    ) from None

from cmdpax.gymnasium.encoders import BoxEncoder, MultiDiscreteEncoder
from cmdpax.gymnasium.environment import CMDPEnv, make_env
from cmdpax.gymnasium.episodes import Interaction
from cmdpax.gymnasium.interaction import interact
from cmdpax.gymnasium.registration import register_environments
from cmdpax.gymnasium.safety import SafetyGymnasium
from cmdpax.gymnasium.tables import from_env

__all__ = [
    "BoxEncoder",
    "CMDPEnv",
    "Interaction",
    "MultiDiscreteEncoder",
    "SafetyGymnasium",
    "from_env",
    "interact",
    "make_env",
]

register_environments()
