"""The accounts of any sequence of policies, and their arithmetic."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cmdpax
import reference
from cmdpax.learning.history import growth_exponent, strong_regret, unsafe_share, weak_regret
from learning_cases import model
from strategies import SEEDS

OPTIONS = np.eye(3)[:, None, None, :]


def errors(seed: int, num_constraints: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    return generator.normal(size=(2, 30)), generator.normal(size=(2, 30, num_constraints))


def test_options_in_turn_have_no_weak_regret_and_a_strong_one() -> None:
    """The paper's minimal example: o_1 and o_2 alternate."""
    cmdp = cmdpax.environments.make("bandit")
    count = 100
    result = cmdpax.account(cmdp, OPTIONS[np.arange(count) % 2])
    assert result.weak_regret.objective[-1] == pytest.approx(0, abs=1e-9)
    assert result.weak_regret.maximum[-1] == pytest.approx(0, abs=1e-9)
    assert result.strong_regret.objective[-1] == pytest.approx(count / 5)
    assert result.strong_regret.maximum[-1] == pytest.approx(count / 5)
    np.testing.assert_allclose(result.unsafe, 0.5)
    assert result.growth_exponent().maximum == pytest.approx(1, abs=0.05)


def test_the_third_option_has_no_regret_at_all() -> None:
    result = cmdpax.account(cmdpax.environments.make("bandit"), OPTIONS[np.full(100, 2)])
    for regret in (result.strong_regret, result.weak_regret):
        for array in regret:
            np.testing.assert_allclose(array, 0, atol=1e-9)
    assert not result.unsafe.any()


def test_accounts_are_those_of_the_reference() -> None:
    cmdp = model(2)
    dense = reference.densify(cmdp)
    policies = np.random.default_rng(0).dirichlet(np.ones(2), size=(7, 3, 3))
    result = cmdpax.account(cmdp, policies, unsafe_at=(0.0, 0.2))
    values = [reference.evaluate(dense, policy) for policy in policies]
    optimum = reference.optimum(dense)
    np.testing.assert_allclose(result.value, [v.value for v in values], atol=1e-12)
    violation = cmdp.thresholds - np.array([v.constraint_values for v in values])
    np.testing.assert_allclose(result.violation, violation, atol=1e-12)
    lost = optimum - np.array([v.value for v in values])
    np.testing.assert_allclose(result.suboptimality, lost, atol=1e-9)
    strong = [sum(max(x, 0.0) for x in violation[:, i]) for i in range(2)]
    np.testing.assert_allclose(result.strong_regret.constraints[-1], strong)
    assert result.strong_regret.maximum[-1] == pytest.approx(max(strong))
    assert result.weak_regret.objective[-1] == pytest.approx(lost.sum())
    for level, share in zip((0.0, 0.2), result.unsafe, strict=True):
        assert share == np.mean([max(row) >= level for row in violation])


@given(seed=SEEDS, num_constraints=st.sampled_from([0, 1, 3]))
def test_strong_regrets_grow_and_bound_the_weak_ones(seed: int, num_constraints: int) -> None:
    suboptimality, violation = errors(seed, num_constraints)
    strong = strong_regret(suboptimality, violation)
    weak = weak_regret(suboptimality, violation)
    for high, low in zip(strong, weak, strict=True):
        assert np.all(low <= high + 1e-12)
    assert np.all(np.diff(strong.objective, axis=-1) >= 0)
    assert np.all(np.diff(strong.constraints, axis=-2) >= 0)
    assert np.all(np.diff(strong.maximum, axis=-1) >= 0)


@given(seed=SEEDS, order=st.permutations(range(3)))
def test_permuted_constraints_permute_their_regrets(seed: int, order: list[int]) -> None:
    suboptimality, violation = errors(seed, 3)
    for regret_of in (strong_regret, weak_regret):
        regret = regret_of(suboptimality, violation)
        permuted = regret_of(suboptimality, violation[..., order])
        np.testing.assert_array_equal(permuted.constraints, regret.constraints[..., order])
        np.testing.assert_array_equal(permuted.maximum, regret.maximum)


@given(seed=SEEDS)
def test_the_maximum_is_taken_of_the_sums(seed: int) -> None:
    suboptimality, violation = errors(seed, 3)
    for regret_of in (strong_regret, weak_regret):
        single = [regret_of(suboptimality, violation[..., [i]]).maximum for i in range(3)]
        found = regret_of(suboptimality, violation).maximum
        np.testing.assert_array_equal(found, np.max(single, axis=0))


def test_shares_of_unsafe_episodes() -> None:
    violation = np.array([[0.0, -1.0], [0.05, -0.2], [-0.3, 0.1], [-0.1, -0.1]])
    found = unsafe_share(violation, (1e-9, 0.05, 0.1, 0.2))
    np.testing.assert_array_equal(found, [0.5, 0.5, 0.25, 0.0])
    assert unsafe_share(np.zeros((4, 0)), (0.1,)).tolist() == [0.0]


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
def test_growth_exponents_of_powers(exponent: float) -> None:
    episodes = np.arange(1, 2001)
    cumulative = np.stack([7 * episodes**exponent, 0.0 * episodes])
    found = growth_exponent(cumulative, episodes)
    assert found[0] == pytest.approx(exponent, abs=1e-9)
    assert np.isnan(found[1])


def test_growth_is_measured_over_the_last_nine_tenths() -> None:
    episodes = np.arange(1, 1001)
    cumulative = np.where(episodes < 100, 1e-3, episodes**0.3)
    assert growth_exponent(cumulative, episodes) == pytest.approx(0.3, abs=1e-9)
    spaced = np.array([1, 50, 100, 300, 1000])
    assert growth_exponent(spaced**0.3, spaced) == pytest.approx(0.3, abs=1e-9)
    assert np.isnan(growth_exponent(np.ones(1), np.array([1])))


@pytest.mark.parametrize("policies", [np.ones((1, 1, 3)) / 3, np.zeros((0, 1, 1, 3))])
def test_sequences_have_four_axes_and_a_policy(policies: np.ndarray) -> None:
    with pytest.raises(cmdpax.ModelError, match=r"expected \(K, H, S, A\)"):
        cmdpax.account(cmdpax.environments.make("bandit"), policies)


def test_wrong_policies_are_refused() -> None:
    with pytest.raises(cmdpax.ModelError):
        cmdpax.account(cmdpax.environments.make("bandit"), np.ones((2, 1, 1, 3)))


def test_a_violation_that_is_not_a_number_is_not_safe() -> None:
    violation = np.array([[[np.nan], [-1.0]], [[-1.0], [-1.0]]])
    np.testing.assert_array_equal(unsafe_share(violation, (0.01, 0.1)), [[0.5, 0.5], [0, 0]])
