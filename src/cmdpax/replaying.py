"""`replay`: a learner fed with logged episodes instead of playing its own."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cmdpax.arguments import Algorithm, as_factory, as_optimism, as_regularization, name_of
from cmdpax.batch import cast
from cmdpax.errors import ModelError
from cmdpax.estimation import Trajectory
from cmdpax.history import Log
from cmdpax.hyperparameters import hyperparameters
from cmdpax.learners.base import Hyperparameters, Info
from cmdpax.learners.contract import first_flaws, flaws_of, require_sound
from cmdpax.logs import read_log, require_observed
from cmdpax.model import CMDP
from cmdpax.optimism import Bonuses, Optimism
from cmdpax.precision import in_double_precision
from cmdpax.rescaling import require_unit_rewards
from cmdpax.schedules import Scheduled
from cmdpax.simulation import Design, make_learner
from cmdpax.transitions import Successors
from cmdpax.validation import validate


class Replay(NamedTuple):
    """What a learner made of logged episodes, k = 1, …, K.

    Attributes:
        multipliers: λ_k, `[K, I]`.
        optimistic_constraint_values: V̂_u of π_k, `[K, I]`.
        policies: π_k, `[K, H, S, A]`.
        q_values: Q̂_z of π_k, `[K, H, S, A]`; None for the dual algorithms.
    """

    multipliers: np.ndarray
    optimistic_constraint_values: np.ndarray
    policies: np.ndarray
    q_values: np.ndarray | None


@in_double_precision
def replay(
    cmdp: CMDP,
    algorithm: Algorithm,
    log: Log,
    *,
    optimism: str | Optimism = "empirical",
    step_size: Scheduled = 0.1,
    regularization: Scheduled | None = None,
    max_multiplier: float = 6.0,
    margin: Scheduled = 0.0,
) -> Replay:
    """Feed logged episodes to a learner, in order, and show what it would have done.

    Of the CMDP the learner gets what it may know: sizes, thresholds, the start, and the rewards if
    the profile says that they are known.

    Args:
        cmdp: the model; rewards in [0, 1].
        algorithm: as for `learn`, like the other arguments.
        log: `.states [K, H+1]`, `.actions [K, H]`, `.rewards [K, H]`,
            `.constraint_rewards [K, I, H]`, such as `history.log.run(0)`.

    Raises:
        LearnerError: as in `learn`.
    """
    validate(cmdp)
    require_unit_rewards(cmdp)
    trajectories = _trajectories(cmdp, log)
    num_episodes = len(trajectories.actions)
    chosen = hyperparameters(
        step_size,
        as_regularization(algorithm, regularization),
        max_multiplier,
        margin,
        num_episodes,
    )
    profile = as_optimism(optimism, num_episodes)
    design = Design(as_factory(algorithm), profile.rewards == "known", False, False, True)
    info, policies, flaws = _feed(
        design,
        jax.device_put(cmdp),
        cast(chosen, float),
        cast(profile.numbers(cmdp.sizes), float),
        trajectories,
    )
    require_sound(name_of(algorithm), np.asarray(flaws)[None], lambda place: str(chosen))
    return Replay(
        np.array(info.multipliers),
        np.array(info.constraint_values),
        np.array(policies),
        None if info.q_values is None else np.array(info.q_values),
    )


@functools.partial(jax.jit, static_argnames="design")
def _feed(
    design: Design, cmdp: CMDP, chosen: Hyperparameters, bonuses: Bonuses, log: Trajectory
) -> tuple[Info, jax.Array, jax.Array]:
    """What every episode showed, its policy, and the first flaws."""
    learner = make_learner(design, cmdp, chosen, bonuses)

    def step(state: Any, trajectory: Trajectory) -> tuple[Any, tuple[Info, jax.Array]]:
        following, info = learner.update(state, trajectory)
        return following, (info, jnp.exp(state.log_policy))

    _, (info, policies) = jax.lax.scan(step, learner.init(), log)
    return info, policies, first_flaws(flaws_of(policies.sum(axis=-1), info.multipliers), 1)


def _trajectories(cmdp: CMDP, log: Log) -> Trajectory:
    """The log as the learner takes it, checked against the model."""
    num_constraints, horizon, num_states, num_actions = cmdp.sizes
    arrays = read_log(log)._asdict()
    count = len(arrays["actions"])
    expected = {
        "states": (count, horizon + 1),
        "actions": (count, horizon),
        "rewards": (count, horizon),
        "constraint_rewards": (count, num_constraints, horizon),
    }
    for name, shape in expected.items():
        if arrays[name].shape != shape:
            raise ModelError(
                f"the log's {name} has shape {arrays[name].shape}, expected {shape} for "
                f"{count} episodes."
            )
    require_observed(log=Log(**arrays), played=np.ones((count, horizon), bool))
    for name, size in (("states", num_states), ("actions", num_actions)):
        if arrays[name].min() < 0 or arrays[name].max() >= size:
            raise ModelError(
                f"the log's {name} lie in [{arrays[name].min()}, {arrays[name].max()}], "
                f"the model has 0 … {size - 1}."
            )
    _check_successors(cmdp, arrays["states"], arrays["actions"])
    return Trajectory(
        jnp.asarray(arrays["states"], jnp.int32),
        jnp.asarray(arrays["actions"], jnp.int32),
        jnp.asarray(arrays["rewards"], float),
        jnp.asarray(arrays["constraint_rewards"], float),
    )


def _check_successors(cmdp: CMDP, states: np.ndarray, actions: np.ndarray) -> None:
    """Refuse transitions that the model's lists do not have: there is no slot to count them in."""
    if not isinstance(cmdp.transitions, Successors):
        return
    lists, probabilities = (np.asarray(array) for array in cmdp.transitions)
    steps = np.arange(cmdp.horizon) if lists.shape[0] > 1 else np.zeros(cmdp.horizon, int)
    at = (steps[None], states[:, :-1], actions)
    listed = ((lists[at] == states[:, 1:, None]) & (probabilities[at] > 0)).any(axis=-1)
    if not listed.all():
        episode, step = np.argwhere(~listed)[0]
        state, following = states[episode, step], states[episode, step + 1]
        raise ModelError(
            f"the log goes from state {state} to {following} at episode {episode}, step {step}, "
            f"which the model's successors do not list; add it to them or correct the log."
        )
