"""The paper's phenomenon on a small scale: oscillation, damping, and what mixing hides.

Averages over several CMDPs, with margins wide enough that no single model decides.
"""

import functools

import numpy as np
import pytest

import cmdpax

pytestmark = pytest.mark.whole

SEEDS = range(6)
NUM_ITERATIONS = 4000


@functools.cache
def cmdp(seed: int) -> cmdpax.CMDP:
    return cmdpax.environments.make("random", num_states=3, num_actions=3, horizon=3, seed=seed)


@functools.cache
def iterates(seed: int, eta: float, tau: float) -> cmdpax.Iterates:
    return cmdpax.iterate(
        cmdp(seed),
        "primal-dual",
        num_iterations=NUM_ITERATIONS,
        step_size=eta,
        regularization=tau,
        max_multiplier=20.0,
    )


def last_half(seed: int, eta: float, tau: float) -> np.ndarray:
    """The violation over the last half of the iterations."""
    violation = cmdp(seed).thresholds - iterates(seed, eta, tau).constraint_values
    return violation[NUM_ITERATIONS // 2 :, 0]


def amplitudes(eta: float, tau: float) -> np.ndarray:
    """The spread of the violation, of every model."""
    return np.array([last_half(seed, eta, tau).std() for seed in SEEDS])


def sign_changes(eta: float, tau: float) -> np.ndarray:
    return np.array([np.sum(np.diff(last_half(seed, eta, tau) > 0)) for seed in SEEDS])


def test_vanilla_iterates_oscillate() -> None:
    assert amplitudes(0.1, 0.0).mean() > 0.05
    assert sign_changes(0.1, 0.0).min() >= 4
    assert sign_changes(0.1, 0.0).mean() >= 6


def test_regularization_damps_them() -> None:
    assert amplitudes(0.1, 0.05).mean() < 0.05 * amplitudes(0.1, 0.0).mean()


def test_the_step_size_changes_the_frequency_but_not_the_amplitude() -> None:
    slow, fast = sign_changes(0.05, 0.0), sign_changes(0.2, 0.0)
    assert fast.mean() > 2 * slow.mean()
    assert amplitudes(0.2, 0.0).mean() > 0.7 * amplitudes(0.05, 0.0).mean()


def test_the_vanilla_mixture_converges_although_its_last_iterate_does_not() -> None:
    mixed, last = [], []
    for seed in SEEDS:
        model, found = cmdp(seed), iterates(seed, 0.1, 0.0)
        optimum = cmdpax.solve(model).value
        mixture = cmdpax.evaluate(model, found.mixture)
        error = max(abs(optimum - mixture.value), (model.thresholds - mixture.constraint_values)[0])
        mixed.append(error)
        window = slice(-500, None)  # the last iterate, at whichever moment one stops
        violation = (model.thresholds - found.constraint_values[window])[:, 0]
        last.append(max(np.abs(optimum - found.value[window]).max(), violation.max()))
    assert np.mean(mixed) < 0.03
    assert np.mean(last) > 5 * np.mean(mixed)


@pytest.mark.parametrize("kind", ["vanilla", "regularized"])
def test_learners_show_the_same(kind: str) -> None:
    """With the model unknown: the spread of the violation over the last half of the episodes."""
    found = []
    for seed in SEEDS:
        history = cmdpax.learn(
            cmdp(seed),
            f"{kind}-primal-dual",
            num_episodes=NUM_ITERATIONS,
            seeds=2,
            step_size=0.1,
            regularization=0.0 if kind == "vanilla" else 0.05,
            max_multiplier=1e3,
        )
        found.append(history.violation[:, NUM_ITERATIONS // 2 :].std(axis=1).mean())
    if kind == "vanilla":
        assert np.mean(found) > 0.05
    else:
        assert np.mean(found) < 0.02
