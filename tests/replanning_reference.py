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
    hopeful: cmdpax.CMDP  # whose worst slack is maximised where nothing is feasible
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
    cap: float = 100.0,
    margin: float = 0.0,
    stationary: bool = False,
    pooling: str = "none",
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
            p, signals, n, errors = _model(cmdp, counts, rewards, unvisited_rewards)
            if pooling == "steps":
                p, n = pooled_rows(counts.went)
                if rewards != "known":
                    visits = counts.went.sum(axis=-1)
                    signals, errors, _ = pooled_signals(visits, counts, unvisited_rewards or 0.0)
            capped = np.minimum(lagrange, cap)
            objective = signals[0] + _bonus(
                exploration, p, n, later, np.append(1.0, capped), scale, weights, errors
            )
            reduced, hopeful = signals[1:].copy(), signals[1:].copy()
            for i in range(num_constraints):
                single = np.eye(1 + num_constraints)[1 + i]
                kind = "count" if exploration == "count" else "bernstein"
                deviations = 2.0 if stationary or pooling == "steps" else 1.0
                b_u = _bonus(kind, p, n, later, single, scale, (deviations, 1.0), errors)
                reduced[i] -= pessimism * b_u
                hopeful[i] += _bonus(exploration, p, n, later, single, scale, weights, errors)
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
            visits = n[:1] if stationary else n
            bound = min(visits[at] / mass[at] for at in np.ndindex(mass.shape) if mass[at] > 0)
            length = max(1, int(np.floor(min(growth * k, stretch * bound) * (1 + 1e-9))))
            made.append(Made(k, planned, planned.replace(constraint_rewards=hopeful), length))
            next_plan = k + length
        if k <= len(episodes):
            counts.count(*episodes[k - 1])
    return made


def _model(cmdp: cmdpax.CMDP, counts: Counts, rewards: str, unvisited: float | None) -> Any:
    """p̂ (uniform where nothing was tried), the signals, n ∨ 1, and their standard errors."""
    _, horizon, num_states, num_actions = cmdp.sizes
    p = np.zeros((horizon, num_states, num_actions, num_states))
    n = np.ones((horizon, num_states, num_actions))
    signals = np.stack([cmdp.rewards, *cmdp.constraint_rewards])
    signals = np.broadcast_to(signals, (len(signals), *n.shape)).copy()
    errors = None if rewards == "known" else np.zeros_like(signals)
    visited = counts.went.sum(axis=-1)
    for h, s, a in np.ndindex(n.shape):
        at = (0 if counts.stationary else h, s, a)
        visits = counts.went[at].sum()
        n[h, s, a] = max(visits, 1)
        p[h, s, a] = counts.went[at] / visits if visits else 1 / num_states
        if errors is not None:
            for j in range(len(signals)):
                mean = counts.sums[(j, *at)] / n[h, s, a]
                signals[j, h, s, a] = mean
                if visits == 0 and unvisited is not None:
                    signals[j, h, s, a] = unvisited
                variance = max(counts.squares[(j, *at)] / n[h, s, a] - mean**2, 0)
                usual = usual_variance(visited, counts.sums[j], counts.squares[j])
                errors[j, h, s, a] = np.sqrt(n[h, s, a] * variance + usual) / (n[h, s, a] + 1)
    return p, signals, n, errors


def posterior_model(
    p: np.ndarray,
    signals: np.ndarray,
    n: np.ndarray,
    later: np.ndarray,
    lagrange: np.ndarray,
    drawn: np.ndarray,
    *,
    noise: np.ndarray | None,
    observed: np.ndarray | None,
    reduced: float,
    episode: int,
    weights: tuple[float, float],
    prior: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """p', the signals that are planned with, and what is hoped for, all `[H, …]`.

    `later` has V_{h+1} of every signal under the last plan, `drawn` the rows p̃, `observed` how
    many observations each estimated signal is worth.
    """
    horizon, num_signals, num_states, _ = signals.shape
    grown, both = np.log(1 + episode), np.append(1.0, lagrange)
    moved, planned, hopeful = np.zeros_like(p), signals.copy(), signals[:, 1:].copy()
    hoped = np.zeros(num_states)  # W_{h+1}
    for h in reversed(range(horizon)):
        best = np.eye(num_states)[np.argmax(hoped)]
        every_q = np.zeros(n.shape[1:])
        for s, a in np.ndindex(every_q.shape):
            free = min(1.0, weights[1] * grown / max(n[h, s, a], 0.25))
            row = p[h, s, a] + weights[0] * np.sqrt(grown) * (drawn[h, s, a] - p[h, s, a])
            row = np.maximum(row, 0)
            moved[h, s, a] = (1 - free) * row / row.sum() + free * best
            every_q[s, a] = both @ signals[h, :, s, a] + (1 - free) * p[h, s, a] @ hoped
            every_q[s, a] += free * hoped.max()
            for i in range(num_signals - 1):
                values = later[h, 1 + i]
                taken = reduced + n[h, s, a] / (n[h, s, a] + prior) * (
                    (moved[h, s, a] - p[h, s, a]) @ values
                )
                planned[h, 1 + i, s, a] -= taken
                planned[h, 0, s, a] += lagrange[i] * taken
                hopeful[h, i, s, a] += weights[1] * grown * np.ptp(values) / max(n[h, s, a], 1)
            if noise is not None and observed is not None:
                extra = 0.7 * weights[0] * np.sqrt(grown) * noise[h, :, s, a]
                for j in range(num_signals):
                    hope = min(1.0, 2 * weights[1] * grown / max(observed[h, j, s, a], 0.25))
                    extra[j] += hope * (1 - signals[h, j, s, a])
                planned[h, 0, s, a] += both @ extra
                hopeful[h, :, s, a] += extra[1:]
        hoped = every_q.max(axis=1)
    return moved, planned, hopeful


def share_between(visits: np.ndarray, gaps: np.ndarray, variances: np.ndarray) -> float:
    """ρ̂ of `[H, S, A]` visits and squared gaps, and `[S, A]` variances."""
    found = within = between = 0.0
    for h, s, a in np.ndindex(visits.shape):
        n, total = visits[h, s, a], visits[:, s, a].sum()
        if n == 0:
            continue
        shares = visits[:, s, a] / total
        found += n * gaps[h, s, a]
        within += variances[s, a] * (1 - n / total)
        between += variances[s, a] * n * (1 - 2 * n / total + (shares**2).sum())
    if between - within <= 0:
        return 1e-12
    return float(np.clip((found - within) / (between - within), 1e-12, 1 - 1e-8))


def pooled_rows(went: np.ndarray, prior: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """p̂ and what it is worth, of counts `[H, S, A, S]`."""
    visits = went.sum(axis=-1)
    horizon, num_states, num_actions = visits.shape
    gaps, variances = np.zeros_like(visits), np.zeros((num_states, num_actions))
    for h, s, a in np.ndindex(visits.shape):
        overall = went[:, s, a].sum(axis=0) / max(visits[:, s, a].sum(), 1)
        variances[s, a] = 1 - (overall**2).sum()
        gaps[h, s, a] = ((went[h, s, a] / max(visits[h, s, a], 1) - overall) ** 2).sum()
    alpha = 1 / min(share_between(visits, gaps, variances), 1 / (1 + prior)) - 1
    rows, worth = np.zeros_like(went), np.zeros_like(visits)
    for s, a in np.ndindex(num_states, num_actions):
        said = [n * alpha / (n + alpha) for n in visits[:, s, a]]
        common = np.full(num_states, 1 / num_states)
        if sum(said) > 0:
            common = sum(
                e * went[h, s, a] / visits[h, s, a] for h, e in enumerate(said) if e > 0
            ) / sum(said)
        for h in range(horizon):
            n = visits[h, s, a]
            rows[h, s, a] = (went[h, s, a] + alpha * common) / (n + alpha)
            worth[h, s, a] = max(n + alpha * sum(said) / (alpha + sum(said)), 1)
    return rows, worth


def usual_variance(visits: np.ndarray, sums: np.ndarray, squares: np.ndarray) -> float:
    """The pooled variance of a signal within pairs, with three observations of the largest."""
    total, degrees = 3 * 0.25, 3.0
    for at in np.ndindex(visits.shape):
        if visits[at] > 1:
            total += max(squares[at] - sums[at] ** 2 / visits[at], 0)
            degrees += visits[at] - 1
    return total / degrees


def pooled_signals(
    visits: np.ndarray, counts: Any, unvisited: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means of observed signals, their standard errors and their worth, `[J, H, S, A]`."""
    means, errors, worth = (np.zeros_like(counts.sums) for _ in range(3))
    for j, (sums, squares) in enumerate(zip(counts.sums, counts.squares, strict=True)):
        gaps, variances = np.zeros_like(visits), np.zeros(visits.shape[1:])
        for h, s, a in np.ndindex(visits.shape):
            total = max(visits[:, s, a].sum(), 1)
            overall = sums[:, s, a].sum() / total
            variances[s, a] = max(squares[:, s, a].sum() / total - overall**2, 0)
            gaps[h, s, a] = (sums[h, s, a] / max(visits[h, s, a], 1) - overall) ** 2
        rho = share_between(visits, gaps, variances)
        alpha, usual = 1 / rho - 1, usual_variance(visits, sums, squares)
        for h, s, a in np.ndindex(visits.shape):
            numbers = visits[:, s, a]
            shares = alpha / (numbers + alpha)
            evidence = (shares * numbers).sum()
            common = (shares * sums[:, s, a]).sum() / evidence if evidence else unvisited
            n = numbers[h]
            own = sums[h, s, a] / n if n else 0.0
            means[j, h, s, a] = (n * own + alpha * common) / (n + alpha)
            variance = (evidence * variances[s, a] + usual) / (evidence + 1)
            within = max(squares[h, s, a] / max(n, 1) - own**2, 0)
            within = (n * within + usual) / (n + 1)
            together = shares[h] ** 2 * variance / (evidence + 1)
            alone = 1 / (1 / (variance * rho) + n / within)
            errors[j, h, s, a] = np.sqrt(together + alone)
            worth[j, h, s, a] = n + alpha * evidence / (alpha + evidence)
    return means, errors, worth


def _bonus(
    exploration: str,
    p: np.ndarray,
    n: np.ndarray,
    later: np.ndarray,
    sum_of: np.ndarray,
    scale: float,
    weights: tuple[float, float],
    errors: np.ndarray | None,
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
            error = np.sqrt(p[h, s, a] @ (values - mean) ** 2 / n[h, s, a])
            steps = horizon - 1 - h
            if errors is not None:
                error += np.abs(sum_of) @ errors[:, h, s, a]
                steps += 1
            first = weights[0] * error
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
