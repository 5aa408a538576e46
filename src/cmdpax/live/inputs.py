"""What a learner is told about a live system: its declaration in the learner's own units."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from cmdpax.jax_context import cast
from cmdpax.learners.algorithm import Algorithm
from cmdpax.learners.optimism import Bonuses
from cmdpax.live.declaration import Declaration
from cmdpax.model.cmdp import Sizes
from cmdpax.model.transitions import Support


class Setting(NamedTuple):
    """What is compiled in."""

    algorithm: Algorithm
    choices: tuple[tuple[str, Any], ...]  # parameters that are compiled in
    sizes: Sizes
    stationary: bool


class LearnerInputs(NamedTuple):
    """What a learner may know, as arrays in its own units, on the device."""

    initial: Any
    thresholds: Any
    signals: Any  # [H, J, S, A] or None
    support: Support | None
    bonuses: Bonuses
    parameters: dict[str, Any]  # numbers and schedules, by name


def make_inputs(declared: Declaration, numbers: dict[str, Any]) -> LearnerInputs:
    """Convert the declaration to the learner's units, in the working precision."""
    sizes, units = declared.sizes, declared.units
    signals, lists = None, declared.successors
    if declared.rewards is not None:
        shape = (sizes.horizon, sizes.num_states, sizes.num_actions)
        constraints = () if declared.constraint_rewards is None else declared.constraint_rewards
        known = [declared.rewards, *constraints]
        stacked = np.stack([np.broadcast_to(signal, shape) for signal in known], axis=-1)
        signals = jnp.asarray(np.moveaxis(units.inward(stacked), -1, 1))
    return LearnerInputs(
        jnp.asarray(declared.initial),
        jnp.asarray(units.thresholds_inward(declared.thresholds, sizes.horizon)),
        signals,
        None if lists is None else Support(jnp.maximum(lists, 0), jnp.asarray(lists >= 0)),
        cast(declared.optimism.numbers(sizes), float),
        cast(numbers, float),
    )
