"""Learners of the field that decide in every episode, in slow and obvious NumPy.

Loops over h, s and a, from the pseudo-code of the docstrings; only the paper's own parts (counting,
Algorithm 2's truncated evaluation of one signal, greedy plans) are shared with the reference of the
paper's algorithms. Every learner is a generator of what it shows, fed with episodes.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from learning_reference import Memory, Profile, Seen, ascend, evaluate, plan, steps_left, value_at
from reference import Dense


class Counts(Memory):
    """r̄, ū and p̄; over all steps together where they share their counts."""

    def __init__(self, model: Dense, profile: Profile, stationary: bool, lists: bool) -> None:
        super().__init__(model, profile | {"bonus": "count", "scale": 0.0})
        self.stationary = stationary
        if lists:
            self.support = model.transitions > 0

    def count(self, states: Any, actions: Any, rewards: Any, constraint_rewards: Any) -> None:
        """Add one episode."""
        for h, a in enumerate(actions):
            at = (slice(None) if self.stationary else h, states[h], a)
            self.visits[at] += 1
            self.went[(*at, states[h + 1])] += 1
            self.rewards[at] += rewards[h]
            for i in range(len(self.constraint_rewards)):
                self.constraint_rewards[(i, *at)] += constraint_rewards[i][h]

    @property
    def known(self) -> bool:
        return bool(self.profile["rewards"] == "known")


def published_bonus(
    counts: Counts, p_bar: np.ndarray, k: float, chosen: dict[str, Any]
) -> np.ndarray:
    """H Σ_t β^p + β^r, where every β is scaled, and at most 1."""
    horizon, num_states, num_actions = counts.visits.shape
    scale, delta = chosen["bonus_scale"], chosen["failure_probability"]
    log_term = math.log(6 * num_states * num_actions * horizon * k / delta)
    bonus = np.zeros(counts.visits.shape)
    for at in np.ndindex(bonus.shape):
        n = max(counts.visits[at], 1)
        for t in range(num_states):
            if counts.support is not None and not counts.support[at][t]:
                continue
            p = p_bar[at][t]
            width = 2 * math.sqrt(p * (1 - p) * log_term / n) + 14 / 3 * log_term / n
            bonus[at] += horizon * min(scale * width, 1)
        if not counts.known:
            bonus[at] += min(scale * math.sqrt(log_term / n), 1)
    return bonus


def anytime_bonus(counts: Counts, p_bar: np.ndarray, delta: float) -> np.ndarray:
    """Σ_t √p̄ φ + 5 φ², with an iterated logarithm; and φ where rewards are estimated."""
    horizon, num_states, num_actions = counts.visits.shape
    log_term = math.log(48 * num_states**2 * num_actions * horizon / delta)
    bonus = np.zeros(counts.visits.shape)
    for at in np.ndindex(bonus.shape):
        n = max(counts.visits[at], 1)
        phi = math.sqrt((2 * math.log(math.log(max(2 * n, math.e))) + 2 * log_term) / n)
        bonus[at] = sum(math.sqrt(p) for p in p_bar[at]) * phi + 5 * phi**2
        if not counts.known:
            bonus[at] += phi
    return bonus


def opt_dual(
    model: Dense, counts: Counts, episodes: list[Any], chosen: dict[str, Any]
) -> Iterator[Seen]:
    """OptDual-CMDP."""
    num_constraints, horizon = len(model.thresholds), len(model.rewards)
    bound = horizon / chosen["slater_gap"]  # ρ
    step = bound / math.sqrt(horizon**2 * num_constraints * len(episodes))
    step = chosen["multiplier_step_size"] or step
    lam = np.zeros(num_constraints)
    for episode in episodes:
        weights, bonus_at = lam, len(episodes)
        policy, v_u = _plan(model, counts, chosen, weights, bonus_at)
        yield Seen(lam, v_u, policy)
        lam = np.maximum(lam - step * (v_u - model.thresholds), 0)
        counts.count(*episode)


def opt_pess_primal_dual(
    model: Dense, counts: Counts, episodes: list[Any], chosen: dict[str, Any]
) -> Iterator[Seen]:
    """OptPess-PrimalDual."""
    horizon, num_states, num_actions = model.rewards.shape
    lam = np.zeros(len(model.thresholds))
    for k, episode in enumerate(episodes, start=1):
        eta = chosen["step_scale"] * chosen["slater_gap"] * horizon * math.sqrt(k)
        log_term = math.log(k / chosen["failure_probability"])
        epsilon = horizon**2 * math.sqrt(num_states**3 * num_actions * log_term / k)
        policy, v_u = _plan(model, counts, chosen, lam / eta, k)
        yield Seen(lam / eta, v_u, policy)
        slack = v_u - model.thresholds - chosen["margin_scale"] * epsilon
        lam = np.maximum(lam - slack, 0)
        counts.count(*episode)


def _plan(
    model: Dense, counts: Counts, chosen: dict[str, Any], weights: np.ndarray, k: float
) -> tuple[np.ndarray, np.ndarray]:
    """The greedy policy for r̂ + wᵀû under p̄, and V_û of it."""
    r_bar, u_bar, p_bar, _ = counts.guess()
    bonus = published_bonus(counts, p_bar, k, chosen)
    signal = r_bar + bonus
    for w, u in zip(weights, u_bar, strict=True):
        signal = signal + w * (u + bonus)
    policy = plan(p_bar, signal, 0.0)
    values = [model.initial @ evaluate(p_bar, u + bonus, policy)[1][0] for u in u_bar]
    return policy, np.array(values).reshape(len(weights))


def opt_primal_dual(
    model: Dense, counts: Counts, episodes: list[Any], chosen: dict[str, Any]
) -> Iterator[Seen]:
    """OptPrimalDual-CMDP."""
    horizon, _, num_actions = model.rewards.shape
    num_constraints, num_episodes = len(model.thresholds), len(episodes)
    bound = horizon / chosen["slater_gap"]  # ρ
    dual_step = bound / math.sqrt(horizon**2 * num_constraints * num_episodes)
    dual_step = chosen["multiplier_step_size"] or dual_step
    squared = horizon**2 * (1 + num_constraints * bound) ** 2 * num_episodes
    step = chosen["step_scale"] * math.sqrt(2 * math.log(num_actions) / squared)
    step = chosen["step_size"] or step
    left = steps_left(model.rewards.shape)
    log_policy = np.full(model.rewards.shape, -math.log(num_actions))
    lam = np.zeros(num_constraints)
    for episode in episodes:
        r_bar, u_bar, p_bar, _ = counts.guess()
        bonus = published_bonus(counts, p_bar, num_episodes, chosen)
        policy = np.exp(log_policy)
        q, _ = evaluate(p_bar, r_bar + bonus, policy, left)
        v_u = np.zeros(num_constraints)
        for i, u in enumerate(u_bar):
            q_u, v = evaluate(p_bar, u + bonus, policy, left)
            q, v_u[i] = q + lam[i] * q_u, model.initial @ v[0]
        yield Seen(lam, v_u, policy, q)
        log_policy = ascend(log_policy, q, step)
        lam = np.maximum(lam - dual_step * (v_u - model.thresholds), 0)
        counts.count(*episode)


def uopt_rpgpd(
    model: Dense, counts: Counts, episodes: list[Any], chosen: dict[str, Any]
) -> Iterator[Seen]:
    """UOpt-RPGPD."""
    num_actions = model.rewards.shape[-1]
    left = steps_left(model.rewards.shape)
    log_policy = np.full(model.rewards.shape, -math.log(num_actions))
    lam = np.zeros(len(model.thresholds))
    for k, episode in enumerate(episodes, start=1):
        eta, tau = value_at(chosen["step_size"], k), value_at(chosen["regularization"], k)
        r_bar, u_bar, p_bar, _ = counts.guess()
        bonus = chosen["bonus_scale"] * anytime_bonus(counts, p_bar, chosen["failure_probability"])
        q = _soft_q(p_bar, r_bar + bonus, log_policy, tau)
        policy, v_u = np.exp(log_policy), np.zeros(len(lam))
        for i, u in enumerate(u_bar):
            q_u, v = evaluate(p_bar, u + bonus, policy, left)
            q, v_u[i] = q + lam[i] * q_u, model.initial @ v[0]
        yield Seen(lam, v_u, policy, q - tau * log_policy)
        log_policy = ascend((1 - eta * tau) * log_policy, q, eta)
        lam = np.maximum(lam + eta * (model.thresholds - v_u - tau * lam), 0)
        counts.count(*episode)


def _soft_q(p: np.ndarray, signal: np.ndarray, log_policy: np.ndarray, tau: float) -> np.ndarray:
    """Q of the reward with the entropy of later steps, capped at (1 + τ log A)(H - h + 1)."""
    horizon, num_states, num_actions = signal.shape
    q, v = np.zeros(signal.shape), np.zeros(num_states)
    for h in reversed(range(horizon)):
        cap = (1 + tau * math.log(num_actions)) * (horizon - h)
        for s, a in np.ndindex(num_states, num_actions):
            q[h, s, a] = min(signal[h, s, a] + p[h, s, a] @ v, cap)
        for s in range(num_states):
            terms = [
                math.exp(log_policy[h, s, a]) * (q[h, s, a] - tau * log_policy[h, s, a])
                for a in range(num_actions)
            ]
            v[s] = sum(terms)
    return q


def crpo(
    model: Dense, counts: Counts, episodes: list[Any], chosen: dict[str, Any]
) -> Iterator[Seen]:
    """CRPO; the bonus is scale/√(n ∨ 1), as in the paper's simulations."""
    left = steps_left(model.rewards.shape)
    log_policy = np.full(model.rewards.shape, -math.log(model.rewards.shape[-1]))
    for k, episode in enumerate(episodes, start=1):
        r_bar, u_bar, p_bar, _ = counts.guess()
        bonus = chosen["scale"] / np.sqrt(np.maximum(counts.visits, 1))
        if not counts.known:  # r̂ = û = 1 where n = 0
            bonus = np.where(counts.visits > 0, bonus, 0.0)
        policy = np.exp(log_policy)
        q, _ = evaluate(p_bar, r_bar + bonus, policy, left)
        v_u, worst = np.zeros(len(u_bar)), value_at(chosen["tolerance"], k)
        for i, u in enumerate(u_bar):
            q_u, v = evaluate(p_bar, u + bonus, policy, left)
            v_u[i] = model.initial @ v[0]
            if model.thresholds[i] - v_u[i] > worst:
                worst, q = model.thresholds[i] - v_u[i], q_u
        yield Seen(np.zeros(len(u_bar)), v_u, policy, q)
        log_policy = ascend(log_policy, q, value_at(chosen["step_size"], k))
        counts.count(*episode)


LEARNERS = {
    "crpo": crpo,
    "opt-dual": opt_dual,
    "opt-pess-primal-dual": opt_pess_primal_dual,
    "opt-primal-dual": opt_primal_dual,
    "uopt-rpgpd": uopt_rpgpd,
}


def run(
    algorithm: str,
    model: Dense,
    profile: Profile,
    episodes: Iterable[Any],
    chosen: dict[str, Any],
    *,
    stationary: bool = False,
    lists: bool = False,
) -> Iterator[Seen]:
    """A learner by its name."""
    counts = Counts(model, profile, stationary, lists)
    more = {"scale": profile["scale"]} if algorithm == "crpo" else {}
    return LEARNERS[algorithm](model, counts, list(episodes), chosen | more)
