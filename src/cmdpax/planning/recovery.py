"""From the optimum's mixture of deterministic policies to one Markov policy."""

import warnings
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from cmdpax.errors import CmdpaxWarning
from cmdpax.model import CMDP
from cmdpax.planning.column_generation import Column, num_priced
from cmdpax.planning.derandomization import derandomize
from cmdpax.planning.dynamic_program import greedy_plans, place
from cmdpax.planning.stepping import Stepper, occupancy_of, state_occupancy_of
from cmdpax.planning.switching import switch
from cmdpax.precision import in_double_precision

_NEGLIGIBLE = 1e-13  # weights below this are the rounding of the master problem
_AS_GOOD = 1e-12  # what removing needless randomness may cost, per unit of scale and of horizon


class Mixture(NamedTuple):
    """Deterministic policies and the probabilities with which to draw one."""

    columns: list[Column]
    weights: np.ndarray

    @classmethod
    def of(cls, columns: list[Column], weights: np.ndarray) -> "Mixture":
        """The columns in use, without weights that are rounding errors."""
        used = np.flatnonzero(weights > _NEGLIGIBLE)
        kept = weights[used] / weights[used].sum()
        return cls([columns[index] for index in used], kept)

    @property
    def signal_values(self) -> np.ndarray:
        """(V_r, V_u) of the mixture."""
        return self.weights @ np.array([c.signal_values for c in self.columns])


class Plan(NamedTuple):
    """A Markov policy and its occupancy, both `[H, S, A]`."""

    policy: np.ndarray
    occupancy: np.ndarray


@in_double_precision
def recover_plan(cmdp: CMDP, mixture: Mixture, multipliers: np.ndarray) -> Plan:
    """One Markov policy with the values of the mixture, random in at most I places."""
    occupancy = mixture_occupancy(cmdp, mixture)
    return simplify_plan(cmdp, occupancy, multipliers, mixture.signal_values)


@in_double_precision
def simplify_plan(
    cmdp: CMDP, occupancy: np.ndarray, multipliers: np.ndarray, target: np.ndarray
) -> Plan:
    """The Markov policy of an occupancy, random in at most I places if its values allow it.

    The policy is evaluated before it is returned. If rounding made it worse than the values that it
    should have, the policy of the occupancy as it is takes its place.
    """
    policy = markov_policy(cmdp, occupancy, multipliers)
    for simplify in (switch, derandomize) if cmdp.num_constraints == 1 else (derandomize,):
        simpler = simplify(cmdp, policy)
        if np.array_equal(simpler, policy):
            break
        mass = occupancy_of(Stepper(cmdp), simpler)
        if np.all(_values(cmdp, mass) >= target - _AS_GOOD * cmdp.horizon):
            return Plan(markov_policy(cmdp, mass, multipliers), mass)
    else:
        warnings.warn(
            "rounding keeps the policy random in more places than there are constraints.",
            CmdpaxWarning,
            stacklevel=2,
        )
    return Plan(policy, occupancy)


def _values(cmdp: CMDP, occupancy: np.ndarray) -> np.ndarray:
    """(⟨d, r⟩, ⟨d, u⟩)."""
    constraints = (occupancy * cmdp.constraint_rewards).sum(axis=(1, 2, 3))
    return np.insert(constraints, 0, (occupancy * cmdp.rewards).sum())


def mixture_occupancy(cmdp: CMDP, mixture: Mixture) -> np.ndarray:
    """Occupancy of a mixture, `[H, S, A]`: the weighted sum of its policies' occupancies."""
    _, horizon, num_states, num_actions = cmdp.sizes
    total = np.zeros((horizon, num_states, num_actions))
    device_cmdp, stepper = place(cmdp), Stepper(cmdp)
    for column, weight in zip(mixture.columns, mixture.weights, strict=True):
        # The call that made the column makes its policy again, bit for bit.
        plans = greedy_plans(device_cmdp, jnp.asarray(column.batch))
        actions = np.asarray(plans.actions[column.row], dtype=np.intp)
        mass = state_occupancy_of(stepper, actions)
        index = actions[:, :, None]
        before = np.take_along_axis(total, index, axis=2)
        np.put_along_axis(total, index, before + weight * mass[:, :, None], axis=2)
    return total


def markov_policy(cmdp: CMDP, occupancy: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
    """π_h(a | s) = d_h(s, a) / Σ_a d_h(s, a); greedy for r + λᵀu where that is 0 / 0."""
    weights = np.insert(multipliers, 0, 1.0)
    # As many rows as pricing has: the same program serves.
    batch = np.tile(weights, (num_priced(cmdp), 1))
    actions = np.asarray(greedy_plans(place(cmdp), jnp.asarray(batch)).actions[0], dtype=np.intp)
    mass = occupancy.sum(axis=2, keepdims=True)
    policy = np.divide(occupancy, mass, out=np.zeros_like(occupancy), where=mass > 0)
    steps, states = np.nonzero(mass[:, :, 0] == 0)
    policy[steps, states, actions[steps, states]] = 1.0
    return policy
