"""The paper's minimal example."""

import numpy as np

from cmdpax.model.cmdp import CMDP


def bandit() -> CMDP:
    """Three options, one step: the paper's minimal example of error cancellation.

    Rewards (1, 1/5, 3/5), costs (9/10, 1/10, 5/10), budget 1/2 on the expected cost. The optimum
    is 3/5 with λ* = 1: always the third option, or the first two in turn. Playing them in turn
    has weak regret 0 in both accounts and violates the budget in every other episode.

    Source: Müller et al. (2024), the minimal example, with its rewards of the first two options in
    the order of its prose (they are swapped in print) and the budget on the costs.
    """
    return CMDP(
        transitions=[[[[1.0], [1.0], [1.0]]]],
        rewards=[[[1.0, 1 / 5, 3 / 5]]],
        constraint_rewards=1 - np.array([[[[9 / 10, 1 / 10, 5 / 10]]]]),
        thresholds=[1 / 2],
        initial=[1.0],
        state_names=["start"],
        action_names=["first option", "second option", "third option"],
        constraint_names=["unspent budget"],
        objective_name="reward",
    )
