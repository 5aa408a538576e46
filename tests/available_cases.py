"""Models in which some actions are not available, and the same models without those actions.

Where every state has as many available actions, the others can be left out and the rest numbered
anew: a model without flags, of which everything else must be the same.
"""

import functools
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

import cmdpax
import reference
import strategies

NUM_STATES, NUM_ACTIONS, NUM_AVAILABLE, HORIZON = 3, 3, 2, 3
STORAGES = ("stationary", "steps", "lists")
"""Flags and arrays for all steps; flags for each, arrays for all; both for each, successors."""
WRONG = 1e6
"""A reward of actions that are not available."""


class Case(NamedTuple):
    """A model, and what is left of it."""

    cmdp: cmdpax.CMDP  # with flags
    plain: cmdpax.CMDP  # its available actions, in their order
    actions: np.ndarray  # [H, S, B], which of its actions they are

    @property
    def flags(self) -> np.ndarray:
        """Which actions are available, `[H, S, A]`."""
        return np.broadcast_to(self.cmdp.available, self.cmdp.sizes[1:])

    def widened(self, policies: np.ndarray) -> np.ndarray:
        """Policies of `plain` as those of the model, `[…, H, S, A]`."""
        wide = np.zeros((*policies.shape[:-1], NUM_ACTIONS))
        places = np.broadcast_to(self.actions, policies.shape)
        np.put_along_axis(wide, places, policies, axis=-1)
        return wide

    def numbered(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Actions of `plain`, played in states `[…, H]`, as those of the model."""
        return self.actions[np.arange(HORIZON), states, actions]


@functools.cache
def case(storage: str, seed: int = 0, num_constraints: int = 1) -> Case:
    """A random model; what stands at actions that are never available is no model at all."""
    generator = np.random.default_rng((STORAGES.index(storage), seed))
    steps = HORIZON if storage == "lists" else 1
    pairs = (NUM_STATES, NUM_ACTIONS)
    ranks = generator.random((1 if storage == "stationary" else HORIZON, *pairs)).argsort(axis=-1)
    flags = ranks < NUM_AVAILABLE
    actions = np.broadcast_to(flags, (HORIZON, *pairs)).nonzero()[2]
    actions = actions.reshape(HORIZON, NUM_STATES, NUM_AVAILABLE)
    slots = 2 if storage == "lists" else NUM_STATES
    rows = generator.dirichlet(np.ones(slots), (steps, *pairs))
    lists = np.argsort(generator.random((steps, *pairs, NUM_STATES)))[..., :2]
    rewards = generator.random((steps, *pairs))
    signals = generator.random((num_constraints, steps, *pairs))
    left = _plain(rows, lists if storage == "lists" else None, rewards, signals, actions)
    read = flags if steps == len(flags) else flags.any(axis=0, keepdims=True)
    rows, rewards = np.where(read[..., None], rows, 0.0), np.where(read, rewards, WRONG)
    cmdp = cmdpax.CMDP(
        cmdpax.Successors(lists, rows) if storage == "lists" else rows,
        rewards,
        np.where(read[None], signals, WRONG),
        left.thresholds,
        left.initial,
        horizon=HORIZON,
        available=flags[0] if storage == "stationary" else flags,
    )
    return Case(cmdp, left, actions)


def _plain(
    rows: np.ndarray,
    lists: np.ndarray | None,
    rewards: np.ndarray,
    signals: np.ndarray,
    actions: np.ndarray,
) -> cmdpax.CMDP:
    """The model of some actions; its thresholds leave half of the slack of the uniform policy."""

    def chosen(array: np.ndarray, axis: int = 0) -> np.ndarray:
        shape = (*array.shape[:axis], HORIZON, *array.shape[axis + 1 :])
        index = actions.reshape((1,) * axis + actions.shape + (1,) * (array.ndim - axis - 3))
        return np.take_along_axis(np.broadcast_to(array, shape), index, axis=axis + 2)

    picked = chosen(rows)
    cmdp = cmdpax.CMDP(
        picked if lists is None else cmdpax.Successors(chosen(lists), picked),
        chosen(rewards),
        chosen(signals, axis=1),
        np.zeros(len(signals)),
        np.arange(1.0, NUM_STATES + 1) / np.arange(NUM_STATES + 1).sum(),
    )
    uniform = np.full((HORIZON, NUM_STATES, NUM_AVAILABLE), 1 / NUM_AVAILABLE)
    reached = reference.evaluate(reference.densify(cmdp), uniform).constraint_values
    most = reference.slater_gap(reference.densify(cmdp)._replace(thresholds=reached))
    return cmdp.replace(thresholds=reached + most / 2)


def with_copies(cmdp: cmdpax.CMDP) -> reference.Dense:
    """The model in which other actions do what an available one does: the same values are reached.

    It has no flags, and every policy of it is one of the model.
    """
    model = reference.densify(cmdp)
    flags = np.broadcast_to(cmdp.available, model.rewards.shape)
    for h, s, a in np.argwhere(~flags):
        (some, *_) = np.flatnonzero(flags[h, s])
        model.transitions[h, s, a] = model.transitions[h, s, some]
        model.rewards[h, s, a] = model.rewards[h, s, some]
        model.constraint_rewards[:, h, s, a] = model.constraint_rewards[:, h, s, some]
    return model


@st.composite
def restricted(draw: st.DrawFn) -> cmdpax.CMDP:
    """Small CMDPs with any flags, which some policy satisfies with some slack."""
    kinds = tuple(kind for kind in strategies.KINDS if kind.num_actions > 1)
    cmdp = draw(strategies.cmdps(kinds=kinds))
    generator = np.random.default_rng(draw(strategies.SEEDS))
    _, horizon, *pairs = cmdp.sizes
    steps = draw(st.sampled_from([1, horizon]))
    flags = generator.random((steps, *pairs)) < 0.6
    flags[..., generator.integers(pairs[1])] = True
    flags[0, 0, 0] &= flags[0, 0, 1:].any()
    flags[0, 0, 0] |= not flags[0, 0].any()
    weights = flags * generator.random((horizon, *pairs))
    policy = weights / weights.sum(axis=-1, keepdims=True)
    reached = reference.evaluate(reference.densify(cmdp), policy).constraint_values
    return cmdp.replace(available=flags, thresholds=reached - draw(st.sampled_from([0.05, 0.3])))
