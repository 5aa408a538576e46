"""From the optimum's mixture of deterministic policies to one Markov policy."""

import warnings
from collections.abc import Callable

import numpy as np

from cmdpax.errors import CmdpaxWarning
from cmdpax.jax_context import in_double_precision
from cmdpax.model.cmdp import CMDP
from cmdpax.planning.column_generation import Column, segment_of
from cmdpax.planning.derandomization import derandomize
from cmdpax.planning.dynamic_program import greedy_plans, place
from cmdpax.planning.stepping import Stepper, occupancy_of

Recover = Callable[[], tuple[np.ndarray, np.ndarray]]
"""Makes a Markov policy and its occupancy, both `[H, S, A]`."""

_NEGLIGIBLE = 1e-13  # weights below this are the rounding of the master problem
_AS_GOOD = 1e-12  # what removing needless randomness may cost, per unit of scale and of horizon


Mixture = list[Column]
"""Deterministic policies, each with the probability with which it is drawn."""


def mix(columns: list[Column], weights: np.ndarray) -> Mixture:
    """The columns in use, without weights that are rounding errors."""
    used = np.flatnonzero(weights > _NEGLIGIBLE)
    kept = weights[used] / weights[used].sum()
    return [columns[i]._replace(weight=w) for i, w in zip(used, kept, strict=True)]


def mixture_values(mixture: Mixture) -> np.ndarray:
    """(V_r, V_u) of a mixture."""
    weights = np.array([column.weight for column in mixture])
    return weights @ np.array([column.signal_values for column in mixture])


@in_double_precision
def recover_plan(
    cmdp: CMDP, mixture: Mixture, multipliers: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """One Markov policy with the values of the mixture, and its occupancy."""
    occupancy = mixture_occupancy(cmdp, mixture)
    return simplify_plan(cmdp, occupancy, multipliers, mixture_values(mixture))


@in_double_precision
def simplify_plan(
    cmdp: CMDP, occupancy: np.ndarray, multipliers: np.ndarray, target: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """A Markov policy that is random in at most I places, and its occupancy.

    The policy is evaluated before it is returned: if rounding makes it worse than the one of the
    given occupancy, the latter is returned. Values are compared as sums over occupancies, since
    these round more than the backward induction behind `target`.
    """
    actions = greedy_actions(cmdp, multipliers)
    policy = markov_policy(occupancy, actions)
    if np.count_nonzero(policy) - policy[..., 0].size <= cmdp.num_constraints:
        return policy, occupancy
    simpler = derandomize(cmdp, policy)
    mass = occupancy_of(Stepper(cmdp), simpler)
    wanted = np.minimum(target, _values(cmdp, occupancy))
    if np.all(_values(cmdp, mass) >= wanted - _AS_GOOD * cmdp.horizon):
        return markov_policy(mass, actions), mass
    warnings.warn(
        "rounding keeps the policy random in more places than there are constraints.",
        CmdpaxWarning,
        stacklevel=2,
    )
    return policy, occupancy


def _values(cmdp: CMDP, occupancy: np.ndarray) -> np.ndarray:
    """(⟨d, r⟩, ⟨d, u⟩)."""
    constraints = (occupancy * cmdp.constraint_rewards).sum(axis=(1, 2, 3))
    return np.insert(constraints, 0, (occupancy * cmdp.rewards).sum())


def mixture_occupancy(cmdp: CMDP, mixture: Mixture) -> np.ndarray:
    """Occupancy of a mixture, `[H, S, A]`: the weighted sum of its policies' occupancies."""
    _, horizon, num_states, num_actions = cmdp.sizes
    total = np.zeros((horizon, num_states, num_actions))
    device_cmdp, stepper = place(cmdp), Stepper(cmdp)
    for column in mixture:
        certain = column.actions(device_cmdp)[:, :, None] == np.arange(num_actions)
        total += column.weight * occupancy_of(stepper, certain)
    return total


def greedy_actions(cmdp: CMDP, multipliers: np.ndarray) -> np.ndarray:
    """Optimal actions for r + λᵀu, `[H, S]`."""
    # As many rows as pricing has, so that the same compiled program serves.
    batch = np.tile(np.insert(multipliers, 0, 1.0), (len(segment_of(cmdp)), 1))
    _, actions = greedy_plans(place(cmdp), batch)
    return np.asarray(actions[0], dtype=np.intp)


def markov_policy(occupancy: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """π_h(a | s) = d_h(s, a) / Σ_a d_h(s, a); the given action where that is 0 / 0."""
    mass = occupancy.sum(axis=2, keepdims=True)
    policy = np.divide(occupancy, mass, out=np.zeros_like(occupancy), where=mass > 0)
    steps, states = np.nonzero(mass[:, :, 0] == 0)
    policy[steps, states, actions[steps, states]] = 1.0
    return policy
