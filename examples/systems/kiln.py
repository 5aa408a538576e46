"""A kiln that dries batches of bricks in a shift of sixteen quarter hours.

The hotter the kiln, the sooner a batch is dry, and the more energy goes out with the smoke. Every
batch that is unloaded is paid for, damp or not, but the buyer wants enough dry bricks per shift.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

from examples.systems.base import System

HOT, WET = 4, 3  # the highest level of temperature and of moisture
OFF, LOW, HIGH, UNLOAD = range(4)
ENERGY = (0.0, 4.0, 9.0, 1.0)
WARMING = ((0.7, 0.3, 0.0), (0.2, 0.6, 0.2), (0.0, 0.3, 0.7), (0.6, 0.4, 0.0))  # down, same, up
PAID = (12.0, 10.0, 7.0, 0.0)  # for a batch, by its moisture
QUALITY = (1.0, 0.3, 0.1, 0.0)


class Kiln(System):
    """The state is the temperature and the moisture of the batch."""

    name = "kiln"
    num_states, num_actions, horizon = (HOT + 1) * (WET + 1), 4, 16
    start = WET  # cold, with a wet batch
    errors = (1.0, 0.75, 0.0)
    coins = (2,)
    declared: ClassVar[dict[str, Any]] = {
        "thresholds": [105.0, 1.7],
        "senses": ["at most", "at least"],
        "reward_range": (-3.0, 14.0),
        "constraint_ranges": [(-1.5, 12.5), (0, 1)],
        "names": ["energy", "quality"],
        "units": {"reward": "EUR", "energy": "kWh", "quality": "points"},
    }

    def outcomes(self, step: int, state: int, action: int) -> Iterator[tuple[float, ...]]:
        """The temperature follows the burner, and the moisture the temperature."""
        heat, moisture = divmod(state, WET + 1)
        unloaded = action == UNLOAD
        paid = PAID[moisture] - 1.0 if unloaded else 0.0
        quality = QUALITY[moisture] if unloaded else 0.0
        drying = 0.0 if unloaded or moisture == 0 else 0.15 + 0.2 * heat
        for change, chance in zip((-1, 0, 1), WARMING[action], strict=True):
            warmer = min(max(heat + change, 0), HOT)
            energy = ENERGY[action] + 0.5 * heat
            for drier, share in ((0, 1 - drying), (1, drying)):
                left = WET if unloaded else moisture - drier
                if chance * share > 0:
                    yield chance * share, warmer * (WET + 1) + left, paid, energy, quality

    def safe_rule(self, state: int) -> int:
        """A high fire until it is warm, a low one then, and unload what is dry."""
        heat, moisture = divmod(state, WET + 1)
        if moisture == 0:
            return UNLOAD
        return HIGH if heat < 2 else LOW
