"""The pure functions of an agent: begin, look at the coming episode, follow a finished one.

The learner is the one that `cmdpax.learn` runs. So are the random numbers: the actions of episode k
come from `fold_in(key of the seed, k)` at the places where a simulated run with mean observations
takes them, so that an agent that is shown such a run's states chooses the run's actions. (JAX's
settings of random numbers are the user's: `jax_threefry_partitionable=False` makes others.)
"""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Integer, Key

from cmdpax.learners.base import Learner, learner_key
from cmdpax.learners.contract import flaws_of, make_checked
from cmdpax.learners.statistics import Knowledge, Trajectory
from cmdpax.live.inputs import LearnerInputs, Setting
from cmdpax.model.cmdp import Sizes
from cmdpax.model.transitions import sample_index


class ComingEpisode(NamedTuple):
    """The coming episode: what it will play, and what the learner believes of it."""

    actions: Integer[Array, "H S"]  # drawn for every state, of which one is met at each step
    multipliers: Float[Array, " I"]  # λ_k
    constraint_values: Float[Array, " I"]  # V̂_u of π_k
    policy: Float[Array, "H S A"]
    flaws: Bool[Array, " 3"]  # of `cmdpax.learners.contract`
    visits: Integer[Array, "H S A"] | None  # how often every action was tried, where that is shown


@functools.partial(jax.jit, static_argnames="setting")
def begin(setting: Setting, inputs: LearnerInputs, seed: Any) -> Any:
    """The learner's state before the first episode."""
    return _learner(setting, inputs).init(learner_key(run_key(seed), 0))


def shapes(setting: Setting, inputs: LearnerInputs) -> Any:
    """The shapes of a learner's state; nothing is computed."""
    return jax.eval_shape(begin, setting, inputs, np.uint32(0))


@functools.partial(jax.jit, static_argnames="setting")
def follow(
    setting: Setting,
    inputs: LearnerInputs,
    state: Any,
    trajectory: Trajectory,
    seed: Any,
    episode: Any,
) -> Any:
    """The learner's state after episode k."""
    key = learner_key(run_key(seed), episode)
    return _learner(setting, inputs).update(state, trajectory, key)


@functools.partial(jax.jit, static_argnames="setting")
def look(
    setting: Setting, inputs: LearnerInputs, state: Any, seed: Any, episode: Any
) -> ComingEpisode:
    """What episode k will play, and what the learner believes of it."""
    sizes, dtype = setting.sizes, inputs.initial.dtype
    log_policy, info = _learner(setting, inputs).show(state)
    policy = jnp.exp(log_policy)
    key = jax.random.fold_in(run_key(seed), episode)
    uniforms = jax.random.uniform(key, (1 + 2 * sizes.horizon,), dtype)[1::2]
    draw = jax.vmap(jax.vmap(sample_index, in_axes=(None, 0)))
    return ComingEpisode(
        draw(uniforms, policy),
        info.multipliers,
        info.constraint_values,
        policy,
        flaws_of(policy.sum(axis=-1), info.multipliers),
        None if info.statistics is None else info.statistics.visits,
    )


def run_key(seed: Any) -> Key[Array, ""]:
    """The key of everything random in an agent."""
    return jax.random.key(seed, impl="threefry2x32")


def no_steps(sizes: Sizes, dtype: Any) -> Trajectory:
    """An episode of which no step happened."""
    num_constraints, horizon, _, num_actions = sizes
    return Trajectory(
        states=jnp.zeros(horizon + 1, jnp.int32),
        actions=jnp.full(horizon, num_actions, jnp.int32),
        rewards=jnp.zeros(horizon, dtype),
        constraint_rewards=jnp.zeros((num_constraints, horizon), dtype),
    )


def trajectory_of(
    sizes: Sizes, states: Sequence[int], actions: Sequence[int], signals: np.ndarray
) -> Trajectory:
    """Steps that happened, in the learner's units, as the learner takes an episode.

    A step that did not happen has action A, for which nothing is counted.
    """
    num_constraints, horizon, _, num_actions = sizes
    length = len(actions)
    every_state = np.zeros(horizon + 1, np.int32)
    every_state[: length + 1] = states
    every_action = np.full(horizon, num_actions, np.int32)
    every_action[:length] = actions
    observed = np.zeros((horizon, 1 + num_constraints))
    observed[:length] = signals
    return Trajectory(every_state, every_action, observed[:, 0], observed[:, 1:].T)


def _learner(setting: Setting, inputs: LearnerInputs) -> Learner:
    """The learner, inputs what it may know and no more."""
    knowledge = Knowledge(
        setting.sizes,
        inputs.initial,
        inputs.thresholds,
        inputs.signals,
        inputs.support,
        inputs.bonuses,
        setting.stationary,
    )
    parameters = setting.algorithm.assemble(inputs.parameters, setting.choices)
    return make_checked(setting.algorithm.factory, knowledge, parameters)
