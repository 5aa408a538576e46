"""A learner's own randomness: a function of the seed and the episode, whoever runs it."""

from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cmdpax
from checkpoint_cases import Interrupting, write_often
from cmdpax.learners import Info, Knowledge, Learner, Shown
from cmdpax.learners.base import learner_key
from cmdpax.learners.statistics import Trajectory
from learning_cases import model


class Nothing(NamedTuple):
    """It has no parameters."""


class Drawn(NamedTuple):
    log_policy: Any
    multipliers: Any


def wandering(knowledge: Knowledge, parameters: Nothing) -> Learner:
    """Policies and multipliers are drawn anew after every episode, and drift."""
    num_constraints, *pairs = knowledge.sizes
    dtype = knowledge.initial.dtype

    def drawn(key: Any, near: Any) -> Drawn:
        for_policy, for_multipliers = jax.random.split(key)
        scores = near + jax.random.normal(for_policy, pairs, dtype)
        multipliers = jax.random.uniform(for_multipliers, (num_constraints,), dtype)
        return Drawn(jax.nn.log_softmax(scores), multipliers)

    def init(key: Any) -> Drawn:
        return drawn(key, jnp.zeros(pairs, dtype))

    def update(state: Drawn, trajectory: Trajectory, key: Any) -> Drawn:
        return drawn(key, state.log_policy / 2)

    def show(state: Drawn) -> Shown:
        return Shown(state.log_policy, Info(state.multipliers, jnp.zeros_like(state.multipliers)))

    return Learner(init, update, show)


def learn(seeds: Any, num_episodes: int = 40, **changes: Any) -> cmdpax.History:
    return cmdpax.learn(model(2), wandering, num_episodes=num_episodes, seeds=seeds, **changes)


def test_runs_of_different_seeds_differ() -> None:
    history = learn(3)
    draws = history.multipliers.reshape(-1)
    assert len(np.unique(draws)) == draws.size  # of every run and episode, the first included
    assert np.ptp(history.value, axis=0).min() > 1e-6


def test_a_run_is_the_same_alone_in_any_batch_and_when_repeated() -> None:
    alone, trio = learn([4]), learn([3, 4, 5])
    for name in ("value", "constraint_values", "multipliers", "policy"):
        found, expected = getattr(trio, name)[1], getattr(alone, name)[0]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9, err_msg=name)
    again = cmdpax.repeat(model(2), alone.manifest, algorithm=wandering)
    np.testing.assert_array_equal(again.value, alone.value)
    np.testing.assert_array_equal(again.policy, alone.policy)


def test_a_longer_run_has_the_shorter_one_as_its_prefix() -> None:
    short, longer = learn(2), learn(2, num_episodes=1100)
    np.testing.assert_array_equal(longer.value[:, :40], short.value)
    np.testing.assert_array_equal(longer.multipliers[:, :40], short.multipliers)


def test_replaying_with_the_seed_of_a_run_draws_the_same() -> None:
    history = learn([4, 5], log=True)
    assert history.log is not None
    for run, seed in enumerate((4, 5)):
        log = history.log.run(run)
        replayed = cmdpax.replay(model(2), wandering, log, seed=seed)
        np.testing.assert_allclose(replayed.multipliers, history.multipliers[run], atol=1e-12)
        np.testing.assert_allclose(replayed.policies[-1], history.policy[run], atol=1e-12)
        accounts = cmdpax.account(model(2), replayed.policies)
        np.testing.assert_allclose(history.value[run], accounts.value, rtol=0, atol=1e-11)
    other = cmdpax.replay(model(2), wandering, log, seed=6)
    assert np.abs(other.policies - replayed.policies).max(axis=(1, 2, 3)).min() > 1e-6
    with pytest.raises(cmdpax.ParameterError, match="it must be"):
        cmdpax.replay(model(2), wandering, log, seed=-1)


def test_an_agent_with_the_seed_of_a_run_draws_the_same(tmp_path: Path) -> None:
    history = learn([4], log=True)
    assert history.log is not None
    log, path = history.log.run(0), tmp_path / "agent.npz"
    expected = cmdpax.replay(model(2), wandering, log, seed=4).policies
    agent = cmdpax.Agent(
        wandering,
        num_states=3,
        num_actions=2,
        horizon=3,
        thresholds=[1.0, 1.0],
        initial=model(2).initial,
        seed=4,
    )
    np.testing.assert_allclose(agent.policy, expected[0], rtol=0, atol=1e-12)
    agent.feed(cmdpax.Log(*(array[:20] for array in log)))
    agent.save(path)
    for one in (agent, cmdpax.Agent.load(path, algorithm=wandering)):
        np.testing.assert_allclose(one.policy, expected[20], rtol=0, atol=1e-12)
        one.feed(cmdpax.Log(*(array[20:39] for array in log)))
        np.testing.assert_allclose(one.policy, expected[39], rtol=0, atol=1e-12)


def test_what_goes_on_from_a_checkpoint_draws_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_often(monkeypatch)
    path, expected = tmp_path / "c.npz", learn(2)
    with pytest.raises(KeyboardInterrupt):
        learn(2, checkpoint=path, progress=Interrupting(3))
    assert path.exists()
    found = learn(2, checkpoint=path)
    np.testing.assert_array_equal(found.multipliers, expected.multipliers)
    np.testing.assert_array_equal(found.value, expected.value)


def test_its_keys_are_nobody_elses() -> None:
    """Episodes are played with fold_in(key of the run, k), for k = 1, 2, …"""
    run = jax.random.key(0)
    episodes = [0, 1, 2, 1000, 2**31 - 1]
    keys = [learner_key(run, episode) for episode in episodes]
    keys += [jax.random.fold_in(run, episode) for episode in episodes]
    assert len({tuple(np.asarray(jax.random.key_data(key))) for key in keys}) == len(keys)
    for index, episode in enumerate(episodes):
        traced = jax.jit(learner_key)(run, jnp.int32(episode))
        np.testing.assert_array_equal(jax.random.key_data(traced), jax.random.key_data(keys[index]))
