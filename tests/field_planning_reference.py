"""Published learners that plan, slowly and obviously: NumPy loops straight from their description.

The linear programs that they state are written down in `extended_program` and solved by HiGHS. As
an optimal policy need not be unique, a policy is compared with the optimum by what it reaches.
"""

from typing import NamedTuple

import numpy as np

import cmdpax
import reference
from extended_program import extended_program
from replanning_reference import Counts


class Empirical(NamedTuple):
    """What was counted: p̄ `[H, S, A, S]`, signals `[J, H, S, A]`, visits and widths."""

    rows: np.ndarray
    signals: np.ndarray
    visits: np.ndarray
    row_widths: np.ndarray  # β^p
    mean_widths: np.ndarray  # β^r; 0 where signals are known


class Allowed(NamedTuple):
    """The model that is planned in, and upper bounds if its transitions are lower bounds."""

    cmdp: cmdpax.CMDP
    upper: np.ndarray


def count(cmdp: cmdpax.CMDP, log: cmdpax.Log, num_episodes: int, stationary: bool) -> Counts:
    """The counts of the first episodes of a log."""
    counts = Counts(cmdp, stationary)
    for episode in list(zip(*log, strict=True))[:num_episodes]:
        counts.count(*episode)
    return counts


def empirical(
    cmdp: cmdpax.CMDP, counts: Counts, log_term: float, scale: float, known: bool = True
) -> Empirical:
    """p̄, the signals, and Bernstein's and Hoeffding's widths, scaled.

    Where successors are listed, no other state has a width.
    """
    dense = reference.densify(cmdp)
    horizon, num_states, num_actions, _ = dense.transitions.shape
    may = np.ones_like(dense.transitions, dtype=bool)
    if isinstance(cmdp.transitions, cmdpax.Successors):
        may = dense.transitions > 0
    made = np.zeros_like(dense.transitions)
    visits = np.zeros((horizon, num_states, num_actions))
    of_rows, of_means = np.zeros_like(made), np.zeros_like(visits)
    signals = np.stack([dense.rewards, *dense.constraint_rewards])
    for at in np.ndindex(visits.shape):
        where = (0, *at[1:]) if counts.stationary else at
        n = counts.went[where].sum()
        visits[at] = n
        made[at] = counts.went[where] / n if n else may[at] / may[at].sum()
        for t in np.flatnonzero(may[at]):
            deviation = 2 * np.sqrt(made[(*at, t)] * (1 - made[(*at, t)]) * log_term / max(n, 1))
            width = scale * (deviation + 14 / 3 * log_term / max(n, 1))
            of_rows[(*at, t)] = min(width, 1)
        if not known:
            of_means[at] = min(scale * np.sqrt(log_term / max(n, 1)), 1)
            for j in range(len(signals)):
                signals[(j, *at)] = counts.sums[(j, *where)] / n if n else 1.0
    return Empirical(made, signals, visits, of_rows, of_means)


def model(
    cmdp: cmdpax.CMDP, rows: np.ndarray, signals: np.ndarray, thresholds: np.ndarray | None = None
) -> cmdpax.CMDP:
    """A dense model of these rows and signals; nothing is checked."""
    dense = reference.densify(cmdp)
    kept = cmdp.thresholds if thresholds is None else thresholds
    arrays = (rows, signals[0], signals[1:], kept, dense.initial, cmdp.available)
    return cmdpax.CMDP.tree_unflatten(len(rows), arrays)


def within_bounds(cmdp: cmdpax.CMDP, made: Empirical, signals: np.ndarray) -> Allowed:
    """Every row within its widths; any row where nothing was tried."""
    lower = np.maximum(made.rows - made.row_widths, 0)
    upper = np.minimum(made.rows + made.row_widths, 1)
    may = made.row_widths + made.rows > 0
    for at in np.ndindex(made.visits.shape):
        if made.visits[at] == 0:
            lower[at], upper[at] = 0, may[at]
        upper[at] = np.where(may[at], upper[at], 0)
    return Allowed(model(cmdp, lower, signals), upper)


def assert_optimal(allowed: Allowed, policy: np.ndarray, tolerance: float = 1e-8) -> bool:
    """Whether the program is feasible; if it is, the policy must reach its optimum."""
    expected = extended_program(*allowed)
    found = extended_program(*allowed, policy)
    if np.isnan(expected.value):
        return False
    np.testing.assert_allclose(found.value, expected.value, rtol=0, atol=tolerance)
    return True


def logarithm(cmdp: cmdpax.CMDP, factor: float, count: float, delta: float) -> float:
    """L = log(factor · S A H n/δ)."""
    _, horizon, num_states, num_actions = cmdp.sizes
    return float(np.log(factor * num_states * num_actions * horizon * count / delta))
