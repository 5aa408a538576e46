import math
import re

import pytest

import cmdpax
from cmdpax import parameters


@pytest.fixture
def cmdp() -> cmdpax.CMDP:
    """Two constraints, H = 4, A = 2."""
    return cmdpax.environments.make(
        "random", num_states=3, num_actions=2, horizon=4, num_constraints=2, seed=5
    )


@pytest.mark.parametrize("num_episodes", [1, 1000, 10**7])
def test_the_regret_theorem(cmdp: cmdpax.CMDP, num_episodes: int) -> None:
    gap = cmdpax.slater_gap(cmdp).gap
    found = parameters.regret_theorem(cmdp, num_episodes)
    assert found.regularization == pytest.approx(num_episodes ** (-1 / 7))
    assert found.step_size == pytest.approx(gap * num_episodes ** (-5 / 7) / (4**2 * 2))
    assert found.max_multiplier == pytest.approx(4 / gap * num_episodes ** (1 / 14))


def test_the_last_iterate_theorem(cmdp: cmdpax.CMDP) -> None:
    gap = cmdpax.slater_gap(cmdp).gap
    found = parameters.last_iterate_theorem(cmdp, 0.3)
    assert found.regularization == pytest.approx(0.09)
    assert found.step_size == pytest.approx(gap * 0.3**6 / (4**2 * 2 * math.log(2)))
    assert found.max_multiplier == pytest.approx(4 / gap / 0.3)


def test_a_gap_of_the_users_own(cmdp: cmdpax.CMDP) -> None:
    found = parameters.regret_theorem(cmdp, 1, slater_gap=0.5)
    assert found == pytest.approx((0.5 / 32, 1.0, 8.0))
    assert parameters.last_iterate_theorem(cmdp, 0.5, slater_gap=2.0).max_multiplier == 4.0


def test_presets_are_arguments_of_iterate_and_learn(cmdp: cmdpax.CMDP) -> None:
    preset = parameters.last_iterate_theorem(cmdp, 0.5)._asdict()
    iterates = cmdpax.iterate(cmdp, "primal-dual", num_iterations=3, **preset)
    assert iterates.multipliers.shape == (3, 2)


@pytest.mark.parametrize("alpha", [0.25, 0.5, 0.9])
def test_strict_safety(alpha: float) -> None:
    assert parameters.strict_safety(10**4, alpha) == pytest.approx(10 ** (2 * (alpha - 1)))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda c: parameters.regret_theorem(c, 0), "num_episodes is 0"),
        (lambda c: parameters.last_iterate_theorem(c, 1.0), "accuracy is 1.0"),
        (lambda c: parameters.strict_safety(0, 0.5), "num_episodes is 0"),
        (lambda c: parameters.strict_safety(10, 1.0), "alpha is 1.0"),
        (lambda c: parameters.regret_theorem(c, 9, slater_gap=0.0), "the Slater gap is 0"),
        (
            lambda c: parameters.regret_theorem(c.replace(thresholds=[9.0, 9.0]), 9),
            "the theorems need a positive one; lower the thresholds.",
        ),
        (
            lambda c: parameters.regret_theorem(c.replace(constraint_rewards=[], thresholds=[]), 9),
            "the theorems need constraints",
        ),
    ],
)
def test_what_the_theorems_do_not_allow(cmdp: cmdpax.CMDP, call, sentence: str) -> None:
    with pytest.raises(cmdpax.ParameterError, match=re.escape(sentence)):
        call(cmdp)


def test_one_action_is_too_few() -> None:
    single = cmdpax.environments.make("random", num_states=2, num_actions=1, horizon=2)
    with pytest.raises(cmdpax.ParameterError, match="two actions"):
        parameters.last_iterate_theorem(single, 0.5, slater_gap=0.1)
