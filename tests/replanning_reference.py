"""Learners that plan, slowly and obviously: NumPy loops straight from their description.

The model of the counts is planned with `cmdpax.solve`, which shares nothing with the compiled
planner that the learners use.
"""

from typing import Any, NamedTuple

import numpy as np

import cmdpax


class Made(NamedTuple):
    """One plan: when it is made, the model that it is made in, and how long it is played."""

    episode: int
    planned: cmdpax.CMDP
    length: int


class Counts:
    """n_h(s, a, t) and sums of what was observed, over all steps where they share them."""

    def __init__(self, cmdp: cmdpax.CMDP, stationary: bool) -> None:
        num_constraints, horizon, num_states, num_actions = cmdp.sizes
        self.stationary = stationary
        tables = (1 if stationary else horizon, num_states, num_actions)
        self.went = np.zeros((*tables, num_states))
        self.sums = np.zeros((1 + num_constraints, *tables))
        self.squares = np.zeros((1 + num_constraints, *tables))

    def count(self, states: Any, actions: Any, rewards: Any, constraint_rewards: Any) -> None:
        for h, action in enumerate(actions):
            at = (0 if self.stationary else h, states[h], action)
            self.went[(*at, states[h + 1])] += 1
            observed = np.array([rewards[h], *constraint_rewards[:, h]])
            self.sums[(slice(None), *at)] += observed
            self.squares[(slice(None), *at)] += observed**2


def plans(
    cmdp: cmdpax.CMDP,
    log: cmdpax.Log,
    shown: list[dict[str, Any]],
    *,
    exploration: str,
    rewards: str = "known",
    unvisited_rewards: float | None = None,
    growth: float = 0.05,
    stretch: float = 1.0,
    scale: float = 0.08,
    weights: tuple[float, float] = (0.5, 0.2),
    pessimism: float = 0.0,
    cap: float = 10.0,
    margin: float = 0.0,
    stationary: bool = False,
) -> list[Made]:
    """All plans that are made while a log is fed to the learner.

    Optimal policies and multipliers need not be unique, so that those of the plans before are
    taken from what the learner has shown before each episode.
    """
    num_constraints, horizon, num_states, _ = cmdp.sizes
    counts = Counts(cmdp, stationary)
    lagrange = np.zeros(num_constraints)
    later = np.zeros((1 + num_constraints, horizon + 2, num_states))  # V_h of the last plan
    made: list[Made] = []
    next_plan = 1
    episodes = list(zip(*log, strict=True))
    for k in range(1, len(episodes) + 2):
        if k == next_plan:
            p, signals, n, variances = _model(cmdp, counts, rewards, unvisited_rewards)
            capped = np.minimum(lagrange, cap)
            objective = signals[0] + _bonus(
                exploration, p, n, later, np.append(1.0, capped), scale, weights, variances
            )
            reduced = signals[1:].copy()
            for i in range(num_constraints):
                single = np.eye(1 + num_constraints)[1 + i]
                kind = "count" if exploration == "count" else "bernstein"
                b_u = _bonus(kind, p, n, later, single, scale, (1.0, 1.0), variances)
                reduced[i] -= pessimism * b_u
                objective = objective + capped[i] * pessimism * b_u
            planned = cmdpax.CMDP(
                p, objective, reduced, cmdp.thresholds + margin, cmdp.initial, horizon
            )
            policy = shown[k - 1]["policy"]
            lagrange = shown[k - 1]["multipliers"]
            later = _values(p, signals, policy)
            mass = cmdpax.evaluate(planned, policy).occupancy
            if stationary:
                mass = mass.sum(axis=0, keepdims=True)
            visits = counts.went.sum(axis=-1)
            bound = min(
                max(visits[at], 1.0) / mass[at] for at in np.ndindex(mass.shape) if mass[at] > 0
            )
            length = max(1, int(np.floor(min(growth * k, stretch * bound) * (1 + 1e-9))))
            made.append(Made(k, planned, length))
            next_plan = k + length
        if k <= len(episodes):
            counts.count(*episodes[k - 1])
    return made


def _model(cmdp: cmdpax.CMDP, counts: Counts, rewards: str, unvisited: float | None) -> Any:
    """p̂ (uniform where nothing was tried), the signals, n ∨ 1, and variances of observations."""
    _, horizon, num_states, num_actions = cmdp.sizes
    p = np.zeros((horizon, num_states, num_actions, num_states))
    n = np.ones((horizon, num_states, num_actions))
    signals = np.stack([cmdp.rewards, *cmdp.constraint_rewards])
    signals = np.broadcast_to(signals, (len(signals), *n.shape)).copy()
    variances = None if rewards == "known" else np.zeros_like(signals)
    for h, s, a in np.ndindex(n.shape):
        at = (0 if counts.stationary else h, s, a)
        visits = counts.went[at].sum()
        n[h, s, a] = max(visits, 1)
        p[h, s, a] = counts.went[at] / visits if visits else 1 / num_states
        if variances is not None:
            for j in range(len(signals)):
                mean = counts.sums[(j, *at)] / n[h, s, a]
                signals[j, h, s, a] = mean
                if visits == 0 and unvisited is not None:
                    signals[j, h, s, a] = unvisited
                variances[j, h, s, a] = max(counts.squares[(j, *at)] / n[h, s, a] - mean**2, 0)
    return p, signals, n, variances


def _bonus(
    exploration: str,
    p: np.ndarray,
    n: np.ndarray,
    later: np.ndarray,
    sum_of: np.ndarray,
    scale: float,
    weights: tuple[float, float],
    variances: np.ndarray | None,
) -> np.ndarray:
    """The bonus of a weighted sum of signals."""
    bonus, horizon = np.zeros_like(n), len(n)
    size = np.abs(sum_of).sum()
    for h, s, a in np.ndindex(n.shape):
        if exploration == "count":
            bonus[h, s, a] = size * scale / np.sqrt(n[h, s, a])
        elif exploration == "bernstein":
            values = sum_of @ later[:, h + 1]
            mean = p[h, s, a] @ values
            deviation = np.sqrt(p[h, s, a] @ (values - mean) ** 2)
            steps = horizon - 1 - h
            if variances is not None:
                deviation += np.abs(sum_of) @ np.sqrt(variances[:, h, s, a])
                steps += 1
            first = weights[0] * deviation / np.sqrt(n[h, s, a])
            bonus[h, s, a] = min(first + weights[1] * steps * size / n[h, s, a], steps * size)
    return bonus


def _values(p: np.ndarray, signals: np.ndarray, policy: np.ndarray) -> np.ndarray:
    """V_h of every signal under a policy, `[J, H + 2, S]`; the last two are of nothing."""
    horizon, num_states = policy.shape[:2]
    values = np.zeros((len(signals), horizon + 2, num_states))
    for h in reversed(range(horizon)):
        for j, s in np.ndindex(len(signals), num_states):
            q = [signals[j, h, s, a] + p[h, s, a] @ values[j, h + 1] for a in range(p.shape[2])]
            values[j, h, s] = policy[h, s] @ np.array(q)
    return values
