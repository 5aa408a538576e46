"""The schemes of the field in slow, obvious NumPy: one loop each, straight from their formulas.

A model is a `reference.Dense`, with `flags` `[H, S, A]` of the actions that are available.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from learning_reference import Number, value_at
from reference import Dense


class Seen(NamedTuple):
    """What a scheme shows of one iteration."""

    policy: np.ndarray  # π_k
    multipliers: np.ndarray  # λ_k
    weight: float = 1.0  # of π_k in the mixture


class World:
    """A model, and what its policies are worth."""

    def __init__(self, model: Dense, flags: np.ndarray | None = None) -> None:
        self.model = model
        self.flags = np.ones(model.rewards.shape, bool) if flags is None else flags
        self.signals = [model.rewards, *model.constraint_rewards]
        self.horizon, self.num_states, self.num_actions = model.rewards.shape

    def uniform(self) -> np.ndarray:
        """Equal probabilities for the available actions."""
        return self.flags / self.flags.sum(axis=-1, keepdims=True)

    def q(self, signal: np.ndarray, policy: np.ndarray) -> tuple[np.ndarray, float]:
        """Q of a signal, and V at the start."""
        found, values = np.zeros(signal.shape), np.zeros(self.num_states)
        for h in reversed(range(self.horizon)):
            later = values
            values = np.zeros(self.num_states)
            for s, a in np.ndindex(self.num_states, self.num_actions):
                found[h, s, a] = signal[h, s, a] + self.model.transitions[h, s, a] @ later
                values[s] += policy[h, s, a] * found[h, s, a]
        return found, float(self.model.initial @ values)

    def every_q(self, policy: np.ndarray) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
        """Q_r, Q_{u_1}, …; V_u, and V_u - c."""
        pairs = [self.q(signal, policy) for signal in self.signals]
        reached = np.array([value for _, value in pairs[1:]])
        return [q for q, _ in pairs], reached, reached - self.model.thresholds

    def weighted(self, parts: list[np.ndarray], lam: np.ndarray) -> np.ndarray:
        """r + λᵀu, or Q of it."""
        total = parts[0].copy()
        for multiplier, part in zip(lam, parts[1:], strict=True):
            total += multiplier * part
        return total

    def plan(self, lam: np.ndarray, tau: float) -> np.ndarray:
        """The best policy for r + λᵀu: with entropy, or (τ = 0) the first of the best actions."""
        signal, values = self.weighted(self.signals, lam), np.zeros(self.num_states)
        policy = np.zeros(signal.shape)
        for h in reversed(range(self.horizon)):
            later = values
            values = np.zeros(self.num_states)
            for s in range(self.num_states):
                q = signal[h, s] + self.model.transitions[h, s] @ later
                q = np.where(self.flags[h, s], q, -np.inf)
                if tau > 0:
                    weights = np.exp((q - q.max()) / tau)
                    policy[h, s] = weights / weights.sum()
                    values[s] = q.max() + tau * math.log(weights.sum())
                else:
                    policy[h, s, np.argmax(q)] = 1.0
                    values[s] = q.max()
        return policy

    def mass(self, policy: np.ndarray) -> np.ndarray:
        """d(s, a)."""
        found, here = np.zeros(policy.shape), self.model.initial
        for h in range(self.horizon):
            following = np.zeros(self.num_states)
            for s, a in np.ndindex(self.num_states, self.num_actions):
                found[h, s, a] = here[s] * policy[h, s, a]
                following += found[h, s, a] * self.model.transitions[h, s, a]
            here = following
        return found

    def reached(self, mass: np.ndarray) -> np.ndarray:
        """(V_r, V_u) of an occupancy."""
        return np.array([(mass * signal).sum() for signal in self.signals])

    def policy_of(self, mass: np.ndarray) -> np.ndarray:
        """d(s, a)/Σ_a d(s, a); uniform where nobody comes."""
        policy = self.uniform().copy()
        for h, s in np.ndindex(self.horizon, self.num_states):
            if mass[h, s].sum() > 0:
                policy[h, s] = mass[h, s] / mass[h, s].sum()
        return policy

    def mirror(self, policy: np.ndarray, q: np.ndarray, eta: float) -> np.ndarray:
        """π exp(ηQ), normalised."""
        weights = policy * np.exp(eta * (q - q.max(axis=-1, keepdims=True)))
        return weights / weights.sum(axis=-1, keepdims=True)

    def project(self, policy: np.ndarray, q: np.ndarray, eta: float) -> np.ndarray:
        """The nearest distribution to π + ηQ among the available actions, by bisection."""
        found = np.zeros(policy.shape)
        for h, s in np.ndindex(self.horizon, self.num_states):
            y = (policy[h, s] + eta * q[h, s])[self.flags[h, s]]
            low, high = y.min() - 1, y.max()
            for _ in range(200):
                level = (low + high) / 2
                over = np.maximum(y - level, 0).sum() > 1
                low, high = (level, high) if over else (low, level)
            found[h, s, self.flags[h, s]] = np.maximum(y - level, 0)
        return found


def _clip(numbers: np.ndarray, cap: float) -> np.ndarray:
    return np.minimum(np.maximum(numbers, 0.0), cap)


def two_sequences(world: World, ascend: Callable[..., np.ndarray], given: dict[str, Any]) -> Any:
    """OPG-PD and OMWU-PD."""
    anchor, lam_anchor = world.uniform(), np.zeros(len(world.model.thresholds))
    q, slacks = np.zeros(anchor.shape), np.zeros(len(lam_anchor))
    k = 0
    while k := k + 1:
        eta, cap = value_at(given["step_size"], k), given["max_multiplier"]
        policy, lam = ascend(anchor, q, eta), _clip(lam_anchor - eta * slacks, cap)
        yield Seen(policy, lam)
        parts, _, slacks = world.every_q(policy)
        q = world.weighted(parts, lam)
        anchor, lam_anchor = ascend(anchor, q, eta), _clip(lam_anchor - eta * slacks, cap)


def reload(world: World, given: dict[str, Any]) -> Iterator[Seen]:
    """2Q_k - Q_{k-1}."""
    policy, lam = world.uniform(), np.zeros(len(world.model.thresholds))
    before, slacks_before, k = None, None, 0
    while k := k + 1:
        eta = value_at(given["step_size"], k)
        yield Seen(policy, lam)
        parts, _, slacks = world.every_q(policy)
        q = world.weighted(parts, lam)
        ahead = q if before is None else 2 * q - before
        policy = world.mirror(policy, ahead, eta)
        ahead = slacks if slacks_before is None else 2 * slacks - slacks_before
        lam = _clip(lam - eta * ahead, given["max_multiplier"])
        before, slacks_before = q, slacks


def pid(world: World, given: dict[str, Any]) -> Iterator[Seen]:
    """A controller."""
    policy, integral = world.uniform(), np.zeros(len(world.model.thresholds))
    before, cap, k = None, given["max_multiplier"], 0
    while k := k + 1:
        names = ("step_size", "proportional_gain", "integral_gain", "derivative_gain")
        eta, k_p, k_i, k_d = (value_at(given[name], k) for name in names)
        parts, reached, slacks = world.every_q(policy)
        integral = _clip(integral - k_i * slacks, cap)
        rise = np.zeros(len(slacks)) if before is None else np.maximum(before - reached, 0.0)
        lam = _clip(-k_p * slacks + integral + k_d * rise, cap)
        yield Seen(policy, lam)
        policy = world.mirror(policy, world.weighted(parts, lam) / (1 + lam.sum()), eta)
        before = reached


def crpo(world: World, given: dict[str, Any]) -> Iterator[Seen]:
    """One signal at a time."""
    policy, k = world.uniform(), 0
    while k := k + 1:
        eta, tolerance = (value_at(given[name], k) for name in ("step_size", "tolerance"))
        parts, _, slacks = world.every_q(policy)
        if all(-slacks <= tolerance):
            yield Seen(policy, np.zeros(len(slacks)), 1.0)
            policy = world.mirror(policy, parts[0], eta)
        else:
            yield Seen(policy, np.zeros(len(slacks)), 0.0)
            policy = world.mirror(policy, parts[1 + int(np.argmin(slacks))], eta)


def accelerated_dual(world: World, given: dict[str, Any]) -> Iterator[Seen]:
    """Nesterov's method."""
    tau, cap = given["regularization"], given["max_multiplier"]
    slow = fast = np.zeros(len(world.model.thresholds))
    reach = 0.0
    for u in world.model.constraint_rewards:
        spread = [np.ptp(u[h][world.flags[h]]) for h in range(world.horizon)]
        reach += sum(spread) ** 2
    curvature, k = (reach or 1.0) / (4 * tau), 0
    while k := k + 1:
        theta = 2 / (k + 1)
        lam = (1 - theta) * slow + theta * fast
        policy = world.plan(lam, tau)
        yield Seen(policy, lam)
        _, _, slacks = world.every_q(policy)
        fast = _clip(fast - given["relative_step"] / (theta * curvature) * slacks, cap)
        slow = (1 - theta) * slow + theta * fast


def augmented_lagrangian(world: World, given: dict[str, Any]) -> Iterator[Seen]:
    """Frank and Wolfe's method, with a line search by bisection of the slope."""
    mass, lam, k = world.mass(world.uniform()), np.zeros(len(world.model.thresholds)), 0
    while k := k + 1:
        rho = value_at(given["penalty"], k)

        def prices(mass: np.ndarray, lam: np.ndarray = lam, rho: float = rho) -> np.ndarray:
            return np.maximum(lam + rho * (world.model.thresholds - world.reached(mass)[1:]), 0)

        for _ in range(given["inner_steps"]):
            vertex = world.mass(world.plan(prices(mass), 0.0))
            change, low, high = world.reached(vertex) - world.reached(mass), 0.0, 1.0
            for _ in range(100):
                share = (low + high) / 2
                slope = change[0] + prices(mass + share * (vertex - mass)) @ change[1:]
                low, high = (share, high) if slope > 0 else (low, share)
            share = 1.0 if low > 1 - 1e-12 else share
            mass = mass + share * (vertex - mass)
        yield Seen(world.policy_of(mass), lam)
        lam = prices(mass)


def scheme(world: World, name: str, num_iterations: int, **given: Number) -> list[Seen]:
    """The iterates of a scheme."""
    iterates = {
        "opg-pd": lambda: two_sequences(world, world.project, given),
        "omwu-pd": lambda: two_sequences(world, world.mirror, given),
        "reload": lambda: reload(world, given),
        "pid": lambda: pid(world, given),
        "crpo": lambda: crpo(world, given),
        "accelerated-dual": lambda: accelerated_dual(world, given),
        "augmented-lagrangian": lambda: augmented_lagrangian(world, given),
    }[name]()
    return [next(iterates) for _ in range(num_iterations)]
