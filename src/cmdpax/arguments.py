"""Arguments of `learn` and its kin, checked and completed."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from cmdpax.checks import check_choice, real_number, require_count, whole_number
from cmdpax.errors import ParameterError, shown
from cmdpax.limits import require_room
from cmdpax.optimism import Optimism

_EVERY_EPISODE_UP_TO = 100_000
_RECORDED_BEYOND = 10_000
RUN_BYTES = 1024
"""What a run takes before it is begun, about."""


def as_optimism(optimism: str | Optimism, num_episodes: int) -> Optimism:
    """A profile by name, or an `Optimism` as it is."""
    if isinstance(optimism, Optimism):
        return optimism
    profiles: dict[str, Callable[[], Optimism]] = {
        "theory": lambda: Optimism.theory(num_episodes),
        "empirical": Optimism.empirical,
        "live": Optimism.live,
    }
    check_choice("optimism", optimism, tuple(profiles))
    return profiles[optimism]()


def as_levels(levels: Any) -> tuple[float, ...]:
    """Levels of violation, as numbers."""
    try:
        found = tuple(map(real_number, levels))
    except TypeError:  # it cannot be iterated over
        found = (math.nan,)
    if any(map(math.isnan, found)):
        raise ParameterError(
            f"unsafe_at is {shown(levels)}, it must be a list of numbers such as (0.01, 0.1)."
        )
    if len({f"{level:g}" for level in found}) < len(found):
        raise ParameterError(
            f"unsafe_at is {shown(levels)}: two of its levels are nearly the same."
        )
    return found


def as_seeds(seeds: Any) -> list[int]:
    """The seeds of the runs: 0, 1, … for a number of runs."""
    if (count := whole_number(seeds)) is not None:
        require_room(f"{require_count('seeds', count):,} runs", count * RUN_BYTES)
        return list(range(count))
    given = [] if isinstance(seeds, str) or not isinstance(seeds, Iterable) else list(seeds)
    numbers = [whole_number(seed) for seed in given]
    found = [seed for seed in numbers if seed is not None and 0 <= seed < 2**32]
    if not given or len(found) < len(given):
        raise ParameterError(
            f"seeds is {shown(seeds)}, it must be a number of runs or a list of whole numbers ≥ 0."
        )
    return found


def episodes_to_record(num_episodes: int, record: Iterable[int] | None) -> np.ndarray:
    """The episodes to keep, ascending, the last being K."""
    if record is not None:
        try:
            wanted = np.unique(list(record)) if isinstance(record, Iterable) else np.array([])
        except (TypeError, ValueError):  # of various types or lengths
            wanted = np.array([])
        whole = wanted.size > 0 and wanted.dtype.kind in "iu"
        if not whole or wanted[0] < 1 or wanted[-1] > num_episodes:
            raise ParameterError(f"record must name episodes between 1 and {num_episodes}.")
        return np.union1d(wanted, [num_episodes]).astype(np.int64)
    if num_episodes <= _EVERY_EPISODE_UP_TO:
        return np.arange(1, num_episodes + 1)
    spaced = np.geomspace(1, num_episodes, _RECORDED_BEYOND).round().astype(np.int64)
    return np.union1d(spaced, [num_episodes // 10, num_episodes])
