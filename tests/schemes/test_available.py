"""Actions that are not available: the schemes iterate as if there were only the others."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import cmdpax
from available_cases import STORAGES, case
from cmdpax.schemes.updates import raise_to_floor

SETTINGS: list[dict[str, Any]] = [
    {"scheme": "primal-dual"},
    {"scheme": "primal-dual", "regularization": 0.05},
    {"scheme": "primal-dual", "regularization": 0.05, "policy_floor": 0.3},
    {"scheme": "dual"},
    {"scheme": "dual", "regularization": 0.05},
    *({"scheme": name} for name in cmdpax.scheme_names() if name not in ("dual", "primal-dual")),
]


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("settings", SETTINGS)
def test_iterates_are_those_of_the_other_actions(storage: str, settings: dict[str, Any]) -> None:
    one = case(storage)
    found, left = (cmdpax.iterate(model, num_iterations=60, **settings) for model in one[:2])
    np.testing.assert_allclose(found.value, left.value, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.constraint_values, left.constraint_values, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.multipliers, left.multipliers, rtol=0, atol=1e-10)
    if left.potential is not None:
        np.testing.assert_allclose(found.potential, left.potential, rtol=0, atol=1e-9)
    for policy, other in ((found.policy, left.policy), (found.mixture, left.mixture)):
        np.testing.assert_allclose(policy, one.widened(other), rtol=0, atol=1e-10)
        assert (policy[~one.flags] == 0).all()
        cmdpax.evaluate(one.cmdp, policy)


def test_the_mixture_is_uniform_over_available_actions_where_nobody_comes() -> None:
    one = case("steps")
    alone = one.cmdp.replace(initial=[1.0, 0.0, 0.0])
    mixture = cmdpax.iterate(alone, "dual", num_iterations=5).mixture
    np.testing.assert_array_equal(mixture[0, 1:], one.flags[0, 1:] / 2)


def _project(policy: np.ndarray, least: float) -> np.ndarray:
    """KL projection onto {x ≥ least}, by bisection for κ."""
    low, high = 0.0, 1 / policy.max() + 1
    for _ in range(200):
        middle = (low + high) / 2
        over = np.maximum(least, middle * policy).sum() > 1
        low, high = (low, middle) if over else (middle, high)
    return np.maximum(least, low * policy)


@pytest.mark.usefixtures("double_precision")
@pytest.mark.parametrize("floor", [0.0, 0.2, 0.9, 1.0])
def test_the_floor_is_a_share_of_the_available_actions(floor: float) -> None:
    """Any number of them, in any places; the others stay at 0."""
    generator = np.random.default_rng(3)
    flags = generator.random((40, 5)) < 0.5
    flags[:, 2] |= ~flags.any(axis=1)
    weights = flags * generator.random(flags.shape) ** 4
    policy = weights / weights.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        log_policy = np.log(policy)
    found = np.exp(raise_to_floor(jnp.asarray(log_policy), jnp.asarray(floor), jnp.asarray(flags)))
    for row, there, result in zip(policy, flags, found, strict=True):
        assert (result[~there] == 0).all()
        expected = _project(row[there], floor / there.sum())
        np.testing.assert_allclose(result[there], expected, rtol=0, atol=1e-12)
