"""Stretches in constant time against episodes that are played one by one."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import cmdpax
from cmdpax.jax_context import cast
from cmdpax.learning.episodes import draw_episodes
from cmdpax.learning.loop import play
from cmdpax.learning.stretches import Stretches, play_stretch
from learning_cases import model

pytestmark = pytest.mark.usefixtures("double_precision")
COUNT = 20_000
LEAST = 1e-4  # of p-values, with fixed keys


def stored(storage: str) -> cmdpax.CMDP:
    cmdp = model(1)
    if storage == "dense":
        return cmdp
    successors = np.broadcast_to(np.array([2, 0, 1]), cmdp.transitions.shape).copy()
    lists = cmdpax.Successors(successors, cmdp.transitions[..., [2, 0, 1]])
    return cmdp.replace(transitions=lists)


def policy_of(cmdp: cmdpax.CMDP) -> np.ndarray:
    _, *pairs = cmdp.sizes
    return np.random.default_rng(5).dirichlet(np.ones(pairs[-1]), pairs[:-1])


def stretch(
    cmdp: cmdpax.CMDP, count: int, seed: int = 0, known: bool = True, bernoulli: bool = False
) -> Any:
    found = play_stretch(
        jax.random.key(seed),
        cast(cmdp, float),
        jnp.asarray(policy_of(cmdp)),
        jnp.asarray(count),
        rewards_known=known,
        bernoulli=bernoulli,
    )
    return jax.tree.map(np.asarray, found)


def went_to(cmdp: cmdpax.CMDP, went: np.ndarray) -> np.ndarray:
    """Counts by the state that followed."""
    if not isinstance(cmdp.transitions, cmdpax.Successors):
        return went
    written = np.zeros_like(went)
    np.put_along_axis(written, np.asarray(cmdp.transitions.successors), went, axis=-1)
    return written


@pytest.mark.parametrize("storage", ["dense", "lists"])
def test_counts_flow_and_have_their_distribution(storage: str) -> None:
    cmdp = stored(storage)
    went = went_to(cmdp, stretch(cmdp, COUNT).transitions)
    assert went.dtype == np.int64
    assert (went.sum(axis=(1, 2, 3)) == COUNT).all()
    np.testing.assert_array_equal(went[:-1].sum(axis=(1, 2)), went[1:].sum(axis=(2, 3)))
    dense = model(1)
    occupancy = cmdpax.evaluate(dense, policy_of(dense)).occupancy
    expected = COUNT * occupancy[..., None] * dense.transitions
    for step in range(dense.horizon):
        statistic = ((went[step] - expected[step]) ** 2 / expected[step]).sum()
        assert scipy.stats.chi2.sf(statistic, went[step].size - 1) > LEAST


def test_two_storages_draw_stretches_of_the_same_size_without_a_list() -> None:
    assert stretch(model(1), 0).transitions.sum() == 0
    assert stretch(model(1), 10**12).transitions[0].sum() == 10**12


def test_observations_are_summed() -> None:
    cmdp = model(1)
    signals = np.stack([cmdp.rewards, *cmdp.constraint_rewards], axis=1)
    means = stretch(cmdp, COUNT, known=False)
    visits = means.transitions.sum(axis=-1)[:, None]
    np.testing.assert_allclose(means.sums, visits * signals)
    np.testing.assert_allclose(means.squares, visits * signals**2)
    draws = stretch(cmdp, COUNT, known=False, bernoulli=True)
    np.testing.assert_array_equal(draws.sums, draws.squares)
    visits = draws.transitions.sum(axis=-1)[:, None]
    deviation = np.sqrt(visits * signals * (1 - signals))
    assert (np.abs(draws.sums - visits * signals) < 5 * deviation + 1).all()
    assert stretch(cmdp, COUNT).sums is None


def episodes_of(cmdp: cmdpax.CMDP, count: int, bernoulli: bool = False) -> tuple[Any, cmdpax.Log]:
    counted = stretch(cmdp, count, known=False, bernoulli=bernoulli)
    one: Any = jax.tree.map(lambda array: array[None], counted)
    nothing: Any = None
    ones = np.array([1])
    stretches = Stretches(ones, ones * count, *[nothing] * 5, one)  # type: ignore[arg-type]
    return counted, draw_episodes(cmdp, stretches, [0, 7], bernoulli)


@pytest.mark.parametrize("bernoulli", [False, True])
@pytest.mark.parametrize("storage", ["dense", "lists"])
def test_a_log_has_the_counts_of_its_stretch(storage: str, bernoulli: bool) -> None:
    cmdp = stored(storage)
    counted, log = episodes_of(cmdp, 500, bernoulli)
    went, sums = np.zeros((3, 3, 2, 3), int), np.zeros((3, 2, 3, 2))
    for states, actions, rewards, constraint_rewards in zip(*log, strict=True):
        for h in range(3):
            went[h, states[h], actions[h], states[h + 1]] += 1
            observed = [rewards[h], *constraint_rewards[:, h]]
            sums[h, :, states[h], actions[h]] += observed
    np.testing.assert_array_equal(went, went_to(cmdp, counted.transitions))
    np.testing.assert_allclose(sums, counted.sums, atol=1e-9)
    if bernoulli:
        assert set(np.unique(log.rewards)) == {0, 1}


def test_pairs_of_steps_are_those_of_episodes_played_one_by_one() -> None:
    """χ² of (s_1, a_1, s_2, a_2, s_3) in both; counts of single steps would not tell them apart."""
    cmdp = model(1)
    _, log = episodes_of(cmdp, COUNT)
    keys = jax.random.split(jax.random.key(11), COUNT)
    device, policy = cast(cmdp, float), jnp.asarray(policy_of(cmdp))
    played = jax.jit(jax.vmap(lambda key: play(key, device, policy, False)))(keys)

    def histogram(states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        places = (states[:, 0], actions[:, 0], states[:, 1], actions[:, 1], states[:, 2])
        return np.bincount(
            np.ravel_multi_index(places, (3, 2, 3, 2, 3)), minlength=3 * 2 * 3 * 2 * 3
        )

    dealt = histogram(log.states, log.actions)
    single = histogram(np.asarray(played.states), np.asarray(played.actions))
    assert scipy.stats.chi2_contingency(np.stack([dealt, single]) + 1).pvalue > LEAST
    # The order of the episodes within a stretch says nothing.
    halves = histogram(log.states[: COUNT // 2], log.actions[: COUNT // 2])
    assert scipy.stats.chi2_contingency(np.stack([halves, dealt - halves]) + 1).pvalue > LEAST
