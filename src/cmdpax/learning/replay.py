"""`replay`: a learner fed with logged episodes instead of playing its own."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cmdpax.errors import ModelError
from cmdpax.jax_context import in_double_precision
from cmdpax.learners import Named, as_algorithm
from cmdpax.learners.base import Info, learner_key
from cmdpax.learners.contract import first_flaws, flaws_of, require_sound, row_sums
from cmdpax.learners.optimism import Optimism, as_optimism
from cmdpax.learners.statistics import Trajectory
from cmdpax.learning.baseline import baseline_setting, find_baselines
from cmdpax.learning.loop import Design, Runs, make_learner, stack_runs
from cmdpax.learning.settings import Configuration, RunSettings, as_seeds
from cmdpax.model.cmdp import CMDP
from cmdpax.model.log import Log, read_log, require_final_states, require_observed
from cmdpax.model.rescaling import rescale
from cmdpax.model.transitions import Successors


class Replay(NamedTuple):
    """What a learner made of logged episodes, k = 1, …, K.

    Attributes:
        multipliers: λ_k, `[K, I]`.
        optimistic_constraint_values: V̂_u of π_k, `[K, I]`, in the senses of the constraints.
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
    algorithm: Named,
    log: Log,
    *,
    optimism: str | Optimism = "empirical",
    baseline: Any = None,
    seed: int = 0,
    **parameters: Any,
) -> Replay:
    """Feed logged episodes to a learner, in order, and show what it would have done.

    Of the CMDP the learner gets what it may know: sizes, thresholds, the start, and the rewards if
    the profile says that they are known.

    Args:
        cmdp: the model, in any units.
        algorithm: as for `learn`, like the parameters.
        log: `.states [K, H+1]`, `.actions [K, H]`, `.rewards [K, H]`,
            `.constraint_rewards [K, I, H]`, in your units and senses, such as
            `history.log.run(0)`.
        optimism: as for `learn`.
        baseline: as for `learn`; what it reaches is what it reaches in the model.
        seed: of a learner's own randomness; the paper's algorithms have none.
        parameters: those of the algorithm.

    Raises:
        LearnerError: as in `learn`.
    """
    original, rescaling = cmdp, rescale(cmdp)
    cmdp = rescaling.cmdp
    trajectories = _trajectories(cmdp, log, *rescaling.outward(1))
    num_episodes = len(trajectories.actions)
    known = as_algorithm(algorithm)
    known.require_constraints(cmdp.num_constraints)
    chosen = known.choose(parameters, num_episodes, ("optimism", "baseline", "seed"))
    given = RunSettings(num_episodes, baseline=baseline_setting(baseline, known, cmdp)).baseline
    profile = as_optimism(optimism, num_episodes)
    configuration = Configuration(as_seeds([seed])[0], known, chosen, profile)
    design = Design(known.program, profile.rewards == "known", choices=known.choices(chosen))
    baselines = find_baselines(known, given, [original])
    runs = stack_runs(cmdp.sizes, [configuration], num_episodes, float, baselines)
    run = jax.tree.map(lambda array: array[0], runs)
    info, policies, flaws = _feed(design, jax.device_put(cmdp), run, trajectories)
    restricted = cmdp.available is not None
    require_sound(
        known.name, np.asarray(flaws)[None], lambda place: configuration.words, restricted
    )
    optimistic = cmdp.words.turn(np.array(info.constraint_values), cmdp.horizon)
    return Replay(
        rescaling.multipliers(np.array(info.multipliers)),
        rescaling.constraint_values(optimistic),
        np.array(policies),
        None if info.q_values is None else np.array(info.q_values),
    )


@functools.partial(jax.jit, static_argnames="design")
def _feed(
    design: Design, cmdp: CMDP, run: Runs, log: Trajectory
) -> tuple[Info, jax.Array, jax.Array]:
    """What every episode showed, its policy, and the first flaws."""
    learner = make_learner(design, cmdp, run)

    def step(state: Any, at: tuple[jax.Array, Trajectory]) -> tuple[Any, tuple[Info, jax.Array]]:
        episode, trajectory = at
        shown = learner.show(state)
        following = learner.update(state, trajectory, learner_key(run.keys, episode))
        # Statistics of every episode would be K copies of a model.
        return following, (shown.info._replace(statistics=None), jnp.exp(shown.log_policy))

    episodes = jnp.arange(1, log.actions.shape[0] + 1, dtype=jnp.int32)
    first = learner.init(learner_key(run.keys, 0))
    _, (info, policies) = jax.lax.scan(step, first, (episodes, log))
    sums = row_sums(policies, cmdp.available)
    return info, policies, first_flaws(flaws_of(sums, info.multipliers), 1)


def _trajectories(cmdp: CMDP, log: Log, factors: np.ndarray, offsets: np.ndarray) -> Trajectory:
    """The log as the learner takes it, from the user's units, checked against the model."""
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
    played = np.ones((count, horizon), bool)
    require_observed(log=Log(**arrays), played=played)
    require_final_states(arrays["states"], played)
    for name, size in (("states", num_states), ("actions", num_actions)):
        if arrays[name].min() < 0 or arrays[name].max() >= size:
            raise ModelError(
                f"the log's {name} lie in [{arrays[name].min()}, {arrays[name].max()}], "
                f"the model has 0 … {size - 1}."
            )
    _check_available(cmdp, arrays["states"], arrays["actions"])
    _check_successors(cmdp, arrays["states"], arrays["actions"])
    return Trajectory(
        jnp.asarray(arrays["states"], jnp.int32),
        jnp.asarray(arrays["actions"], jnp.int32),
        jnp.asarray((arrays["rewards"] - offsets[0]) / factors[0], float),
        jnp.asarray((arrays["constraint_rewards"] - offsets[1:, None]) / factors[1:, None], float),
    )


def _check_available(cmdp: CMDP, states: np.ndarray, actions: np.ndarray) -> None:
    """Refuse actions that were played where the model does not have them."""
    if cmdp.available is None:
        return
    flags = np.broadcast_to(cmdp.available, cmdp.sizes[1:])
    there = flags[np.arange(cmdp.horizon)[None], states[:, :-1], actions]
    if not there.all():
        episode, step = np.argwhere(~there)[0]
        state, action = int(states[episode, step]), int(actions[episode, step])
        raise ModelError(
            f"the log plays {cmdp.words.action(action)} in {cmdp.words.state(state)} at episode "
            f"{episode}, step {step}, where it is not available; make it available or correct the "
            "log."
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
