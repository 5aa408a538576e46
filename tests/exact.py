"""A verifier of certificates in integers of 1,400 bits: none of the library's arithmetic.

Numbers are integers that count units of 2^-1400. Doubles down to 1e-300 are exact in them, and a
product is cut off after that many binary places, so that what is computed here errs by less than
1e-390. Nothing comes from the library; of a model and a solution only arrays are read.
"""

from typing import Any, NamedTuple

import numpy as np

PLACES = 1400
TOLERANCE = 1e-9
"""What may be missing of a threshold, relative to the largest reward of its constraint."""


class Exact(NamedTuple):
    """A model in fixed point, step by step."""

    transitions: list[np.ndarray]  # [S·A, S] each
    signals: list[np.ndarray]  # [S·A, 1 + I] each
    initial: np.ndarray  # [S]
    num_states: int


def fixed(array: Any) -> Any:
    """Doubles as integers."""
    return np.frompyfunc(_fixed, 1, 1)(np.asarray(array, dtype=float))


def _fixed(number: float) -> int:
    numerator, denominator = number.as_integer_ratio()
    return (numerator << PLACES) // denominator


def product(left: np.ndarray, right: np.ndarray) -> Any:
    """A matrix product in fixed point."""
    return (left @ right) >> PLACES


def as_exact(cmdp: Any) -> Exact:
    """Every array of the model, written out for each step."""
    num_states, num_actions = len(cmdp.initial), cmdp.rewards.shape[2]
    transitions, signals = [], []
    for step in range(cmdp.horizon):
        rewards = cmdp.rewards[_at(cmdp.rewards, step)]
        constraints = cmdp.constraint_rewards[:, _at(cmdp.constraint_rewards[0:1, :, 0], step, 1)]
        stacked = np.concatenate([rewards[None], constraints]).reshape(-1, num_states * num_actions)
        signals.append(fixed(stacked.T))
        transitions.append(_rows(cmdp.transitions, step, num_states))
    return Exact(transitions, signals, fixed(cmdp.initial), num_states)


def _at(array: np.ndarray, step: int, axis: int = 0) -> int:
    return 0 if array.shape[axis] == 1 else step


def _rows(transitions: Any, step: int, num_states: int) -> np.ndarray:
    if not hasattr(transitions, "successors"):
        dense: np.ndarray = fixed(transitions[_at(transitions, step)].reshape(-1, num_states))
        return dense
    lists = transitions.successors[_at(transitions.successors, step)]
    lists = lists.reshape(-1, lists.shape[-1])
    probabilities = fixed(
        transitions.probabilities[_at(transitions.probabilities, step)].reshape(lists.shape)
    )
    rows = np.zeros((len(lists), num_states), dtype=object)
    for row, (following, chances) in enumerate(zip(lists, probabilities, strict=True)):
        for state, chance in zip(following, chances, strict=True):
            rows[row, state] += chance
    return rows


def values_of(model: Exact, policy: np.ndarray) -> np.ndarray:
    """(V_r, V_u) of a policy."""
    values = np.zeros((model.num_states, model.signals[0].shape[1]), dtype=object)
    for step in reversed(range(len(model.signals))):
        q_values = model.signals[step] + product(model.transitions[step], values)
        decisions = fixed(policy[step]).reshape(-1, 1)
        values = ((decisions * q_values) >> PLACES).reshape(model.num_states, -1, values.shape[1])
        values = values.sum(axis=1)
    result: np.ndarray = product(model.initial, values)
    return result


def dual_value(model: Exact, multipliers: np.ndarray, thresholds: np.ndarray) -> int:
    """D(λ) = max_π V_{r + λᵀu} - λᵀc: nobody who meets the thresholds is worth more."""
    weights = fixed(np.insert(multipliers, 0, 1.0))
    values = np.zeros(model.num_states, dtype=object)
    for step in reversed(range(len(model.signals))):
        reward = product(model.signals[step], weights)
        q_values = reward + product(model.transitions[step], values)
        values = q_values.reshape(model.num_states, -1).max(axis=1)
    result: int = product(model.initial, values) - product(weights[1:], fixed(thresholds))
    return result


def scales_of(cmdp: Any) -> np.ndarray:
    """The largest reward of a step, and of each constraint; 1 where all are 0."""
    largest = np.abs(cmdp.constraint_rewards).max(axis=(1, 2, 3), initial=0.0)
    largest = np.insert(largest, 0, np.abs(cmdp.rewards).max())
    return np.where(largest > 0, largest, 1.0)


def random_places(model: Exact, policy: np.ndarray) -> int:
    """Steps and states that are reached, where several actions are taken."""
    reached = model.initial > 0
    count = 0
    for step, decisions in enumerate(policy):
        count += int(np.count_nonzero(reached & ((decisions > 0).sum(axis=1) > 1)))
        taken = (reached[:, None] & (decisions > 0)).ravel()
        reached = (model.transitions[step][taken] > 0).any(axis=0)
    return count


def flaws_of(cmdp: Any, solution: Any) -> list[str]:
    """What a solution claims and what is not so."""
    model, scales = as_exact(cmdp), scales_of(cmdp)
    flaws = []
    if not (0 <= solution.gap < np.inf and np.all(solution.multipliers >= 0)):
        flaws.append(f"gap {solution.gap}, multipliers {solution.multipliers}")
    claimed = _fixed(solution.value) + _fixed(solution.gap)
    excess = dual_value(model, solution.multipliers, cmdp.thresholds) - claimed
    if excess > 0:
        flaws.append(f"the bound is {_float(excess) / scales[0]:.3g} above value + gap")
    reached = values_of(model, solution.policy)
    rounding = 1e-12 * cmdp.horizon
    missing = _fixed(solution.value) - reached[0] - _fixed(solution.gap)
    if missing > _fixed(rounding * scales[0]):
        flaws.append(f"the policy is worth {_float(missing) / scales[0]:.3g} too little")
    for constraint, threshold in enumerate(cmdp.thresholds):
        missed = _float(_fixed(threshold) - reached[1 + constraint]) / scales[1 + constraint]
        if missed > TOLERANCE + rounding:
            flaws.append(f"constraint {constraint} is missed by {missed:.3g} of its scale")
    places = random_places(model, solution.policy)
    if places > len(cmdp.thresholds):
        flaws.append(f"the policy is random in {places} places")
    return flaws


def _float(number: int) -> float:
    return number / (1 << PLACES)
