"""A shop that orders stock under a budget."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cmdpax.checks import require_count, require_number
from cmdpax.environments.parameters import require_fitting
from cmdpax.errors import ParameterError, shown
from cmdpax.model.cmdp import CMDP, from_costs

_DEMAND = (0.3, 0.2, 0.2, 0.2, 0.05, 0.05)


def inventory(
    capacity: int = 5,
    horizon: int = 7,
    demand: Sequence[float] = _DEMAND,
    budget: float = 3.5,
) -> CMDP:
    """Order stock every day, sell what is demanded, and keep the costs within a budget.

    State: the stock, 0 … `capacity`, empty at the start. Action: the order, 0 … `capacity`; an
    order beyond the room left acts as the largest that fits. Demand d has the probabilities
    `demand`, and the next stock is clip(s + a - d, 0, capacity).

    Revenue: 0.08 d if all of the demand can be met (d ≤ s + a), in expectation over the demand.
    Cost: (4 + 2a)·1[a > 0] for the order plus s + a for holding. Both are divided by their largest
    values (0.132 and 19 by default), so that they lie in [0, 1]; the scaled costs may sum to
    `budget` in expectation.

    Source: the inventory example of DOPE (Bura et al., 2022); its published code weighs the revenue
    with the transition probabilities instead of the demand's, which this does not.
    """
    capacity = require_count("capacity", capacity)
    require_fitting(capacity + 1, capacity + 1, capacity + 1)
    horizon = require_count("horizon", horizon)
    budget = require_number("budget", budget, minimum=0.0)
    chances = _as_distribution(demand)
    stock, order = np.meshgrid(np.arange(capacity + 1), np.arange(capacity + 1), indexing="ij")
    order = np.minimum(order, capacity - stock)
    shelf = stock + order  # what can be sold today
    transitions = np.zeros((1, *stock.shape, capacity + 1))
    rows, columns = np.indices(stock.shape)
    revenue = np.zeros(stock.shape)
    for quantity, chance in enumerate(chances):
        left = np.maximum(shelf - quantity, 0)
        np.add.at(transitions[0], (rows, columns, left), chance)
        revenue += chance * 0.08 * quantity * (quantity <= shelf)
    cost = (4 + 2 * order) * (order > 0) + shelf
    highest = revenue.max()
    return from_costs(
        transitions=transitions,
        rewards=(revenue / highest if highest > 0 else revenue)[None],
        costs=(cost / cost.max())[None, None],
        limits=[budget],
        initial=np.eye(capacity + 1)[0],
        horizon=horizon,
        state_names=[f"stock {stored}" for stored in range(capacity + 1)],
        action_names=[f"order {ordered}" for ordered in range(capacity + 1)],
        constraint_names=["cost"],
        objective_name="revenue",
    )


def _as_distribution(demand: Any) -> list[float]:
    if isinstance(demand, str) or not hasattr(demand, "__len__") or not len(demand):
        raise ParameterError(
            f"demand is {shown(demand)}, it must be a list of probabilities, that of 0 first."
        )
    chances = [require_number("demand", chance, 0.0, 1.0) for chance in demand]
    if abs(sum(chances) - 1) > 1e-9:
        raise ParameterError(f"demand sums to {sum(chances):.9g}, not to 1; it is a distribution.")
    return chances
