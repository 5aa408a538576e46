"""What learns where no algorithm is named."""

import inspect

import jax
import numpy as np
import pytest

import cmdpax
from cmdpax.learners import DEFAULT_ALGORITHM, as_algorithm
from cmdpax.learning.history import Plans
from learning_cases import model


def test_it_is_registered_and_anytime() -> None:
    """A live system has no number of episodes."""
    assert DEFAULT_ALGORITHM in cmdpax.algorithms()
    assert as_algorithm(DEFAULT_ALGORITHM).anytime


@pytest.mark.parametrize("function", [cmdpax.learn, cmdpax.Agent])
def test_one_constant_is_the_default_everywhere(function: object) -> None:
    assert inspect.signature(function).parameters["algorithm"].default == DEFAULT_ALGORITHM


def test_learn_without_a_name() -> None:
    unnamed = cmdpax.learn(model(1), num_episodes=300, seeds=2)
    named = cmdpax.learn(model(1), DEFAULT_ALGORITHM, num_episodes=300, seeds=2)
    assert unnamed.manifest["algorithm"] == DEFAULT_ALGORITHM
    assert unnamed.manifest == named.manifest
    np.testing.assert_array_equal(unnamed.value, named.value)
    again = cmdpax.repeat(model(1), unnamed.manifest)
    np.testing.assert_array_equal(again.value, unnamed.value)


def test_a_parameter_of_another_algorithm_is_refused_by_name() -> None:
    with pytest.raises(cmdpax.ParameterError, match="replanning has no parameter 'step_size'"):
        cmdpax.learn(model(1), num_episodes=300, step_size=0.1)


def test_plans_are_counted() -> None:
    """The second run made one plan fewer; what stands after its last one is not counted."""
    plans = Plans(
        np.array([[1, 2, 5], [1, 3, 0]]),
        np.array([[False, True, False], [True, True, False]]),
        None,
    )
    np.testing.assert_array_equal(plans.made, [3, 2])
    np.testing.assert_array_equal(plans.infeasible, [2, 0])


def test_infeasible_plans_of_a_run() -> None:
    """Constraints that are reduced by large bonuses cannot be met before much is counted."""
    history = cmdpax.learn(model(1), num_episodes=10**6, seeds=2, record=10, pessimism=3.0)
    assert history.plans is not None
    assert (history.plans.infeasible > 0).all()
    assert (history.plans.infeasible < history.plans.made).all()
    assert (history.plans.made < 1000).all()


def test_ties_are_broken_alike_in_every_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a goal is found all actions tie, and batches of other sizes round differently."""
    cmdp = cmdpax.environments.make("gridworld", height=6, width=6, horizon=18)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")  # one batch, not one per core

    def runs(seeds: list[int]) -> cmdpax.History:
        return cmdpax.learn(cmdp, num_episodes=100, seeds=seeds, record=[10, 30, 100])

    many, few = runs(list(range(17))), runs([3, 11, 16])
    np.testing.assert_allclose(many.value[[3, 11, 16]], few.value, rtol=1e-9)
