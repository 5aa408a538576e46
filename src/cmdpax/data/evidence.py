"""What is known before a plan is judged: logged steps, bounds, and what was declared."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cmdpax.checks import real_number
from cmdpax.errors import ParameterError, shown
from cmdpax.model.arrays import is_single
from cmdpax.model.log import Log
from cmdpax.model.observations import Observations, bounds_of, observe
from cmdpax.model.toolbox import as_initial, require_words
from cmdpax.model.words import Words, make_words
from cmdpax.storage.limits import require_room

_ROWS_KEPT = 6  # of S numbers for each row: counts, frequencies, and what a prior knows


class Evidence(NamedTuple):
    """A log with what its signals must reach, and the ranges they are known to stay in.

    Attributes:
        found: the steps of the log.
        bounds: what each constraint must reach, or not exceed, `[I]`.
        senses: "at least" or "at most" for each constraint.
        ranges: the least and the largest value of each signal, `[1 + I, 2]`; NaN if not declared.
        initial: the distribution of the first state, `[S]`; None if the log has to tell.
    """

    found: Observations
    bounds: np.ndarray
    senses: tuple[str, ...]
    ranges: np.ndarray
    initial: np.ndarray | None

    @property
    def words(self) -> Words:
        """Names, units and senses."""
        _, num_states, num_actions = self.found.shape
        sizes = (num_states, num_actions, len(self.bounds))
        return make_words(sizes, **self.found.words, senses=self.senses)

    @property
    def signs(self) -> np.ndarray:
        """1 for each constraint that is "at least", -1 where "at most", `[I]`."""
        return np.where(np.array(self.senses, dtype=object) == "at most", -1.0, 1.0)

    def place(self, row: int) -> str:
        """A row in words: an action, a state, and the step unless all steps share it."""
        step, state, action = (int(i) for i in np.unravel_index(row, self.found.shape))
        named = self.found.named
        at = "" if self.found.shape[0] == 1 else f" at step {step}"
        return f"{named.action(action)} in {named.state(state)}{at}"


def gather(
    function: str,
    log: Log,
    *,
    thresholds: Any,
    limits: Any,
    senses: Any,
    stationary: bool,
    initial: Any,
    reward_range: Any,
    constraint_ranges: Any,
    num_states: int | None,
    num_actions: int | None,
    available: Any,
    words: dict[str, Any],
) -> Evidence:
    """Check what `function` was given, and put it together."""
    require_words(function, words)
    found = observe(
        log,
        num_states=num_states,
        num_actions=num_actions,
        stationary=stationary,
        available=available,
        words=words,
    )
    bounds, chosen = bounds_of(thresholds, limits, senses, found.num_constraints)
    room = 8 * found.num_rows * (_ROWS_KEPT * found.shape[1] + len(found.signals))
    require_room(
        f"the possible models of {found.shape[1]} states", room, "merge states that are alike"
    )
    names = found.words.get("state_names")
    start = None if initial is None else as_initial(initial, found.shape[1], names)
    ranges = _ranges(reward_range, constraint_ranges, found.num_constraints)
    evidence = Evidence(found, bounds, chosen, ranges, start)
    _require_inside(evidence)
    return evidence


def _ranges(reward_range: Any, constraint_ranges: Any, num_constraints: int) -> np.ndarray:
    """The declared ranges, `[1 + I, 2]`: one pair for all constraints, or one for each."""
    pairs = [_pair("reward_range", reward_range)]
    given = constraint_ranges
    listed = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str)
    if given is None or (listed and len(given) == 2 and all(map(is_single, given))):
        pairs += [_pair("constraint_ranges", given)] * num_constraints
    elif not listed or len(given) != num_constraints:
        raise ParameterError(
            f"constraint_ranges is {shown(given)}, there are {num_constraints} constraints; give "
            "one pair (low, high) for all, or one for each."
        )
    else:
        pairs += [_pair(f"constraint_ranges[{i}]", pair) for i, pair in enumerate(given)]
    return np.array(pairs, dtype=float)


def _pair(name: str, given: Any) -> tuple[float, float]:
    if given is None:
        return np.nan, np.nan
    try:
        low, high = map(real_number, given)
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    if not (low <= high and np.isfinite([low, high]).all()):
        raise ParameterError(
            f"{name} is {shown(given)}, it must be two numbers (low, high), low not above high."
        )
    return low, high


def _require_inside(evidence: Evidence) -> None:
    """Refuse observations outside of what was declared."""
    for index, (low, high) in enumerate(evidence.ranges):
        signal, room = evidence.found.signals[index], 1e-6 * (high - low)
        if (signal < low - room).any() or (signal > high + room).any():
            worst = signal.min() if (signal < low - room).any() else signal.max()
            words = evidence.words
            name = words.constraint(index - 1) if index else words.objective_name or "the reward"
            raise ParameterError(
                f"the log has the observation {worst:.10g} outside of the declared range of "
                f"{name}, ({low:g}, {high:g}); declare a wider range, or correct the log."
            )
