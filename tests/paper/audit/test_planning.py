"""The statements on learning for a learner that plans: what applies, and what says why not."""

import dataclasses
import functools
import json
import math

import pytest

import cmdpax
from audit_cases import ONLINE, audited, failing, unbroken
from cmdpax.learners import as_algorithm
from cmdpax.paper.audit import Audit

pytestmark = pytest.mark.whole
DISMISSED = {
    "optimism of ψ": "ψ is infinite",
    "optimism of z": "no Q̂_z",
    "online potential recursion": "Φ_k is infinite",
    "truncated values are not negative": "no Q̂_z",
    "truncated values are bounded": "no Q̂_z",
    "truncated local norms are bounded": "no Q̂_z",
    "truncated dual gradient is bounded": "takes no step in λ",
    "online objective error": "Φ_k is infinite",
    "online constraint error": "Φ_k is infinite",
    "estimation error of ψ": "ψ is infinite",
    "regret exponent": "the theorem is about Algorithm 1",
}
APPLIES = (
    "success event, rewards",
    "success event, transitions",
    "success event, visits",
    "optimism of r",
    "optimism of u",
    "estimation error of r",
    "estimation error of u_0",
    "estimation error of u_1",
    "ε-safety, ε = 0.01",
    "ε-safety, ε = 0.1",
)


@functools.cache
def planned() -> Audit:
    return audited(**ONLINE, learner="replanning")


def test_no_row_is_missing() -> None:
    assert [row.name for row in planned().rows] == [row.name for row in unbroken().rows]
    for row, other in zip(planned().rows, unbroken().rows, strict=True):
        assert (row.place, row.text) == (other.place, other.text)


def test_what_does_not_apply_says_why() -> None:
    found = {row.name for row in planned().rows if row.verdict == "does not apply"}
    assert found == set(DISMISSED)
    for name, reason in DISMISSED.items():
        row = planned().row(name)
        assert reason in row.note
        assert all(map(math.isnan, (row.left, row.right, row.slack)))
        assert row.worst == {}


def test_what_applies_is_judged() -> None:
    assert failing(planned()) == set()
    for name in APPLIES:
        row = planned().row(name)
        assert row.verdict in ("holds", "vacuous")
        assert math.isfinite(row.slack)
        assert 0 <= row.worst["run"] < ONLINE["seeds"]


def test_rows_of_the_known_model_are_the_same() -> None:
    """They do not depend on who learns."""
    online = {*DISMISSED, *APPLIES}
    for row, other in zip(planned().rows, unbroken().rows, strict=True):
        assert row.name in online or repr(row) == repr(other)  # as text, nan is nan


def test_nothing_is_dismissed_for_algorithm_1() -> None:
    named = audited(**ONLINE, learner="regularized-primal-dual")
    assert [row._replace(left=0, right=0, slack=0) for row in named.rows] == [
        row._replace(left=0, right=0, slack=0) for row in unbroken().rows
    ]
    assert "does not apply" not in named.verdicts().values()


def test_lists_and_an_algorithm_of_ones_own() -> None:
    """Slots are compared with slots; whoever plans is known by its `replans`."""
    grid = cmdpax.environments.make("gridworld", layout="S1G", horizon=3, slip=0.2)
    own = dataclasses.replace(as_algorithm("optimistic-planning"), name="planner")
    found = audited(grid, **ONLINE, learner=own)
    verdicts = found.verdicts()
    assert {name for name, verdict in verdicts.items() if verdict == "does not apply"} == set(
        DISMISSED
    )
    assert failing(found) == set()


def test_without_the_event_its_rows_have_no_premise() -> None:
    """What does not apply still says so."""
    small = cmdpax.Optimism.theory(ONLINE["num_episodes"], scale=0.001)
    found = audited(**ONLINE, optimism=small, learner="replanning")
    assert found.row("success event, rewards").verdict == "fails"
    assert found.row("optimism of r").verdict == "premise not met"
    assert found.row("estimation error of u_1").verdict == "premise not met"
    assert {row.name for row in found.rows if row.verdict == "does not apply"} == set(DISMISSED)


def test_hyperparameters_that_an_algorithm_refuses() -> None:
    with pytest.raises(cmdpax.ParameterError, match="must be 0; use regularized-primal-dual"):
        audited(**ONLINE, learner="vanilla-primal-dual")


class TestCommand:
    AUDIT = ("audit", "m.npz", "--iterations", "20", "--online", "--episodes", "30", "--seeds", "6")

    @pytest.mark.usefixtures("saved_bandit")
    def test_it_names_the_learner(self, run) -> None:
        code, out, err = run(*self.AUDIT, "--algorithm", "replanning")
        assert code == 0
        assert out.count("does not apply") == len(DISMISSED)
        assert "nan" not in out
        assert "regret exponent (Theorem 5.2): the theorem is about Algorithm 1" in err
        code, out, _ = run(*self.AUDIT, "--algorithm", "replanning", "--json")
        rows = {row["name"]: row for row in json.loads(out)["rows"]}
        assert rows["optimism of z"]["left"] is None
        assert rows["optimism of z"]["verdict"] == "does not apply"
        assert rows["success event, visits"]["verdict"] == "holds"

    @pytest.mark.usefixtures("saved_bandit")
    def test_a_learner_without_the_online_part(self, run) -> None:
        code, out, err = run("audit", "m.npz", "--algorithm", "replanning")
        assert (code, out) == (1, "")
        assert err == "error: --algorithm is the learner of the online part; give --online too.\n"
