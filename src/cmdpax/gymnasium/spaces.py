"""The spaces of an environment against the sizes of an agent."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Discrete

from cmdpax.checks import require_index
from cmdpax.errors import ParameterError, shown
from cmdpax.gymnasium.encoders import Encoder
from cmdpax.live import Agent


class Translation(NamedTuple):
    """An environment's observations as states, and actions as the environment's."""

    encode: Encoder
    decode: Callable[[int], Any]
    end_state: int | None  # where terminated episodes stay, if not in their last observation
    num_states: int  # of the environment


def translation_of(
    env: Any, agent: Agent, encoder: Encoder | None, decoder: Any, end_state: int | None
) -> Translation:
    """Between an environment and an agent whose sizes fit; refused where they do not."""
    check_spaces(env, agent, encoder, decoder)
    own, states = agent.declaration.sizes.num_states, _states_of(env, encoder)
    last = own - 1 if states == own - 1 else None  # the state that the agent has more
    if end_state is not None:
        last = require_index("end_state", end_state, own, "states")
    return Translation(encoder_of(env, encoder), decoder_of(env, decoder), last, states or own)


def check_spaces(env: Any, agent: Agent, encoder: Any, decoder: Any) -> None:
    """Refuse what cannot be played, before anything is.

    An object without spaces is taken at its word: the agent checks every state and action.
    """
    if not isinstance(agent, Agent):
        raise ParameterError(
            f"agent is a {type(agent).__name__}; give the environment first, then a cmdpax.Agent."
        )
    if hasattr(env, "num_envs"):
        raise ParameterError(
            "this is a vector environment, an agent plays in one; give it a single environment, or "
            "make one agent for each."
        )
    sizes = agent.declaration.sizes
    states = getattr(env, "observation_space", None)
    if encoder is None and states is not None and not isinstance(states, Discrete):
        raise ParameterError(
            f"the observations are {states}, not Discrete; give encoder=, a function that turns "
            "one into a state 0 … S - 1 (MultiDiscreteEncoder, BoxEncoder, your own)."
        )
    found = _states_of(env, encoder)
    if found is not None and not sizes.num_states - 1 <= found <= sizes.num_states:
        raise ParameterError(
            f"the {'environment' if encoder is None else 'encoder'} has {found} states, the agent "
            f"{sizes.num_states}; make the agent with num_states={found} (or one more, where "
            "terminated episodes stay)."
        )
    actions = getattr(env, "action_space", None)
    if decoder is None and actions is not None:
        if not isinstance(actions, Discrete):
            raise ParameterError(
                f"the actions are {actions}, not Discrete; give decoder=, a function that turns "
                "0 … A - 1 into one of them."
            )
        if actions.n != sizes.num_actions:
            raise ParameterError(
                f"the environment has {actions.n} actions, the agent {sizes.num_actions}; make the "
                f"agent with num_actions={actions.n}."
            )


def encoder_of(env: Any, encoder: Encoder | None) -> Encoder:
    """The user's, or that of a Discrete space, whose first value need not be 0."""
    if encoder is not None:
        return encoder
    first = int(getattr(getattr(env, "observation_space", None), "start", 0))

    def encode(observation: Any) -> int:
        value = np.asarray(observation)
        if value.size != 1 or value.dtype.kind not in "iu":
            raise ParameterError(
                f"the observation is {shown(observation)}, which is no state; give encoder=, a "
                "function that turns one into a state 0 … S - 1."
            )
        return int(value.item()) - first

    return encode


def decoder_of(env: Any, decoder: Callable[[int], Any] | None) -> Callable[[int], Any]:
    """Likewise of the actions."""
    if decoder is not None:
        return decoder
    first = int(getattr(getattr(env, "action_space", None), "start", 0))
    return lambda action: action + first


def _states_of(env: Any, encoder: Encoder | None) -> int | None:
    """How many states there are, where the encoder or the space says it."""
    if encoder is not None:
        return getattr(encoder, "num_states", None)
    found = getattr(getattr(env, "observation_space", None), "n", None)
    return None if found is None else int(found)
