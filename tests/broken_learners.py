"""Learners that are wrong, each in one way; sweeps import them by their address.

All of them come from `sound`, which keeps playing the uniform policy.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from cmdpax.learners import Factory, Hyperparameters, Info, Knowledge, Learner, Shown, rates_at
from cmdpax.learners.statistics import Trajectory

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

    def init(key: Any) -> State:
        uniform = jnp.full(pairs, -jnp.log(pairs[-1]), knowledge.initial.dtype)
        return State(jnp.int32(1), uniform)

    def update(state: State, trajectory: Trajectory, key: Any) -> State:
        return state._replace(episode=state.episode + 1)

    def show(state: State) -> Shown:
        return Shown(state.log_policy, Info(nothing, nothing))

    return Learner(init, update, show)


def _first(change: Callable[[State], Any]) -> Factory:
    """A learner whose first state is changed."""

    def factory(knowledge: Knowledge, hyperparameters: Hyperparameters) -> Learner:
        plain = sound(knowledge, hyperparameters)
        return plain._replace(init=lambda key: change(plain.init(key)))

    return factory


def _later(change: Callable[[State, Any], Any]) -> Factory:
    """A learner whose updates are changed; told the regularization too."""

    def factory(knowledge: Knowledge, hyperparameters: Hyperparameters) -> Learner:
        plain = sound(knowledge, hyperparameters)

        def update(state: State, trajectory: Trajectory, key: Any) -> Any:
            tau = rates_at(hyperparameters, state.episode).regularization
            return change(plain.update(state, trajectory, key), tau)

        return plain._replace(update=update)

    return factory


def _seen(change: Callable[[Shown], Any]) -> Factory:
    """A learner that shows something else."""

    def factory(knowledge: Knowledge, hyperparameters: Hyperparameters) -> Learner:
        plain = sound(knowledge, hyperparameters)
        return plain._replace(show=lambda state: change(plain.show(state)))

    return factory


def _told(change: Callable[[Info], Info]) -> Factory:
    """A learner whose `Info` is changed."""
    return _seen(lambda shown: shown._replace(info=change(shown.info)))


def _spoilt(state: State, wrong: Any) -> State:
    """With NaN in the policy where it is wrong."""
    return state._replace(log_policy=jnp.where(wrong, jnp.nan, state.log_policy))


# What breaks the contract: the factory.
def nothing(knowledge: Knowledge, hyperparameters: Hyperparameters) -> None:
    """No learner at all."""


def pair(knowledge: Knowledge, hyperparameters: Hyperparameters) -> tuple[Any, ...]:
    """A tuple that is not a `Learner`."""
    return tuple(sound(knowledge, hyperparameters))


def no_functions(knowledge: Knowledge, hyperparameters: Hyperparameters) -> Learner:
    """A number in the place of `init`."""
    return sound(knowledge, hyperparameters)._replace(init=jnp.int32(1))


def nothing_to_show(knowledge: Knowledge, hyperparameters: Hyperparameters) -> Learner:
    """None in the place of `show`."""
    return sound(knowledge, hyperparameters)._replace(show=None)


def two_functions(knowledge: Knowledge, hyperparameters: Hyperparameters) -> Learner:
    """As the first versions wanted it."""
    plain = sound(knowledge, hyperparameters)
    return Learner(plain.init, plain.update)


def no_key(knowledge: Knowledge, hyperparameters: Hyperparameters) -> Learner:
    """An `init` without a key, likewise."""

    def init() -> State:
        return State(jnp.int32(1), jnp.zeros(()))

    return sound(knowledge, hyperparameters)._replace(init=init)


# Its states.
keeps_a_key = _first(lambda state: state._replace(episode=jax.random.key(1)))
no_array = _first(lambda state: state._replace(episode="first"))
no_state_later = _later(lambda state, tau: None)
with_info = _later(lambda state, tau: (state, Info(jnp.zeros(2), jnp.zeros(2))))
other_state = _later(lambda state, tau: WithPolicy(*state, state.log_policy))
growing = _later(lambda state, tau: state._replace(episode=jnp.stack([state.episode] * 2)))
retyped = _later(lambda state, tau: state._replace(episode=state.episode.astype(float)))
words_later = _later(lambda state, tau: state._replace(episode="later"))

# What it shows.
no_shown = _seen(lambda shown: None)
policy_alone = _seen(lambda shown: shown.log_policy)
no_pair = _seen(tuple)
no_info = _seen(lambda shown: shown._replace(info=tuple(shown.info)))
no_policy = _seen(lambda shown: shown._replace(log_policy=None))
no_step = _seen(lambda shown: shown._replace(log_policy=shown.log_policy[0]))
whole_numbers = _seen(lambda shown: shown._replace(log_policy=shown.log_policy.astype(int)))
complex_multipliers = _told(
    lambda info: info._replace(multipliers=info.multipliers.astype(complex))
)
one_multiplier = _told(lambda info: info._replace(multipliers=jnp.zeros((7,))))
no_multipliers = _told(lambda info: info._replace(multipliers=None))
one_value = _told(lambda info: info._replace(constraint_values=jnp.zeros(())))
counted_values = _told(lambda info: info._replace(constraint_values=jnp.zeros((2,), int)))
q_of_a_step = _told(lambda info: info._replace(q_values=jnp.zeros((3, 2))))
other_statistics = _told(lambda info: info._replace(statistics=3))

# What can only be seen in its numbers.
logits = _first(lambda state: state._replace(log_policy=state.log_policy + 2))
not_a_number = _first(lambda state: _spoilt(state, True))
infinite = _first(lambda state: state._replace(log_policy=state.log_policy + jnp.inf))
later_not_a_number = _later(lambda state, tau: _spoilt(state, state.episode == LATE))
wild_multipliers = _told(lambda info: info._replace(multipliers=info.multipliers / 0))
wrong_if_regularized = _later(lambda state, tau: _spoilt(state, (state.episode == 7) & (tau > 0.5)))
raising = _later(lambda state, tau: _raise())


def _raise() -> Any:
    raise ZeroDivisionError("nothing left\nto divide")


# What is sound, though it looks like something else.
def with_policy(knowledge: Knowledge, hyperparameters: Hyperparameters) -> Learner:
    """Its state has fields of another meaning, which are no business of anybody else."""
    plain = sound(knowledge, hyperparameters)
    own = jnp.arange(4.0)

    def init(key: Any) -> WithPolicy:
        first = plain.init(key)
        return WithPolicy(first.episode, jnp.full((2,), jnp.nan), own)

    def update(state: WithPolicy, trajectory: Trajectory, key: Any) -> WithPolicy:
        return state._replace(episode=state.episode + 1)

    def show(state: WithPolicy) -> Shown:
        return plain.show(plain.init(None))

    return Learner(init, update, show)


def stateless(knowledge: Knowledge, hyperparameters: Hyperparameters) -> Learner:
    """It needs to keep nothing."""
    plain = sound(knowledge, hyperparameters)
    return Learner(
        lambda key: None,
        lambda state, trajectory, key: None,
        lambda state: plain.show(plain.init(0)),
    )


def in_a_tuple(knowledge: Knowledge, hyperparameters: Hyperparameters) -> Learner:
    """Its state is a plain tuple, in which nothing has a name."""
    plain = sound(knowledge, hyperparameters)
    return Learner(
        lambda key: tuple(plain.init(key)),
        lambda state, trajectory, key: tuple(plain.update(State(*state), trajectory, key)),
        lambda state: plain.show(State(*state)),
    )


def counting_in_python(knowledge: Knowledge, hyperparameters: Hyperparameters) -> Learner:
    """It begins with a plain number, whose type the first update decides."""
    plain = sound(knowledge, hyperparameters)

    def update(state: State, trajectory: Trajectory, key: Any) -> State:
        following = plain.update(state, trajectory, key)
        return following._replace(episode=following.episode.astype(jnp.int32))

    return plain._replace(init=lambda key: plain.init(key)._replace(episode=1), update=update)


class Configurable:
    """A factory that is an object."""

    def __call__(self, knowledge: Knowledge, hyperparameters: Hyperparameters) -> Any:
        """Nothing."""
        return None
