"""Suites are frozen: their models are those that were pinned, and what their names say."""

import numpy as np
import pytest

import cmdpax
from board_cases import TINY
from cmdpax import board
from cmdpax.board.configurations import BUDGET, entrants
from cmdpax.board.models import nearly_infeasible, several_optima, slack
from cmdpax.board.suites import as_suite
from lanes import quick_or_whole
from sweep_cases import OWN, SMALL

PINNED = {"quick": "5c7bf1fcad421d72", "v1": "f2c73f815d9656e1"}
"""Results of a suite with another digest cannot be compared with those that are stored."""


def test_suites_are_those_that_were_frozen() -> None:
    assert {name: suite.digest for name, suite in board.SUITES.items()} == PINNED


@pytest.mark.parametrize(
    ("suite", "family"),
    [
        quick_or_whole(suite.name, family.name, quick=suite.name == "quick")
        for suite in board.SUITES.values()
        for family in suite.families
    ],
)
def test_models_are_those_that_were_frozen(suite: str, family: str) -> None:
    chosen = board.SUITES[suite].family(family)
    assert len(chosen.models()) == len(chosen.scored) + len(chosen.training)
    assert not set(chosen.scored) & set(chosen.training)


def test_a_model_that_has_changed_is_an_error() -> None:
    changed = TINY.families[0]._replace(digest="0" * 16)
    with pytest.raises(cmdpax.ParameterError, match=r"'one' have the digest .* frozen with 0000"):
        changed.models()


def test_every_part_of_a_suite_can_be_scored_and_tuned() -> None:
    for suite in board.SUITES.values():
        for part in suite.parts:
            families = [suite.family(name) for name in part.families]
            assert any(family.training for family in families)
            assert any(family.scored for family in families)


def test_the_constructed_models_are_what_their_names_say() -> None:
    plain = cmdpax.environments.make("random", seed=4, **SMALL)
    tight = nearly_infeasible(**SMALL)(4)
    room = [cmdpax.slater_gap(one).gap for one in (plain, tight)]
    assert room[1] == pytest.approx(room[0] / 20)
    loose = slack(**SMALL)(4)
    free = loose.replace(constraint_rewards=[], thresholds=[])
    assert cmdpax.solve(loose).value == pytest.approx(cmdpax.solve(free).value)
    copied = several_optima(3, num_states=3, horizon=3)(4)
    arrays = {2: copied.transitions, -1: copied.constraint_rewards}
    for axis, array in arrays.items():
        found = np.moveaxis(np.asarray(array), axis, 0)
        np.testing.assert_array_equal(found[0], found[2])
        assert (found[0] != found[1]).any()


def test_an_unknown_suite_or_part_is_named() -> None:
    with pytest.raises(cmdpax.ParameterError, match=r"unknown suite 'v2'; .*known: quick, v1"):
        as_suite("v2")
    with pytest.raises(cmdpax.ParameterError, match="'tiny' has no part 'K31'; did you mean 'K30'"):
        TINY.part("K31")


# ---------------------------------------------------------------------------------- configurations


def test_every_registered_algorithm_has_the_whole_budget() -> None:
    taking = entrants(None)
    assert [one.name for one in taking] == cmdpax.algorithms()
    assert {len(one.configurations) for one in taking} == {BUDGET}
    assert all({} in one.configurations for one in taking)


def test_ones_own_has_its_defaults_or_what_is_given() -> None:
    assert entrants([OWN])[0].configurations == ({},)
    given = entrants([{"name": OWN, "gain": [0.2, 0.4], "mode": "dual"}])[0]
    assert given.configurations == ({"gain": 0.2, "mode": "dual"}, {"gain": 0.4, "mode": "dual"})


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ([{"name": OWN, "gain": [0.1, 0.2, 0.3, 0.4, 0.5]}], "has 5 configurations.* gives every"),
        (["crpo", {"name": "crpo"}], "crpo is there twice"),
        (["crpoo"], "unknown algorithm 'crpoo'; did you mean 'crpo'"),
        ([{"name": "crpo", "stepsize": 1}], "unknown key stepsize; did you mean 'step_size'"),
        ([{"step_size": 1}], "give its name"),
        ([], "no algorithm takes part"),
    ],
)
def test_what_cannot_take_part(given: list, sentence: str) -> None:
    with pytest.raises(cmdpax.ParameterError, match=sentence):
        entrants(given)
