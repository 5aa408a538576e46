"""UOpt-RPGPD on the model of its authors' notebook, against what they report and references."""

import math
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cmdpax
import learning_reference
import reference
import stepping_reference
from learning_cases import as_number, logged

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))

import uopt_notebook

NUM_EPISODES = 3


@pytest.fixture(scope="module")
def instance() -> uopt_notebook.Instance:
    return uopt_notebook.draw()


def test_the_model_is_theirs(instance: uopt_notebook.Instance) -> None:
    """They print these numbers in single precision."""
    solution = cmdpax.solve(uopt_notebook.as_cmdp(instance))
    assert solution.value == pytest.approx(5.188404, abs=1e-5)
    assert solution.constraint_values[0] == pytest.approx(4.811598, abs=1e-5)
    assert 10 / instance.threshold == pytest.approx(2.0783112, abs=1e-5)


def test_the_learner_is_its_reference_there(instance: uopt_notebook.Instance) -> None:
    cmdp = uopt_notebook.as_cmdp(instance)
    log = logged(cmdp, NUM_EPISODES)
    found = cmdpax.replay(cmdp, "uopt-rpgpd", log)
    chosen = cmdpax.learners.as_algorithm("uopt-rpgpd").choose({}, NUM_EPISODES)
    seen = stepping_reference.run(
        "uopt-rpgpd",
        reference.densify(cmdp),
        dict(cmdpax.Optimism.empirical()._asdict()),
        zip(*log, strict=True),
        {name: as_number(value) for name, value in chosen._asdict().items()},
    )
    expected = learning_reference.collect(seen)
    np.testing.assert_allclose(found.policies, expected.policy, rtol=0, atol=1e-8)
    np.testing.assert_allclose(found.multipliers, expected.multipliers, rtol=0, atol=1e-8)


def slow_notebook_q(
    p: np.ndarray, signal: np.ndarray, policy: np.ndarray, tau: float
) -> np.ndarray:
    """What the notebook makes of a policy: the entropy weighed twice, and once past the horizon."""
    horizon, num_states, num_actions = signal.shape
    q = np.zeros(signal.shape)
    for h in reversed(range(horizon)):
        later = policy[min(h + 1, horizon - 1)]
        v = np.zeros(num_states)
        for s, a in np.ndindex(num_states, num_actions):
            entropy = -later[s, a] * math.log(later[s, a])
            following = q[h + 1, s, a] if h + 1 < horizon else 0.0
            v[s] += later[s, a] * (following + tau * entropy)
        cap = (1 + tau * math.log(num_actions)) * (horizon - h)
        for s, a in np.ndindex(num_states, num_actions):
            q[h, s, a] = min(signal[h, s, a] + p[h, s, a] @ v, cap)
    return q


@pytest.mark.usefixtures("double_precision")
def test_the_loop_of_the_notebook_is_its_reference(instance: uopt_notebook.Instance) -> None:
    log = logged(uopt_notebook.as_cmdp(instance), NUM_EPISODES)
    profile = dict(cmdpax.Optimism.empirical()._asdict())
    dense = reference.densify(uopt_notebook.as_cmdp(instance))
    counts = stepping_reference.Counts(dense, profile, stationary=False, lists=False)
    state = uopt_notebook.first_state(jnp.float64)
    policy, lam = np.asarray(state.policy), 0.0
    for k, episode in enumerate(zip(*log, strict=True)):
        counts.count(*episode)
        eta, tau = (k + 3) ** -0.53, (k + 3) ** -0.4
        p_bar = counts.guess().transitions
        bonus = 0.001 * stepping_reference.anytime_bonus(counts, p_bar, 0.1)
        q_r = slow_notebook_q(p_bar, dense.rewards + bonus, policy, tau)
        q_u = slow_notebook_q(p_bar, 1 - dense.rewards + bonus, policy, 0.0)
        log_policy = (1 - eta * tau) * np.log(policy)
        policy = np.exp(learning_reference.ascend(log_policy, q_r + lam * q_u, eta))
        value = q_u[0, instance.start] @ policy[0, instance.start]
        lam = max(lam + eta * (instance.threshold - value - tau * lam), 0.0)
        state = state._replace(counts=jnp.asarray(counts.went))
        state = uopt_notebook.learn_from(instance, state, jnp.asarray(k))
        np.testing.assert_allclose(state.policy, policy, rtol=0, atol=1e-10)
        np.testing.assert_allclose(state.multiplier, lam, rtol=0, atol=1e-10)


@pytest.mark.whole
def test_it_runs_and_hardly_differs_from_the_learner(instance: uopt_notebook.Instance) -> None:
    cmdp = uopt_notebook.as_cmdp(instance)
    with jax.enable_x64(False):
        values = uopt_notebook.notebook_run(instance, 300)
    optimum = cmdpax.solve(cmdp).value
    found = uopt_notebook.regrets(optimum, instance.threshold, values)
    summary = cmdpax.learn(cmdp, "uopt-rpgpd", num_episodes=300).summary()
    assert found[1] == pytest.approx(summary["strong_constraints"][0], rel=0.1)
    assert found[1] > 50
