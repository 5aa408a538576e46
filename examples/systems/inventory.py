"""A shop that orders today what arrives the day after tomorrow, for two weeks.

Demand is higher at weekends. Unsold goods cost money, and few customers may leave without.
"""

from collections.abc import Iterator
from math import exp, factorial
from typing import Any, ClassVar

from examples.systems.base import System

CAPACITY, TRUCK, MOST = 7, 3, 6  # of the shelf and the truck; the largest demand of a day


def demands(day: int) -> list[float]:
    """Probabilities of 0 … MOST customers: Poisson, what is beyond counted as MOST."""
    mean = 2.4 if day % 7 >= 5 else 1.2
    chances = [exp(-mean) * mean**wanted / factorial(wanted) for wanted in range(MOST)]
    return [*chances, 1 - sum(chances)]


class Inventory(System):
    """The state is the stock and what is on its way; the action is what is ordered."""

    name = "inventory"
    num_states, num_actions, horizon = (CAPACITY + 1) * (TRUCK + 1), TRUCK + 1, 14
    stationary = False
    start = 3 * (TRUCK + 1)
    errors = (0.0, 0.0)
    declared: ClassVar[dict[str, Any]] = {
        "thresholds": [3.0],
        "senses": "at most",
        "reward_range": (-13.5, 28.0),
        "constraint_ranges": (0, MOST),
        "names": ["lost sales"],
        "units": {"reward": "EUR", "lost sales": "pieces"},
    }

    def is_available(self, state: int, action: int) -> bool:
        """What is ordered must have a place, whatever is sold."""
        stock, coming = divmod(state, TRUCK + 1)
        return action == 0 or stock + coming + action <= CAPACITY

    def outcomes(self, step: int, state: int, action: int) -> Iterator[tuple[float, ...]]:
        """Customers take what is there; then the truck is unloaded."""
        stock, coming = divmod(state, TRUCK + 1)
        paid = 2.0 * action + 1.5 * (action > 0) + 0.8 * stock
        for wanted, chance in enumerate(demands(step)):
            sold = min(wanted, stock)
            left = min(stock - sold + coming, CAPACITY)
            yield chance, left * (TRUCK + 1) + action, 4.0 * sold - paid, float(wanted - sold)

    def safe_rule(self, state: int) -> int:
        """Order up to the capacity."""
        stock, coming = divmod(state, TRUCK + 1)
        return max(min(TRUCK, CAPACITY - stock - coming), 0)
