"""A pump that fills a tank, running slowly or fast in each hour of a day.

Power costs money, and the tank may be empty for two hours a day.
"""

from collections.abc import Iterator
from math import comb
from typing import Any, ClassVar

from examples.systems.base import System

FULL = 4
POWER = (1.0, 2.5)
INFLOW = (0.2, 0.7)  # of each of three units


class Pump(System):
    """The level of the tank is the state; action 1 is fast."""

    name = "pump"
    num_states, num_actions, horizon, start = FULL + 1, 2, 24, 2
    errors = (0.25, 0.0)
    declared: ClassVar[dict[str, Any]] = {
        "thresholds": [2.0],
        "senses": "at most",
        "reward_range": (-3.0, -0.5),
        "constraint_ranges": (0, 1),
        "names": ["empty hours"],
        "units": {"reward": "EUR", "empty hours": "h"},
    }

    def outcomes(self, step: int, state: int, action: int) -> Iterator[tuple[float, ...]]:
        """Three units may come, two may be used."""
        share = INFLOW[action]
        for inflow in range(4):
            came = comb(3, inflow) * share**inflow * (1 - share) ** (3 - inflow)
            for used in range(3):
                level = min(max(state + inflow - used, 0), FULL)
                yield came * comb(2, used) / 4, level, -POWER[action], float(state == 0)

    def safe_rule(self, state: int) -> int:
        """Fast below the middle."""
        return int(state <= 2)
