"""`opt-aug` against a slow Frank-Wolfe in loops, and against what maximisers must satisfy."""

import math
from typing import Any

import numpy as np
import pytest

import cmdpax
import reference
from available_cases import case
from learning_cases import logged, model
from replanning_reference import Counts

TOLERANCE = 1e-8
_TIED = 1e-10


class Reference:
    """One episode after the other: π_k, λ_k and V_û."""

    def __init__(
        self,
        cmdp: cmdpax.CMDP,
        *,
        rewards: str = "known",
        stationary: bool = False,
        penalty: float = 1.0,
        accuracy: float = 0.1,
        inner_steps: int = 20,
        bonus_scale: float = 0.0001,
        failure_probability: float = 0.1,
    ) -> None:
        self.model, self.rewards = reference.densify(cmdp), rewards
        self.counts = Counts(cmdp, stationary)
        flags = True if cmdp.available is None else cmdp.available
        self.flags = np.broadcast_to(flags, self.model.rewards.shape)
        self.penalty, self.accuracy, self.inner_steps = penalty, accuracy, inner_steps
        self.bonus_scale, self.failure_probability = bonus_scale, failure_probability
        self.multipliers = np.zeros(len(self.model.thresholds))
        self.policy = self.flags / self.flags.sum(axis=-1, keepdims=True)

    def optimistic(self, k: int) -> reference.Dense:
        shape = self.model.transitions.shape
        horizon, num_states, num_actions, _ = shape
        log_term = math.log(6 * num_states * num_actions * horizon * k / self.failure_probability)
        p, r = np.zeros(shape), np.zeros(shape[:3])
        u = np.zeros(self.model.constraint_rewards.shape)
        for h, s, a in np.ndindex(r.shape):
            table = 0 if self.counts.stationary else h
            went, sums = self.counts.went[table, s, a], self.counts.sums[:, table, s, a]
            visits = went.sum()
            n = max(visits, 1)
            p[h, s, a] = went / n if visits else 1 / num_states
            bonus = 0.0
            for t in range(num_states):
                q = p[h, s, a, t]
                width = 2 * math.sqrt(q * (1 - q) * log_term / n) + 14 / 3 * log_term / n
                bonus += horizon * min(self.bonus_scale * width, 1)
            if self.rewards == "known":
                r[h, s, a], u[:, h, s, a] = self.model.rewards[h, s, a], self.known(h, s, a)
            else:
                bonus += min(self.bonus_scale * math.sqrt(log_term / n), 1)
                means = sums / n if visits else np.ones(len(sums))
                r[h, s, a], u[:, h, s, a] = means[0], means[1:]
            r[h, s, a] += bonus
            u[:, h, s, a] += bonus
        return reference.Dense(p, r, u, self.model.thresholds, self.model.initial)

    def known(self, h: int, s: int, a: int) -> np.ndarray:
        return self.model.constraint_rewards[:, h, s, a]

    def greedy(self, model: reference.Dense, weights: np.ndarray) -> np.ndarray:
        """The best policy for r̂ + wᵀû, the first of the actions that tie."""
        signal = reference.lagrangian_reward(model, weights)
        policy, later = np.zeros(signal.shape), np.zeros(signal.shape[1])
        for h in reversed(range(signal.shape[0])):
            values = np.zeros_like(later)
            for s in range(len(later)):
                every = signal[h, s] + model.transitions[h, s] @ later
                best = max(every[self.flags[h, s]])
                chosen = np.flatnonzero(self.flags[h, s] & (every >= best - _TIED))[0]
                policy[h, s, chosen], values[s] = 1, best
            later = values
        return policy

    def maximised(self, model: reference.Dense, k: int) -> np.ndarray:
        """The occupancy that Frank-Wolfe ends at."""
        mass = reference.evaluate(model, self.policy).occupancy
        for _ in range(self.inner_steps):
            reward, reached = values_of(model, mass)
            pushes = self.multipliers + self.penalty * (model.thresholds - reached)
            weights = np.maximum(pushes, 0)
            vertex = reference.evaluate(model, self.greedy(model, weights)).occupancy
            best_reward, best_reached = values_of(model, vertex)
            gained = (best_reward - reward, best_reached - reached)
            if gained[0] + weights @ gained[1] <= self.accuracy / k:
                break
            mass = mass + best_share(gained, pushes, self.penalty) * (vertex - mass)
        return mass

    def play(self, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        optimistic = self.optimistic(k)
        mass = self.maximised(optimistic, k)
        total = mass.sum(axis=-1, keepdims=True)
        uniform = self.flags / self.flags.sum(axis=-1, keepdims=True)
        with np.errstate(invalid="ignore"):
            self.policy = np.where(total > 0, mass / total, uniform)
        _, reached = values_of(optimistic, mass)
        played = (self.policy, self.multipliers, reached)
        missing = optimistic.thresholds - reached
        self.multipliers = np.maximum(self.multipliers + self.penalty * missing, 0)
        return played


def values_of(model: reference.Dense, mass: np.ndarray) -> tuple[float, np.ndarray]:
    return float(np.sum(mass * model.rewards)), np.array(
        [np.sum(mass * u) for u in model.constraint_rewards]
    )


def best_share(gained: tuple[float, np.ndarray], pushes: np.ndarray, penalty: float) -> float:
    """Bisection of the derivative of the objective along the segment."""

    def slope(share: float) -> float:
        left = np.maximum(pushes - share * penalty * gained[1], 0)
        return gained[0] + float(left @ gained[1])

    if slope(1.0) >= 0:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) >= 0 else (low, middle)
    return low


def expected(slow: Reference, log: cmdpax.Log) -> tuple[np.ndarray, ...]:
    found = []
    for k, episode in enumerate(zip(*log, strict=True), start=1):
        found.append(slow.play(k))
        slow.counts.count(*episode)
    return tuple(np.array(column) for column in zip(*found, strict=True))


@pytest.mark.parametrize("num_constraints", [1, 2])
@pytest.mark.parametrize(
    ("optimism", "given"),
    [
        ("empirical", {}),
        ("live", {"penalty": 3.0, "bonus_scale": 0.0003}),
        ("empirical", {"penalty": 0.3, "inner_steps": 4, "failure_probability": 0.01}),
    ],
)
def test_it_plays_what_the_reference_plays(
    num_constraints: int, optimism: str, given: dict[str, Any]
) -> None:
    cmdp = model(num_constraints)
    log = logged(cmdp)
    found = cmdpax.replay(cmdp, "opt-aug", log, optimism=optimism, **given)
    rewards = "known" if optimism == "empirical" else "estimated"
    policies, multipliers, values = expected(Reference(cmdp, rewards=rewards, **given), log)
    assert multipliers[1:].max() > 0.1
    assert ((policies > 0.01) & (policies < 0.99)).any(axis=(1, 2, 3)).sum() > 10  # mixtures
    np.testing.assert_allclose(found.multipliers, multipliers, rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(found.optimistic_constraint_values, values, rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(found.policies, policies, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("kind", ["shared counts", "not all available"])
def test_shared_counts_and_flags_are_those_of_the_reference(kind: str) -> None:
    stationary, cmdp = kind == "shared counts", case("steps").cmdp
    if stationary:
        cmdp = model(1)
        cmdp = cmdp.replace(
            transitions=cmdp.transitions[:1],
            rewards=cmdp.rewards[:1],
            constraint_rewards=cmdp.constraint_rewards[:, :1],
        )
    history = cmdpax.learn(
        cmdp, "opt-aug", num_episodes=30, seeds=1, stationary=stationary, log=True
    )
    assert history.log is not None
    slow = Reference(cmdp, stationary=stationary)
    policies, multipliers, _ = expected(slow, history.log.run(0))
    np.testing.assert_allclose(history.multipliers[0], multipliers, rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(history.policy[0], policies[-1], rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("num_constraints", [0, 1, 3])
def test_with_enough_steps_it_maximises_the_augmented_lagrangian(num_constraints: int) -> None:
    """No vertex of the occupancies improves on it by more than the accuracy."""
    cmdp = model(num_constraints)
    log, penalty = logged(cmdp), 2.0
    given: dict[str, Any] = {"penalty": penalty, "accuracy": 1e-3, "inner_steps": 2000}
    found = cmdpax.replay(cmdp, "opt-aug", log, **given)
    slow = Reference(cmdp, **given)
    for k, episode in enumerate(zip(*log, strict=True), start=1):
        optimistic = slow.optimistic(k)
        mass = reference.evaluate(optimistic, found.policies[k - 1]).occupancy
        reward, reached = values_of(optimistic, mass)
        missing = optimistic.thresholds - reached
        weights = np.maximum(found.multipliers[k - 1] + penalty * missing, 0)
        best = reference.best_value(optimistic, reference.lagrangian_reward(optimistic, weights))
        assert best - (reward + weights @ reached) <= 1e-3 + 1e-9
        slow.counts.count(*episode)


def test_it_learns_and_its_violations_do_not_cancel_out() -> None:
    cmdp = cmdpax.environments.make("random")
    history = cmdpax.learn(cmdp, "opt-aug", num_episodes=600, seeds=3)
    strong, weak = history.strong_regret.maximum, history.weak_regret.maximum
    assert (strong[:, 599] - strong[:, 299]).mean() < strong[:, 299].mean() / 2
    assert weak[:, -1].mean() > 0.8 * strong[:, -1].mean()
