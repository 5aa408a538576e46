"""The spaces of an environment against the sizes of an agent."""

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete

from cmdpax.errors import ParameterError
from cmdpax.gymnasium.encoders import Encoder
from cmdpax.live import Agent


def check_spaces(env: Any, agent: Agent, encoder: Any, decoder: Any) -> None:
    """Refuse what cannot be played, before anything is.

    An object without spaces is taken at its word: the agent checks every state and action.
    """
    if hasattr(env, "num_envs"):
        raise ParameterError(
            "this is a vector environment, an agent plays in one; give it a single environment, or "
            "make one agent for each."
        )
    sizes = agent.declaration.sizes
    states = getattr(env, "observation_space", None)
    if encoder is None and states is not None:
        if not isinstance(states, Discrete):
            raise ParameterError(
                f"the observations are {states}, not Discrete; give encoder=, a function that "
                "turns one into a state 0 … S - 1 (MultiDiscreteEncoder, BoxEncoder, your own)."
            )
        if not sizes.num_states - 1 <= states.n <= sizes.num_states:
            raise ParameterError(
                f"the environment has {states.n} states, the agent {sizes.num_states}; make the "
                f"agent with num_states={states.n} (or one more, where terminated episodes stay)."
            )
    declared = getattr(encoder, "num_states", None)
    if declared is not None and declared != sizes.num_states:
        raise ParameterError(
            f"the encoder has {declared} states, the agent {sizes.num_states}; make the agent with "
            f"num_states={declared}."
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
                f"the observation is {observation!r}, which is no state; give encoder=, a function "
                "that turns one into a state 0 … S - 1."
            )
        return int(value.item()) - first

    return encode


def decoder_of(env: Any, decoder: Callable[[int], Any] | None) -> Callable[[int], Any]:
    """Likewise of the actions."""
    if decoder is not None:
        return decoder
    first = int(getattr(getattr(env, "action_space", None), "start", 0))
    return lambda action: action + first


def end_state_of(env: Any, agent: Agent) -> int | None:
    """Where terminated episodes stay: the state that the agent has more than the environment."""
    states = getattr(getattr(env, "observation_space", None), "n", None)
    if states is None or states + 1 != agent.declaration.sizes.num_states:
        return None
    return int(states)
