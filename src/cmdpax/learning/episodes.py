"""Single episodes out of the counts of a stretch, exactly.

Given how many episodes of one policy went from each pair to each state, all ways to match what
enters a state with what leaves it are equally likely. So the episodes that are in state s at step h
are shuffled and dealt the actions that were counted there, and those of a pair its successors: the
log has the distribution of episodes that were played one by one, and the counts that the learner
saw. A run is the same with and without its log.
"""

from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Integer

from cmdpax.learning.stretches import Stretches
from cmdpax.model.cmdp import CMDP
from cmdpax.model.log import Log
from cmdpax.model.transitions import Successors


def draw_episodes(cmdp: CMDP, stretches: Stretches, key: list[int], bernoulli: bool) -> Log:
    """The episodes of one run's stretches, in their order.

    Args:
        cmdp: the true model.
        stretches: of one run; `counted` has what each of them counted.
        key: whole numbers, from which everything random here comes.
        bernoulli: whether observations are draws; their sums are those that were counted.
    """
    assert stretches.counted is not None
    logs = []
    for place in np.flatnonzero(stretches.length):
        rng = np.random.default_rng([*key, int(stretches.first[place])])
        counted: Any = jax.tree.map(lambda array, at=place: array[at], stretches.counted)
        states, actions = _deal(cmdp, counted.transitions, rng)
        means = _means(cmdp, states, actions)
        if not bernoulli:
            observed = means
        elif counted.sums is None:
            observed = (rng.random(means.shape) < means).astype(float)
        else:
            observed = _deal_ones(counted.sums, states, actions, rng)
        logs.append(Log(states, actions, observed[..., 0], np.moveaxis(observed[..., 1:], -1, 1)))
    return Log(*(np.concatenate(arrays) for arrays in zip(*logs, strict=True)))


def _deal(
    cmdp: CMDP, went: Integer[np.ndarray, "H S A T"], rng: np.random.Generator
) -> tuple[Integer[np.ndarray, "K H+1"], Integer[np.ndarray, "K H"]]:
    """States and actions of the episodes that were counted."""
    horizon, num_states, num_actions, row_length = went.shape
    count = int(went[0].sum())
    states = np.zeros((count, horizon + 1), np.int32)
    actions = np.zeros((count, horizon), np.int32)
    states[:, 0] = rng.permutation(np.repeat(np.arange(num_states), went[0].sum(axis=(1, 2))))
    for step in range(horizon):
        here = _shuffled(states[:, step], rng)
        visits = went[step].sum(axis=-1).reshape(-1)
        actions[here, step] = np.repeat(np.tile(np.arange(num_actions), num_states), visits)
        here = _shuffled(states[:, step] * num_actions + actions[:, step], rng)
        following = np.broadcast_to(np.arange(row_length), went[step].shape)
        if isinstance(cmdp.transitions, Successors):
            lists = np.asarray(cmdp.transitions.successors)
            following = lists[0 if len(lists) == 1 else step]
        states[here, step + 1] = np.repeat(following.reshape(-1), went[step].reshape(-1))
    return states, actions


def _shuffled(groups: Integer[np.ndarray, " K"], rng: np.random.Generator) -> np.ndarray:
    """The places sorted by group, and in random order within each."""
    return np.lexsort((rng.random(len(groups)), groups))


def _means(cmdp: CMDP, states: np.ndarray, actions: np.ndarray) -> Float[np.ndarray, "K H J"]:
    """The mean observations of every step."""
    steps = np.arange(cmdp.horizon)

    def at(signal: np.ndarray) -> np.ndarray:
        index = np.zeros_like(steps) if len(signal) == 1 else steps
        return np.asarray(signal[index[None], states[:, :-1], actions])

    return np.stack([at(signal) for signal in (cmdp.rewards, *cmdp.constraint_rewards)], axis=-1)


def _deal_ones(
    sums: Float[np.ndarray, "H J S A"],
    states: np.ndarray,
    actions: np.ndarray,
    rng: np.random.Generator,
) -> Float[np.ndarray, "K H J"]:
    """Observations of 0 and 1 with the sums that were counted, at random visits of each pair."""
    horizon, num_signals, num_states, num_actions = sums.shape
    observed = np.zeros((*actions.shape, num_signals))
    for step in range(horizon):
        pairs = states[:, step] * num_actions + actions[:, step]
        visits = np.bincount(pairs, minlength=num_states * num_actions)
        firsts = np.cumsum(visits) - visits
        for signal in range(num_signals):
            order = _shuffled(pairs, rng)
            rank = np.arange(len(pairs)) - firsts[pairs[order]]
            observed[order, step, signal] = rank < sums[step, signal].reshape(-1)[pairs[order]]
    return observed
