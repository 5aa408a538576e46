"""The numbers of the paper's schemes: η, τ, λ_max and the margin."""

from typing import Annotated, Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer

from cmdpax.errors import ParameterError
from cmdpax.schemes.parameters import Parameter, choose, parameters_of
from cmdpax.schemes.schedules import Scheduled, value_at, values

_CHECKED_EPISODES = 100_000


class Hyperparameters(NamedTuple):
    """The numbers of the paper's algorithms, and of a factory that declares none of its own."""

    step_size: Annotated[Scheduled, Parameter("step size", symbol="η", above=0)] = 0.1
    regularization: Annotated[
        Scheduled, Parameter("weight of the regularization", symbol="τ", at_least=0)
    ] = 0.0
    max_multiplier: Annotated[float, Parameter("largest multiplier", symbol="λ_max", above=0)] = 6.0
    margin: Annotated[Scheduled, Parameter("what the learner adds to the thresholds")] = 0.0


def choose_hyperparameters(num_episodes: int, **given: Any) -> Hyperparameters:
    """The hyperparameters that were given and the defaults of the others, checked."""
    parameters = parameters_of(Hyperparameters)
    chosen: Hyperparameters = choose(Hyperparameters, parameters, given, num_episodes)
    require_damped(chosen, num_episodes)
    return chosen


class Rates(NamedTuple):
    """The hyperparameters of one episode."""

    step_size: Float[Array, ""]
    regularization: Float[Array, ""]
    max_multiplier: Float[Array, ""]
    margin: Float[Array, ""]


def rates_at(hyperparameters: Hyperparameters, episode: Integer[Array, ""]) -> Rates:
    """η_k, τ_k, λ_max and the margin of episode k = 1, 2, …"""
    step_size, regularization, max_multiplier, margin = hyperparameters
    return Rates(
        value_at(step_size, episode),
        value_at(regularization, episode),
        jnp.asarray(max_multiplier),
        value_at(margin, episode),
    )


def require_damped(chosen: Any, num_episodes: int) -> None:
    """(1 - ητ) λ must not change its sign: ητ ≤ 1 at every k."""
    head = np.arange(1, min(num_episodes, _CHECKED_EPISODES) + 1)
    episodes = np.append(head, num_episodes)
    products = values(chosen.step_size, episodes) * values(chosen.regularization, episodes)
    worst = int(np.argmax(products))
    if products[worst] > 1:
        raise ParameterError(
            f"step_size times regularization is {products[worst]:.6g} at episode "
            f"{episodes[worst]}, it must not exceed 1; lower either."
        )
