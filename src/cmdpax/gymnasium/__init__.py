"""CMDPs as Gymnasium environments, and Gymnasium's environments as CMDPs.

`from_env` reads the table of an environment into a CMDP, and `enumerate_env` makes the table of one
that has none, to be solved exactly; `play` plays the plan. `interact` lets a `cmdpax.Agent` decide
in an environment, with encoders for observations that are no states. `make_env` turns any CMDP into
an environment, and `SafetyGymnasium` gives it that package's step.
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
from cmdpax.gymnasium.enumeration import EnumeratedEnv, enumerate_env
from cmdpax.gymnasium.environment import CMDPEnv, make_env
from cmdpax.gymnasium.episodes import Interaction
from cmdpax.gymnasium.interaction import interact
from cmdpax.gymnasium.playing import Played, play
from cmdpax.gymnasium.registration import register_environments
from cmdpax.gymnasium.safety import SafetyGymnasium
from cmdpax.gymnasium.tables import from_env

__all__ = [
    "BoxEncoder",
    "CMDPEnv",
    "EnumeratedEnv",
    "Interaction",
    "MultiDiscreteEncoder",
    "Played",
    "SafetyGymnasium",
    "enumerate_env",
    "from_env",
    "interact",
    "make_env",
    "play",
]

register_environments()
