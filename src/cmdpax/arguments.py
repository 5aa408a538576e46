"""Arguments of `learn` and its kin, checked and completed."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from cmdpax.errors import ParameterError, check_choice, require_count, shown
from cmdpax.learners import DEFAULT_REGULARIZATION, factory_of
from cmdpax.learners.base import Factory
from cmdpax.limits import require_room
from cmdpax.optimism import Optimism
from cmdpax.schedules import Schedule, Scheduled

Algorithm = str | Factory
"""A registered name, or a factory of the user's own."""

_EVERY_EPISODE_UP_TO = 100_000
_RECORDED_BEYOND = 10_000
RUN_BYTES = 1024
"""What a run takes before it is begun, about."""


def as_factory(algorithm: Algorithm) -> Factory:
    """A registered algorithm's factory, or the user's own."""
    return algorithm if callable(algorithm) else factory_of(str(algorithm))


def name_of(algorithm: Algorithm) -> str:
    """The registered name, or the name of the user's own factory."""
    return algorithm if isinstance(algorithm, str) else getattr(algorithm, "__qualname__", "own")


def address_of(algorithm: Algorithm) -> str:
    """The name, or where the user's own factory can be imported from."""
    if isinstance(algorithm, str):
        return algorithm
    return f"{algorithm.__module__}:{getattr(algorithm, '__qualname__', repr(algorithm))}"


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


def as_regularization(algorithm: Algorithm, given: Scheduled | None) -> Scheduled:
    """τ: the default of the algorithm, or what was given, if the algorithm takes it."""
    name = algorithm if isinstance(algorithm, str) and ":" not in algorithm else ""
    if given is None:
        return DEFAULT_REGULARIZATION if name.startswith("regularized") else 0.0
    initial = given.initial if isinstance(given, Schedule) else given
    if name.startswith("vanilla") and initial != 0:
        raise ParameterError(
            f"{name} has no regularization, got {initial}; use "
            f"{name.replace('vanilla', 'regularized')}."
        )
    if name == "regularized-dual" and initial == 0:
        raise ParameterError("regularized-dual divides by τ, got 0; use vanilla-dual.")
    return given


def as_levels(levels: Any) -> tuple[float, ...]:
    """Levels of violation, as numbers."""
    try:
        found = tuple(float(level) for level in levels)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(
            f"unsafe_at is {shown(levels)}, it must be a list of numbers such as (0.01, 0.1)."
        ) from None
    if len({f"{level:g}" for level in found}) < len(found):
        raise ParameterError(
            f"unsafe_at is {shown(levels)}: two of its levels are nearly the same."
        )
    return found


def as_seeds(seeds: Any) -> list[int]:
    """The seeds of the runs: 0, 1, … for a number of runs."""
    if isinstance(seeds, int | np.integer) and not isinstance(seeds, bool):
        require_room(f"{require_count('seeds', seeds):,} runs", seeds * RUN_BYTES)
        return list(range(seeds))
    found = [] if isinstance(seeds, str) or not isinstance(seeds, Iterable) else list(seeds)
    if not found or any(not hasattr(s, "__index__") or not 0 <= s < 2**32 for s in found):
        raise ParameterError(
            f"seeds is {shown(seeds)}, it must be a number of runs or a list of whole numbers ≥ 0."
        )
    return [int(seed) for seed in found]


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
