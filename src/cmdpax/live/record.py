"""All episodes that an agent played, thinned: a record whose size does not grow with their number.

Consecutive episodes make a block: how many they are, how many were cut short or missed a threshold,
and of the returns of whole ones the mean, the least and the largest. There are at most `MOST`
blocks. When all of them are full, neighbours are joined, so that every block has twice as many
episodes. Blocks of one episode, as there are at the beginning, lose nothing.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cmdpax.intervals import student
from cmdpax.live.declaration import Declaration
from cmdpax.model.words import Words

if TYPE_CHECKING:
    import polars

MOST = 512
"""Blocks; an even number."""


class Blocks(NamedTuple):
    """Blocks of consecutive episodes; entry 0 of a signal's axis is the reward."""

    episodes: np.ndarray  # how many, [n]: equally many in all but the last, a power of two
    cut_short: np.ndarray  # how many of them, [n]
    missed: np.ndarray  # how many miss their own threshold, [n, I]
    mean: np.ndarray  # return of whole episodes, [n, J]; NaN where there is none
    squares: np.ndarray  # sums of squared distances from it, [n, J]
    low: np.ndarray  # the least return, [n, J]
    high: np.ndarray  # the largest one, [n, J]

    @classmethod
    def empty(cls, num_constraints: int) -> "Blocks":
        """Before the first episode."""
        counts, missed = np.zeros(0, np.int64), np.zeros((0, num_constraints), np.int64)
        nothing = np.zeros((0, 1 + num_constraints))
        return cls(counts, counts, missed, nothing, nothing, nothing, nothing)

    @classmethod
    def of_recent(cls, recent: np.ndarray, declared: Declaration) -> "Blocks":
        """A block for each of a tally's recent episodes, for files that have no blocks."""
        num_constraints = declared.sizes.num_constraints
        blocks = cls.empty(num_constraints)
        for row in recent:
            returns, missing = row[: 1 + num_constraints], row[-1]
            missed = declared.units.misses(returns[1:], declared.thresholds, missing)
            blocks = blocks.after(returns, missed, missing > 0)
        return blocks

    @property
    def num_episodes(self) -> int:
        """How many episodes they have together."""
        return sum(self.episodes.tolist())

    @property
    def length(self) -> int:
        """How many episodes a full block has; only full blocks are joined."""
        return int(self.episodes[0]) if len(self.episodes) else 1

    def after(self, returns: np.ndarray, missed: np.ndarray, cut: bool) -> "Blocks":
        """The blocks after one more episode with these returns, `[J]`."""
        seen = np.full(len(returns), np.nan) if cut else returns
        entries = (1, cut, missed, seen, np.where(cut, np.nan, 0.0 * seen), seen, seen)
        one = Blocks(*(np.array(entry)[None] for entry in entries))
        if not len(self.episodes):
            return _appended(self, one)
        if self.episodes[-1] < self.length:
            return _appended(_rows(self, slice(-1)), _joined(_rows(self, slice(-1, None)), one))
        if len(self.episodes) == MOST:
            return _appended(_joined(_rows(self, slice(0, None, 2)), _rows(self, _ODD)), one)
        return _appended(self, one)

    def is_possible(self, episodes: int, cut_short: int, missed: np.ndarray) -> bool:
        """Whether an agent with so many episodes can have these, which a file says."""
        count, signals = len(self.episodes), 1 + len(missed)
        shapes = [(count,), (count,), (count, signals - 1), *[(count, signals)] * 4]
        kinds = ["i"] * 3 + ["f"] * 4
        if [one.shape for one in self] != shapes or [one.dtype.kind for one in self] != kinds:
            return False
        length, whole = self.length, (self.episodes - self.cut_short)[:, None]
        return (
            count <= MOST
            and length & (length - 1) == 0
            and (length == 1 or count >= MOST // 2)
            and bool((self.episodes[:-1] == length).all())
            and (not count or 1 <= self.episodes[-1] <= length)
            and self.num_episodes <= episodes
            and bool(((self.cut_short >= 0) & (self.cut_short <= self.episodes)).all())
            and bool(((self.missed >= 0) & (self.missed <= self.episodes[:, None])).all())
            and self._adds_up(self.num_episodes == episodes, cut_short, missed)
            and all(bool((np.isfinite(one) == (whole > 0)).all()) for one in self[3:])
            and bool(((self.low <= self.mean) & (self.mean <= self.high) | (whole == 0)).all())
            and bool(((self.squares >= 0) | (whole == 0)).all())
        )

    def _adds_up(self, all_of_them: bool, cut_short: int, missed: np.ndarray) -> bool:
        """Whether the counts are those of the agent, or no larger if episodes came before."""
        found = np.array([self.cut_short.sum(), *self.missed.sum(axis=0)])
        counts = np.array([cut_short, *missed])
        return bool((found == counts).all() if all_of_them else (found <= counts).all())


_ODD = slice(1, None, 2)


def _rows(blocks: Blocks, rows: slice) -> Blocks:
    return Blocks(*(one[rows] for one in blocks))


def _appended(blocks: Blocks, more: Blocks) -> Blocks:
    together = zip(blocks, more, strict=True)
    return Blocks(*(np.concatenate(pair).astype(pair[0].dtype) for pair in together))


def _joined(blocks: Blocks, others: Blocks) -> Blocks:
    """Each block with its neighbour; means and squares as Chan, Golub and LeVeque update them."""
    whole, more = ((one.episodes - one.cut_short)[:, None] for one in (blocks, others))
    share = more / np.maximum(whole + more, 1)
    gap = np.where((whole > 0) & (more > 0), others.mean - blocks.mean, 0.0)
    low, high = np.fmin(blocks.low, others.low), np.fmax(blocks.high, others.high)
    mean = np.where(whole > 0, blocks.mean, others.mean) + gap * share
    squares = [np.where(n > 0, one.squares, 0.0) for n, one in ((whole, blocks), (more, others))]
    return Blocks(
        blocks.episodes + others.episodes,
        blocks.cut_short + others.cut_short,
        blocks.missed + others.missed,
        np.clip(mean, low, high),  # rounding must not move it outside
        np.where(whole + more > 0, squares[0] + squares[1] + gap**2 * whole * share, np.nan),
        low,
        high,
    )


# ----------------------------------------------------------------------------- what users are given


class AgentRecord(NamedTuple):
    """All episodes that an agent played, in at most 512 blocks of consecutive ones.

    Numbers are in your units. Arrays of signals have the reward first, then the constraints.

    Attributes:
        first: the number of each block's first episode, `[n]`, counted from 1 among the episodes
            that the agent played; the first block of a file from an earlier version begins later.
        episodes: how many each block has, `[n]`.
        cut_short: how many of them were cut short, `[n]`; their returns are in no mean or extreme.
        missed: how many miss each threshold themselves, `[n, I]`.
        mean: mean returns, `[n, 1 + I]`; NaN where all episodes of a block were cut short.
        low: the least returns, `[n, 1 + I]`.
        high: the largest returns, `[n, 1 + I]`.
        squares: sums of squared distances from the mean, `[n, 1 + I]`.
        names: of the signals.
        units: of the signals; empty where there is none.
    """

    first: np.ndarray
    episodes: np.ndarray
    cut_short: np.ndarray
    missed: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    squares: np.ndarray
    names: tuple[str, ...]
    units: tuple[str, ...]

    @property
    def last(self) -> np.ndarray:
        """The number of each block's last episode, `[n]`."""
        return self.first + self.episodes - 1

    @property
    def whole(self) -> np.ndarray:
        """How many episodes of each block were not cut short, `[n]`."""
        return self.episodes - self.cut_short

    def frame(self) -> "polars.DataFrame":
        """A polars frame with a row for every block and signal."""
        import polars

        blocks, signals = self.mean.shape
        gaps = np.hstack([np.full((blocks, 1), -1), self.missed])  # the reward has no threshold

        def repeated(counts: np.ndarray) -> np.ndarray:
            return np.repeat(counts, signals)

        columns: dict[str, Any] = {
            "first": repeated(self.first),
            "episodes": repeated(self.episodes),
            "cut_short": repeated(self.cut_short),
            "signal": list(self.names) * blocks,
            "unit": list(self.units) * blocks,
            "mean": self.mean.ravel(),
            "low": self.low.ravel(),
            "high": self.high.ravel(),
            "missed": [None if count < 0 else count for count in gaps.ravel().tolist()],
        }
        return polars.DataFrame(columns)


def record_of(blocks: Blocks, episodes: int, words: Words) -> AgentRecord:
    """The record of an agent that has played so many episodes."""
    before = np.cumsum(blocks.episodes) - blocks.episodes
    signals = range(blocks.mean.shape[1])
    names = [words.constraint(i - 1) if i else words.objective for i in signals]
    return AgentRecord(
        first=1 + episodes - blocks.num_episodes + before,
        **{name: one.copy() for name, one in blocks._asdict().items()},
        names=tuple(names),
        units=tuple(words.unit(i) for i in signals),
    )


class Moving(NamedTuple):
    """Moving means of a record, each of the same number of blocks.

    Attributes:
        window: how many episodes a mean is of, at most.
        episodes: the number of the last of them, `[m]`.
        mean: `[m, 1 + I]`; NaN where all of them were cut short.
        half: half of Student's 95 % interval of it; infinite where it is of one episode.
    """

    window: int
    episodes: np.ndarray
    mean: np.ndarray
    half: np.ndarray


def moving_means(record: AgentRecord, window: int) -> Moving:
    """Means of whole blocks with at least so many episodes, as if no block had been made."""
    length = int(record.episodes[0])
    width = min(-(-window // length), len(record.episodes))
    whole = record.whole[:, None]
    counts = _windows(whole, width)
    means = _windows(np.where(whole > 0, record.mean, 0.0), width)
    squares = _windows(np.where(whole > 0, record.squares, 0.0), width)
    total = counts.sum(axis=-1)
    mean = (counts * means).sum(axis=-1) / np.maximum(total, 1)
    spread = (squares + counts * (means - mean[..., None]) ** 2).sum(axis=-1)
    sizes, places = np.unique(total, return_inverse=True)
    quantiles = np.array([student(int(size)) if size > 1 else 0.0 for size in sizes])
    half = quantiles[places.reshape(total.shape)] * np.sqrt(
        spread / np.maximum(total - 1, 1) / np.maximum(total, 1)
    )
    return Moving(
        min(width * length, int(record.episodes.sum())),
        record.last[width - 1 :],
        np.where(total > 0, mean, np.nan),
        np.where(total > 1, half, np.inf),
    )


def _windows(rows: np.ndarray, width: int) -> np.ndarray:
    """`[m, J, width]`."""
    return np.lib.stride_tricks.sliding_window_view(rows, width, axis=0)
