"""The numbers a user chooses, checked and turned into what jitted code takes."""

from typing import Any

import numpy as np

from cmdpax.errors import ParameterError, shown
from cmdpax.learners.base import Hyperparameters
from cmdpax.schedules import Schedule, Scheduled, as_schedule, values

_CHECKED_EPISODES = 100_000


def hyperparameters(
    step_size: Scheduled,
    regularization: Scheduled,
    max_multiplier: Any,
    margin: Scheduled,
    num_episodes: int,
) -> Hyperparameters:
    """Check η > 0, τ ≥ 0, λ_max > 0 and ητ ≤ 1 at every k; numbers become schedules."""
    try:
        cap = as_schedule("max_multiplier", max_multiplier)
    except ParameterError:
        cap = None
    if cap is None or not is_constant(cap) or cap.initial <= 0:
        raise ParameterError(
            f"max_multiplier is {shown(max_multiplier)}, it must be a positive number."
        )
    result = Hyperparameters(
        as_schedule("step_size", step_size),
        as_schedule("regularization", regularization),
        cap.initial,
        as_schedule("margin", margin),
    )
    if not result.step_size.initial > 0:
        raise ParameterError(f"step_size is {step_size}, it must be positive.")
    if result.regularization.initial < 0:
        raise ParameterError(f"regularization is {regularization}, it must not be negative.")
    _check_product(result, num_episodes)
    return result


def _check_product(chosen: Hyperparameters, num_episodes: int) -> None:
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


def is_constant(schedule: Schedule) -> bool:
    """Whether a schedule never changes."""
    return bool(schedule.exponent == 0 or schedule.initial == 0)
