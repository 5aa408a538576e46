"""Learners that are wrong, each in one way; sweeps import them by their address.

All of them come from `sound`, which keeps playing the uniform policy.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp

from cmdpax.estimation import Trajectory
from cmdpax.learners import Factory, Hyperparameters, Info, Knowledge, Learner, rates_at

LATE = 1500
"""An episode beyond the first block, which has 1024 at most."""


class State(NamedTuple):
    """What the next episode needs."""

    episode: Any
    log_policy: Any


class WithPolicy(NamedTuple):
    """A state that happens to have a field `policy`."""

    episode: Any
    log_policy: Any
    policy: Any


def sound(knowledge: Knowledge, hyperparameters: Hyperparameters) -> Learner:
    """Nothing is wrong with it."""
    num_constraints, *pairs = knowledge.sizes
    nothing = jnp.zeros(num_constraints, knowledge.initial.dtype)

    def init() -> State:
        uniform = jnp.full(pairs, -jnp.log(pairs[-1]), knowledge.initial.dtype)
        return State(jnp.int32(1), uniform)

    def update(state: State, trajectory: Trajectory) -> tuple[State, Info]:
        return state._replace(episode=state.episode + 1), Info(nothing, nothing, None)

    return Learner(init, update)


def _first(change: Callable[[State], Any]) -> Factory:
    """A learner whose first state is changed."""

    def factory(knowledge: Knowledge, hyperparameters: Hyperparameters) -> Learner:
        plain = sound(knowledge, hyperparameters)
        return plain._replace(init=lambda: change(plain.init()))

    return factory


def _later(change: Callable[[State, Info, Any], Any]) -> Factory:
    """A learner whose updates are changed; told the regularization too."""

    def factory(knowledge: Knowledge, hyperparameters: Hyperparameters) -> Learner:
        plain = sound(knowledge, hyperparameters)

        def update(state: State, trajectory: Trajectory) -> Any:
            tau = rates_at(hyperparameters, state.episode).regularization
            return change(*plain.update(state, trajectory), tau)

        return plain._replace(update=update)

    return factory


def _spoilt(state: State, wrong: Any) -> State:
    """With NaN in the policy where it is wrong."""
    return state._replace(log_policy=jnp.where(wrong, jnp.nan, state.log_policy))


# What breaks the contract.
def nothing(knowledge: Knowledge, hyperparameters: Hyperparameters) -> None:
    """No learner at all."""


def pair(knowledge: Knowledge, hyperparameters: Hyperparameters) -> tuple[Any, ...]:
    """A tuple that is not a `Learner`."""
    return tuple(sound(knowledge, hyperparameters))


def no_functions(knowledge: Knowledge, hyperparameters: Hyperparameters) -> Learner:
    """A state in the place of `init`."""
    plain = sound(knowledge, hyperparameters)
    return Learner(plain.init(), plain.update)


no_state = _first(lambda state: None)
no_policy = _first(lambda state: (state.episode, state.log_policy))
no_step = _first(lambda state: state._replace(log_policy=state.log_policy[0]))
no_array = _first(lambda state: state._replace(episode="first"))
whole_numbers = _first(lambda state: state._replace(log_policy=state.log_policy.astype(int)))
no_pair = _later(lambda state, info, tau: state)
no_info = _later(lambda state, info, tau: (state, (info.multipliers, info.constraint_values)))
other_state = _later(lambda state, info, tau: (WithPolicy(*state, state.log_policy), info))
growing = _later(
    lambda state, info, tau: (state._replace(episode=jnp.stack([state.episode] * 2)), info)
)
retyped = _later(
    lambda state, info, tau: (state._replace(episode=state.episode.astype(float)), info)
)
words_later = _later(lambda state, info, tau: (state._replace(episode="later"), info))
complex_multipliers = _later(
    lambda state, info, tau: (state, info._replace(multipliers=info.multipliers.astype(complex)))
)
one_multiplier = _later(
    lambda state, info, tau: (state, info._replace(multipliers=jnp.zeros((7,))))
)

# What can only be seen in its numbers.
logits = _first(lambda state: state._replace(log_policy=state.log_policy + 2))
not_a_number = _first(lambda state: _spoilt(state, True))
infinite = _first(lambda state: state._replace(log_policy=state.log_policy + jnp.inf))
later_not_a_number = _later(lambda state, info, tau: (_spoilt(state, state.episode == LATE), info))
wild_multipliers = _later(
    lambda state, info, tau: (state, info._replace(multipliers=info.multipliers / 0))
)
wrong_if_regularized = _later(
    lambda state, info, tau: (_spoilt(state, (state.episode == 7) & (tau > 0.5)), info)
)
raising = _later(lambda state, info, tau: _raise())


def _raise() -> Any:
    raise ZeroDivisionError("nothing left\nto divide")


# What is sound, though it looks like something else.
def with_policy(knowledge: Knowledge, hyperparameters: Hyperparameters) -> Learner:
    """Its state has a field `policy` of its own, which is no business of anybody else."""
    plain = sound(knowledge, hyperparameters)
    own = jnp.arange(4.0)

    def update(state: WithPolicy, trajectory: Trajectory) -> tuple[WithPolicy, Info]:
        following, info = plain.update(State(state.episode, state.log_policy), trajectory)
        return WithPolicy(*following, state.policy), info

    return Learner(lambda: WithPolicy(*plain.init(), own), update)


def counting_in_python(knowledge: Knowledge, hyperparameters: Hyperparameters) -> Learner:
    """It begins with a plain number, whose type the first update decides."""
    plain = sound(knowledge, hyperparameters)

    def update(state: State, trajectory: Trajectory) -> tuple[State, Info]:
        following, info = plain.update(state, trajectory)
        return following._replace(episode=following.episode.astype(jnp.int32)), info

    return Learner(lambda: plain.init()._replace(episode=1), update)


class Configurable:
    """A factory that is an object."""

    def __call__(self, knowledge: Knowledge, hyperparameters: Hyperparameters) -> Any:
        """Nothing."""
        return None
