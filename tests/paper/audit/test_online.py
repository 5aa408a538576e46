"""The statements on learning: the success event, what depends on it, and the sums."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import cmdpax
import reference
from audit_cases import ONLINE, audited, failing, unbroken
from cmdpax.jax_context import cast
from cmdpax.paper.audit import Problem, Row, Step, learning
from cmdpax.paper.audit.episodes import row_errors
from cmdpax.paper.audit.learning import ON_EVENT
from cmdpax.paper.audit.online import _regret_rows, _sum_rows
from learning_cases import model

pytestmark = pytest.mark.whole
EPISODES, SEEDS = ONLINE["num_episodes"], ONLINE["seeds"]
SUMS = ("estimation error of r", "estimation error of u_0", "estimation error of ψ")


def certain() -> cmdpax.CMDP:
    """The bandit's sizes; all observations are certain: 1 or 0."""
    return cmdpax.CMDP(
        transitions=np.ones((1, 1, 3, 1)),
        rewards=np.array([[[1.0, 0.0, 0.0]]]),
        constraint_rewards=np.array([[[[0.0, 1.0, 0.0]]]]),
        thresholds=np.array([0.25]),
        initial=np.ones(1),
    )


def problem_with(**changes: Any) -> Problem:
    """The audited problem, some of it changed."""
    return cast(unbroken().problem, float)._replace(**changes)


def episode_with(**changes: Any) -> Step:
    """An episode of which only some is known."""
    return Step(**(dict.fromkeys(Step._fields) | changes))


class TestEvent:
    @pytest.mark.parametrize(("bonus", "share"), [(1.01, 0.0), (0.99, 1.0)])
    def test_certain_rewards_are_missed_before_they_are_seen(
        self, bonus: float, share: float
    ) -> None:
        """|1 - r̄| is 1 while n = 0 and 0 after: b^r at n = 0 decides."""
        cmdp, profile = certain(), cmdpax.Optimism.theory(EPISODES)
        scale = bonus / profile.numbers(cmdp.sizes).reward
        found = audited(cmdp, **ONLINE, optimism=profile.replace(scale=scale))
        row = found.row("success event, rewards")
        assert row.left == share
        assert row.right == pytest.approx(0.1 / 3)
        assert row.verdict == ("fails" if share else "holds")
        assert row.worst["k"] == 1
        assert f"{bonus - 1:.3g}" in row.note
        assert found.row("success event, transitions").verdict == "holds"
        assert found.row("success event, visits").verdict == "holds"
        conditional = [found.row(statement.name) for statement in ON_EVENT]
        conditional += [found.row(name) for name in SUMS]
        for row in conditional:
            assert (row.verdict == "premise not met") == bool(share)
            assert ("happened in no run" in row.note) == bool(share)
        assert failing(found) == ({"success event, rewards"} if share else set())

    def test_rewards_and_transitions_by_hand(self) -> None:
        episode = episode_with(
            signals=jnp.array([[[[0.5, 0.25]], [[1.0, 0.0]]]]),
            means=jnp.array([[[[0.25, 0.5]], [[0.5, 0.0]]]]),
            reward_bonus=jnp.array([[[0.375, 0.125]]]),
            row_errors=jnp.array([[[0.5, 1.0]]]),
            transition_bonus=jnp.array([[[2.0, 4.0]]]),
        )
        left, right = learning.rewards_near.sides(problem_with(), episode)
        np.testing.assert_array_equal(right - left, [[[[0.125, -0.125]], [[-0.125, 0.125]]]])
        left, right = learning.transitions_near.sides(problem_with(), episode)  # H = 3
        np.testing.assert_array_equal(right - left, [[[0.5, 1.0]]])

    def test_visits_by_hand(self) -> None:
        visits, expected = np.zeros((3, 3, 2), int), np.zeros((3, 3, 2))
        visits[1, 2, 0], expected[1, 2, 0] = 5, 100.0
        episode = episode_with(visits=jnp.asarray(visits), expected_visits=jnp.asarray(expected))
        left, right = learning.visits_enough(0.3).sides(problem_with(), episode)
        slack = 3 * np.log(3 * 3 * 2 / 0.1)
        assert float(right[1, 2, 0] - left[1, 2, 0]) == pytest.approx(5 - 50 + slack, abs=1e-4)
        assert float(right[0, 0, 0] - left[0, 0, 0]) == pytest.approx(slack, abs=1e-4)

    @pytest.mark.usefixtures("double_precision")
    def test_a_state_that_is_listed_twice(self) -> None:
        """Its slots count together: rows are compared as distributions over states."""
        lists = np.zeros((1, 3, 1, 3), int)
        lists[0, :, 0] = [[1, 1, 0], [0, 1, 2], [2, 2, 2]]
        true = np.array([[[[0.5, 0.25, 0.25]], [[0.5, 0.25, 0.25]], [[0.5, 0.25, 0.25]]]])
        guess = np.array([[[[1.0, 0.0, 0.0]], [[0.0, 0.0, 0.0]], [[1.0, 0.0, 0.0]]]])
        cmdp = cmdpax.CMDP(
            transitions=cmdpax.Successors(lists, true),
            rewards=np.zeros((1, 3, 1)),
            constraint_rewards=np.zeros((0, 1, 3, 1)),
            thresholds=np.zeros(0),
            initial=np.full(3, 1 / 3),
            horizon=1,
        )
        estimated = cmdpax.Successors(jnp.asarray(lists), jnp.asarray(guess))
        dense = reference.densify(cmdp).transitions
        other = reference.densify(cmdp.replace(transitions=cmdpax.Successors(lists, guess)))
        expected = np.abs(dense - other.transitions).sum(axis=-1)
        found = row_errors(problem_with(cmdp=cast(cmdp, float)), estimated)
        np.testing.assert_allclose(found, expected)
        np.testing.assert_allclose(expected[0, :, 0], [0.5, 1.0, 0.0])


def sums(errors: np.ndarray, bonus: float, happened: list[bool]) -> list[Row]:
    """Rows on the estimates of all signals, which all have these errors, `[R, K]`."""
    every_error = np.repeat(errors[..., None], 2 + model(2).num_constraints, axis=2)
    bonuses = np.full_like(every_error, bonus)
    return _sum_rows(problem_with(), every_error, bonuses, np.array(happened))


class TestSums:
    def test_safety_counts_the_episodes_that_are_not_safe(self) -> None:
        """Violations 0.5, 0.2, 0.05, 0, …: two episodes are not 0.1-safe, three not 0.01-safe."""
        missing = np.array([0.5, 0.2, 0.05, *([0.0] * 7)])
        problem = unbroken().problem
        targets = np.concatenate([[problem.optimal_values[0]], problem.cmdp.thresholds, [1.0]])
        values = np.tile(targets, (1, len(missing), 1))
        values[0, :, 1] -= missing
        found = _regret_rows(problem_with(), values)
        rows = {row.name: row for row in found}
        coarse, fine = rows["ε-safety, ε = 0.1"], rows["ε-safety, ε = 0.01"]
        assert (coarse.left, coarse.right) == pytest.approx((2, 7.5), abs=1e-5)
        assert (fine.left, fine.right) == pytest.approx((3, 75), abs=1e-4)
        assert (coarse.verdict, fine.verdict) == ("holds", "vacuous")

    def test_safety_in_the_audit(self) -> None:
        for level in (0.01, 0.1):
            row = unbroken().row(f"ε-safety, ε = {level:g}")
            assert 0 < row.left <= EPISODES
            assert row.left <= row.right
            assert set(row.worst) == {"run"}

    @pytest.mark.parametrize(
        ("error", "happened", "verdict"),
        [
            (0.5, True, "holds"),
            (1.5, True, "fails"),
            (0.5, False, "premise not met"),
            (1.5, False, "premise not met"),
        ],
    )
    def test_errors_against_bonuses(self, error: float, happened: bool, verdict: str) -> None:
        errors = np.array([0.0, 0.0, error, 0.0, error])
        for row in sums(errors[None], 0.4, [happened]):
            assert row.verdict == verdict
            if happened:  # the third episode: 3 · 0.4 and one error, or the fifth with two
                slacks = np.cumsum(0.4 - errors)
                assert row.slack == pytest.approx(slacks.min(), abs=1e-5)
                assert row.worst == {"run": 0, "k": int(slacks.argmin()) + 1}

    def test_errors_of_runs_without_the_event_do_not_count(self) -> None:
        both = np.repeat([[0.1], [2.0]], 4, axis=1)
        for row in sums(both, 0.4, [True, False]):
            assert (row.verdict, row.worst["run"]) == ("holds", 0)
        for row in sums(both, 0.4, [True, True]):
            assert (row.verdict, row.worst["run"]) == ("fails", 1)

    def test_large_bonuses_say_nothing(self) -> None:
        for row in sums(np.ones((1, 4)), 9.0, [True]):
            assert row.verdict == "vacuous"

    def test_every_estimate_has_its_sum(self) -> None:
        names = [row.name for row in unbroken().rows if row.name.startswith("estimation error")]
        assert names == [f"estimation error of {name}" for name in ("r", "u_0", "u_1", "ψ")]


def test_the_runs_of_the_audit_are_the_learners_own() -> None:
    """The regret behind the ε-safety remark is that of `learn` with the same seeds."""
    cap = float(unbroken().problem.max_multiplier)
    history = cmdpax.learn(
        model(2),
        "regularized-primal-dual",
        num_episodes=EPISODES,
        seeds=list(range(SEEDS)),
        step_size=0.1,
        regularization=0.05,
        max_multiplier=cap,
        optimism=cmdpax.Optimism.theory(EPISODES),
        observations="bernoulli",
    )
    row = unbroken().row("ε-safety, ε = 0.1")
    regrets = history.strong_regret.constraints[row.worst["run"], -1]
    assert row.right == pytest.approx(regrets.sum() / 0.1, abs=1e-6)
