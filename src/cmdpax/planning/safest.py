"""The safest policy of a known model: the one with the largest worst slack.

    max_π min_i (V_{u_i}^π - c_i) / max |u_i|

Each constraint counts in its own scale, so that a constraint in micrograms weighs as much as one in
tons.
"""

import numpy as np

from cmdpax.jax_context import in_double_precision
from cmdpax.model.availability import uniform_log_policy
from cmdpax.model.cmdp import CMDP
from cmdpax.planning.column_generation import Generator
from cmdpax.planning.feasibility import raise_slack
from cmdpax.planning.recovery import mix, recover_plan

_MOST_COLUMNS = 10_000


@in_double_precision
def safest_policy(cmdp: CMDP) -> np.ndarray:
    """The policy with the largest worst slack, `[H, S, A]`; uniform where there is no constraint.

    Examples:
        >>> import cmdpax
        >>> from cmdpax.planning.safest import safest_policy
        >>> cmdp = cmdpax.environments.make("bandit")
        >>> slack = cmdpax.evaluate(cmdp, safest_policy(cmdp)).constraint_values - cmdp.thresholds
        >>> bool(abs(slack.min() - cmdpax.slater_gap(cmdp).gap) < 1e-9)
        True
    """
    if not cmdp.num_constraints:
        return np.exp(uniform_log_policy(cmdp.sizes[1:], cmdp.available, float))
    generator = Generator(cmdp, None, _MOST_COLUMNS)
    found = raise_slack(generator, cmdp.thresholds, goal=np.inf)
    mixture = mix(generator.columns, found.weights)
    policy, _ = recover_plan(generator.scaled.cmdp, mixture, found.multipliers)
    return np.asarray(policy, dtype=np.float64)
