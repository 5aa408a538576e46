"""Things are broken on purpose: the audit must notice, and must not where nothing is broken."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import audit_cases
import cmdpax
from audit_cases import ONLINE, T, audited, failing, unbroken
from audit_reference import iterates_of
from cmdpax.learners import Factory, as_algorithm
from cmdpax.paper.audit import STATEMENTS, Problem, Sides, Statement, Step
from learning_cases import model

pytestmark = pytest.mark.whole
HORIZON = 3
UNIT_REWARDS = {statement.name for statement in STATEMENTS if "unit rewards" in statement.premises}


def test_nothing_fails_where_nothing_is_broken() -> None:
    assert failing(unbroken()) == set()
    assert "premise not met" not in unbroken().verdicts().values()


class TestSchemes:
    @pytest.mark.parametrize(
        ("scheme", "noticed"),
        [
            (audit_cases.flipped_dual, {"multiplier update", "projected dual descent"}),
            (
                audit_cases.flipped_ascent,
                {"three-point identity", "mirror descent with local norms"},
            ),
            (audit_cases.policy_first, {"multiplier update"}),
            (audit_cases.multipliers_first, {"three-point identity"}),
        ],
        ids=lambda value: getattr(value, "__name__", ""),
    )
    def test_wrong_updates_are_noticed_where_they_are(
        self, scheme: Callable[..., Any], noticed: set[str]
    ) -> None:
        assert failing(audited(scheme=scheme)) == noticed

    def test_a_scheme_of_ones_own_that_is_right(self) -> None:
        def same(problem: Problem, log_policy: Any, multipliers: Any) -> Any:
            return cmdpax.paper.audit.library_scheme(problem, log_policy, multipliers)

        found = audited(scheme=same)
        assert failing(found) == set()
        np.testing.assert_array_equal(found.potentials, unbroken().potentials)


class TestLearners:
    def test_a_missing_truncation(self) -> None:
        large = cmdpax.Optimism.theory(ONLINE["num_episodes"], scale=5.0)
        names = {"truncated values are bounded", "truncated dual gradient is bounded"}
        assert failing(audited(**ONLINE, optimism=large)) == set()
        found = audited(**ONLINE, optimism=large, learner=audit_cases.uncapped)
        assert names <= failing(found)
        assert "optimism of z" in failing(found)  # what the caps are for

    def test_bonuses_that_are_too_small(self) -> None:
        small = cmdpax.Optimism.theory(ONLINE["num_episodes"], scale=0.05)
        found = audited(**ONLINE, optimism=small)
        assert failing(found) == {"success event, rewards", "success event, transitions"}
        assert found.row("success event, rewards").left == 1.0  # in every run

    @pytest.mark.parametrize(
        "learner",
        [audit_cases.forgetful, as_algorithm("vanilla-dual").factory],
        ids=["no counts", "no Q̂"],
    )
    def test_a_learner_that_shows_too_little(self, learner: Factory) -> None:
        sentence = (
            "the online audit reads the learner's counts and checks its Q̂: the Info that it shows "
            "must have statistics and q_values."
        )
        with pytest.raises(cmdpax.ParameterError) as caught:
            audited(**ONLINE, learner=learner)
        assert str(caught.value) == sentence


class TestPremises:
    def test_rewards_outside_the_unit_interval(self) -> None:
        cmdp = model(2)
        found = audited(cmdp.replace(rewards=cmdp.rewards + 0.5), **ONLINE)
        for name in UNIT_REWARDS:
            assert found.row(name).verdict == "premise not met"
            assert "rewards leave [0, 1]" in found.row(name).note
        assert found.row("three-point identity").verdict == "holds"
        assert found.rows[-1].name == "online statements"
        assert found.rows[-1].verdict == "premise not met"

    def test_thresholds_outside_the_horizon(self) -> None:
        """g ∈ [-1, 1] is what bounds the dual gradient; a negative threshold has no such bound."""
        cmdp = model(2)
        found = audited(cmdp.replace(thresholds=np.array([-9.0, 0.5])))
        row = found.row("dual gradient is bounded")
        assert row.slack < 0
        assert row.verdict == "premise not met"
        assert row.note == "thresholds leave [0, H = 3]"
        assert failing(found) == set()

    @pytest.mark.parametrize("factor", [0.5, 2.0])
    def test_a_wrong_slater_gap(self, factor: float) -> None:
        gap = float(unbroken().problem.slater_gap)
        found = audited(slater_gap=factor * gap)
        assert "Slater gap" in failing(found)
        assert found.row("Slater gap").left == pytest.approx(abs(factor - 1) * gap, abs=1e-6)
        assert failing(audited(slater_gap=gap)) == set()

    def test_a_gap_that_is_too_large_breaks_the_multiplier_bound(self) -> None:
        """Here the bound is nearly an equality; a gap that is too small only loosens it."""
        problem = unbroken().problem
        bound = unbroken().row("multiplier bound")
        factor = 1.01 * bound.right / bound.left
        gap = float(problem.slater_gap)
        assert "multiplier bound" in failing(audited(slater_gap=factor * gap))
        assert "multiplier bound" not in failing(audited(slater_gap=gap / factor))

    def test_steps_that_are_too_large(self) -> None:
        found = audited(step_size=0.9, regularization=0.3)
        for name in ("local norms are bounded", "potential recursion", "potential, closed form"):
            assert found.row(name).verdict == "premise not met"
            assert "ητ = 0.27 exceeds 1/4" in found.row(name).note
        assert failing(found) == set()

    def test_a_cap_that_is_too_small(self) -> None:
        gap = float(unbroken().problem.slater_gap)
        for factor, expected in ((0.9, "premise not met"), (1.1, "vacuous")):
            found = audited(max_multiplier=factor * HORIZON / gap)
            for name in ("potential recursion", "potential, closed form"):
                assert found.row(name).verdict == expected
            assert ("is below H/Ξ" in found.row("potential recursion").note) == (factor < 1)

    def test_no_slack_at_all(self) -> None:
        bandit = cmdpax.environments.make("bandit")
        found = audited(bandit.replace(thresholds=np.array([0.9])), **ONLINE)
        assert found.problem.slater_gap == 0
        assert failing(found) == set()
        for name in ("constraint error", "multiplier bound", "online constraint error"):
            assert found.row(name).verdict == "premise not met"
            assert "Ξ = 0 is not positive" in found.row(name).note


class TestOwnStatements:
    def own(self, sides: Callable[..., Sides], **changes: Any) -> cmdpax.paper.audit.Row:
        statement = Statement("mine", "nowhere", "left ≤ right", "hsa", sides, **changes)
        found = audited(statements=(statement,))
        return found.row("mine")

    def test_a_false_one_and_where_it_is_worst(self) -> None:
        worst = jnp.zeros((3, 3, 2), bool).at[1, 2, 0].set(True)

        def sides(_: Problem, step: Step) -> Sides:
            large = jnp.where(worst & (step.iteration == 7), 5.0, 2.0)
            return jnp.where(step.log_policy < 0, large, 0.0), 1.0

        row = self.own(sides)
        assert row.verdict == "fails"
        assert row.worst == {"k": 7, "h": 1, "s": 2, "a": 0}
        assert (row.left, row.right, row.slack) == (5.0, 1.0, -4.0)

    def test_a_false_one_on_the_policies(self) -> None:
        """No probability ever falls below 0.4: false, and worst at the smallest one."""
        row = self.own(lambda _, step: (0.4, step.policy))
        k, h, s, a = (row.worst[axis] for axis in "khsa")
        policies = iterates_of(unbroken().problem, T).policies
        assert row.verdict == "fails"
        assert row.right == pytest.approx(policies.min(), abs=1e-9)
        assert row.right == pytest.approx(policies[k - 1, h, s, a], abs=1e-9)

    def test_a_true_one(self) -> None:
        row = self.own(lambda _, step: (step.policy, 1.0))
        assert row.verdict == "holds"
        assert 0 < row.slack == 1 - row.left

    @pytest.mark.parametrize(("trivial", "verdict"), [(1.0, "vacuous"), (2.5, "holds")])
    def test_a_right_side_that_says_nothing(self, trivial: float, verdict: str) -> None:
        row = self.own(lambda _, step: (step.policy, 2.0), trivial=lambda _: trivial)
        assert row.verdict == verdict
        assert ("which holds anyway" in row.note) == (verdict == "vacuous")

    def test_premises_are_looked_at_first(self) -> None:
        row = self.own(lambda _, step: (step.policy, -1.0), premises=("slater",))
        assert row.verdict == "fails"
        statement = Statement("mine", "", "", "", lambda *_: (1.0, 0.0), ("small steps",))
        found = audited(statements=(statement,), step_size=0.9, regularization=0.3)
        assert found.row("mine").verdict == "premise not met"
        assert found.row("mine").slack == -1.0

    def test_a_name_that_is_not_there(self) -> None:
        with pytest.raises(cmdpax.ParameterError, match="no statement 'yours'"):
            unbroken().row("yours")
