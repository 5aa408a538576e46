"""What several tests of learning share: small models, and the reference's run of an algorithm."""

import functools
from typing import Any

import numpy as np
import pytest

import cmdpax
import learning_reference
import reference
from cmdpax.learners import as_algorithm, field
from lanes import quick_or_whole
from learning_reference import Rates, Seen

FIELD = tuple(known.name for known in field.ALGORITHMS)
"""What others have published, which `test_field_contract` and `test_field` run."""
OURS = tuple(name for name in cmdpax.algorithms() if name not in FIELD)
ALGORITHMS = tuple(name for name in OURS if not as_algorithm(name).replans)
"""The paper's; learners that plan have tests of their own."""
every_algorithm = pytest.mark.parametrize(
    "algorithm",
    [quick_or_whole(name, quick=not name.startswith("vanilla")) for name in ALGORITHMS],
)
"""A vanilla learner is the program of a regularized one, so its own tests are not quick."""
PROFILES = {
    "theory": cmdpax.Optimism.theory(40),
    "scaled theory": cmdpax.Optimism.theory(1000, failure_probability=0.05, scale=0.02),
    "empirical": cmdpax.Optimism.empirical(),
    "live": cmdpax.Optimism.live(),
    "known rewards, zero rows": cmdpax.Optimism.empirical(0.2).replace(unvisited_rows="zero"),
    "theory, uniform rows": cmdpax.Optimism.theory(40, scale=0.05).replace(
        unvisited_rows="uniform", unvisited_rewards=0.5
    ),
    "theory, known rewards": cmdpax.Optimism.theory(40, scale=0.05).replace(rewards="known"),
}
NO_WARNING = 1e6
"""A λ_max that exceeds every H/Ξ of these models."""


@functools.cache
def model(num_constraints: int = 1, seed: int = 0, **sizes: int) -> cmdpax.CMDP:
    """A small random CMDP with a spread start; thresholds bind, and leave some slack.

    Tests reuse few shapes: every new one compiles anew.
    """
    sizes = {"num_states": 3, "num_actions": 2, "horizon": 3} | sizes
    cmdp = cmdpax.environments.make("random", num_constraints=num_constraints, seed=seed, **sizes)
    start = np.arange(1.0, cmdp.num_states + 1)
    uniform = np.full((cmdp.horizon, cmdp.num_states, cmdp.num_actions), 1 / cmdp.num_actions)
    cmdp = cmdp.replace(initial=start / start.sum())
    # Halfway from what the uniform policy reaches to what all constraints can reach together.
    reached = cmdpax.evaluate(cmdp, uniform).constraint_values
    found = cmdpax.slater_gap(cmdp.replace(thresholds=reached))
    gap = 0.0 if found is None else found.gap
    return cmdp.replace(thresholds=reached + (gap / 2 if cmdp.num_actions > 1 else -0.1))


@functools.cache
def logged(cmdp: cmdpax.CMDP, num_episodes: int = 40) -> cmdpax.Log:
    """Episodes of the uniform policy on this model, with Bernoulli observations."""
    generator = np.random.default_rng(7)
    dense = reference.densify(cmdp)
    num_constraints, horizon, num_states, num_actions = cmdp.sizes
    states = np.zeros((num_episodes, horizon + 1), int)
    actions = generator.integers(0, num_actions, (num_episodes, horizon))
    rewards = np.zeros((num_episodes, horizon))
    constraint_rewards = np.zeros((num_episodes, num_constraints, horizon))
    for k in range(num_episodes):
        states[k, 0] = generator.choice(num_states, p=dense.initial)
        for h in range(horizon):
            at = (h, states[k, h], actions[k, h])
            rewards[k, h] = generator.random() < dense.rewards[at]
            for i in range(num_constraints):
                constraint_rewards[k, i, h] = (
                    generator.random() < dense.constraint_rewards[(i, *at)]
                )
            states[k, h + 1] = generator.choice(num_states, p=dense.transitions[at])
    return cmdpax.Log(states, actions, rewards, constraint_rewards)


def reference_run(
    cmdp: cmdpax.CMDP,
    algorithm: str,
    log: cmdpax.Log,
    optimism: cmdpax.Optimism,
    **chosen: Any,
) -> Seen:
    """What the reference makes of a log."""
    learner = (
        learning_reference.primal_dual_learner
        if algorithm.endswith("primal-dual")
        else learning_reference.dual_learner
    )
    rates = Rates(**{name: as_number(value) for name, value in chosen.items()})
    episodes = list(zip(*log, strict=True))
    profile = dict(optimism._asdict())
    return learning_reference.collect(learner(reference.densify(cmdp), profile, episodes, rates))


def as_number(value: Any) -> Any:
    """A schedule as the reference takes it."""
    return tuple(value) if isinstance(value, tuple) else value


def default_regularization(algorithm: str) -> float:
    """What `learn` takes if nothing is said."""
    return 0.02 if algorithm.startswith("regularized") else 0.0


ALGORITHM = "regularized-primal-dual"


def learn(cmdp: cmdpax.CMDP | None = None, algorithm: Any = ALGORITHM, **changes: Any) -> Any:
    """`learn` with small defaults."""
    arguments = {"num_episodes": 60, "seeds": 2, "max_multiplier": NO_WARNING} | changes
    return cmdpax.learn(model(2) if cmdp is None else cmdp, algorithm, **arguments)


def bandit() -> cmdpax.CMDP:
    return cmdpax.environments.make("bandit")
