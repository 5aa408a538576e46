"""The heating of an office over a day: what the weather, people and prices do depends on the hour.

Energy costs money, more of it at noon; people who are there should not be cold.
"""

from collections.abc import Iterator
from math import cos, pi
from typing import Any, ClassVar

from examples.systems.base import System

CELLS = 7  # of temperature, from 16 °C to 22 °C
WANTED = 4  # the cell of 20 °C
POWER = (0.0, 2.0, 5.0)  # off, low, high


def tariff(hour: int) -> float:
    """The price of a kWh."""
    return 0.4 if 7 <= hour < 20 else 0.2


def presence(hour: int, there: bool) -> float:
    """The probability that somebody is there in the next hour."""
    if 7 <= hour < 17:
        return 0.95 if there else 0.6
    return 0.3 if there else 0.02


class Heating(System):
    """The state is the temperature and whether somebody is there; it begins at midnight."""

    name = "heating"
    num_states, num_actions, horizon, stationary = 2 * CELLS, 3, 24, False
    start = 2 * 3
    errors = (0.05, 0.0)
    declared: ClassVar[dict[str, Any]] = {
        "thresholds": [6.0],
        "senses": "at most",
        "reward_range": (-2.1, 0.1),
        "constraint_ranges": (0, WANTED),
        "names": ["discomfort"],
        "units": {"reward": "EUR", "discomfort": "degree hours"},
    }

    def outcomes(self, step: int, state: int, action: int) -> Iterator[tuple[float, ...]]:
        """The room follows the weather and the heating."""
        cell, there = divmod(state, 2)
        cooling = min(0.35 - 0.2 * cos(2 * pi * (step - 3) / 24 + pi) + 0.05 * cell, 0.9)
        warming = (0.02, 0.5, 0.85)[action]
        cost = -tariff(step) * POWER[action]
        cold = float(max(WANTED - cell, 0) * there)
        stays = presence(step, bool(there))
        for colder, chance in ((0, 1 - cooling), (1, cooling)):
            for warmer, share in ((0, 1 - warming), (1, warming)):
                after = min(max(cell + warmer - colder, 0), CELLS - 1)
                for others, odds in ((0, 1 - stays), (1, stays)):
                    yield chance * share * odds, 2 * after + others, cost, cold

    def safe_rule(self, state: int) -> int:
        """A thermostat that is on all day."""
        cell = state // 2
        return 2 if cell < WANTED else int(cell == WANTED)
