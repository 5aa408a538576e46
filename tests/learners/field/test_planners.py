"""`opt-lp-bonus`, `opt-pess-lp` and `dope` against linear programs of their formulas."""

from typing import Any

import numpy as np
import pytest

import cmdpax
import field_planning_reference as expected
from available_cases import case
from cmdpax.planning.safest import safest_policy
from learning_cases import logged, model

SOME = (0, 3, 20, 39)
"""Episodes that are compared: before the first, after the first, …"""


def log_of(cmdp: cmdpax.CMDP) -> cmdpax.Log:
    if cmdp.available is None:
        return logged(cmdp)
    log = cmdpax.learn(cmdp, "replanning", num_episodes=40, log=True).log
    assert log is not None
    return log.run(0)


CASES = pytest.mark.parametrize(
    ("cmdp", "given"),
    [
        (model(1), {}),
        (model(2), {}),
        (model(2), {"optimism": "live"}),
        (case("lists").cmdp, {}),
    ],
    ids=["one", "two", "estimated", "lists"],
)


@CASES
def test_bonuses_make_up_for_rows(cmdp: cmdpax.CMDP, given: dict[str, Any]) -> None:
    log, scale = log_of(cmdp), 0.05  # with which the first widths exceed 1
    found = cmdpax.replay(cmdp, "opt-lp-bonus", log, growth=0.0, bonus_scale=scale, **given)
    for before in SOME:
        log_term = expected.logarithm(cmdp, 6, before + 1, 0.1)
        counts = expected.count(cmdp, log, before, stationary=False)
        made = expected.empirical(cmdp, counts, log_term, scale, not given)
        bonus = made.mean_widths + cmdp.horizon * made.row_widths.sum(axis=-1)
        planned = expected.model(cmdp, made.rows, made.signals + bonus)
        assert expected.assert_optimal(expected.Allowed(planned, made.rows), found.policies[before])


class Cautious:
    """A learner with a baseline, fed with a log, and what it should have played."""

    def __init__(
        self, cmdp: cmdpax.CMDP, name: str, scale: float, given: dict[str, Any], factor: float
    ) -> None:
        self.cmdp, self.scale, self.known = cmdp, scale, not given
        self.log = log_of(cmdp)
        self.baseline = safest_policy(cmdp)
        self.values = cmdpax.evaluate(cmdp, self.baseline).constraint_values
        self.slack = (self.values - cmdp.thresholds).min()
        num_episodes = len(self.log.actions)
        successors = cmdp.num_states**2 * cmdp.horizon * num_episodes
        self.log_term = np.log(factor * successors / 0.01)
        settings = {"growth": 0.0, "bonus_scale": scale, **given}
        self.policies = cmdpax.replay(cmdp, name, self.log, **settings).policies

    def empirical(self, before: int) -> expected.Empirical:
        counts = expected.count(self.cmdp, self.log, before, stationary=False)
        return expected.empirical(self.cmdp, counts, self.log_term, self.scale, self.known)

    def assert_played(self, before: int, allowed: expected.Allowed, trusted: bool) -> str:
        """Which of the three cases it was."""
        policy = self.policies[before]
        if trusted and expected.assert_optimal(allowed, policy):
            return "plan"
        np.testing.assert_allclose(policy, self.baseline, rtol=0, atol=1e-12)
        return "infeasible" if trusted else "distrusted"


def with_bonuses(made: expected.Empirical, hope: Any, caution: Any) -> np.ndarray:
    signals = made.signals.copy()
    signals[0] += hope
    signals[1:] -= caution
    return signals


@CASES
def test_dope_waits_and_then_plans_within_bounds(cmdp: cmdpax.CMDP, given: dict[str, Any]) -> None:
    seen = set()
    for scale in (3e-4, 0.01):
        run = Cautious(cmdp, "dope", scale, given, 6)
        _, horizon, num_states, num_actions = cmdp.sizes
        waits = scale**2 * num_states**2 * num_actions * horizon**3 / run.slack**2
        for before in SOME:
            made = run.empirical(before)
            rows = made.row_widths.sum(axis=-1)
            hope = horizon**2 / run.slack * rows + 3 * horizon / run.slack * made.mean_widths
            signals = with_bonuses(made, hope, horizon * rows + made.mean_widths)
            allowed = expected.within_bounds(cmdp, made, signals)
            seen.add(run.assert_played(before, allowed, trusted=before + 1 > waits))
    assert "plan" in seen
    assert seen & {"infeasible", "distrusted"}


@CASES
def test_opt_pess_lp_plans_once_its_baseline_looks_safe(
    cmdp: cmdpax.CMDP, given: dict[str, Any]
) -> None:
    seen = set()
    for scale in (3e-4, 0.01):
        run = Cautious(cmdp, "opt-pess-lp", scale, given, 32)
        _, horizon, num_states, _ = cmdp.sizes
        caution = num_states * horizon + (0 if run.known else 1)
        for before in SOME:
            made = run.empirical(before)
            widths = scale * np.sqrt(run.log_term / np.maximum(made.visits, 1))
            hope = (caution + 4 * horizon * caution / run.slack) * widths
            signals = with_bonuses(made, hope, caution * widths)
            planned = expected.model(cmdp, made.rows, signals)
            values = (planned.constraint_rewards * _occupancy(planned, run.baseline)).sum((1, 2, 3))
            trusted = bool((values >= (cmdp.thresholds + run.values) / 2).all())
            allowed = expected.Allowed(planned, made.rows)
            seen.add(run.assert_played(before, allowed, trusted))
    assert seen >= {"plan", "distrusted"}


def _occupancy(cmdp: cmdpax.CMDP, policy: np.ndarray) -> np.ndarray:
    """d_h(s, a), forward in time."""
    mass, there = np.zeros_like(policy), np.array(cmdp.initial)
    for h in range(cmdp.horizon):
        mass[h] = there[:, None] * policy[h]
        there = np.einsum("sa,sat->t", mass[h], cmdp.transitions[h])
    return mass


@pytest.mark.parametrize("name", ["dope", "opt-pess-lp"])
def test_cautious_learners_are_safe_while_they_learn(name: str) -> None:
    cmdp = cmdpax.environments.make("random")
    history = cmdpax.learn(cmdp, name, num_episodes=1500, seeds=2)
    uniform = np.full((cmdp.horizon, cmdp.num_states, cmdp.num_actions), 1 / cmdp.num_actions)
    summary = history.summary()
    assert (summary["strong_constraints"] < 0.01 * 1500).all()
    missed = cmdpax.solve(cmdp).value - cmdpax.evaluate(cmdp, uniform).value
    assert (summary["strong_objective"] < 0.7 * 1500 * abs(missed)).all()
