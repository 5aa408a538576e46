"""A slow, obvious oracle: NumPy loops straight from the definitions.

Nothing here comes from the library; of a model only its arrays are read. Arrays are written out
to `[H, S, A, S]`, `[H, S, A]` and `[I, H, S, A]` first (`densify`). Loops run in the dtype of the
arrays, so that `np.longdouble` gives results with digits to spare.
"""

import itertools
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize

_TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


class Dense(NamedTuple):
    """A CMDP with every array written out."""

    transitions: np.ndarray  # [H, S, A, S]
    rewards: np.ndarray  # [H, S, A]
    constraint_rewards: np.ndarray  # [I, H, S, A]
    thresholds: np.ndarray  # [I]
    initial: np.ndarray  # [S]


class Values(NamedTuple):
    """V_r, V_u and the occupancy of a policy."""

    value: Any
    constraint_values: np.ndarray
    occupancy: np.ndarray


def densify(cmdp: Any) -> Dense:
    """Write out stationary axes and successor lists."""
    horizon = cmdp.horizon
    num_states, num_actions = cmdp.initial.shape[0], cmdp.rewards.shape[2]
    num_constraints = cmdp.thresholds.shape[0]
    transitions = np.zeros((horizon, num_states, num_actions, num_states))
    rewards = np.zeros((horizon, num_states, num_actions))
    constraint_rewards = np.zeros((num_constraints, horizon, num_states, num_actions))
    for h, s, a in np.ndindex(rewards.shape):
        rewards[h, s, a] = cmdp.rewards[_at(cmdp.rewards, h), s, a]
        for i in range(num_constraints):
            at = _at(cmdp.constraint_rewards[i], h)
            constraint_rewards[i, h, s, a] = cmdp.constraint_rewards[i, at, s, a]
        if hasattr(cmdp.transitions, "successors"):
            lists, probabilities = cmdp.transitions.successors, cmdp.transitions.probabilities
            at = _at(lists, h)
            for n in range(lists.shape[3]):
                transitions[h, s, a, lists[at, s, a, n]] += probabilities[at, s, a, n]
        else:
            at = _at(cmdp.transitions, h)
            transitions[h, s, a] = cmdp.transitions[at, s, a]
    return Dense(
        transitions, rewards, constraint_rewards, np.array(cmdp.thresholds), np.array(cmdp.initial)
    )


def _at(array: np.ndarray, step: int) -> int:
    return 0 if array.shape[0] == 1 else step


def evaluate(model: Dense, policy: np.ndarray) -> Values:
    """Forward: where the mass is; then the sums of what it collects."""
    horizon, num_states, num_actions = model.rewards.shape
    occupancy = np.zeros_like(model.rewards)
    mass = model.initial.copy()
    for h in range(horizon):
        following = np.zeros_like(mass)
        for s in range(num_states):
            for a in range(num_actions):
                occupancy[h, s, a] = mass[s] * policy[h, s, a]
                for t in range(num_states):
                    following[t] += occupancy[h, s, a] * model.transitions[h, s, a, t]
        mass = following
    value = np.sum(occupancy * model.rewards)
    constraint_values = np.array([np.sum(occupancy * u) for u in model.constraint_rewards])
    return Values(value, constraint_values.reshape(len(model.thresholds)), occupancy)


def lagrangian_reward(model: Dense, multipliers: np.ndarray) -> np.ndarray:
    """r + λᵀu."""
    total = model.rewards.copy()
    for multiplier, constraint in zip(multipliers, model.constraint_rewards, strict=True):
        total = total + multiplier * constraint
    return total


def q_values(model: Dense, signal: np.ndarray, policy: np.ndarray | None = None) -> np.ndarray:
    """Q_h(s, a) of a signal under a policy, or the optimal one (greedy backward induction)."""
    horizon, num_states, num_actions = signal.shape
    result = np.zeros_like(signal)
    later = np.zeros_like(model.initial)
    for h in reversed(range(horizon)):
        values = np.zeros_like(later)
        for s in range(num_states):
            for a in range(num_actions):
                expected = sum(model.transitions[h, s, a, t] * later[t] for t in range(num_states))
                result[h, s, a] = signal[h, s, a] + expected
            if policy is None:
                values[s] = max(result[h, s])
            else:
                values[s] = sum(policy[h, s, a] * result[h, s, a] for a in range(num_actions))
        later = values
    return result


def best_value(model: Dense, signal: np.ndarray) -> Any:
    """max_π V_signal^π."""
    return model.initial @ q_values(model, signal)[0].max(axis=1)


def dual_value(model: Dense, multipliers: np.ndarray) -> Any:
    """D(λ) = max_π V_{r + λᵀu}^π - λᵀc."""
    signal = lagrangian_reward(model, multipliers)
    return best_value(model, signal) - np.dot(multipliers, model.thresholds)


# ------------------------------------------------------------------------------- brute force


def deterministic_policies(model: Dense) -> list[np.ndarray]:
    """All A^(H·S) of them, as `[H, S, A]`."""
    horizon, num_states, num_actions = model.rewards.shape
    policies = []
    for actions in itertools.product(range(num_actions), repeat=horizon * num_states):
        policy = np.zeros(model.rewards.shape)
        for place, action in enumerate(actions):
            policy[place // num_states, place % num_states, action] = 1.0
        policies.append(policy)
    return policies


def all_values(model: Dense) -> np.ndarray:
    """(V_r, V_u) of every deterministic policy, `[P, 1 + I]`, without repetitions."""
    rows = []
    for policy in deterministic_policies(model):
        mass, row = model.initial, np.zeros(1 + len(model.thresholds))
        for h, decisions in enumerate(policy):
            pairs = mass[:, None] * decisions
            row[0] += np.sum(pairs * model.rewards[h])
            for i, constraint in enumerate(model.constraint_rewards):
                row[1 + i] += np.sum(pairs * constraint[h])
            mass = np.tensordot(pairs, model.transitions[h], axes=2)
        rows.append(row)
    return np.unique(np.array(rows), axis=0)


def optimum(model: Dense) -> float | None:
    """The best mixture of deterministic policies that meets the thresholds; None if none does."""
    values = all_values(model)
    result = scipy.optimize.linprog(
        -values[:, 0],
        A_ub=-values[:, 1:].T if len(model.thresholds) else None,
        b_ub=-model.thresholds if len(model.thresholds) else None,
        A_eq=np.ones((1, len(values))),
        b_eq=[1.0],
        options=_TIGHT,
    )
    return None if result.status == 2 else -result.fun


def slater_gap(model: Dense) -> float:
    """Ξ: the mixture of deterministic policies whose smallest slack is largest."""
    values = all_values(model)
    num_columns, num_constraints = len(values), len(model.thresholds)
    slacks = values[:, 1:] - model.thresholds
    result = scipy.optimize.linprog(
        np.append(np.zeros(num_columns), -1.0),
        A_ub=np.column_stack([-slacks.T, np.ones(num_constraints)]),
        b_ub=np.zeros(num_constraints),
        A_eq=np.append(np.ones(num_columns), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, None)] * num_columns + [(None, None)],
        options=_TIGHT,
    )
    assert result.status == 0, result.message
    return -result.fun


# ------------------------------------------------------------------------------ regularization


def entropy(model: Dense, policy: np.ndarray) -> Any:
    """Expected sum of -log π along the way."""
    mass = evaluate(model, policy).occupancy
    return -sum(d * np.log(p) for d, p in zip(mass.ravel(), policy.ravel(), strict=True) if d > 0)


def soft_plan(model: Dense, signal: np.ndarray, temperature: float) -> tuple[Any, np.ndarray]:
    """Soft backward induction: max_π V_signal^π + τ·entropy(π), and its policy."""
    horizon, num_states, num_actions = signal.shape
    policy = np.zeros_like(signal)
    later = np.zeros_like(model.initial)
    for h in reversed(range(horizon)):
        values = np.zeros_like(later)
        for s in range(num_states):
            q = signal[h, s].copy()
            for a in range(num_actions):
                q[a] += sum(model.transitions[h, s, a, t] * later[t] for t in range(num_states))
            weights = np.exp((q - q.max()) / temperature)
            policy[h, s] = weights / weights.sum()
            values[s] = q.max() + temperature * np.log(weights.sum())
        later = values
    return model.initial @ later, policy


class Saddle(NamedTuple):
    """A point that satisfies the saddle's conditions up to `residual`."""

    value: Any
    policy: np.ndarray
    multipliers: np.ndarray
    residual: Any


def saddle(model: Dense, temperature: float, cap: float, start: np.ndarray) -> Saddle:
    """The regularized saddle point, by projected Newton steps in extended precision.

    D_τ is τ-strongly convex, so a point where λ = clip(λ - ∇D_τ(λ)) is *the* saddle, wherever the
    steps began: `start` may come from the solver under test. The residual tells whether they
    arrived. The Hessian comes from ∂log π/∂λ_j = (Q_{u_j} - V_{u_j})/τ.
    """
    precise = Dense(*(np.asarray(array, dtype=np.longdouble) for array in model))
    temperature = np.longdouble(temperature)
    multipliers = np.asarray(start, dtype=np.longdouble)
    best: Saddle | None = None
    for _ in range(20):
        signal = lagrangian_reward(precise, multipliers)
        soft_value, policy = soft_plan(precise, signal, temperature)
        gradient, slope = _soft_constraints(precise, policy, temperature)
        gradient = gradient - precise.thresholds + temperature * multipliers
        residual = abs(multipliers - np.clip(multipliers - gradient, 0, cap)).max(initial=0)
        if best is not None and residual >= best.residual:
            break
        value = soft_value - multipliers @ precise.thresholds
        value += temperature / 2 * multipliers @ multipliers
        best = Saddle(value, policy, multipliers, residual)
        at_border = (multipliers <= 0) & (gradient > 0) | (multipliers >= cap) & (gradient < 0)
        free = np.flatnonzero(~at_border)
        hessian = (slope + temperature * np.eye(len(multipliers)))[np.ix_(free, free)]
        step = np.zeros_like(multipliers)
        # A Newton step solved in double precision still gains ten digits or more each time.
        step[free] = np.linalg.solve(hessian.astype(float), gradient[free].astype(float))
        multipliers = np.clip(multipliers - step, 0, cap)
    assert best is not None
    return best


def _soft_constraints(
    model: Dense, policy: np.ndarray, temperature: Any
) -> tuple[np.ndarray, np.ndarray]:
    """V_u of a soft policy and its derivative by λ, `[I]` and `[I, I]`."""
    num_constraints, horizon, num_states, num_actions = model.constraint_rewards.shape
    tables = [q_values(model, u, policy) for u in model.constraint_rewards]
    values = [np.sum(policy * table, axis=2) for table in tables]
    slope = np.zeros((num_states, num_constraints, num_constraints), dtype=policy.dtype)
    for h in reversed(range(horizon)):
        now = np.zeros_like(slope)
        for s, a in np.ndindex(num_states, num_actions):
            for i, j in np.ndindex(num_constraints, num_constraints):
                log_slope = (tables[j][h, s, a] - values[j][h, s]) / temperature
                expected = sum(
                    model.transitions[h, s, a, t] * slope[t, i, j] for t in range(num_states)
                )
                change = log_slope * tables[i][h, s, a] + expected
                now[s, i, j] += policy[h, s, a] * change
        slope = now
    reached = np.array([model.initial @ value[0] for value in values]).reshape(num_constraints)
    return reached, np.tensordot(model.initial, slope, axes=1)
