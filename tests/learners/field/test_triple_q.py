"""Triple-Q against a slow reference."""

import math
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cmdpax
import learning_reference
import reference
from available_cases import case
from cmdpax.jax_context import cast
from cmdpax.learners.statistics import Trajectory
from cmdpax.learning.loop import make_learner, stack_runs
from configurations import configured, designed
from learning_cases import logged, model
from learning_reference import Seen

GIVEN = {"bonus_scale": 0.0002, "margin": 0.8, "queue_scale": 0.2}


def slow_triple_q(
    dense: reference.Dense,
    episodes: list[Any],
    known: bool,
    margin: float,
    queue_scale: float,
    bonus_scale: float,
) -> Iterator[Seen]:
    """The pseudo-code, step by step."""
    horizon, num_states, num_actions = dense.rewards.shape
    num_episodes = len(episodes)
    frame = math.floor(num_episodes**0.6)
    chi, eta = num_episodes**0.2, queue_scale * num_episodes**0.2
    iota = 128 * math.log(math.sqrt(2 * num_states * num_actions * horizon) * num_episodes)
    width = bonus_scale * math.sqrt(iota)
    q, c = (np.full(dense.rewards.shape, float(horizon)) for _ in range(2))
    visits = np.zeros(dense.rewards.shape, int)
    z = gathered = 0.0
    for k, (states, actions, rewards, constraint_rewards) in enumerate(episodes, start=1):
        best = np.zeros((horizon, num_states), int)
        for h, s in np.ndindex(best.shape):
            score = q[h, s] + z / eta * c[h, s]
            best[h, s] = np.flatnonzero(score >= score.max() - 1e-10)[0]
        promised = sum(dense.initial[s] * c[0, s, best[0, s]] for s in range(num_states))
        yield Seen(np.array([z / eta]), np.array([promised]), np.eye(num_actions)[best])
        gathered += c[0, states[0], actions[0]]
        for h in range(horizon):
            at = (h, states[h], actions[h])
            visits[at] += 1
            alpha = (chi + 1) / (chi + visits[at])
            bonus = math.sqrt(horizon**2 * (chi + 1) / (chi + visits[at])) * width / 4
            r, u = rewards[h], constraint_rewards[0][h]
            if known:
                r, u = dense.rewards[at], dense.constraint_rewards[0][at]
            if h + 1 < horizon:
                following = (h + 1, states[h + 1], best[h + 1, states[h + 1]])
                r, u = r + q[following], u + c[following]
            q[at] = (1 - alpha) * q[at] + alpha * (r + bonus)
            c[at] = (1 - alpha) * c[at] + alpha * (u + bonus)
        if k % frame == 0:
            q += 2 * horizon**3 * width / eta
            full = (q >= horizon) | (c >= horizon)
            q[full] = c[full] = horizon
            z = max(z + dense.thresholds[0] + margin - gathered / frame, 0.0)
            visits[:], gathered = 0, 0.0


@pytest.mark.parametrize("known", [True, False])
def test_it_is_its_reference(known: bool) -> None:
    cmdp = model(1)
    log = logged(cmdp)
    optimism = "empirical" if known else "live"
    found = cmdpax.replay(cmdp, "triple-q", log, optimism=optimism, **GIVEN)
    episodes = list(zip(*log, strict=True))
    slow = slow_triple_q(reference.densify(cmdp), episodes, known, **GIVEN)
    expected = learning_reference.collect(slow)
    np.testing.assert_array_equal(found.policies, expected.policy)
    np.testing.assert_allclose(found.multipliers, expected.multipliers, rtol=0, atol=1e-8)
    values = found.optimistic_constraint_values
    np.testing.assert_allclose(values, expected.constraint_values, rtol=0, atol=1e-8)
    assert len(np.unique(found.multipliers)) >= 3
    assert np.ptp(found.policies, axis=0).max() == 1


def test_others_than_the_available_actions_play_no_part() -> None:
    one, given = case("steps"), GIVEN | {"bonus_scale": 0}
    log = logged(one.plain)
    actions = one.numbered(log.states[:, :-1], log.actions)
    wide = cmdpax.replay(one.cmdp, "triple-q", log._replace(actions=actions), **given)
    plain = cmdpax.replay(one.plain, "triple-q", log, **given)
    np.testing.assert_array_equal(wide.policies, one.widened(plain.policies))
    np.testing.assert_allclose(wide.multipliers, plain.multipliers, rtol=0, atol=1e-12)


@pytest.mark.usefixtures("double_precision")
def test_steps_that_did_not_happen_teach_nothing() -> None:
    """A live system cuts an episode short: the steps after that have action A."""
    cmdp = cast(model(1), float)
    configuration = configured("triple-q", num_episodes=40, **GIVEN)
    runs = stack_runs(cmdp.sizes, [configuration], 40, float)
    one = jax.tree.map(lambda array: array[0], runs)
    learner = make_learner(designed(configuration), cmdp, one)
    states = jnp.array([1, 2, 0, 0], jnp.int32)
    signals = (jnp.ones(3), jnp.ones((1, 3)))
    before, key = learner.init(jax.random.key(0)), jax.random.key(1)
    cut = Trajectory(states, jnp.array([1, 2, 2], jnp.int32), *signals)
    after = learner.update(before, cut, key)
    assert np.argwhere(after.visits).tolist() == [[0, 1, 1]]
    changed = np.argwhere((after.tables != before.tables).any(axis=1))
    assert changed.tolist() == [[0, 1, 1]]
    assert after.gathered == before.tables[0, 1, 1, 1]
    never = cut._replace(actions=jnp.full(3, 2, jnp.int32))
    nothing = learner.update(before, never, key)
    assert not nothing.visits.any()
    assert nothing.gathered == 0
    np.testing.assert_array_equal(nothing.tables, before.tables)


def test_it_learns_without_a_model() -> None:
    """Both regrets grow more slowly than the episodes."""
    cmdp = cmdpax.environments.make("random")
    shares = [
        np.add(*(summary[name].mean() for name in ("strong_objective", "strong_constraints"))) / K
        for K in (400, 4000)
        for summary in [cmdpax.learn(cmdp, "triple-q", num_episodes=K, seeds=3).summary()]
    ]
    assert shares[1] < 0.8 * shares[0]
