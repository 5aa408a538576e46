"""What all runs of a batch share, besides the CMDP and the algorithm."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from cmdpax.arguments import as_levels, episodes_to_record
from cmdpax.checks import check_choice, require_count, require_flag

UNSAFE_AT = (1e-9, 0.01, 0.02, 0.05, 0.1)


@dataclasses.dataclass(frozen=True)
class Options:
    """How long, what the learner observes, and what is kept.

    Attributes:
        num_episodes: K.
        observations: "mean" or "bernoulli".
        record: the episodes to keep; None chooses them by K.
        unsafe_at: levels ε for the share of episodes with some violation ≥ ε.
        potential: whether Φ_k is computed.
        log: whether the episodes are kept.
        precision: "double" or "single".
        stationary: whether the learner knows that the model is the same at every step, and shares
            its counts over them.
    """

    num_episodes: int
    observations: str = "mean"
    record: Iterable[int] | None = None
    unsafe_at: Sequence[float] = UNSAFE_AT
    potential: bool = False
    log: bool = False
    precision: str = "double"
    stationary: bool = False

    def __post_init__(self) -> None:
        """Check and complete: tuples, so that an `Options` can be compared and written down."""
        check_choice("observations", self.observations, ("mean", "bernoulli"))
        check_choice("precision", self.precision, ("double", "single"))
        for name in ("potential", "log", "stationary"):
            object.__setattr__(self, name, require_flag(name, getattr(self, name)))
        count = require_count("num_episodes", self.num_episodes)
        object.__setattr__(self, "num_episodes", count)
        object.__setattr__(self, "unsafe_at", as_levels(self.unsafe_at))
        if self.record is not None:
            chosen = episodes_to_record(count, self.record)
            object.__setattr__(self, "record", tuple(chosen.tolist()))

    @property
    def recorded(self) -> np.ndarray:
        """The episodes that are kept, `[T]`; the last is K."""
        return episodes_to_record(self.num_episodes, self.record)

    def _asdict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        chosen = dataclasses.asdict(self) | {"unsafe_at": list(self.unsafe_at)}
        return chosen | {"record": None if self.record is None else list(self.record)}
