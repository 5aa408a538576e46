"""The schemes that have names, audited: what applies to them, and what says why not."""

import functools
import json
import math

import jax.numpy as jnp
import numpy as np
import pytest

import cmdpax
from audit_cases import T, audited, failing
from cmdpax.paper.audit import STATEMENTS, Audit, Problem, Statement, Step
from lanes import quick_or_whole
from learning_cases import model

OTHERS = tuple(name for name in cmdpax.scheme_names() if name != "primal-dual")
EVERY = pytest.mark.parametrize("name", [quick_or_whole(x, quick=x == "rpg-pd") for x in OTHERS])
NOBODY = {
    "mirror descent with local norms",
    "three-point identity",
    "potential recursion",
    "potential, closed form",
    "potential, measured bias",
    "last iterate",
}
EQUATION_7 = {"projected dual descent", "multiplier update"}


@functools.cache
def found(name: str) -> Audit:
    return audited(scheme=name)


@EVERY
def test_no_row_is_missing_and_none_fails(name: str) -> None:
    plain = audited()
    heads = [(row.name, row.place, row.text) for row in found(name).rows]
    assert heads == [(row.name, row.place, row.text) for row in plain.rows]
    assert failing(found(name)) == set()


@EVERY
def test_what_does_not_apply_says_why(name: str) -> None:
    rows = [row for row in found(name).rows if row.verdict == "does not apply"]
    dismissed = {row.name for row in rows}
    assert dismissed >= NOBODY
    assert dismissed.isdisjoint({"strong duality", "Slater gap", "saddle point, policies"})
    assert (dismissed >= EQUATION_7) == (name not in ("dual", "rpg-pd"))
    has_zeros = name in ("opg-pd", "augmented-lagrangian")
    assert ({"performance difference", "objective error"} <= dismissed) == has_zeros
    assert ("dual gradient is bounded" in dismissed) == (name == "augmented-lagrangian")
    for row in rows:
        assert all(map(math.isnan, (row.left, row.right, row.slack)))
        assert name in row.note or "the regularized primal-dual scheme" in row.note


@EVERY
def test_it_is_iterate_that_is_audited(name: str) -> None:
    """V_r of every iteration, as a statement of one's own sees it; λ_{k+1} is the next λ_k."""
    given = {"step_size": 0.1, "regularization": 0.05, "max_multiplier": 6.0}
    problem = found(name).problem
    assert problem.max_multiplier >= 6
    given["max_multiplier"] = problem.max_multiplier
    known = cmdpax.schemes.registry.as_scheme(name).names
    chosen = {key: number for key, number in given.items() if key in known}
    iterates = cmdpax.iterate(model(2), name, num_iterations=T + 1, **chosen)

    def values(_: Problem, step: Step) -> tuple[object, object]:
        """|V_r - that of iterate| ≤ 1e-9."""
        return abs(step.values[0] - jnp.asarray(iterates.value)[step.iteration - 1]), 1e-9

    def prices(_: Problem, step: Step) -> tuple[object, object]:
        """|λ_{k+1} - that of iterate| ≤ 1e-9."""
        return abs(step.next_multipliers - jnp.asarray(iterates.multipliers)[step.iteration]), 1e-9

    own = [
        Statement("values", "own", "", "", values),
        Statement("prices", "own", "", "i", prices),
    ]
    audit = audited(scheme=name, statements=own)
    assert [audit.row(one.name).verdict for one in own] == ["holds", "holds"]


def test_the_papers_scheme_by_its_name_is_the_default() -> None:
    assert repr(audited(scheme="primal-dual").rows) == repr(audited().rows)


def test_potentials_are_those_of_iterate() -> None:
    cap = found("rpg-pd").problem.max_multiplier
    iterates = cmdpax.iterate(
        model(2), "rpg-pd", num_iterations=T, regularization=0.05, max_multiplier=cap
    )
    np.testing.assert_allclose(found("rpg-pd").potentials, iterates.potential, rtol=0, atol=1e-9)


def test_a_wrong_scheme_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The multiplier update of rpg-pd is checked, not believed."""
    known = cmdpax.schemes.registry.as_scheme("rpg-pd")

    def wrong(cmdp: cmdpax.CMDP, rates: object, state: object) -> cmdpax.schemes.Move:
        move = known.step(cmdp, rates, state)
        return move._replace(state=move.state._replace(multipliers=move.state.multipliers + 0.1))

    broken = cmdpax.schemes.Scheme("rpg-pd", known.init, wrong, known.record)
    assert "multiplier update" in failing(audited(scheme=broken, statements=STATEMENTS))


def test_unknown_names_are_refused() -> None:
    with pytest.raises(cmdpax.ParameterError, match="scheme is 'rpg'; did you mean 'rpg-pd'"):
        audited(scheme="rpg")


@pytest.mark.usefixtures("saved_bandit")
def test_on_the_command_line(run, saved_bandit) -> None:
    code, out, _ = run("audit", "m.npz", "--iterations", "20", "--scheme", "dual", "--json")
    rows = {row["name"]: row for row in json.loads(out)["rows"]}
    assert code == 0
    expected = cmdpax.audit(saved_bandit, num_iterations=20, scheme="dual")
    assert {name: row["verdict"] for name, row in rows.items()} == expected.verdicts()
    assert rows["three-point identity"]["slack"] is None
    assert rows["multiplier update"]["verdict"] == "holds"
    code, out, err = run("audit", "m.npz", "--scheme", "duel")
    assert (code, out) == (1, "")
    assert "scheme is 'duel'; did you mean 'dual'?" in err
