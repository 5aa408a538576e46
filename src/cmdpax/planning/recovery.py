"""From the optimum's mixture of deterministic policies to one Markov policy."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cmdpax.evaluation import evaluate_policy, state_occupancy
from cmdpax.model import CMDP
from cmdpax.planning.column_generation import Column
from cmdpax.planning.derandomization import derandomize
from cmdpax.planning.dynamic_program import greedy_plan, greedy_plans, place
from cmdpax.precision import in_double_precision

_NEGLIGIBLE = 1e-13  # weights below this are the rounding of the master problem
_AS_GOOD = 1e-10  # what removing needless randomness may cost, per unit of value


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
    policy = markov_policy(cmdp, occupancy, multipliers)
    simpler = derandomize(cmdp, policy)
    if np.array_equal(simpler, policy):
        return Plan(policy, occupancy)
    values, simpler_occupancy = evaluate_policy(cmdp, simpler)
    target = mixture.signal_values
    if np.any(np.asarray(values) < target - _AS_GOOD * np.maximum(1.0, abs(target))):
        return Plan(policy, occupancy)
    mass = np.array(simpler_occupancy)
    return Plan(markov_policy(cmdp, mass, multipliers), mass)


@in_double_precision
def mixture_occupancy(cmdp: CMDP, mixture: Mixture) -> np.ndarray:
    """Occupancy of a mixture, `[H, S, A]`: the weighted sum of its policies' occupancies."""
    _, horizon, num_states, num_actions = cmdp.sizes
    total = np.zeros((horizon, num_states, num_actions))
    device_cmdp = place(cmdp)
    for column, weight in zip(mixture.columns, mixture.weights, strict=True):
        # The call that made the column makes its policy again, bit for bit.
        plans = greedy_plans(device_cmdp, jnp.asarray(column.batch))
        actions = plans.actions[column.row]
        mass = np.asarray(_state_occupancy(device_cmdp, actions))
        index = np.asarray(actions, dtype=np.intp)[:, :, None]
        before = np.take_along_axis(total, index, axis=2)
        np.put_along_axis(total, index, before + weight * mass[:, :, None], axis=2)
    return total


_state_occupancy = jax.jit(state_occupancy)
_greedy_plan = jax.jit(greedy_plan)


@in_double_precision
def markov_policy(cmdp: CMDP, occupancy: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
    """π_h(a | s) = d_h(s, a) / Σ_a d_h(s, a); greedy for r + λᵀu where that is 0 / 0."""
    weights = jnp.asarray(np.insert(multipliers, 0, 1.0))
    actions = np.asarray(_greedy_plan(cmdp, weights).actions, dtype=np.intp)
    mass = occupancy.sum(axis=2, keepdims=True)
    policy = np.divide(occupancy, mass, out=np.zeros_like(occupancy), where=mass > 0)
    steps, states = np.nonzero(mass[:, :, 0] == 0)
    policy[steps, states, actions[steps, states]] = 1.0
    return policy
