"""What every registered algorithm must do: run plain, jitted, vmapped, and compile once."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cmdpax
from cmdpax.jax_context import cast
from cmdpax.learners import Hyperparameters, Info, Knowledge, Learner, Shown, as_algorithm
from cmdpax.learners.statistics import Trajectory
from cmdpax.learning.group import Collected
from cmdpax.learning.loop import (
    Design,
    Runs,
    Task,
    account_block,
    advance,
    make_learner,
    no_sums,
    stack_runs,
    start,
)
from cmdpax.learning.settings import Configuration
from cmdpax.learning.workers import run_batch
from configurations import configured, designed
from learning_cases import NO_WARNING, default_regularization, every_algorithm, logged, model

pytestmark = [
    pytest.mark.usefixtures("double_precision"),
    every_algorithm,
]
NUM_EPISODES = 12
KEY = jax.random.key(3)


def configuration_of(algorithm: str, seed: int = 0, **changes: Any) -> Configuration:
    chosen = {"step_size": 0.5, "num_episodes": NUM_EPISODES} | changes
    return configured(algorithm, seed, **chosen)


def design_of(algorithm: str, stacked: bool = False) -> Design:
    return designed(configuration_of(algorithm), stacked=stacked, keep_log=True)


def runs_of(configurations: list[Configuration]) -> Runs:
    return stack_runs(model(2).sizes, configurations, NUM_EPISODES, float)


def single(tree: Any, index: int = 0) -> Any:
    return jax.tree.map(lambda array: array[index], tree)


def learner_of(algorithm: str, optimism: str = "empirical") -> Learner:
    configuration = configuration_of(algorithm, optimism=getattr(cmdpax.Optimism, optimism)())
    run = single(runs_of([configuration]))
    return make_learner(designed(configuration), cast(model(2), float), run)


def followed(learner: Learner, episodes: Trajectory) -> tuple[Any, Shown]:
    """The state after some episodes, and what was shown of each of them."""

    def step(state: Any, trajectory: Trajectory) -> tuple[Any, Shown]:
        return learner.update(state, trajectory, KEY), learner.show(state)

    return jax.lax.scan(step, learner.init(KEY), episodes)


def trajectories() -> list[Trajectory]:
    log = logged(model(2))
    return [
        Trajectory(
            jnp.asarray(states, jnp.int32),
            jnp.asarray(actions, jnp.int32),
            jnp.asarray(rewards, float),
            jnp.asarray(constraint_rewards, float),
        )
        for states, actions, rewards, constraint_rewards in zip(*log, strict=True)
    ][:NUM_EPISODES]


def stacked_trajectories() -> Trajectory:
    return jax.tree.map(lambda *arrays: jnp.stack(arrays), *trajectories())


def assert_trees_close(found: Any, expected: Any, tolerance: float = 1e-12) -> None:
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance)


def kinds(tree: Any) -> Any:
    return jax.tree.map(lambda array: (array.shape, str(array.dtype), array.weak_type), tree)


def test_plain_jitted_and_scanned_runs_agree(algorithm: str) -> None:
    learner = learner_of(algorithm, optimism="live")
    first, *others = trajectories()
    plain = learner.update(learner.init(KEY), first, KEY)
    init, update, show = map(jax.jit, learner[:3])
    state = update(init(KEY), first, KEY)
    assert_trees_close((state, show(state)), (plain, learner.show(plain)))
    seen = [show(init(KEY)), show(state)]
    for trajectory in others:
        state = update(state, trajectory, KEY)
        seen.append(show(state))
    assert update._cache_size() == show._cache_size() == 1
    scanned_state, scanned = followed(learner, stacked_trajectories())
    assert_trees_close(scanned_state, state)
    assert_trees_close(scanned, jax.tree.map(lambda *arrays: jnp.stack(arrays), *seen[:-1]))
    assert np.ptp(scanned.info.constraint_values) > 0


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("optimism", ["empirical", "live"])
def test_states_keep_their_structure_and_counts_their_integers(
    algorithm: str, optimism: str, precision: str
) -> None:
    with jax.enable_x64(precision == "double"):
        learner = learner_of(algorithm, optimism=optimism)
        before = jax.eval_shape(learner.init, KEY)
        after = jax.eval_shape(learner.update, before, trajectories()[0], KEY)
        assert jax.tree.structure(before) == jax.tree.structure(after)
        assert kinds(before) == kinds(after)
        dtype = jnp.result_type(float)
        for array in jax.tree.leaves(before):
            assert array.dtype in (dtype, jnp.int32)
        assert before.episode.dtype == jnp.int32
        log_policy, info = jax.eval_shape(learner.show, before)
        assert isinstance(info, Info)
        assert info.statistics.visits.dtype == jnp.int32
        for counts in jax.tree.leaves(info.statistics.storage[0]):
            assert counts.dtype == jnp.int32
        assert log_policy.shape == (3, 3, 2)
        assert info.multipliers.shape == info.constraint_values.shape == (2,)
        numbers = (log_policy, info._replace(statistics=None))
        assert {array.dtype for array in jax.tree.leaves(numbers)} == {dtype}


def test_counts_are_those_of_the_episodes(algorithm: str) -> None:
    learner = learner_of(algorithm)
    state, _ = followed(learner, stacked_trajectories())
    visits = np.zeros((3, 3, 2), int)
    went = np.zeros((3, 3, 2, 3), int)
    for states, actions, *_ in trajectories():
        for h in range(3):
            visits[h, states[h], actions[h]] += 1
            went[h, states[h], actions[h], states[h + 1]] += 1
    statistics = learner.show(state).info.statistics
    assert statistics is not None
    np.testing.assert_array_equal(statistics.visits, visits)
    np.testing.assert_array_equal(np.array(statistics.storage[0]), went)
    assert int(state.episode) == NUM_EPISODES + 1


def test_vmapped_over_hyperparameters(algorithm: str) -> None:
    """A grid over η, τ, λ_max and the margin is the runs one by one; τ = 0 may be part of it."""
    damped = default_regularization(algorithm)
    taus = {
        "regularized-dual": (0.3, 0.05),
        "regularized-primal-dual": (0.0, 0.3),
    }.get(algorithm, (0.0, 0.0))
    grid = [
        configuration_of(algorithm),
        configuration_of(
            algorithm, step_size=cmdpax.schedules.power(2.0, 0.5), regularization=taus[0]
        ),
        configuration_of(algorithm, max_multiplier=0.1, regularization=taus[1]),
        configuration_of(algorithm, margin=0.3, regularization=damped),
    ]
    design, cmdp = designed(grid[0]), cast(model(2), float)

    def run(chosen: Runs) -> Info:
        return followed(make_learner(design, cmdp, chosen), stacked_trajectories())[1].info

    together = runs_of(grid)
    found = jax.jit(jax.vmap(run))(together)
    alone = jax.jit(run)
    for index in range(len(grid)):
        assert_trees_close(single(found, index), alone(single(together, index)))
    differences = np.ptp(np.asarray(found.multipliers), axis=0)
    assert differences.max() > 1e-3  # the grid does something


def played(design: Design, cmdp: Any, runs: Runs) -> Any:
    """Log policies, multipliers and episodes of all runs; and their last states."""
    states = start(design, cmdp, runs)
    return advance(design, cmdp, runs, states, jnp.int32(1), jnp.int32(NUM_EPISODES), 16)


def test_vmapped_over_seeds_and_over_stacked_models(algorithm: str) -> None:
    cmdps = [model(2, seed=seed) for seed in (1, 2, 3)]
    runs = runs_of([configuration_of(algorithm, seed) for seed in (4, 5, 6)])
    stacked = jax.tree.map(lambda *arrays: jnp.asarray(np.stack(arrays)), *cmdps)
    last, (policies, *others) = played(design_of(algorithm, stacked=True), stacked, runs)
    optima = jnp.asarray([cmdpax.solve(cmdp).value for cmdp in cmdps])
    levels = jnp.asarray([0.0, 0.05])
    sums, entries = account_block(
        stacked,
        optima,
        levels,
        policies,
        jnp.int32(NUM_EPISODES),
        no_sums(3, 3, 2, float),
        True,
    )
    for index, cmdp in enumerate(cmdps):
        alone = jax.tree.map(lambda array, i=index: array[i : i + 1], runs)
        expected_last, expected = played(design_of(algorithm), cast(cmdp, float), alone)
        assert_trees_close(
            jax.tree.map(lambda array, i=index: array[i], last),
            jax.tree.map(lambda array: array[0], expected_last),
        )
        assert_trees_close(
            jax.tree.map(lambda array, i=index: array[:, i], [policies, *others]),
            jax.tree.map(lambda array: array[:, 0], [*expected]),
        )
        alone_policies, *_ = expected
        accounts = cmdpax.account(cmdp, alone_policies[:NUM_EPISODES, 0], unsafe_at=(0.0, 0.05))
        totals = [accounts.strong_regret.objective[-1], *accounts.strong_regret.constraints[-1]]
        np.testing.assert_allclose(sums.strong[index], totals, rtol=0, atol=1e-11)
        np.testing.assert_allclose(
            entries.values[:NUM_EPISODES, index, 0], accounts.value, rtol=0, atol=1e-12
        )
        np.testing.assert_allclose(sums.unsafe[index] / NUM_EPISODES, accounts.unsafe)


def run_together(
    algorithm: str, cmdps: list[cmdpax.CMDP], configurations: list[Configuration], stacked: bool
) -> Collected:
    design = design_of(algorithm, stacked=stacked)._replace(keep_log=False)
    optima = [cmdpax.solve(cmdp).value for cmdp in cmdps]
    recorded = np.array([3, NUM_EPISODES])
    task = Task(
        design,
        [cmdpax.rescale(cmdp) for cmdp in cmdps],
        optima,
        recorded,
        NUM_EPISODES,
        (0.0, 0.05),
    )
    return run_batch(task, configurations, None, lambda done, total: None)


def test_a_batch_of_several_models_is_its_single_runs(algorithm: str) -> None:
    """Groups and their padding included: five runs are not a multiple of two threads."""
    cmdps = [model(2, seed=seed) for seed in (1, 2, 3, 1, 2)]
    configurations = [
        configuration_of(
            algorithm,
            seed,
            step_size=0.3 + 0.1 * seed,
            optimism=cmdpax.Optimism.empirical(0.1 * seed),
        )
        for seed in range(5)
    ]
    together = run_together(algorithm, cmdps, configurations, stacked=True)
    assert together.policy.shape == (5, 3, 3, 2)
    for index, cmdp in enumerate(cmdps):
        alone = run_together(algorithm, [cmdp], [configurations[index]], stacked=False)
        found = jax.tree.map(lambda array, i=index: array[i : i + 1], together)
        assert_trees_close(found, alone, 1e-9)
    assert np.ptp(together.policy, axis=0).max() > 1e-3


def test_one_program_serves_every_k_seed_and_number(algorithm: str) -> None:
    traces = []

    def counting(knowledge: Knowledge, chosen: Hyperparameters) -> Learner:
        learner = as_algorithm(algorithm).factory(knowledge, chosen)

        def update(state: Any, trajectory: Trajectory, key: Any) -> Any:
            traces.append(trajectory)
            return learner.update(state, trajectory, key)

        return learner._replace(update=update)

    def learn(**changes: Any) -> cmdpax.History:
        tau = default_regularization(algorithm)
        arguments = {"num_episodes": 20, "seeds": 2, "max_multiplier": NO_WARNING}
        arguments |= {"regularization": tau} | changes
        return cmdpax.learn(model(2), counting, **arguments)

    learn()  # a learner of one's own
    first = len(traces)
    assert first > 0
    accounted = account_block._cache_size()
    tau = 0.0 if algorithm.startswith("vanilla") else cmdpax.schedules.power(0.1, 0.2)
    learn(num_episodes=21)
    learn(num_episodes=1030)  # more than one block
    learn(seeds=[17, 3])
    learn(step_size=0.7, regularization=tau, margin=0.1)
    learn(step_size=cmdpax.schedules.power(0.3, 0.5), optimism=cmdpax.Optimism.empirical(0.5))
    assert len(traces) == first
    assert account_block._cache_size() == accounted
