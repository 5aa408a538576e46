"""Random CMDPs of the kinds that break planners, by seed.

Ties, duplicate and redundant constraints, no slack at all, infeasible by 1e-8 and by 1e-12 of
scale, unreachable and absorbing states, probabilities of 1e-300, units from 1e-8 to 1e8, horizons
up to 500, up to 20 constraints, one state, one action, one step.
"""

from typing import NamedTuple

import numpy as np

import cmdpax
from cmdpax.model.transitions import Successors

OFFSETS = (0.0, 1e-12, 1e-8, -1e-12, -1e-8, -1e-3, -0.1, -0.5)
"""How far thresholds lie above what can just be met, relative to scale."""


SHAPES = (  # H, S, A, I, and 1 or H steps that are written down: programs are compiled for each
    (1, 1, 1, 1, 1),
    (1, 1, 4, 2, 1),
    (1, 5, 3, 20, 1),
    (2, 2, 2, 1, 2),
    (2, 3, 1, 2, 2),
    (3, 2, 3, 3, 3),
    (3, 6, 2, 5, 1),
    (5, 1, 2, 2, 5),
    (5, 3, 3, 1, 5),
    (5, 4, 2, 20, 5),
    (8, 4, 3, 2, 8),
    (8, 5, 4, 3, 1),
    (20, 3, 2, 1, 20),
    (20, 6, 3, 5, 1),
    (60, 4, 2, 2, 60),
    (500, 2, 2, 1, 1),
    (500, 3, 2, 3, 500),
)


class Degenerate(NamedTuple):
    """A model, and whether some policy meets its thresholds up to 1e-9 of scale.

    Where a constraint is switched off, nobody knows about the others (None).

    Attributes:
        cmdp: the model.
        feasible: whether some policy meets its thresholds up to 1e-9 of scale.
        least_gap: the smallest slack that some policy has, in the user's units.
        most_slack: what no policy exceeds in all constraints, relative to their scales.
    """

    cmdp: cmdpax.CMDP
    feasible: bool | None
    least_gap: float
    most_slack: float | None


def degenerate(seed: int) -> Degenerate:
    """The model of a seed."""
    draw = np.random.default_rng([17, seed])
    horizon, num_states, num_actions, num_constraints, steps = SHAPES[seed % len(SHAPES)]
    shape = (steps, num_states, num_actions)
    transitions = _transitions(draw, shape)
    initial = _initial(draw, num_states)
    signals = _signals(draw, 1 + num_constraints, shape)
    thresholds, offset = _thresholds(draw, transitions, signals, initial, horizon)
    units = _units(draw, signals)
    feasible: bool | None = offset < 1e-10
    least_gap = float((-offset * _scales(signals)[1:] * units[1:]).min())
    most_slack: float | None = -offset
    if draw.random() < 0.3:
        thresholds[draw.integers(num_constraints)] = -1e7
        feasible, most_slack = feasible or None, None
    cmdp = cmdpax.CMDP(
        transitions=_as_lists(transitions) if seed % len(SHAPES) % 3 == 2 else transitions,
        rewards=units[0] * signals[0],
        constraint_rewards=units[1:, None, None, None] * signals[1:],
        thresholds=units[1:] * thresholds,
        initial=initial,
        horizon=horizon,
    )
    return Degenerate(cmdp, feasible, least_gap, most_slack)


def _scales(signals: np.ndarray) -> np.ndarray:
    largest = np.abs(signals).max(axis=(1, 2, 3))
    return np.where(largest > 0, largest, 1.0)


def _units(draw: np.random.Generator, signals: np.ndarray) -> np.ndarray:
    """From 1e-8 to 1e8 in half of the models; a signal that is 0 everywhere has none."""
    units = 10.0 ** draw.integers(-8, 9, len(signals))
    zero = ~signals.any(axis=(1, 2, 3))
    return np.where(zero | (draw.random() < 0.5), 1.0, units)


def _transitions(draw: np.random.Generator, shape: tuple[int, int, int]) -> np.ndarray:
    num_states = shape[1]
    kind = draw.choice(["dense", "sparse", "certain", "tiny", "absorbing"])
    if kind == "dense":
        return draw.dirichlet(np.ones(num_states), shape)
    if kind == "sparse":
        weights = draw.gamma(0.1, 1.0, (*shape, num_states)) + 1e-300
        return weights / weights.sum(axis=-1, keepdims=True)
    rows = np.eye(num_states)[draw.integers(num_states, size=shape)]
    if kind == "tiny":
        rows = np.where(rows == 0, draw.choice([0.0, 1e-300, 1e-12], rows.shape), rows)
        rows[rows == 1] -= 1e-12 * draw.integers(0, 2)
    if kind == "absorbing":
        rows = draw.dirichlet(np.ones(num_states), shape)
        rows[:, -1] = np.eye(num_states)[-1]
    result: np.ndarray = rows / rows.sum(axis=-1, keepdims=True)
    return result


def _as_lists(transitions: np.ndarray) -> Successors:
    """The same as lists of successors, in an order of their own."""
    order = np.argsort(-transitions, axis=-1, kind="stable")
    return Successors(order, np.take_along_axis(transitions, order, axis=-1))


def _initial(draw: np.random.Generator, num_states: int) -> np.ndarray:
    if draw.random() < 0.5:
        return np.eye(num_states)[0]  # others may be out of reach
    return draw.dirichlet(np.ones(num_states))


def _signals(
    draw: np.random.Generator, num_signals: int, shape: tuple[int, int, int]
) -> np.ndarray:
    """The reward and the constraints: fresh ones, ties, constants, copies, opposites, sums."""
    signals = np.empty((num_signals, *shape))
    for index in range(num_signals):
        kind = draw.choice(["fresh", "ties", "constant", "sparse", "copy", "opposite", "sum"])
        signals[index] = draw.random(shape) - draw.choice([0.0, 0.5])
        if kind == "ties":
            signals[index] = draw.integers(0, 3, shape) / 2
        elif kind == "constant":
            signals[index] = draw.choice([0.1, 1 / 3, 0.0])
        elif kind == "sparse":
            signals[index] *= draw.random(shape) < 0.2
        elif kind == "copy" and index:
            signals[index] = signals[draw.integers(index)]
        elif kind == "opposite" and index:
            signals[index] = -signals[draw.integers(index)]
        elif kind == "sum" and index:
            signals[index] = signals[:index].mean(axis=0)
    return signals


def _thresholds(
    draw: np.random.Generator,
    transitions: np.ndarray,
    signals: np.ndarray,
    initial: np.ndarray,
    horizon: int,
) -> tuple[np.ndarray, float]:
    """Those of a policy that maximises a mean of the constraints, moved by an offset.

    No policy exceeds all of them, so the largest slack is minus the offset, exactly.
    """
    scales = _scales(signals)
    weights = np.insert(draw.dirichlet(np.ones(len(signals) - 1)), 0, 0.0) + 0.0
    weights[1:] = np.maximum(weights[1:], 1e-3) / scales[1:]
    values = np.zeros((len(initial), len(signals)))
    for step in reversed(range(horizon)):
        at = 0 if transitions.shape[0] == 1 else step
        q_values = np.moveaxis(signals[:, at], 0, -1) + transitions[at] @ values
        best = (q_values @ weights).argmax(axis=1)
        values = q_values[np.arange(len(initial)), best]
    offset = float(draw.choice(OFFSETS))
    return (initial @ values)[1:] + offset * scales[1:], offset
