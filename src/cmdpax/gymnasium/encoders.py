"""Ready-made encoders for `interact`, which turn observations into states."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cmdpax.checks import require_count
from cmdpax.errors import ParameterError, shown

Encoder = Callable[[Any], int]
"""Turns an observation into a state 0 … S - 1."""


def _flat(values: Any) -> np.ndarray:
    """All entries in one row; ragged lists have none that can be used."""
    try:
        return np.ravel(values)
    except ValueError:
        return np.array([None])


class MultiDiscreteEncoder:
    """A state for every combination of the entries of a MultiDiscrete observation.

    Args:
        sizes: how many values each entry has, such as `env.observation_space.nvec`.
        start: the first value of each entry, such as `env.observation_space.start`; None is 0.

    Attributes:
        num_states: S, the product of the sizes.

    Examples:
        >>> from cmdpax.gymnasium import MultiDiscreteEncoder
        >>> encoder = MultiDiscreteEncoder([3, 4])
        >>> encoder.num_states, encoder([2, 1])
        (12, 9)
    """

    def __init__(self, sizes: Sequence[int] | np.ndarray, start: Any = None) -> None:
        """Check the sizes."""
        self._sizes = tuple(require_count("a size", size) for size in _flat(sizes))
        self._start = np.zeros(len(self._sizes), int) if start is None else np.array(start).ravel()
        if self._start.shape != (len(self._sizes),):
            raise ParameterError(
                f"start has {self._start.size} entries, sizes has {len(self._sizes)}."
            )
        self.num_states = int(np.prod(self._sizes))

    def __call__(self, observation: Any) -> int:
        """The state of an observation."""
        entries = _flat(observation)
        if entries.dtype.kind in "iu" and entries.shape == self._start.shape:
            places = entries - self._start
            if ((places >= 0) & (places < self._sizes)).all():
                return int(np.ravel_multi_index(tuple(places.tolist()), self._sizes))
        raise ParameterError(
            f"the observation is {shown(observation)}, expected whole numbers, one for each of the "
            f"sizes {self._sizes}."
        )


class BoxEncoder:
    """A state for every cell of a grid laid over a Box observation.

    Args:
        edges: for every entry of the observation the inner edges of its cells, ascending; n edges
            make n + 1 cells, the outer ones being open.

    Attributes:
        num_states: S, the number of cells.

    Examples:
        >>> from cmdpax.gymnasium import BoxEncoder
        >>> encoder = BoxEncoder([[-0.5, 0.5], [0.0]])
        >>> encoder.num_states, encoder([0.7, -3.0])
        (6, 4)
    """

    def __init__(self, edges: Sequence[Any]) -> None:
        """Check the edges."""
        try:
            self._edges = [np.array(inner, dtype=float) for inner in edges]
        except (TypeError, ValueError, OverflowError):
            self._edges = []
        if not self._edges or any(inner.ndim == 0 for inner in self._edges):
            raise ParameterError(
                f"edges is {shown(edges)}, it must be a list of lists: ascending numbers for every "
                "entry of the observation, such as [[5, 15, 25]] for one entry."
            )
        for index, inner in enumerate(self._edges):
            if inner.ndim != 1 or not np.isfinite(inner).all() or (np.diff(inner) <= 0).any():
                raise ParameterError(f"edges[{index}] is {inner}, it must be ascending numbers.")
        self._sizes = tuple(len(inner) + 1 for inner in self._edges)
        self.num_states = int(np.prod(self._sizes))

    def __call__(self, observation: Any) -> int:
        """The state of an observation."""
        entries = _flat(observation)
        if (
            entries.dtype.kind not in "biuf"
            or len(entries) != len(self._edges)
            or np.isnan(entries).any()
        ):
            raise ParameterError(
                f"the observation is {shown(observation)}, expected {len(self._edges)} real "
                f"number{'s' if len(self._edges) > 1 else ''}, not NaN."
            )
        cells = [
            int(np.searchsorted(inner, entry, side="right"))
            for inner, entry in zip(self._edges, entries, strict=True)
        ]
        return int(np.ravel_multi_index(cells, self._sizes))
