"""The audit of many models: nothing fails where theory and library agree."""

import numpy as np
import pytest

import cmdpax
from audit_cases import ONLINE, audited, failing
from cmdpax.paper.audit import Audit, last_iterate
from golden_files import Golden
from learning_cases import model

IDENTITIES = (
    "three-point identity",
    "multiplier update",
    "performance difference",
    "value difference",
)
ON_CONSTRAINTS = {
    "Slater gap",
    "multiplier bound",
    "coarse multiplier bound",
    "dual gradient is bounded",
    "projected dual descent",
    "multiplier update",
    "constraint error",
    "last iterate",
}


def assert_sharp(found: Audit) -> None:
    """Identities hold up to rounding, and what has no constant in it has no slack to hide."""
    for name in IDENTITIES:
        assert found.row(name).left <= 1e-9
    for name in ("projected dual descent", "mirror descent with local norms"):
        assert found.row(name).slack >= -1e-9


@pytest.mark.whole
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("num_constraints", [1, 2, 3, 4])
def test_random_models(num_constraints: int, seed: int) -> None:
    found = audited(model(num_constraints, seed=seed))
    assert failing(found) == set()
    assert_sharp(found)


@pytest.mark.whole
@pytest.mark.parametrize(("step_size", "regularization"), [(0.5, 0.4), (1.0, 0.02), (0.01, 0.5)])
def test_other_parameters(step_size: float, regularization: float) -> None:
    found = audited(model(2, seed=1), step_size=step_size, regularization=regularization)
    assert failing(found) == set()
    assert_sharp(found)


@pytest.mark.whole
def test_at_the_saddle_point_rounding_makes_no_undefined_bound() -> None:
    """Φ is 0 up to rounding there, of either sign."""
    found = cmdpax.audit(model(2), num_iterations=400, step_size=0.5, regularization=0.4)
    assert np.abs(found.potentials[-1]) < 1e-12
    assert failing(found) == set()
    assert np.isfinite(found.row("objective error").slack)


@pytest.mark.whole
def test_the_measured_bias_is_no_lemma() -> None:
    """On the way Φ may exceed its rate plus its last quarter: a remark, and not a failure."""
    found = cmdpax.audit(model(2, seed=1), num_iterations=400, step_size=0.5)
    row = found.row("potential, measured bias")
    assert row.slack < -1e-3
    assert row.verdict == "premise not met"
    assert failing(found) == set()


@pytest.mark.whole
def test_golden_models(golden: Golden) -> None:
    found = audited(golden.cmdp)
    assert failing(found) == set()
    assert_sharp(found)


@pytest.mark.whole
@pytest.mark.parametrize("name", cmdpax.environments.names())
def test_environments(name: str) -> None:
    found = audited(cmdpax.environments.make(name))
    assert failing(found) == set()
    assert_sharp(found)


class TestEdges:
    @pytest.mark.whole
    def test_no_constraints(self) -> None:
        found = audited(model(0), **ONLINE)
        assert failing(found) == set()
        names = set(found.verdicts())
        assert names & ON_CONSTRAINTS == set()
        assert not [name for name in names if "u_" in name or "of u" in name]
        assert found.row("potential recursion").verdict == "holds"
        assert found.problem.slater_gap == np.inf

    @pytest.mark.whole
    def test_one_action(self) -> None:
        found = audited(model(1, num_actions=1), **ONLINE)
        assert failing(found) == set()
        assert found.row("estimation error of ψ").left == 0

    @pytest.mark.whole
    def test_lists_of_successors(self) -> None:
        cmdp = cmdpax.environments.make("gridworld", layout="S.1/..G", horizon=4)
        found = audited(cmdp, **ONLINE)
        assert failing(found) == set()
        assert found.row("success event, transitions").left == 0

    @pytest.mark.whole
    def test_one_episode(self) -> None:
        """It has no growth exponent."""
        found = audited(cmdpax.environments.make("bandit"), online=True, num_episodes=1, seeds=1)
        assert failing(found) == set()
        assert found.row("regret exponent").left == 0

    def test_no_feasible_policy(self) -> None:
        cmdp = model(2)
        with pytest.raises(cmdpax.InfeasibleError):
            audited(cmdp.replace(thresholds=cmdp.thresholds + 3))


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("num_iterations", 0),
        ("step_size", 0.0),
        ("regularization", 0.0),
        ("max_multiplier", -1.0),
        ("accuracy", 0.0),
        ("num_episodes", 0),
        ("seeds", 0),
    ],
)
def test_arguments_that_make_no_sense(argument: str, value: float) -> None:
    bandit = cmdpax.environments.make("bandit")
    with pytest.raises(cmdpax.ParameterError, match=argument):
        cmdpax.audit(bandit, **{"num_iterations": 20, "online": True, argument: value})  # type: ignore[arg-type]


class TestLastIterate:
    def test_what_suffices_in_practice(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The bandit with τ = 0.05 comes within 0.1 of the optimum, and stays there."""
        monkeypatch.setattr(last_iterate, "_TRIALS", 2000)
        bandit = cmdpax.environments.make("bandit")
        row = audited(bandit, accuracy=0.1).row("last iterate")
        iterates = cmdpax.iterate(
            bandit, "primal-dual", num_iterations=2000, step_size=0.1, regularization=0.05
        )
        violation = np.maximum(bandit.thresholds - iterates.constraint_values, 0).max(axis=1)
        errors = np.maximum(cmdpax.solve(bandit).value - iterates.value, violation)
        first = int(row.left)
        assert (errors[first - 1 :] <= 0.1).all()
        assert errors[first - 2] > 0.1
        assert row.verdict == "vacuous"
        assert row.right > 1e9
        assert "an astronomical number" in row.note

    def test_nothing_suffices(self) -> None:
        row = audited(cmdpax.environments.make("bandit"), accuracy=1e-4).row("last iterate")
        assert np.isnan(row.left)
        assert "none of τ" in row.note


def test_a_model_in_which_actions_are_not_available_is_refused() -> None:
    """The paper's first policy is uniform over all A actions, and so are its constants."""
    with pytest.raises(cmdpax.ParameterError, match=r"audit cmdp\.replace\(available=None\)"):
        cmdpax.audit(model().replace(available=[[1, 0], [1, 1], [1, 1]]))
