"""Random dense CMDPs, the family of the paper's experiments."""

import numpy as np

from cmdpax.checks import require_count, require_number
from cmdpax.environments.parameters import require_fitting, stable
from cmdpax.model.cmdp import CMDP
from cmdpax.planning.dynamic_program import greedy_values
from cmdpax.planning.solution import slater_gap

_LEAST_SLATER_GAP = 0.05


def random(
    num_states: int = 5,
    num_actions: int = 5,
    horizon: int = 5,
    num_constraints: int = 1,
    noise: float = 0.1,
    seed: int = 123,
) -> CMDP:
    """Uniform rewards and transitions, constraint rewards that oppose the rewards.

    r ~ U[0, 1]; every row of p is uniform, normalised; u = clip((1 - r) + noise·N(0, 1), 0, 1);
    start in state 0. Each threshold lies uniformly between 10 % and 90 % of the way from V_u of
    the reward-optimal policy to max_π V_u, so that it binds. With several constraints they are
    then scaled down together by 0.95 until the Slater gap is at least 0.05 (0 where it never is).

    The draws come from `numpy.random.default_rng(seed)` in the order r, p, noise, thresholds.
    Seed 123 with the default sizes is the CMDP of the experiments.

    Source: Müller et al. (2024), experiment details (which write c for u, and leave the law of the
    threshold open).
    """
    seed = require_count("seed", seed, minimum=0, maximum=2**63 - 1)
    noise = require_number("noise", noise, minimum=0.0)
    num_constraints = require_count("num_constraints", num_constraints, minimum=0)
    sizes = (
        require_count("horizon", horizon),
        require_count("num_states", num_states),
        require_count("num_actions", num_actions),
    )
    require_fitting(*sizes, max(sizes[1], num_constraints))
    generator = np.random.default_rng(seed)
    rewards = generator.random(sizes)
    transitions = generator.random((*sizes, num_states))
    transitions /= transitions.sum(axis=-1, keepdims=True)
    normal = generator.standard_normal((num_constraints, *sizes))
    cmdp = CMDP(
        transitions=transitions,
        rewards=rewards,
        constraint_rewards=np.clip((1 - rewards) + noise * normal, 0, 1),
        thresholds=np.zeros(num_constraints),
        initial=np.eye(num_states)[0],
        state_names=[f"s{state}" for state in range(num_states)],
        action_names=[f"a{action}" for action in range(num_actions)],
        constraint_names=[f"utility {index}" for index in range(num_constraints)]
        if num_constraints > 1
        else ["utility"] * num_constraints,
        objective_name="reward",
    )
    # V_u of the reward-optimal policy, and max_π V_{u_i} for every i.
    plans = greedy_values(cmdp, np.eye(1 + num_constraints))
    low, high = plans[0, 1:], np.diagonal(plans)[1:]
    way = generator.uniform(0.1, 0.9, size=num_constraints)
    cmdp = cmdp.replace(thresholds=stable(low + way * (high - low)))
    if num_constraints > 1:
        cmdp = _with_slack(cmdp)
    return cmdp


def _with_slack(cmdp: CMDP) -> CMDP:
    """Scale the thresholds down until the Slater gap suffices; to 0 where it never does."""
    easiest = cmdp.replace(thresholds=np.zeros(cmdp.num_constraints))
    if not _has_slack(easiest):
        return easiest
    while not _has_slack(cmdp):
        cmdp = cmdp.replace(thresholds=stable(0.95 * cmdp.thresholds))
    return cmdp


def _has_slack(cmdp: CMDP) -> bool:
    found = slater_gap(cmdp)
    return found is None or found.gap >= _LEAST_SLATER_GAP
