"""Learners of the field that decide in every episode, against slow references."""

from typing import Any

import numpy as np
import pytest

import cmdpax
import learning_reference
import reference
import stepping_reference
from available_cases import HORIZON, case
from cmdpax.learners import as_algorithm
from learning_cases import as_number, logged, model

NAMES = sorted(stepping_reference.LEARNERS)
PROFILES = {"known": cmdpax.Optimism.empirical(), "estimated": cmdpax.Optimism.live()}
LARGE = {
    "crpo": {"step_size": "0.8*k^-0.3", "tolerance": 0.05},
    "opt-dual": {"bonus_scale": 0.001, "slater_gap": 0.2},
    "opt-pess-primal-dual": {"bonus_scale": 0.001, "slater_gap": 0.1, "margin_scale": 0.02},
    "opt-primal-dual": {"bonus_scale": 0.001, "slater_gap": 0.2, "step_scale": 30.0},
    "uopt-rpgpd": {"bonus_scale": 0.002, "step_size": "1*(k+1)^-0.4", "regularization": 0.2},
}
"""Numbers with which everything moves within 40 episodes."""
OWN_STEPS = {
    "opt-dual": {"multiplier_step_size": 0.3},
    "opt-primal-dual": {"multiplier_step_size": 0.3, "step_size": 0.2},
}


def numbers_of(algorithm: str, given: dict[str, Any]) -> dict[str, Any]:
    """Every parameter, as the reference takes it."""
    chosen = as_algorithm(algorithm).choose(given, 40)
    return {name: as_number(value) for name, value in chosen._asdict().items()}


def expected_of(
    cmdp: cmdpax.CMDP, algorithm: str, log: cmdpax.Log, profile: str, given: Any, **how: bool
) -> learning_reference.Seen:
    episodes = zip(*log, strict=True)
    optimism = dict(PROFILES[profile]._asdict())
    chosen = numbers_of(algorithm, given)
    dense = reference.densify(cmdp)
    return learning_reference.collect(
        stepping_reference.run(algorithm, dense, optimism, episodes, chosen, **how)
    )


def assert_agrees(found: cmdpax.Replay, expected: learning_reference.Seen) -> None:
    close = {"rtol": 0, "atol": 1e-8}
    np.testing.assert_allclose(found.policies, expected.policy, **close)
    np.testing.assert_allclose(found.multipliers, expected.multipliers, **close)
    values = found.optimistic_constraint_values
    np.testing.assert_allclose(values, expected.constraint_values, **close)
    if expected.other is not None:
        np.testing.assert_allclose(found.q_values, expected.other, **close)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    ("algorithm", "num_constraints"),
    [
        (name, count)
        for name in NAMES
        for count in range(1, 1 + (as_algorithm(name).max_constraints or 2))
    ],
)
def test_it_is_its_reference(algorithm: str, num_constraints: int, profile: str) -> None:
    cmdp = model(num_constraints)
    log, given = logged(cmdp), LARGE[algorithm]
    optimism = PROFILES[profile]
    found = cmdpax.replay(cmdp, algorithm, log, optimism=optimism, **given)
    assert_agrees(found, expected_of(cmdp, algorithm, log, profile, given))
    assert np.ptp(found.policies, axis=0).max() > 0.1
    assert algorithm == "crpo" or found.multipliers.max() > 0.01


@pytest.mark.parametrize("algorithm", OWN_STEPS)
def test_own_step_sizes_replace_the_published_ones(algorithm: str) -> None:
    cmdp, given = model(2), OWN_STEPS[algorithm]
    log = logged(cmdp)
    found = cmdpax.replay(cmdp, algorithm, log, **given)
    assert_agrees(found, expected_of(cmdp, algorithm, log, "known", given))
    assert np.abs(found.policies - cmdpax.replay(cmdp, algorithm, log).policies).max() > 0.1


@pytest.mark.parametrize("algorithm", NAMES)
def test_shared_counts_in_successor_lists(algorithm: str) -> None:
    cmdp = cmdpax.environments.make("gridworld", layout="S1G", horizon=3, slip=0.2)
    given = LARGE[algorithm]
    history = cmdpax.learn(
        cmdp, algorithm, num_episodes=40, stationary=True, log=True, optimism="live", **given
    )
    assert history.log is not None
    log = history.log.run(0)
    log = log._replace(constraint_rewards=1 - log.constraint_rewards)  # its sense is "at most"
    how = {"stationary": True, "lists": True}
    seen = expected_of(cmdp, algorithm, log, "estimated", given, **how)
    np.testing.assert_allclose(history.policy[0], seen.policy[-1], rtol=0, atol=1e-8)
    np.testing.assert_allclose(history.multipliers[0], seen.multipliers, rtol=0, atol=1e-8)


@pytest.mark.parametrize("algorithm", NAMES)
def test_others_than_the_available_actions_play_no_part(algorithm: str) -> None:
    """Without bonuses, and with step sizes that do not know A, nothing depends on their number."""
    one = case("steps")
    given: dict[str, Any] = LARGE[algorithm] | OWN_STEPS.get(algorithm, {})
    if "bonus_scale" in given:
        given = given | {"bonus_scale": 0.0}
    if "margin_scale" in given:
        given = given | {"margin_scale": 0.0}
    log = logged(one.plain)
    actions = one.numbered(log.states[:, :-1], log.actions)
    wide = cmdpax.replay(one.cmdp, algorithm, log._replace(actions=actions), **given)
    plain = cmdpax.replay(one.plain, algorithm, log, **given)
    np.testing.assert_allclose(wide.policies, one.widened(plain.policies), rtol=0, atol=1e-9)
    np.testing.assert_allclose(wide.multipliers, plain.multipliers, rtol=0, atol=1e-9)
    assert wide.policies.shape[1] == HORIZON


def test_flexdome_is_algorithm_1_with_its_schedules() -> None:
    cmdp = model(2)
    log = logged(cmdp)
    found = cmdpax.replay(cmdp, "flexdome", log, slater_gap=0.4, margin_share="0.6*(k+2)^-0.25")
    share = 0.6 * 3**-0.25
    rates = learning_reference.Rates(
        step_size=(1.0, 1 / 3, 0.0),
        regularization=(0.2, 1 / 3, 0.0),
        max_multiplier=cmdp.horizon / ((1 - share) * 0.4),
        margin=(0.24, 0.25, 2.0),
    )
    learner = learning_reference.primal_dual_learner(
        reference.densify(cmdp),
        dict(PROFILES["known"]._asdict()),
        list(zip(*log, strict=True)),
        rates,
    )
    assert_agrees(found, learning_reference.collect(learner))
    plain = cmdpax.replay(cmdp, "flexdome", log, margin_share=0)
    assert (found.multipliers[-1] > plain.multipliers[-1]).all()


@pytest.mark.parametrize("algorithm", ["flexdome", "uopt-rpgpd"])
def test_steps_that_overshoot_are_refused(algorithm: str) -> None:
    with pytest.raises(cmdpax.ParameterError, match="step_size times regularization is 2 at"):
        cmdpax.learn(model(1), algorithm, num_episodes=5, step_size=2, regularization=1)


def test_uopt_rpgpd_and_triple_q_take_one_constraint() -> None:
    for algorithm in ("uopt-rpgpd", "triple-q"):
        with pytest.raises(cmdpax.ParameterError, match="handles 1 constraint, the CMDP has 2"):
            cmdpax.learn(model(2), algorithm, num_episodes=5)
