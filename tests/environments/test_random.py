import numpy as np
import pytest

import cmdpax
import reference
from golden_files import Golden


def test_seed_123_is_the_golden_model(paper: Golden) -> None:
    cmdp = cmdpax.environments.make("random")
    assert cmdp.sizes == (1, 5, 5, 5)
    for name, array in cmdp.named_arrays().items():
        np.testing.assert_allclose(array, paper[f"cmdp_{name}"], rtol=0, atol=1e-12)


def drawn(
    num_states: int, num_actions: int, horizon: int, num_constraints: int, seed: int
) -> reference.Dense:
    """The family as the specification draws it, before thresholds are scaled down."""
    generator = np.random.default_rng(seed)
    rewards = generator.uniform(size=(horizon, num_states, num_actions))
    transitions = generator.uniform(size=(horizon, num_states, num_actions, num_states))
    for row in transitions.reshape(-1, num_states):
        row /= row.sum()
    noise = generator.normal(size=(num_constraints, horizon, num_states, num_actions))
    constraint_rewards = np.zeros_like(noise)
    for index in np.ndindex(noise.shape):
        mean = 1 - rewards[index[1:]] + 0.1 * noise[index]
        constraint_rewards[index] = min(max(mean, 0.0), 1.0)
    initial = np.zeros(num_states)
    initial[0] = 1.0
    model = reference.Dense(
        transitions, rewards, constraint_rewards, np.zeros(num_constraints), initial
    )
    greedy = np.eye(num_actions)[reference.q_values(model, rewards).argmax(axis=2)]
    low = reference.evaluate(model, greedy).constraint_values
    for i in range(num_constraints):
        high = reference.best_value(model, constraint_rewards[i])
        model.thresholds[i] = low[i] + generator.uniform(0.1, 0.9) * (high - low[i])
    return model


@pytest.mark.parametrize(
    ("num_states", "num_actions", "horizon", "num_constraints", "seed"),
    [
        (3, 2, 3, 1, 0),
        (2, 4, 2, 1, 7),
        (3, 2, 3, 2, 1),
        (1, 3, 2, 2, 5),
        (3, 2, 3, 2, 38),  # the Slater gap is too small as drawn, here and below
        (2, 2, 3, 3, 23),
    ],
)
def test_any_sizes_follow_the_specification(
    num_states: int, num_actions: int, horizon: int, num_constraints: int, seed: int
) -> None:
    cmdp = cmdpax.environments.make(
        "random",
        num_states=num_states,
        num_actions=num_actions,
        horizon=horizon,
        num_constraints=num_constraints,
        seed=seed,
    )
    model = drawn(num_states, num_actions, horizon, num_constraints, seed)
    if num_constraints > 1:
        while reference.slater_gap(model) < 0.05:
            model = model._replace(thresholds=0.95 * model.thresholds)
    for name in ("transitions", "rewards", "constraint_rewards", "thresholds", "initial"):
        np.testing.assert_allclose(
            getattr(cmdp, name), getattr(model, name), rtol=0, atol=1e-12, err_msg=name
        )


@pytest.mark.parametrize("seed", range(4))
def test_the_constraint_binds_and_slater_holds(seed: int) -> None:
    solution = cmdpax.solve(cmdpax.environments.make("random", seed=seed))
    assert solution.slater_gap > 0
    assert solution.multipliers[0] > 0
    for num_constraints in (2, 4):
        cmdp = cmdpax.environments.make("random", num_constraints=num_constraints, seed=seed)
        assert cmdpax.solve(cmdp).slater_gap >= 0.05


def test_no_constraints_and_no_noise() -> None:
    assert cmdpax.environments.make("random", num_constraints=0).num_constraints == 0
    exact = cmdpax.environments.make("random", noise=0.0)
    np.testing.assert_allclose(exact.constraint_rewards[0], 1 - exact.rewards, rtol=0, atol=1e-15)
