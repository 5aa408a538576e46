"""Batches and groups of runs: how they are stacked, computed and kept."""

import threading
import time
from typing import Any

import jax
import numpy as np
import pytest

import cmdpax
from cmdpax.learners import Hyperparameters, Knowledge, Learner, as_algorithm
from cmdpax.learning import group, workers
from cmdpax.learning.loop import stack_runs
from cmdpax.learning.settings import Configuration
from configurations import configured

SIZES = cmdpax.Sizes(2, 3, 4, 5)


@pytest.mark.usefixtures("double_precision")
def test_many_equal_and_some_different_configurations_are_stacked() -> None:
    known = as_algorithm("regularized-primal-dual")
    numbers = [
        configured(known, step_size=eta, regularization=tau).parameters
        for eta in (0.1, 0.2)
        for tau in (0.0, 0.1)
    ]
    profiles = [cmdpax.Optimism.empirical(), cmdpax.Optimism.live(), cmdpax.Optimism.theory(9)]
    generator = np.random.default_rng(0)
    configurations = [
        Configuration(
            int(generator.integers(2**32)),
            known,
            numbers[generator.integers(4)],
            profiles[generator.integers(3)],
        )
        for _ in range(300)
    ]
    together = stack_runs(SIZES, configurations, 9, float)
    for index in (0, 1, 17, 299):
        alone = stack_runs(SIZES, [configurations[index]], 9, float)
        for found, expected in zip(
            jax.tree.leaves(together[1:]), jax.tree.leaves(alone[1:]), strict=True
        ):
            assert found.shape == (300,)
            np.testing.assert_array_equal(found[index], expected[0])
        key = jax.random.key_data(together.keys[index])
        np.testing.assert_array_equal(key, jax.random.key_data(alone.keys[0]))
    every = np.array([c.parameters.step_size.initial for c in configurations])
    np.testing.assert_array_equal(together.parameters["step_size"].initial, every)
    assert np.isnan(together.bonuses.unvisited_reward).any()


@pytest.mark.parametrize("seeds", [1, 2])
def test_products_of_matrices_are_full(seeds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Alone, and in threads."""
    monkeypatch.setattr(workers, "num_cores", lambda: 2)
    seen = []

    def spy(knowledge: Knowledge, chosen: Hyperparameters) -> Learner:
        seen.append(jax.config.jax_default_matmul_precision)
        return as_algorithm("vanilla-primal-dual").factory(knowledge, chosen)

    before = jax.config.jax_default_matmul_precision
    cmdpax.learn(cmdpax.environments.make("bandit"), spy, num_episodes=3, seeds=seeds)
    assert set(seen) == {"highest"}
    assert jax.config.jax_default_matmul_precision == before != "highest"


def test_progress_is_told_by_one_thread_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's function need not be safe for threads; two groups run at once."""
    monkeypatch.setattr(workers, "num_cores", lambda: 2)
    inside, most, told = 0, 0, set()

    def report(done: int, total: int) -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        told.add(threading.get_ident())
        time.sleep(0.01)
        inside -= 1

    cmdp = cmdpax.environments.make("bandit")
    cmdpax.learn(cmdp, "vanilla-primal-dual", num_episodes=4000, seeds=2, progress=report)
    assert len(told) == 2
    assert most == 1


@pytest.mark.exact
def test_blocks_of_long_runs_are_joined_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each leaves a little: ten million episodes would leave ten thousand pieces."""
    monkeypatch.setattr(group, "block_size", lambda *sizes: 2)
    lengths, join = [], group._join

    def spy(pieces: Any) -> Any:
        lengths.append(len(pieces))
        return join(pieces)

    monkeypatch.setattr(group, "_join", spy)
    cmdp = cmdpax.environments.make("bandit")
    long = cmdpax.learn(cmdp, "vanilla-primal-dual", num_episodes=600, seeds=1)
    assert lengths == [group._MOST_PIECES, 1 + 300 - (group._MOST_PIECES - 1)]
    monkeypatch.undo()
    expected = cmdpax.learn(cmdp, "vanilla-primal-dual", num_episodes=600, seeds=1)
    np.testing.assert_array_equal(long.value, expected.value)
    np.testing.assert_array_equal(long.multipliers, expected.multipliers)
