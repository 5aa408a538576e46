"""The spaces of an environment against the sizes of an agent."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete

from cmdpax.checks import require_index
from cmdpax.errors import ParameterError, shown
from cmdpax.gymnasium.encoders import Encoder
from cmdpax.live import Agent

Decoder = Callable[[int], Any] | Sequence[Any] | np.ndarray
"""Turns an action 0 … A - 1 into the environment's: a function, or a list of the actions."""


def check_spaces(env: Any, agent: Agent, encoder: Any, decoder: Any) -> None:
    """Refuse what cannot be played, before anything is played.

    An object without spaces is taken at its word: the agent checks every state and action.
    """
    if not isinstance(agent, Agent):
        raise ParameterError(
            f"agent is a {type(agent).__name__}; give the environment first, then a cmdpax.Agent."
        )
    sizes = agent.declaration.sizes
    require_single(env, "an agent plays in one; give it a single environment, or make one agent")
    require_states(env, encoder)
    found = states_of(env, encoder)
    if found is not None and not sizes.num_states - 1 <= found <= sizes.num_states:
        raise ParameterError(
            f"the {'environment' if encoder is None else 'encoder'} has {found} states, the agent "
            f"{sizes.num_states}; make the agent with num_states={found} (or one more, where "
            "terminated episodes stay)."
        )
    count = actions_of(env, decoder)
    if count is not None and count != sizes.num_actions:
        fix = f"make the agent with num_actions={count}"
        if decoder is None and count > sizes.num_actions:
            few = list(range(sizes.num_actions))
            fix += f", or say with decoder= which of them it may use, such as decoder={shown(few)}"
        raise ParameterError(
            f"the {'environment' if decoder is None else 'decoder'} has {count} actions, the agent "
            f"{sizes.num_actions}; {fix}."
        )


def require_single(env: Any, fix: str) -> None:
    """Refuse vector environments."""
    if hasattr(env, "num_envs"):
        raise ParameterError(f"this is a vector environment, {fix} for each.")


def require_states(env: Any, encoder: Any) -> None:
    """Refuse observations that are no states."""
    states = getattr(env, "observation_space", None)
    if encoder is None and states is not None and not isinstance(states, Discrete):
        raise ParameterError(
            f"the observations are {states}, not Discrete; give encoder=, a function that turns "
            "one into a state 0 … S - 1 (MultiDiscreteEncoder, BoxEncoder, your own)."
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


def decoder_of(env: Any, decoder: Decoder | None) -> Callable[[int], Any]:
    """The user's decoder, or that of a Discrete space."""
    if callable(decoder):
        return decoder
    if decoder is not None:
        return decoder.__getitem__
    first = int(getattr(getattr(env, "action_space", None), "start", 0))
    return lambda action: action + first


def states_of(env: Any, encoder: Encoder | None) -> int | None:
    """How many states there are, where the encoder or the space says so."""
    if encoder is not None:
        return getattr(encoder, "num_states", None)
    found = getattr(getattr(env, "observation_space", None), "n", None)
    return None if found is None else int(found)


def actions_of(env: Any, decoder: Any) -> int | None:
    """How many actions there are, where a list or the space says so; None: a function decides."""
    space = getattr(env, "action_space", None)
    if callable(decoder):
        return None
    if decoder is not None:
        return _listed_actions(decoder, space)
    if space is None:
        return None
    if not isinstance(space, Discrete):
        raise ParameterError(
            f"the actions are {space}, not Discrete; give decoder=, a list of the actions to "
            "choose from, or a function that turns 0 … A - 1 into one of them."
        )
    return int(space.n)


def _listed_actions(decoder: Any, space: Any) -> int:
    listed = isinstance(decoder, Sequence | np.ndarray) and not isinstance(decoder, str)
    if not listed or not np.shape(decoder)[:1] or not len(decoder):
        raise ParameterError(
            f"decoder is {shown(decoder)}; it must be a list of the environment's actions, such "
            "as [0, 1, 2], or a function that turns 0 … A - 1 into one of them."
        )
    for index, action in enumerate(decoder if isinstance(space, Discrete) else ()):
        if not space.contains(action):
            raise ParameterError(
                f"decoder[{index}] is {shown(action)}, which is no action of {space}."
            )
    return len(decoder)
