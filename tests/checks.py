"""Assertions that several test files share."""

from collections.abc import Callable
from typing import Any

import numpy as np

import cmdpax
import reference

METHODS = ("column-generation", "occupancy-lp")
EXACT = 1e-9
"""What "exact" means for optima: the agreement that golden numbers promise."""


def assert_optimal(
    cmdp: cmdpax.CMDP, solution: cmdpax.Solution, optimum: float, tolerance: float = EXACT
) -> None:
    """The value is the optimum, the policy attains it, and everything certifies it."""
    model = reference.densify(cmdp)
    assert abs(solution.value - optimum) <= tolerance
    assert_truthful(cmdp, solution, optimum, tolerance)
    assert abs(reference.evaluate(model, solution.policy).value - solution.value) <= tolerance
    assert solution.gap <= tolerance
    # Strong duality: λ* proves the value.
    assert abs(reference.dual_value(model, solution.multipliers) - solution.value) <= tolerance


def assert_truthful(
    cmdp: cmdpax.CMDP, solution: cmdpax.Solution, optimum: float, tolerance: float = EXACT
) -> None:
    """Whatever the solver reached, it reports it truly: bounds, policy, occupancy."""
    model = reference.densify(cmdp)
    assert solution.value - tolerance <= optimum <= solution.value + solution.gap + tolerance
    assert solution.gap >= 0
    assert np.all(solution.constraint_values >= cmdp.thresholds - tolerance)
    assert np.all(solution.multipliers >= 0)
    slacks = solution.constraint_values - cmdp.thresholds
    assert solution.multipliers @ slacks <= solution.gap + tolerance
    reached = reference.evaluate(model, solution.policy)
    assert_distributions(solution.policy)
    # Before the optimum, removing needless randomness may find more than the mixture.
    assert solution.value - tolerance <= reached.value <= optimum + tolerance
    assert np.all(reached.constraint_values >= solution.constraint_values - tolerance)
    np.testing.assert_allclose(solution.occupancy, reached.occupancy, rtol=0, atol=tolerance)


def assert_distributions(rows: np.ndarray) -> None:
    """Non-negative along the last axis, with sum 1."""
    assert np.all(rows >= 0)
    np.testing.assert_allclose(rows.sum(axis=-1), 1.0, rtol=0, atol=1e-12)


def assert_numpy_doubles(*arrays: object) -> None:
    """NumPy arrays of float64, not JAX arrays and not single precision."""
    for array in arrays:
        assert type(array) in (np.ndarray, cmdpax.Policy)
        assert array.dtype == np.float64
        # It is the caller's own; a policy says how often it is reached, and cannot be changed.
        assert array.flags.writeable == (type(array) is np.ndarray)


def num_random_decisions(solution: cmdpax.Solution) -> int:
    """How many (h, s) of positive occupancy have more than one action."""
    return int(np.count_nonzero(np.count_nonzero(solution.occupancy, axis=2) > 1))


def one_step(
    rewards: list[float], constraint_rewards: list[list[float]], thresholds: list[float]
) -> cmdpax.CMDP:
    """A CMDP of one state and one step: choose an action, once."""
    return cmdpax.CMDP(
        transitions=np.ones((1, 1, len(rewards), 1)),
        rewards=[[rewards]],
        constraint_rewards=[[[row]] for row in constraint_rewards],
        thresholds=thresholds,
        initial=[1.0],
    )


def assert_moves(
    cmdp: cmdpax.CMDP,
    places: list[Any],
    move: Callable[[Any, int], tuple[Any, float, float]],
    slip: float,
) -> None:
    """Every row of a grid's model is that of its rule, and has one slot per successor.

    `move(place, direction)` tells the next place, what is earned and what it costs.
    """
    assert isinstance(cmdp.transitions, cmdpax.Successors)
    lists, chances = cmdp.transitions
    for s, a in np.ndindex(len(places), 4):
        row, reward, cost = np.zeros(len(places)), 0.0, 0.0
        for direction in range(4):
            chance = slip / 4 + (1 - slip if direction == a else 0.0)
            reached, earned, paid = move(places[s], direction)
            row[places.index(reached)] += chance
            reward += chance * earned
            cost += chance * paid
        used = lists[0, s, a][chances[0, s, a] > 0]
        assert len(set(used)) == len(used)
        found = np.zeros(len(places))
        found[used] = chances[0, s, a][chances[0, s, a] > 0]
        np.testing.assert_allclose(found, row, rtol=0, atol=1e-15)
        assert abs(cmdp.rewards[0, s, a] - reward) <= 1e-12
        assert abs(cmdp.constraint_rewards[0, 0, s, a] - (1 - cost)) <= 1e-12
