"""A repair shop that takes jobs or sends them away.

Paying jobs bring money, urgent ones little, but enough of these must be taken; and the jobs in the
shop should not wait for too long.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

from examples.systems.base import System

PLACES = 8
NOBODY, PAYING, URGENT = range(3)
ARRIVALS = (0.25, 0.45, 0.3)
FEES = (0.0, 1.0, 0.4)
SERVICE = 0.5


class Admission(System):
    """The state is the number of jobs and who is at the door; action 1 lets them in."""

    name = "admission"
    num_states, num_actions, horizon = 3 * (PLACES + 1), 2, 30
    errors = (0.1, 0.25, 0.0)
    declared: ClassVar[dict[str, Any]] = {
        "thresholds": [60.0, 5.0],
        "senses": ["at most", "at least"],
        "reward_range": (-0.2, 1.2),
        "constraint_ranges": [(-0.5, PLACES + 0.5), (0, 1)],
        "names": ["waiting", "urgent jobs"],
        "units": {"reward": "EUR", "waiting": "job hours", "urgent jobs": "jobs"},
    }

    def is_available(self, state: int, action: int) -> bool:
        """Nobody can be let in where nobody is, or where there is no place."""
        jobs, door = divmod(state, 3)
        return action == 0 or (door != NOBODY and jobs < PLACES)

    def outcomes(self, step: int, state: int, action: int) -> Iterator[tuple[float, ...]]:
        """A job may be finished, and somebody may come."""
        jobs, door = divmod(state, 3)
        jobs += action
        fee, urgent = FEES[door] * action, float(action and door == URGENT)
        finished = SERVICE if jobs else 0.0
        for done, chance in ((0, 1 - finished), (1, finished)):
            for next_door, share in enumerate(ARRIVALS):
                if chance:
                    yield chance * share, 3 * (jobs - done) + next_door, fee, float(jobs), urgent

    def safe_rule(self, state: int) -> int:
        """Everybody urgent, and others while there are few."""
        jobs, door = divmod(state, 3)
        if door == URGENT:
            return int(jobs < PLACES)
        return int(door == PAYING and jobs < 1)
