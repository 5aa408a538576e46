"""Every algorithm against the slow reference, on logs of its own: profile by profile."""

import itertools
from typing import Any

import numpy as np
import pytest

import cmdpax
import learning_reference
import reference
from lanes import quick_or_whole
from learning_cases import (
    ALGORITHMS,
    NO_WARNING,
    PROFILES,
    default_regularization,
    every_algorithm,
    logged,
    model,
    reference_run,
)

SCHEDULES: dict[str, dict[str, Any]] = {
    "numbers": {"step_size": 0.3, "margin": 0.05},
    "schedules": {
        "step_size": cmdpax.schedules.power(0.8, 0.3),
        "margin": cmdpax.schedules.power(0.2, 0.5, offset=3),
    },
    "capped": {"step_size": 2.0, "max_multiplier": 0.3},
}
MODELS = {
    "one constraint": {"num_constraints": 1},
    "three constraints": {"num_constraints": 3},
    "no constraint": {"num_constraints": 0},
    "one step": {"num_constraints": 2, "horizon": 1},
    "one action": {"num_constraints": 1, "num_actions": 1},
}


def tau_of(algorithm: str, case: str) -> Any:
    if algorithm.startswith("vanilla"):
        return 0.0
    return cmdpax.schedules.power(0.4, 0.4, offset=1) if case == "schedules" else 0.1


def assert_agrees(
    cmdp: cmdpax.CMDP,
    algorithm: str,
    log: cmdpax.Log,
    optimism: cmdpax.Optimism,
    **chosen: Any,
) -> None:
    expected = reference_run(cmdp, algorithm, log, optimism, **chosen)
    found = cmdpax.replay(cmdp, algorithm, log, optimism=optimism, **chosen)
    close = {"rtol": 0, "atol": 1e-10}
    np.testing.assert_allclose(found.multipliers, expected.multipliers, **close)
    np.testing.assert_allclose(
        found.optimistic_constraint_values, expected.constraint_values, **close
    )
    np.testing.assert_allclose(found.policies, expected.policy, **close)
    assert (found.q_values is None) == (expected.other is None)
    if expected.other is not None:
        np.testing.assert_allclose(found.q_values, expected.other, **close)


@pytest.mark.parametrize("rewards", ["known", "estimated"])
@every_algorithm
def test_every_profile_with_every_schedule(algorithm: str, rewards: str) -> None:
    cmdp = model(2)
    profiles = [profile for profile in PROFILES.values() if profile.rewards == rewards]
    assert len(profiles) >= 3
    for optimism, (case, chosen) in itertools.product(profiles, SCHEDULES.items()):
        tau = tau_of(algorithm, case)
        assert_agrees(cmdp, algorithm, logged(cmdp), optimism, regularization=tau, **chosen)


@pytest.mark.parametrize(
    "name", [quick_or_whole(name, quick=name == "three constraints") for name in MODELS]
)
def test_every_kind_of_model(name: str) -> None:
    cmdp, optimism = model(**MODELS[name]), cmdpax.Optimism.live()
    for algorithm in ALGORITHMS:
        tau = default_regularization(algorithm)
        chosen = {"regularization": tau, "step_size": 0.5}
        assert_agrees(cmdp, algorithm, logged(cmdp), optimism, **chosen)


@every_algorithm
def test_a_log_replayed_is_the_run(algorithm: str) -> None:
    cmdp = model(2)
    chosen: dict[str, Any] = {"optimism": "live", "margin": 0.02, "max_multiplier": NO_WARNING}
    for observations in ("mean", "bernoulli"):
        history = cmdpax.learn(
            cmdp, algorithm, num_episodes=40, seeds=2, observations=observations, log=True, **chosen
        )
        assert history.log is not None
        for run in range(2):
            found = cmdpax.replay(cmdp, algorithm, history.log.run(run), **chosen)
            values = cmdpax.account(cmdp, found.policies).value
            for one, other in (
                (found.multipliers, history.multipliers[run]),
                (found.policies[-1], history.policy[run]),
                (values, history.value[run]),
            ):
                np.testing.assert_allclose(one, other, rtol=0, atol=1e-11)


def test_observations_are_the_means_or_draws() -> None:
    cmdp = model(2)
    for observations in ("mean", "bernoulli"):
        history = cmdpax.learn(
            cmdp,
            "vanilla-primal-dual",
            num_episodes=300,
            seeds=2,
            observations=observations,
            max_multiplier=NO_WARNING,
            log=True,
        )
        assert history.log is not None
        states, actions, rewards, constraint_rewards = history.log
        assert states.shape == (2, 300, 4)
        at = (np.arange(3), states[..., :-1], actions)
        means = cmdp.rewards[at]
        constraint_means = np.moveaxis(cmdp.constraint_rewards[:, *at], 0, 2)
        if observations == "mean":
            np.testing.assert_allclose(rewards, means, rtol=0, atol=1e-15)
            np.testing.assert_allclose(constraint_rewards, constraint_means, rtol=0, atol=1e-15)
        else:
            assert set(np.unique(rewards)) == set(np.unique(constraint_rewards)) == {0.0, 1.0}
            # 1800 draws: a standard error of 0.012.
            assert abs((rewards - means).mean()) < 0.05
            assert abs((constraint_rewards - constraint_means).mean()) < 0.05


def test_episodes_follow_the_policy_and_the_model() -> None:
    """Frequencies of starts, actions and successors, against four standard errors."""
    cmdp = model(1)
    history = cmdpax.learn(
        cmdp,
        "vanilla-primal-dual",
        num_episodes=500,
        seeds=8,
        step_size=1e-9,  # the policy stays uniform
        max_multiplier=NO_WARNING,
        log=True,
    )
    assert history.log is not None
    states, actions = history.log.states.reshape(-1, 4), history.log.actions.reshape(-1, 3)

    def assert_frequency(hits: np.ndarray, probability: float) -> None:
        error = np.sqrt(probability * (1 - probability) / hits.size)
        assert abs(hits.mean() - probability) <= 4 * error

    for state in range(3):
        assert_frequency(states[:, 0] == state, cmdp.initial[state])
    for step in range(3):
        assert_frequency(actions[:, step] == 0, 0.5)
        for state in range(3):
            for action in range(2):
                here = (states[:, step] == state) & (actions[:, step] == action)
                following = states[here, step + 1]
                assert_frequency(following == 0, cmdp.transitions[step, state, action, 0])


@pytest.mark.parametrize("scheme", ["primal-dual", "dual"])
@pytest.mark.parametrize("tau", [0.0, 0.08, cmdpax.schedules.power(0.5, 0.3, offset=2)])
@pytest.mark.parametrize("eta", [0.4, cmdpax.schedules.power(0.7, 0.5)])
def test_schemes(scheme: str, eta: Any, tau: Any) -> None:
    cmdp = model(2)
    dense = reference.densify(cmdp)
    found = cmdpax.iterate(
        cmdp,
        scheme,
        num_iterations=120,
        step_size=eta,
        regularization=tau,
        max_multiplier=2.0,
    )
    rates = learning_reference.Rates(
        *(tuple(number) if isinstance(number, tuple) else number for number in (eta, tau)), 2.0
    )
    expected = learning_reference.collect(learning_reference.scheme(dense, scheme, 120, rates))
    close = {"rtol": 0, "atol": 1e-10}
    np.testing.assert_allclose(found.multipliers, expected.multipliers, **close)
    np.testing.assert_allclose(found.constraint_values, expected.constraint_values, **close)
    np.testing.assert_allclose(found.value, expected.other, **close)
    np.testing.assert_allclose(found.policy, expected.policy[-1], **close)
    mass = np.mean([reference.evaluate(dense, policy).occupancy for policy in expected.policy], 0)
    mixture = mass / mass.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(found.mixture, mixture, **close)
    assert (found.potential is None) == (tau == 0.0 or isinstance(tau, tuple))
    if found.potential is not None:
        saddle = cmdpax.solve_regularized(cmdp, tau, 2.0)
        distance = learning_reference.potential(
            dense, expected, saddle.policy, np.asarray(saddle.multipliers)
        )
        np.testing.assert_allclose(found.potential, distance, rtol=0, atol=1e-8)
