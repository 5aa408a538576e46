"""The spaces of an environment against the sizes of an agent."""

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete

from cmdpax.checks import require_index
from cmdpax.errors import ParameterError, shown
from cmdpax.gymnasium.encoders import Encoder
from cmdpax.live import Agent


def check_spaces(env: Any, agent: Agent, encoder: Any, decoder: Any) -> None:
    """Refuse what cannot be played, before anything is played.

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
    found = states_of(env, encoder)
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


def end_state_of(agent: Agent, num_states: int | None, given: int | None) -> int | None:
    """Where terminated episodes stay: as given, or in the state that only the agent has."""
    own = agent.declaration.sizes.num_states
    if given is not None:
        return require_index("end_state", given, own, "states")
    return own - 1 if num_states == own - 1 else None


def encoder_of(env: Any, encoder: Encoder | None) -> Encoder:
    """The user's encoder, or that of a Discrete space, whose first value need not be 0."""
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
    """The user's decoder, or that of a Discrete space."""
    if decoder is not None:
        return decoder
    first = int(getattr(getattr(env, "action_space", None), "start", 0))
    return lambda action: action + first


def states_of(env: Any, encoder: Encoder | None) -> int | None:
    """How many states there are, where the encoder or the space says so."""
    if encoder is not None:
        return getattr(encoder, "num_states", None)
    found = getattr(getattr(env, "observation_space", None), "n", None)
    return None if found is None else int(found)
