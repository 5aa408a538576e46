"""The baselines of simulated runs: policies that are known to be safe, and what they reach.

A learner that starts from a safe policy is told that policy and its V_u. In a simulation the runner
knows both: it evaluates the policy in the true model, and where the user gives none it plans for
the safest one. The learner sees no more of the model than these numbers, in its own units.
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from cmdpax.errors import ParameterError
from cmdpax.jax_context import in_double_precision
from cmdpax.learners.algorithm import Algorithm
from cmdpax.learners.statistics import Baseline
from cmdpax.learning.settings import SAFEST
from cmdpax.model.cmdp import CMDP
from cmdpax.model.evaluation import evaluate
from cmdpax.model.policy_forms import baseline_of
from cmdpax.model.rescaling import Rescaling, rescale
from cmdpax.planning.safest import safest_policy

_NO_SLACK = 1e-9
"""Slack per step that is rounding, in units of a signal's range."""


def baseline_setting(given: Any, algorithm: Algorithm, cmdp: CMDP) -> Any:
    """A baseline in any of its forms as the settings of a run hold it: the word, or an array.

    Raises:
        ParameterError: the algorithm starts from no baseline, or what was given is not a policy.
    """
    if not algorithm.needs_baseline:
        if given is not None:
            raise ParameterError(
                f"baseline was given, but {algorithm.name} does not start from a policy that is "
                "known to be safe; leave it out."
            )
        return None
    if given is None or isinstance(given, str):
        return SAFEST if given is None else given
    policy = baseline_of(given, cmdp.sizes, cmdp.words, cmdp.available)
    assert policy is not None
    return policy[:1] if (policy == policy[:1]).all() else policy


def find_baselines(
    algorithm: Algorithm, setting: Any, cmdps: Sequence[CMDP]
) -> list[Baseline] | None:
    """The baseline of each model, with its V_u in signals that are scaled to [0, 1].

    None for an algorithm that needs none.

    Args:
        algorithm: that of the runs.
        setting: `RunSettings.baseline`; None stands for "safest".
        cmdps: the models, in the user's units; the same one may come many times.

    Raises:
        ParameterError: a baseline is not a policy of its model, or has no slack there.
    """
    if not algorithm.needs_baseline:
        return None
    models = {id(cmdp): cmdp for cmdp in cmdps}
    found = {key: _baseline_in(rescale(cmdp), setting) for key, cmdp in models.items()}
    return [found[id(cmdp)] for cmdp in cmdps]


@in_double_precision
def _baseline_in(rescaling: Rescaling, setting: Any) -> Baseline:
    cmdp = rescaling.cmdp
    is_found = setting is None or isinstance(setting, str)
    given = safest_policy(cmdp) if is_found else np.array(setting)
    policy = baseline_of(given, cmdp.sizes, cmdp.words, cmdp.available)
    assert policy is not None
    outside = evaluate(cmdp, policy).constraint_values
    inside = cmdp.words.turn(outside, cmdp.horizon)
    slack = inside - cmdp.thresholds
    if (slack <= _NO_SLACK * cmdp.horizon).any():
        worst = int(np.argmin(slack))
        raise ParameterError(_unsafe(rescaling, worst, outside, is_found))
    return Baseline(jnp.asarray(policy), jnp.asarray(inside))


def _unsafe(rescaling: Rescaling, worst: int, values: np.ndarray, is_found: bool) -> str:
    """The sentence about a baseline that misses a threshold, or meets it without slack."""
    cmdp, words = rescaling.cmdp, rescaling.cmdp.words
    value = float(rescaling.constraint_values(values)[worst])
    bound = float(rescaling.constraint_values(cmdp.bounds)[worst])
    missing = abs(value - bound)
    few = missing <= 2 * _NO_SLACK * cmdp.horizon * rescaling.scale[1 + worst]
    how = "without slack" if few else f"missing it by {missing:.6g}"
    who = "the safest policy" if is_found else "the baseline"
    fix = (
        "no policy has slack in every constraint: relax the thresholds, or use an algorithm "
        "that needs no baseline"
        if is_found
        else 'give one that has slack in every constraint, or baseline="safest"'
    )
    return (
        f"{who} reaches {value:.6g} in {words.constraint(worst)}, which must be "
        f"{words.sense(worst)} {bound:.6g}, {how}; {fix}."
    )
