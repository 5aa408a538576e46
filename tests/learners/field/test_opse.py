"""`opse` and `ghosh` against slow loops straight from their pseudo-code."""

import math
from typing import Any, NamedTuple

import numpy as np
import pytest

import cmdpax
import reference
from available_cases import case
from cmdpax.planning.safest import safest_policy
from learning_cases import logged, model
from replanning_reference import Counts

TOLERANCE = 1e-8


class Chosen(NamedTuple):
    """What a user chooses; κ in V_r and the sign of the constraint's bonus say who it is."""

    scale: float
    compensation: float
    temperature: float
    entropy: float
    sign: int
    most: float = 300.0
    steps: int = 20


def chosen_for(algorithm: str, given: dict[str, float]) -> Chosen:
    scale, temperature = given.get("bonus_scale", 0.1), given.get("temperature", 0.02)
    more = {"most": given.get("max_multiplier", 300.0), "steps": int(given.get("search_steps", 20))}
    if algorithm == "ghosh":
        return Chosen(scale, 0.0, temperature, 0.0, 1, **more)
    return Chosen(scale, given.get("compensation", 0.1), temperature, temperature, -1, **more)


class Reference:
    """One episode after the other: what is played, λ and V_u."""

    def __init__(self, cmdp: cmdpax.CMDP, chosen: Chosen, rewards: str, stationary: bool) -> None:
        self.model, self.chosen, self.rewards = reference.densify(cmdp), chosen, rewards
        self.counts = Counts(cmdp, stationary)
        flags = True if cmdp.available is None else cmdp.available
        self.flags = np.broadcast_to(flags, self.model.rewards.shape)

    def soft_policy(self, multiplier: float) -> tuple[np.ndarray, float]:
        chosen, (horizon, num_states, num_actions) = self.chosen, self.model.rewards.shape
        policy = np.zeros(self.model.rewards.shape)
        v_r, v_u, v_d = np.zeros((3, horizon + 1, num_states))
        for h in reversed(range(horizon)):
            left = horizon - 1 - h
            for s in range(num_states):
                q_r, q_u, q_d = np.zeros((3, num_actions))
                for a in range(num_actions):
                    n, row, reward, signal = self.estimates(h, s, a)
                    b = 1 / math.sqrt(max(n, 1))
                    later = [
                        chosen.scale * b + row @ v_r[h + 1],
                        chosen.sign * chosen.scale * b + row @ v_u[h + 1],
                        chosen.compensation * b + row @ v_d[h + 1],
                    ]
                    if n == 0:
                        later = [math.inf, chosen.sign * math.inf, math.inf]
                    wider = 1 + chosen.entropy * math.log(num_actions)
                    q_r[a] = reward + min(max(later[0], 0), left * wider)
                    q_u[a] = signal + min(max(later[1], 0), left)
                    q_d[a] = chosen.compensation * b
                    q_d[a] += min(max(later[2], 0), chosen.compensation * left)
                total = (q_d + q_r + multiplier * q_u) / chosen.temperature
                total = np.where(self.flags[h, s], total, -np.inf)
                weights = np.exp(total - total.max())
                policy[h, s] = weights / weights.sum()
                for a in np.flatnonzero(policy[h, s]):
                    share = policy[h, s, a]
                    v_r[h, s] += share * (q_r[a] - chosen.entropy * math.log(share))
                    v_u[h, s] += share * q_u[a]
                    v_d[h, s] += share * q_d[a]
        return policy, float(self.model.initial @ v_u[0])

    def estimates(self, h: int, s: int, a: int) -> tuple[float, np.ndarray, float, float]:
        """n, p̄, r and u of a pair, the last two with their bonuses where they are estimated."""
        table = 0 if self.counts.stationary else h
        went = self.counts.went[table, s, a]
        n, num_states = went.sum(), len(went)
        row = went / n if n else np.full(num_states, 1 / num_states)
        if self.rewards == "known":
            return n, row, self.model.rewards[h, s, a], self.model.constraint_rewards[0, h, s, a]
        if n == 0:
            return n, row, 1.0, 1.0 if self.chosen.sign > 0 else 0.0
        means = self.counts.sums[:, table, s, a] / n
        b = self.chosen.scale / math.sqrt(n)
        return n, row, min(means[0] + b, 1), min(max(means[1] + self.chosen.sign * b, 0), 1)

    def search(self, baseline: np.ndarray | None) -> tuple[np.ndarray, float, float]:
        chosen, threshold = self.chosen, self.model.thresholds[0]
        upper, (policy, value) = chosen.most, self.soft_policy(chosen.most)
        if value < threshold and baseline is not None:
            reached = reference.evaluate(self.model, baseline).constraint_values
            return baseline, 0.0, float(reached[0])
        free, free_value = self.soft_policy(0.0)
        if free_value >= threshold:
            return free, 0.0, free_value
        lower = 0.0
        for _ in range(chosen.steps):
            middle = (lower + upper) / 2
            tried, reached = self.soft_policy(middle)
            if reached >= threshold:
                upper, policy, value = middle, tried, reached
            else:
                lower = middle
        return policy, upper, value


def expected(
    cmdp: cmdpax.CMDP,
    algorithm: str,
    log: cmdpax.Log,
    given: dict[str, float],
    baseline: np.ndarray | None,
    rewards: str = "known",
    stationary: bool = False,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    slow = Reference(cmdp, chosen_for(algorithm, given), rewards, stationary)
    found = []
    for episode in zip(*log, strict=True):
        found.append(slow.search(baseline))
        slow.counts.count(*episode)
    policies, multipliers, values = zip(*found, strict=True)
    return np.array(policies), np.array(multipliers)[:, None], np.array(values)[:, None]


def nearly_safe(cmdp: cmdpax.CMDP) -> np.ndarray:
    """A baseline of one's own: with slack, and not deterministic."""
    safest = cmdpax.solve(cmdp.replace(rewards=cmdp.constraint_rewards[0])).policy
    return 0.9 * np.asarray(safest) + 0.1 / cmdp.num_actions


@pytest.mark.parametrize(
    ("algorithm", "optimism", "given"),
    [
        ("opse", "empirical", {"bonus_scale": 0.03}),
        ("opse", "live", {"bonus_scale": 0.05, "compensation": 0.4, "temperature": 0.1}),
        ("opse", "empirical", {"bonus_scale": 0.02, "max_multiplier": 6.0, "search_steps": 7}),
        ("ghosh", "empirical", {}),
        ("ghosh", "live", {"bonus_scale": 0.05, "temperature": 0.1}),
    ],
)
def test_it_plays_what_the_reference_plays(
    algorithm: str, optimism: str, given: dict[str, float]
) -> None:
    cmdp = model(1)
    cmdp = cmdp.replace(thresholds=cmdp.thresholds - 0.1)
    log = logged(cmdp)
    baseline = nearly_safe(cmdp) if algorithm == "opse" else None
    found = cmdpax.replay(cmdp, algorithm, log, optimism=optimism, baseline=baseline, **given)
    rewards = "known" if optimism == "empirical" else "estimated"
    policies, multipliers, values = expected(cmdp, algorithm, log, given, baseline, rewards)
    if baseline is not None:
        safe = np.array([(policy == baseline).all() for policy in policies])
        assert safe[0]  # nothing is known yet
        assert not safe[-1]
    assert len(np.unique(multipliers)) > 3
    np.testing.assert_allclose(found.multipliers, multipliers, rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(found.policies, policies, rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(found.optimistic_constraint_values, values, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("algorithm", ["opse", "ghosh"])
@pytest.mark.parametrize("kind", ["shared counts", "not all available"])
def test_shared_counts_and_flags_are_those_of_the_reference(algorithm: str, kind: str) -> None:
    stationary, cmdp = kind == "shared counts", case("steps").cmdp
    if stationary:
        cmdp = model(1)
        cmdp = cmdp.replace(
            transitions=cmdp.transitions[:1],
            rewards=cmdp.rewards[:1],
            constraint_rewards=cmdp.constraint_rewards[:, :1],
        )
    given: dict[str, Any] = {"bonus_scale": 0.03}
    baseline = None
    more: dict[str, Any] = {"stationary": stationary, "log": True, **given}
    if algorithm == "opse":
        baseline = safest_policy(cmdp)
        more["baseline"] = baseline
    history = cmdpax.learn(cmdp, algorithm, num_episodes=30, seeds=1, **more)
    assert history.log is not None
    log = history.log.run(0)
    if not stationary:  # where it is not available, it has no value that could be known
        cmdp = cmdp.replace(rewards=np.minimum(cmdp.rewards, 1))
        cmdp = cmdp.replace(constraint_rewards=np.minimum(cmdp.constraint_rewards, 1))
    policies, multipliers, _ = expected(
        cmdp, algorithm, log, given, baseline, stationary=stationary
    )
    np.testing.assert_allclose(history.multipliers[0], multipliers, rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(history.policy[0], policies[-1], rtol=0, atol=TOLERANCE)


def test_without_a_constraint_it_maximises_the_reward() -> None:
    cmdp = model(0)
    history = cmdpax.learn(cmdp, "opse", num_episodes=300, seeds=1, temperature=0.005)
    assert history.value[0, -20:].mean() > history.optimum - 0.1
    assert history.multipliers.shape == (1, 300, 0)


def test_with_wide_bonuses_no_episode_of_opse_is_unsafe_and_those_of_ghosh_are() -> None:
    """What the publication reports of its own experiment."""
    cmdp = cmdpax.environments.make("random")
    cautious = cmdpax.learn(cmdp, "opse", num_episodes=400, seeds=3)
    hopeful = cmdpax.learn(cmdp, "ghosh", num_episodes=400, seeds=3)
    assert (cautious.violation <= 1e-9).all()
    assert (hopeful.violation > 0).mean() > 0.9
    late, early = cautious.suboptimality[:, -50:].mean(), cautious.suboptimality[:, :50].mean()
    assert late < early / 2


def test_a_second_constraint_is_refused() -> None:
    with pytest.raises(cmdpax.ParameterError, match="opse handles 1 constraint, the CMDP has 2"):
        cmdpax.learn(model(2), "opse", num_episodes=5)
