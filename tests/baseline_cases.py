"""A learner that starts from a safe baseline and mixes it with the uniform policy; sweeps import
it by its address."""

from typing import Annotated, Any, NamedTuple

import jax.numpy as jnp

from cmdpax.learners import Algorithm, Info, Knowledge, Learner, Parameter, Shown
from cmdpax.learners.statistics import Trajectory


class Cautious(NamedTuple):
    """What its user chooses."""

    share: Annotated[float, Parameter("how much of the baseline", at_least=0, at_most=1)] = 0.75


def cautious(knowledge: Knowledge, parameters: Cautious) -> Learner:
    """Show the mixture, and as V̂_u what the baseline reaches."""
    assert knowledge.baseline is not None
    policy, reached = knowledge.baseline
    uniform = jnp.exp(knowledge.uniform_log_policy)
    mixed = parameters.share * policy + (1 - parameters.share) * uniform

    def init(key: Any) -> Any:
        return jnp.int32(1)

    def update(state: Any, trajectory: Trajectory, key: Any) -> Any:
        return state + 1

    def show(state: Any) -> Shown:
        return Shown(jnp.log(mixed), Info(jnp.zeros_like(reached), reached))

    return Learner(init, update, show)


CAUTIOUS = Algorithm("cautious", cautious, needs_baseline=True, max_constraints=2)
ADDRESS = "baseline_cases:CAUTIOUS"


def mixture(policy: Any, share: float = 0.75) -> Any:
    """What it plays where all actions are available."""
    return share * policy + (1 - share) / policy.shape[-1]
