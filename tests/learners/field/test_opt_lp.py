"""`opt-lp` against the extended linear program of the counts."""

from typing import Any

import numpy as np
import pytest

import cmdpax
from available_cases import case
from field_planning_reference import (
    Allowed,
    assert_optimal,
    count,
    empirical,
    logarithm,
    within_bounds,
)
from learning_cases import logged, model

SOME = (0, 3, 20, 39)
"""Episodes that are compared: before the first, after the first, …"""


def planned(
    cmdp: cmdpax.CMDP,
    log: cmdpax.Log,
    before: int,
    scale: float,
    *,
    known: bool = True,
    stationary: bool = False,
) -> Allowed:
    """What is planned in after so many episodes."""
    log_term = logarithm(cmdp, 6, before + 1, 0.1)
    counts = count(cmdp, log, before, stationary)
    made = empirical(cmdp, counts, log_term, scale, known)
    return within_bounds(cmdp, made, made.signals + made.mean_widths)


@pytest.mark.parametrize(
    ("num_constraints", "given"),
    [(1, {}), (2, {}), (2, {"optimism": "live"})],
)
def test_plans_are_optimal_in_the_best_model_that_is_allowed(
    num_constraints: int, given: dict[str, Any]
) -> None:
    cmdp = model(num_constraints)
    log = logged(cmdp)
    found = cmdpax.replay(cmdp, "opt-lp", log, growth=0.0, bonus_scale=0.05, **given)
    for before in SOME:
        expected = planned(cmdp, log, before, 0.05, known="optimism" not in given)
        assert assert_optimal(expected, found.policies[before])


def test_lists_and_actions_that_are_not_available() -> None:
    cmdp = case("lists").cmdp
    log = cmdpax.learn(cmdp, "replanning", num_episodes=40, log=True).log
    assert log is not None
    found = cmdpax.replay(cmdp, "opt-lp", log.run(0), growth=0.0, bonus_scale=0.05)
    for before in SOME:
        assert assert_optimal(planned(cmdp, log.run(0), before, 0.05), found.policies[before])


def test_steps_that_share_their_counts() -> None:
    cmdp = model(1)
    cmdp = cmdp.replace(transitions=cmdp.transitions[:1])
    for num_episodes in (2, 12):
        history = cmdpax.learn(
            cmdp,
            "opt-lp",
            num_episodes=num_episodes,
            log=True,
            stationary=True,
            growth=0.0,
            bonus_scale=0.05,
        )
        assert history.log is not None
        log = history.log.run(0)
        expected = planned(cmdp, log, num_episodes - 1, 0.05, stationary=True)
        assert assert_optimal(expected, history.policy[0])


def test_what_is_published_is_more_optimistic() -> None:
    """Its widths allow every row at first, so it hopes for more than a scaled one."""
    cmdp = model(1)
    wide, narrow = (
        cmdpax.replay(cmdp, "opt-lp", logged(cmdp), growth=0.0, bonus_scale=scale)
        for scale in (1.0, 0.001)
    )
    sums = [found.optimistic_constraint_values[-5:].sum() for found in (wide, narrow)]
    assert np.abs(wide.policies[-1] - narrow.policies[-1]).max() > 1e-3
    assert sums[0] > sums[1] - 1e-9
