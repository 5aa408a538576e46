"""One description of a run: what all runs of a batch share, and what each of them chooses."""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cmdpax.checks import check_choice, real_number, require_count, require_flag, whole_number
from cmdpax.errors import ParameterError, shown
from cmdpax.learners.algorithm import Algorithm
from cmdpax.learners.optimism import Optimism
from cmdpax.schemes.parameters import parameters_in_words
from cmdpax.storage.limits import require_room

UNSAFE_AT = (1e-9, 0.01, 0.02, 0.05, 0.1)
MOST_EPISODES = 10**15
"""Of a learner that counts many at once; the others count to 2³¹, and say so."""
RUN_BYTES = 1024
"""What a run takes before it is begun, about."""
SAFEST = "safest"
"""The baseline that the runner finds: the policy with the largest worst slack in the true model."""
_MOST_PROBABILITIES = 100_000  # of a baseline: every manifest has a copy
_EPISODE_BYTES = 256  # of a recorded episode, while a run is made
_EVERY_EPISODE_UP_TO = 100_000
_RECORDED_BEYOND = 10_000


@dataclasses.dataclass(frozen=True)
class RunSettings:
    """How long, what the learner observes, and what is kept: the same for all runs of a batch.

    `learn` takes the fields as keyword arguments, a specification as keys, and manifests and
    folders hold them under these names.

    Attributes:
        num_episodes: K.
        observations: "mean" or "bernoulli".
        record: the episodes to keep: their numbers, "all" of them, or how many (evenly spaced);
            None is every one up to 100,000, and beyond that 10,000 log-spaced ones.
        unsafe_at: levels ε for the share of episodes with some violation ≥ ε.
        potential: whether Φ_k is computed.
        log: whether the episodes are kept.
        precision: "double" or "single".
        stationary: whether the learner knows that the model is the same at every step, and shares
            its counts over them.
        baseline: for algorithms that start from a safe policy: "safest" (also None), or a policy,
            `[H, S, A]` or `[S, A]` of probabilities or an action for every state.
    """

    num_episodes: int
    observations: str = "mean"
    record: int | str | Iterable[int] | None = None
    unsafe_at: Sequence[float] = UNSAFE_AT
    potential: bool = False
    log: bool = False
    precision: str = "double"
    stationary: bool = False
    baseline: Any = None

    def __post_init__(self) -> None:
        """Check and complete: tuples, so that settings can be compared and written down."""
        check_choice("observations", self.observations, ("mean", "bernoulli"))
        check_choice("precision", self.precision, ("double", "single"))
        for name in ("potential", "log", "stationary"):
            object.__setattr__(self, name, require_flag(name, getattr(self, name)))
        count = require_count("num_episodes", self.num_episodes, maximum=MOST_EPISODES)
        object.__setattr__(self, "num_episodes", count)
        object.__setattr__(self, "unsafe_at", _as_levels(self.unsafe_at))
        object.__setattr__(self, "baseline", _as_baseline(self.baseline))
        if isinstance(self.record, Iterable) and not isinstance(self.record, str):
            object.__setattr__(self, "record", tuple(_named(count, self.record).tolist()))
        elif self.record not in (None, "all"):
            object.__setattr__(self, "record", require_count("record", self.record))
        kept = min(count, self.record) if isinstance(self.record, int) else count
        if self.record == "all" or isinstance(self.record, int):
            require_room(f"record is {self.record}: {kept:,} episodes", kept * _EPISODE_BYTES)

    @property
    def recorded(self) -> np.ndarray:
        """The episodes that are kept, `[T]`; the last is K."""
        last, record = self.num_episodes, self.record
        if record == "all":
            return np.arange(1, last + 1)
        if isinstance(record, int):
            count = min(record, last)
            return np.unique(np.linspace(last / count, last, count).round().astype(np.int64))
        if record is not None:
            return np.array(record, dtype=np.int64)
        if last <= _EVERY_EPISODE_UP_TO:
            return np.arange(1, last + 1)
        spaced = np.geomspace(1, last, _RECORDED_BEYOND).round().astype(np.int64)
        return np.union1d(spaced, [last // 10, last])

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        fields = dataclasses.fields(self)
        return {field.name: _as_lists(getattr(self, field.name)) for field in fields}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "RunSettings":
        """The settings in what may hold other things too; what is missing has its default."""
        known = {field.name for field in dataclasses.fields(cls)}
        return cls(**{name: value for name, value in content.items() if name in known})


def _named(num_episodes: int, record: Iterable[int]) -> np.ndarray:
    """Episodes by their numbers, ascending, the last being K."""
    try:
        wanted = np.unique(list(record))
    except (TypeError, ValueError):  # of various types or lengths
        wanted = np.array([])
    whole = wanted.size > 0 and wanted.dtype.kind in "iu"
    if not whole or wanted[0] < 1 or wanted[-1] > num_episodes:
        raise ParameterError(f"record must name episodes between 1 and {num_episodes}.")
    return np.union1d(wanted, [num_episodes]).astype(np.int64)


def _as_levels(levels: Any) -> tuple[float, ...]:
    """Levels of violation, as numbers."""
    try:
        found = tuple(map(real_number, levels))
    except TypeError:  # it cannot be iterated over
        found = (math.nan,)
    if not all(map(math.isfinite, found)):
        raise ParameterError(
            f"unsafe_at is {shown(levels)}, it must be a list of numbers such as (0.01, 0.1)."
        )
    if len({f"{level:g}" for level in found}) < len(found):
        raise ParameterError(
            f"unsafe_at is {shown(levels)}: two of its levels are nearly the same."
        )
    return found


def _as_baseline(given: Any) -> Any:
    """The word, or the numbers of a policy as tuples; the model says later whether they fit."""
    if given is None or (isinstance(given, str) and given == SAFEST):
        return given
    try:
        array = np.asarray(given)
    except ValueError:  # lists of various lengths
        array = np.array(None)
    numbers = array.dtype.kind in "biuf" and 1 <= array.ndim <= 3
    if not numbers or not np.isfinite(array).all():
        raise ParameterError(
            f'baseline is {shown(given)}; give "{SAFEST}", a policy [H, S, A] or [S, A] of '
            "probabilities, or an action for every state."
        )
    if array.size > _MOST_PROBABILITIES:
        raise ParameterError(
            f"baseline has {array.size:,} probabilities, a manifest holds at most "
            f'{_MOST_PROBABILITIES:,}; give one that is the same at every step, or "{SAFEST}".'
        )
    return _as_tuples(array.tolist())


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


def _as_lists(value: Any) -> Any:
    return list(map(_as_lists, value)) if isinstance(value, tuple) else value


def require_countable(algorithm: Algorithm, settings: RunSettings) -> None:
    """Refuse settings with which an algorithm cannot count its episodes.

    Raises:
        ParameterError: too many episodes for 32 bits, or too few bits for stretches of episodes.
    """
    if not algorithm.replans:
        require_count("num_episodes", settings.num_episodes)
    elif settings.precision == "single":
        raise ParameterError(
            f'precision is "single", and {algorithm.name} counts in 64 bits; use "double".'
        )


class Configuration(NamedTuple):
    """One run: its seed, and what the user chose for it."""

    seed: int
    algorithm: Algorithm
    parameters: Any  # the algorithm's record
    optimism: Optimism

    @property
    def words(self) -> str:
        """The parameters, for people."""
        return parameters_in_words(self.parameters)

    def effort(self, num_episodes: int) -> float:
        """What its time grows with: episodes, or plans of a learner that plans now and then."""
        if not self.algorithm.replans:
            return num_episodes
        growth = getattr(self.parameters, "growth", 0.0)
        if growth == 0:
            return num_episodes
        return min(
            num_episodes, math.log1p(growth * num_episodes) / math.log1p(growth) + 1 / growth
        )

    def describe(self) -> dict[str, Any]:
        """As JSON holds it; schedules are (initial, exponent, offset)."""
        chosen = self.algorithm.describe(self.parameters)
        return {"seed": self.seed, **chosen, "optimism": self.optimism._asdict()}


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
