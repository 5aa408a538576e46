"""The statements on one iteration, slowly: NumPy loops from the paper, nothing of the audit.

Each takes the iterates and k (from 0) and gives both sides, arrays over the statement's axes.
"""

from typing import Any, NamedTuple

import numpy as np

import reference
from reference import Dense

Both = tuple[Any, Any]


class Numbers(NamedTuple):
    """η, τ, λ_max, Ξ and V_r*."""

    eta: float
    tau: float
    cap: float
    gap: float
    optimum: float


class Iterates(NamedTuple):
    """The scheme's iterates 1, …, T, and where they go."""

    dense: Dense
    numbers: Numbers
    policies: np.ndarray  # [T, H, S, A]
    multipliers: np.ndarray  # [T, I]
    q_lagrangian: np.ndarray  # [T, H, S, A]
    values: np.ndarray  # V_r, V_u: [T, 1 + I]
    target: np.ndarray  # π*_τ
    target_multipliers: np.ndarray  # λ*_τ


def iterates_of(problem: Any, count: int) -> Iterates:
    """The first iterates of the scheme, and the one after them, in plain loops."""
    dense = reference.densify(problem.cmdp)
    eta, tau = float(problem.step_size), float(problem.regularization)
    cap = float(problem.max_multiplier)
    optimum = reference.optimum(dense)
    assert optimum is not None
    numbers = Numbers(eta, tau, cap, reference.slater_gap(dense), optimum)
    start = np.zeros(len(dense.thresholds))
    saddle = reference.saddle(dense, tau, cap, np.asarray(problem.saddle.multipliers))
    assert saddle.residual < 1e-12
    policy, multipliers = np.full(dense.rewards.shape, 1 / dense.rewards.shape[2]), start
    rows: list[tuple[np.ndarray, ...]] = []
    for _ in range(count + 1):
        signal = reference.lagrangian_reward(dense, multipliers) - tau * np.log(policy)
        q = reference.q_values(dense, signal, policy)
        found = reference.evaluate(dense, policy)
        reached = np.append(found.value, found.constraint_values)
        rows.append((policy, multipliers, q, reached))
        slacks = found.constraint_values - dense.thresholds
        weights = policy * np.exp(eta * q)
        policy = weights / weights.sum(axis=2, keepdims=True)
        multipliers = np.clip((1 - eta * tau) * multipliers - eta * slacks, 0, cap)
    arrays = [np.array(column) for column in zip(*rows, strict=True)]
    target = np.asarray(saddle.policy, float), np.asarray(saddle.multipliers, float)
    return Iterates(dense, numbers, *arrays, *target)


def kl(first: np.ndarray, second: np.ndarray) -> float:
    """KL(first, second) of two distributions."""
    return sum(p * np.log(p / q) for p, q in zip(first, second, strict=True) if p > 0)


def potential(run: Iterates, k: int) -> float:
    """Φ_k."""
    states = reference.evaluate(run.dense, run.target).occupancy.sum(axis=2)
    total = 0.5 * sum((run.target_multipliers - run.multipliers[k]) ** 2)
    for h, s in np.ndindex(states.shape):
        total += states[h, s] * kl(run.target[h, s], run.policies[k, h, s])
    return total


def ceiling(run: Iterates) -> float:
    """H(1 + I λ_max + τ log A)."""
    horizon, _, num_actions = run.dense.rewards.shape
    tau, cap = run.numbers.tau, run.numbers.cap
    return horizon * (1 + len(run.dense.thresholds) * cap + tau * np.log(num_actions))


def constants(run: Iterates) -> tuple[float, float]:
    """D and D' of Lemma 4.1's proof."""
    horizon, _, num_actions = run.dense.rewards.shape
    eta, tau, cap, num = *run.numbers[:3], len(run.dense.thresholds)
    inner = 1 + num * cap + tau * np.log(num_actions)
    squares = 2 * horizon**2 * inner**2 + 2 * tau**2 * (64 / np.e**2)
    primal = horizon * num_actions**0.5 * np.exp(eta * horizon * inner) * squares
    return primal, num * (horizon + tau * cap) ** 2


def gradient(run: Iterates, k: int) -> np.ndarray:
    """V_u - c + τλ_k."""
    slack = run.values[k, 1:] - run.dense.thresholds
    return slack + run.numbers.tau * run.multipliers[k]


def values_not_negative(run: Iterates, k: int) -> Both:
    return -run.q_lagrangian[k], np.zeros_like(run.q_lagrangian[k])


def values_bounded(run: Iterates, k: int) -> Both:
    surprise = -run.numbers.tau * np.log(run.policies[k])
    return run.q_lagrangian[k], surprise + ceiling(run)


def local_norms(run: Iterates, k: int) -> np.ndarray:
    """Σ_a π exp(ηQ) Q²."""
    result = np.zeros(run.dense.rewards.shape[:2])
    for h, s, a in np.ndindex(run.dense.rewards.shape):
        q = run.q_lagrangian[k, h, s, a]
        result[h, s] += run.policies[k, h, s, a] * np.exp(run.numbers.eta * q) * q**2
    return result


def local_norms_bounded(run: Iterates, k: int) -> Both:
    norms = local_norms(run, k)
    return norms, np.full_like(norms, constants(run)[0] / run.dense.rewards.shape[0])


def gradient_bounded(run: Iterates, k: int) -> Both:
    horizon, num = run.dense.rewards.shape[0], len(run.dense.thresholds)
    bound = np.sqrt(num) * (horizon + run.numbers.tau * run.numbers.cap)
    return np.linalg.norm(gradient(run, k)), bound


def mirror_descent(run: Iterates, k: int) -> Both:
    eta, shape = run.numbers.eta, run.dense.rewards.shape[:2]
    left, moved = np.zeros(shape), np.zeros(shape)
    for h, s in np.ndindex(shape):
        target, now, then = (
            policy[h, s] for policy in (run.target, run.policies[k], run.policies[k + 1])
        )
        left[h, s] = np.dot(run.q_lagrangian[k, h, s], target - now)
        moved[h, s] = (kl(target, now) - kl(target, then)) / eta
    return left, moved + eta / 2 * local_norms(run, k)


def projected_descent(run: Iterates, k: int) -> Both:
    eta, target, slope = run.numbers.eta, run.target_multipliers, gradient(run, k)
    before = np.sum((target - run.multipliers[k]) ** 2)
    after = np.sum((target - run.multipliers[k + 1]) ** 2)
    left = np.dot(run.multipliers[k] - target, slope)
    return left, (before - after) / (2 * eta) + eta / 2 * np.sum(slope**2)


def three_points(run: Iterates, k: int) -> Both:
    """Both sides of the identity, here as they stand."""
    eta, shape = run.numbers.eta, run.dense.rewards.shape[:2]
    left, right = np.zeros(shape), np.zeros(shape)
    for h, s in np.ndindex(shape):
        target, now, then = (
            policy[h, s] for policy in (run.target, run.policies[k], run.policies[k + 1])
        )
        left[h, s] = eta * np.dot(run.q_lagrangian[k, h, s], target - then)
        right[h, s] = kl(target, now) - kl(target, then) - kl(then, now)
    return left, right


def recursion(run: Iterates, k: int) -> Both:
    eta, tau = run.numbers[:2]
    decayed = (1 - eta * tau) * potential(run, k)
    return potential(run, k + 1), decayed + eta**2 * sum(constants(run))


def objective_error(run: Iterates, k: int) -> Both:
    horizon, _, num_actions = run.dense.rewards.shape
    far = horizon**1.5 * (2 * potential(run, k)) ** 0.5
    missing = max(run.numbers.optimum - run.values[k, 0], 0.0)
    return missing, far + run.numbers.tau * horizon * np.log(num_actions)


def constraint_error(run: Iterates, k: int) -> Both:
    horizon, _, num_actions = run.dense.rewards.shape
    tau, cap, gap = run.numbers[1:4]
    bound = horizon**1.5 * (2 * potential(run, k)) ** 0.5 + tau * cap / 2
    bound += (horizon**2 / gap + tau * horizon * np.log(num_actions)) / cap
    missing = np.maximum(run.dense.thresholds - run.values[k, 1:], 0.0)
    return missing, np.full_like(missing, bound)


SIDES = {
    "values are not negative": values_not_negative,
    "values are bounded": values_bounded,
    "local norms are bounded": local_norms_bounded,
    "dual gradient is bounded": gradient_bounded,
    "mirror descent with local norms": mirror_descent,
    "projected dual descent": projected_descent,
    "potential recursion": recursion,
    "objective error": objective_error,
    "constraint error": constraint_error,
}
