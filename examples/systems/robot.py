"""A robot that carries parcels across a hall of 20 × 20 cells, for 400 steps.

The only reward is a delivery, some thirty steps away from the start, to which it returns. The
shortest way crosses an area where it is in the way of people, at most a few times per shift.
"""

import functools
from collections import deque
from collections.abc import Iterator
from typing import Any, ClassVar

from examples.systems.base import System

SIDE = 20
MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))
START, GOAL = (3, 3), (15, 14)
SLIP = 0.05  # to each side
HARM = 0.5  # the probability of being in somebody's way


def is_busy(row: int, column: int) -> bool:
    """The area with people."""
    return 7 <= row <= 10 and 2 <= column <= 16


def moved(row: int, column: int, move: int) -> tuple[int, int]:
    """One cell further, or not at all where the wall is."""
    down, right = MOVES[move]
    return min(max(row + down, 0), SIDE - 1), min(max(column + right, 0), SIDE - 1)


class Robot(System):
    """The state is the cell; the actions are up, down, left and right."""

    name = "robot"
    num_states, num_actions, horizon = SIDE * SIDE, 4, 400
    start = START[0] * SIDE + START[1]
    errors, coins, listed = (0.0, 0.0), (1,), True
    declared: ClassVar[dict[str, Any]] = {
        "thresholds": [8.0],
        "senses": "at most",
        "reward_range": (0, 1),
        "constraint_ranges": (0, 1),
        "names": ["in the way"],
        "units": {"reward": "parcels", "in the way": "steps"},
    }

    def outcomes(self, step: int, state: int, action: int) -> Iterator[tuple[float, ...]]:
        """It moves, or slips to a side."""
        cell = divmod(state, SIDE)
        harm = HARM * is_busy(*cell)
        if cell == GOAL:  # the parcel is unloaded
            yield 1.0, self.start, 1.0, harm
            return
        sides = (2, 3) if action < 2 else (0, 1)
        found: dict[int, float] = {}
        for move, chance in ((action, 1 - 2 * SLIP), *((side, SLIP) for side in sides)):
            row, column = moved(*cell, move)
            after = row * SIDE + column
            found[after] = found.get(after, 0.0) + chance
        for after, chance in found.items():
            yield chance, after, 0.0, harm

    def safe_rule(self, state: int) -> int:
        """The shortest way around the people."""
        return self._ways[state]

    @functools.cached_property
    def _ways(self) -> list[int]:
        """The move from every cell, found backward from the goal."""
        ways, cells = {GOAL: 0}, deque([GOAL])
        for avoided in (True, False):  # out of the busy area last, the shortest way
            cells = deque(ways)
            while cells:
                reached = cells.popleft()
                for move, (down, right) in enumerate(MOVES):
                    cell = (reached[0] - down, reached[1] - right)
                    inside = min(cell) >= 0 and max(cell) < SIDE
                    if inside and cell not in ways and not (avoided and is_busy(*cell)):
                        ways[cell] = move
                        cells.append(cell)
        return [ways[divmod(state, SIDE)] for state in range(SIDE * SIDE)]
