"""The schemes and algorithms in slow, obvious NumPy, straight from the paper's pseudo-code.

Loops over h, s and a; nothing comes from the library. A profile is a dictionary of the choices of
an `Optimism`; its numbers are computed here again. A schedule is (initial, exponent, offset).
"""

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from reference import Dense

Profile = dict[str, Any]
Number = float | tuple[float, float, float]


class Rates(NamedTuple):
    """What a user chooses: η, τ, λ_max and the margin."""

    step_size: Number = 0.1
    regularization: Number = 0.0
    max_multiplier: float = 6.0
    margin: Number = 0.0

    def at(self, k: int) -> tuple[float, float, float, float]:
        """The numbers of episode k."""
        step_size, regularization, cap, margin = self
        return value_at(step_size, k), value_at(regularization, k), cap, value_at(margin, k)


class Seen(NamedTuple):
    """What an algorithm shows of one episode (or a scheme of one iteration)."""

    multipliers: np.ndarray  # λ_k
    constraint_values: np.ndarray  # V_u of π_k, or V̂_u
    policy: np.ndarray  # π_k
    other: Any = None  # Q̂_z of the primal-dual learner, V_r of a scheme


def value_at(number: Number, k: int) -> float:
    """x_k = initial · (k + offset)^-exponent."""
    if not isinstance(number, tuple):
        return number
    initial, exponent, offset = number
    return initial * (k + offset) ** -exponent


def collect(rows: Iterable[Seen]) -> Seen:
    """All episodes, stacked."""
    columns = zip(*rows, strict=True)
    return Seen(*(None if c[0] is None else np.array(c) for c in columns))


def bonus_constants(profile: Profile, sizes: tuple[int, int, int, int]) -> tuple[float, float]:
    """(c_r, c_p) with b^r = c_r/√(n ∨ 1) and b^p = c_p/√(n ∨ 1)."""
    num_constraints, horizon, num_states, num_actions = sizes
    if profile["bonus"] == "count":
        return 0.0, profile["scale"]
    delta = profile["failure_probability"] / 3
    pairs = num_states * num_actions * horizon * profile["num_episodes"]
    reward = math.sqrt(0.5 * math.log(2 * pairs * (num_constraints + 1) / delta))
    transition = horizon * math.sqrt(2 * num_states + 2 * math.log(pairs / delta))
    return profile["scale"] * reward, profile["scale"] * transition


class Guess(NamedTuple):
    """The optimistic model, Eq. (9)."""

    rewards: np.ndarray  # r̂ [H, S, A]
    constraint_rewards: np.ndarray  # û [I, H, S, A]
    transitions: np.ndarray  # p̂ [H, S, A, S]
    transition_bonus: np.ndarray  # b^p [H, S, A]


class Memory:
    """Counts and sums of the episodes so far, Eq. (8)."""

    def __init__(self, model: Dense, profile: Profile) -> None:
        self.model, self.profile = model, profile
        self.visits = np.zeros(model.rewards.shape, int)
        self.went = np.zeros(model.transitions.shape, int)
        self.support: np.ndarray | None = None  # where the states that may follow are listed
        self.rewards = np.zeros(model.rewards.shape)
        self.constraint_rewards = np.zeros(model.constraint_rewards.shape)

    def count(self, states: Any, actions: Any, rewards: Any, constraint_rewards: Any) -> None:
        """Add one episode."""
        for h, a in enumerate(actions):
            s = states[h]
            self.visits[h, s, a] += 1
            self.went[h, s, a, states[h + 1]] += 1
            self.rewards[h, s, a] += rewards[h]
            for i in range(len(self.constraint_rewards)):
                self.constraint_rewards[i, h, s, a] += constraint_rewards[i][h]

    def guess(self) -> Guess:
        """r̂, û, p̂ and b^p, entry by entry."""
        model, profile = self.model, self.profile
        num_constraints, (horizon, num_states, num_actions) = len(model.thresholds), model[1].shape
        c_r, c_p = bonus_constants(profile, (num_constraints, horizon, num_states, num_actions))
        guess = Guess(*(np.zeros_like(array) for array in (*model[1:3], model[0], model[1])))
        for at in np.ndindex(self.visits.shape):
            n = max(self.visits[at], 1)
            untried = self.visits[at] == 0
            bonus = (c_r + c_p) / math.sqrt(n)
            guess.transition_bonus[at] = c_p / math.sqrt(n)
            guess.transitions[at] = self.went[at] / n
            if untried and profile["unvisited_rows"] == "uniform":
                may_follow = np.ones(num_states) if self.support is None else self.support[at]
                guess.transitions[at] = may_follow / may_follow.sum()
            every = (slice(None), *at)
            if profile["rewards"] == "known":
                guess.rewards[at] = model.rewards[at] + bonus
                guess.constraint_rewards[every] = model.constraint_rewards[every] + bonus
            elif untried and profile["unvisited_rewards"] is not None:
                guess.rewards[at] = profile["unvisited_rewards"]
                guess.constraint_rewards[every] = profile["unvisited_rewards"]
            else:
                guess.rewards[at] = self.rewards[at] / n + bonus
                guess.constraint_rewards[every] = self.constraint_rewards[every] / n + bonus
        return guess


def evaluate(
    transitions: np.ndarray,
    signal: np.ndarray,
    policy: np.ndarray,
    ceiling: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Q `[H, S, A]` and V `[H + 1, S]` of one signal, truncated at a ceiling if there is one."""
    horizon, num_states, num_actions = signal.shape
    q, v = np.zeros(signal.shape), np.zeros((horizon + 1, num_states))
    for h in reversed(range(horizon)):
        for s in range(num_states):
            for a in range(num_actions):
                q[h, s, a] = signal[h, s, a] + transitions[h, s, a] @ v[h + 1]
                if ceiling is not None:
                    q[h, s, a] = min(q[h, s, a], ceiling[h, s, a])
            v[h, s] = policy[h, s] @ q[h, s]
    return q, v


def steps_left(shape: tuple[int, ...]) -> np.ndarray:
    """H - h + 1 in the paper's count of h, `[H, S, A]`."""
    left = np.zeros(shape)
    for h in range(shape[0]):
        left[h] = shape[0] - h
    return left


def ascend(log_policy: np.ndarray, q: np.ndarray, eta: float) -> np.ndarray:
    """log π_{k+1}, where π_{k+1} ∝ π_k exp(ηQ)."""
    weights = log_policy + eta * q
    weights = weights - weights.max(axis=-1, keepdims=True)
    return weights - np.log(np.exp(weights).sum(axis=-1, keepdims=True))


def descend(lam: np.ndarray, slack: np.ndarray, eta: float, tau: float, cap: float) -> np.ndarray:
    """λ_{k+1}."""
    return np.minimum(np.maximum((1 - eta * tau) * lam - eta * slack, 0.0), cap)


def plan(transitions: np.ndarray, signal: np.ndarray, tau: float) -> np.ndarray:
    """π: soft for τ > 0, else the lowest action within 1e-10 of the best."""
    horizon, num_states, _ = signal.shape
    policy, v = np.zeros(signal.shape), np.zeros(num_states)
    for h in reversed(range(horizon)):
        q = signal[h] + transitions[h] @ v
        for s in range(num_states):
            top = q[s].max()
            if tau > 0:
                weights = np.exp((q[s] - top) / tau)
                policy[h, s] = weights / weights.sum()
                v[s] = top + tau * math.log(weights.sum())
            else:
                policy[h, s, np.flatnonzero(q[s] >= top - 1e-10)[0]] = 1.0
                v[s] = top
    return policy


def primal_dual_learner(
    model: Dense, profile: Profile, episodes: Iterable[Any], rates: Rates
) -> Iterator[Seen]:
    """Algorithm 1, fed with episodes; also Q̂_z."""
    log_num_actions = math.log(model.rewards.shape[-1])
    memory = Memory(model, profile)
    log_policy = np.full(model.rewards.shape, -log_num_actions)
    lam = np.zeros(len(model.thresholds))
    left = steps_left(model.rewards.shape)
    for k, episode in enumerate(episodes, start=1):
        eta, tau, cap, margin = rates.at(k)
        r_hat, u_hat, p_hat, b_p = memory.guess()
        policy, psi = np.exp(log_policy), -log_policy
        q_z, _ = evaluate(p_hat, r_hat, policy, left)
        v_u = np.zeros(len(lam))
        for i, u in enumerate(u_hat):
            q_u, v = evaluate(p_hat, u, policy, left)
            q_z = q_z + lam[i] * q_u
            v_u[i] = model.initial @ v[0]
        if tau > 0:
            ceiling = psi + left * log_num_actions
            q_psi, _ = evaluate(p_hat, psi + b_p * log_num_actions, policy, ceiling)
            q_z = q_z + tau * q_psi
        yield Seen(lam, v_u, policy, q_z)
        log_policy = ascend(log_policy, q_z, eta)
        lam = descend(lam, v_u - (model.thresholds + margin), eta, tau, cap)
        memory.count(*episode)


def dual_learner(
    model: Dense, profile: Profile, episodes: Iterable[Any], rates: Rates
) -> Iterator[Seen]:
    """Algorithm 3, fed with episodes."""
    log_num_actions = math.log(model.rewards.shape[-1])
    memory, lam = Memory(model, profile), np.zeros(len(model.thresholds))
    for k, episode in enumerate(episodes, start=1):
        eta, tau, cap, margin = rates.at(k)
        r_hat, u_hat, p_hat, b_p = memory.guess()
        signal = r_hat + np.tensordot(lam, u_hat, axes=1) + tau * b_p * log_num_actions
        policy = plan(p_hat, signal, tau)
        v_u = np.array([model.initial @ evaluate(p_hat, u, policy)[1][0] for u in u_hat])
        v_u = v_u.reshape(len(lam))
        yield Seen(lam, v_u, policy)
        lam = descend(lam, v_u - (model.thresholds + margin), eta, tau, cap)
        memory.count(*episode)


def scheme(model: Dense, name: str, num_iterations: int, rates: Rates) -> Iterator[Seen]:
    """A scheme with the model known; also V_r."""
    transitions, rewards, constraint_rewards, thresholds, initial = model
    log_policy = np.full(rewards.shape, -math.log(rewards.shape[-1]))
    lam = np.zeros(len(thresholds))
    for k in range(1, num_iterations + 1):
        eta, tau, cap, _ = rates.at(k)
        signal = rewards + np.tensordot(lam, constraint_rewards, axes=1)
        policy = np.exp(log_policy) if name == "primal-dual" else plan(transitions, signal, tau)
        v_r = initial @ evaluate(transitions, rewards, policy)[1][0]
        v_u = [initial @ evaluate(transitions, u, policy)[1][0] for u in constraint_rewards]
        slack = np.array(v_u).reshape(len(lam)) - thresholds
        yield Seen(lam, np.array(v_u).reshape(len(lam)), policy, v_r)
        if name == "primal-dual":
            q, _ = evaluate(transitions, signal - tau * log_policy, policy)
            log_policy = ascend(log_policy, q, eta)
        lam = descend(lam, slack, eta, tau, cap)


def potential(model: Dense, seen: Seen, policy: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
    """Φ_k of every iterate, to a saddle point (π*_τ, λ*_τ)."""
    reached = np.zeros(len(seen.multipliers))
    for k, (lam, iterate) in enumerate(zip(seen.multipliers, seen.policy, strict=True)):
        mass = model.initial
        for h in range(len(policy)):
            divergence = (policy[h] * np.log(policy[h] / iterate[h])).sum(axis=-1)
            reached[k] += mass @ divergence
            mass = np.einsum("s,sa,sat->t", mass, policy[h], model.transitions[h])
        reached[k] += ((multipliers - lam) ** 2).sum() / 2
    return reached
